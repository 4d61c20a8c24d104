"""Windows on sparse graphs of mean degree 4 to 5, beside all baselines."""

from functools import partial
from pathlib import Path

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import SparseSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.experiments import classical_labels, deepwalk, draw, recovery_rows, row


def sparse(rows: Path, *, dataset: str, seeds: Seeds, settings: SparseSettings) -> None:
    """Write the accuracy of DeepWalk with each window, and of the baselines.

    `deepwalk/w3-short` starts shorter, so that the linear phase has longer to align the vector:
    the second singular value of M is close to the first one here.
    """
    block = BlockModel.parse(dataset)
    make = partial(row, "sparse", dataset)
    found = []
    for seed in seeds:
        graph = draw(block, seed)
        labels = {}
        base = settings.descent.window
        trials = {f"deepwalk/w{window}": (window, {}) for window in settings.windows}
        trials[f"deepwalk/w{base}-short"] = (base, {"init_scale": settings.short_start})
        for method, (window, changes) in trials.items():
            model = deepwalk(settings.descent, seed, **changes)
            history = model.fit(Cooccurrence(graph.adjacency, window)).history_
            labels[method] = model.labels(2)
            found.append(make(method, seed, "gradient", history["grad_rms"][-1]))
            found.append(make(method, seed, "final_step", history["step"][-1]))
        labels |= classical_labels(graph, seed, window=base, component=True)
        found += recovery_rows("sparse", dataset, seed, labels, graph.known)
        found.append(make("graph", seed, "isolated", graph.isolated.sum()))
    write_metrics(found, rows)
