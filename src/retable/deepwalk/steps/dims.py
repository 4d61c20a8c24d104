"""K communities in K - 1 dimensions (an extension: the theory has two communities)."""

from functools import partial
from pathlib import Path

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import DimsSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.experiments import (
    block_signal,
    classical_labels,
    deepwalk,
    draw,
    recovery_rows,
    row,
)
from retable.deepwalk.theory import leading_singular_values


def dims(rows: Path, *, dataset: str, seeds: Seeds, settings: DimsSettings) -> None:
    """Write the accuracy of all methods in K - 1 dimensions, and the K leading singular values."""
    block = BlockModel.parse(dataset)
    make = partial(row, "dims", dataset)
    window = settings.descent.window
    found = [] if 0 not in seeds else [make("theory", None, "signal", block_signal(block, window))]
    for seed in seeds:
        graph = draw(block, seed)
        cooc = Cooccurrence(graph.adjacency, window)
        model = deepwalk(settings.descent, seed, dim=block.k - 1).fit(cooc)
        labels = {"deepwalk": model.labels(block.k)}
        labels |= classical_labels(graph, seed, window=window, k=block.k)
        found += recovery_rows("dims", dataset, seed, labels, graph.known)
        found.append(make("deepwalk", seed, "converged", model.converged_))
        for number, value in enumerate(leading_singular_values(cooc, block.k), start=1):
            found.append(make("graph", seed, f"s{number}", value))
    write_metrics(found, rows)
