"""Accuracy over the plane of (a, b), beside all baselines."""

import re
from itertools import product
from pathlib import Path

from retable.common.errors import InputError
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import PhaseSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.experiments import classical_labels, deepwalk, draw, recovery_rows, row


def phase(rows: Path, *, dataset: str, seeds: Seeds, settings: PhaseSettings) -> None:
    """Write the accuracy of all methods at each point (a, b) with a > b, on graphs of n nodes.

    dataset: `sbm_log_grid_n1000` for n = 1000.
    """
    found_name = re.fullmatch(r"sbm_log_grid_n(\d+)", dataset)
    if found_name is None:
        raise InputError(
            f"config/deepwalk.yaml: datasets: phase: '{dataset}' must be sbm_log_grid_n<nodes>"
        )
    n = int(found_name[1])
    window = settings.descent.window
    found = []
    for a, b in product(settings.a, settings.b):
        if a <= b:
            continue
        block = BlockModel(a, b, n)
        for seed in seeds:
            graph = draw(block, seed)
            model = deepwalk(settings.descent, seed).fit(Cooccurrence(graph.adjacency, window))
            labels = {"deepwalk": model.labels(2)} | classical_labels(graph, seed, window=window)
            found += recovery_rows("phase", str(block), seed, labels, graph.known)
            found.append(row("phase", str(block), "graph", seed, "isolated", graph.isolated.sum()))
    write_metrics(found, rows)
