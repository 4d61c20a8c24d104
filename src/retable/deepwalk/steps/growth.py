"""Recovery as the graph grows."""

from functools import partial
from pathlib import Path

import numpy as np

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import GrowthSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.experiments import (
    block_signal,
    centred_product,
    classical_labels,
    deepwalk,
    draw,
    largest_rise,
    recovery_rows,
    row,
)
from retable.deepwalk.theory import expected_lost_nodes, fixed_point


def growth(rows: Path, *, dataset: str, seeds: Seeds, settings: GrowthSettings) -> None:
    """Embed a graph a seed until convergence; write accuracy, steps, and where descent ended."""
    block = BlockModel.parse(dataset)
    window = settings.descent.window
    make = partial(row, "growth", dataset)
    # What depends on no seed stands in the file of the first job alone.
    found = [] if 0 not in seeds else [
        make("theory", None, "expected_lost", expected_lost_nodes(block.n, block.p, block.q)),
        make("theory", None, "product", fixed_point(block_signal(block, window))),
    ]  # fmt: skip
    for seed in seeds:
        graph = draw(block, seed)
        model = deepwalk(settings.descent, seed)
        model.fit(Cooccurrence(graph.adjacency, window), graph.known)
        labels = {"deepwalk": model.labels(2)} | classical_labels(graph, seed, window=window)
        found += recovery_rows("growth", dataset, seed, labels, graph.known)
        history = model.history_
        values = {
            "iterations": model.n_iter_,
            "converged": model.converged_,
            "gradient": history["grad_rms"][-1],
            "largest_rise": largest_rise(history["loss"]),
            "alignment": history["alignment"][-1],
            "product": centred_product(model.embedding_, model.context_, graph.labels),
        }
        aligned = np.flatnonzero(history["alignment"] >= 0.95)
        if aligned.size:
            values["steps_to_alignment"] = aligned[0]
        found += [make("deepwalk", seed, metric, value) for metric, value in values.items()]
        found.append(make("graph", seed, "isolated", graph.isolated.sum()))
    write_metrics(found, rows)
