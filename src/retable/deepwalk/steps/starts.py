"""Many random starts, short and long, on the same graph."""

from functools import partial
from pathlib import Path

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import StartsSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.experiments import deepwalk, draw, row
from retable.deepwalk.metrics import accuracy


def starts(rows: Path, *, dataset: str, seeds: Seeds, settings: StartsSettings) -> None:
    """Write, for each graph, mean, smallest and largest accuracy over the starts of each scale."""
    block = BlockModel.parse(dataset)
    make = partial(row, "starts", dataset)
    found = []
    for seed in seeds:
        graph = draw(block, seed)
        cooc = Cooccurrence(graph.adjacency, settings.descent.window)
        everything = []
        for scale in settings.scales:
            reached = []
            for start in range(settings.n_starts):
                # No two graphs share a start.
                model = deepwalk(
                    settings.descent, seed * settings.n_starts + start, init_scale=scale
                )
                reached.append(accuracy(model.fit(cooc).labels(2), graph.known))
            method = f"deepwalk/scale{scale:g}"
            found.append(make(method, seed, "accuracy", sum(reached) / len(reached)))
            found.append(make(method, seed, "accuracy_smallest", min(reached)))
            found.append(make(method, seed, "accuracy_largest", max(reached)))
            everything += reached
        found.append(make("deepwalk", seed, "spread", max(everything) - min(everything)))
    write_metrics(found, rows)
