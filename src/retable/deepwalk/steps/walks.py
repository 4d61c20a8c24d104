"""A few sampled walks a node, beside the limit of long walks."""

from functools import partial
from pathlib import Path

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import WalksSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.experiments import deepwalk, draw, recovery_rows, row
from retable.deepwalk.walks import cooccurrence_from_walks, random_walks


def walks(rows: Path, *, dataset: str, seeds: Seeds, settings: WalksSettings) -> None:
    """Write the accuracy with each way to count: `10x40` are 10 walks of 40 steps a node.

    `earlier-10x40` has the settings of the authors' earlier code: the start uniform in (-1, 1),
    and step 0.1 on the counts as they are, which the guard cuts down.
    """
    block = BlockModel.parse(dataset)
    make = partial(row, "walks", dataset)
    window = settings.descent.window
    found = []
    for seed in seeds:
        graph = draw(block, seed)
        models = {"deepwalk": deepwalk(settings.descent, seed)}
        counts = {"deepwalk": Cooccurrence(graph.adjacency, window)}
        for sampling in settings.sampling:
            name = f"{sampling.n_walks}x{sampling.walk_length}"
            walked = random_walks(
                graph.adjacency, sampling.n_walks, sampling.walk_length, seed=seed
            )
            sampled = Cooccurrence.from_matrix(cooccurrence_from_walks(walked, graph.n, window))
            counts[f"deepwalk/{name}"] = counts[f"deepwalk/earlier-{name}"] = sampled
            models[f"deepwalk/{name}"] = deepwalk(settings.descent, seed)
            models[f"deepwalk/earlier-{name}"] = deepwalk(
                settings.descent,
                seed,
                init="uniform",
                init_scale=1.0,
                # Counts of mass n have the gradient of the raw ones times n / raw_mass.
                step=0.1 * sampled.raw_mass / sampled.n,
            )
        labels = {}
        for method, model in models.items():
            model.fit(counts[method])
            labels[method] = model.labels(2)
            found.append(make(method, seed, "iterations", model.n_iter_))
            found.append(make(method, seed, "converged", model.converged_))
        found += recovery_rows("walks", dataset, seed, labels, graph.known)
    write_metrics(found, rows)
