"""DeepWalk as libraries compute it, on the same graphs: word2vec on walks, negative sampling."""

from pathlib import Path

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import PeersSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.embedding import cluster
from retable.deepwalk.experiments import START_SEED, classical_labels, deepwalk, draw, recovery_rows
from retable.deepwalk.peers import NegativeSampling, Output, word2vec
from retable.deepwalk.walks import random_walks

OUTPUTS: tuple[Output, ...] = ("hierarchical", "negative")


def peers(rows: Path, *, dataset: str, seeds: Seeds, settings: PeersSettings) -> None:
    """Write the accuracy of every way to compute DeepWalk; peers are labelled by k-means.

    `word2vec/hierarchical-k1` is word2vec with hierarchical softmax in one dimension. Its vectors
    need not lie around 0, hence no labels by sign.
    """
    block = BlockModel.parse(dataset)
    window = settings.descent.window
    found = []
    for seed in seeds:
        graph = draw(block, seed)
        cooc = Cooccurrence(graph.adjacency, window)
        labels = {"deepwalk": deepwalk(settings.descent, seed).fit(cooc).labels(2)}
        walks = random_walks(
            graph.adjacency, settings.sampling.n_walks, settings.sampling.walk_length, seed=seed
        )
        for output in OUTPUTS:
            for dim in settings.dims:
                vectors = word2vec(
                    walks,
                    graph.n,
                    dim,
                    window=settings.window,
                    output=output,
                    epochs=settings.epochs,
                    seed=seed,
                )
                labels[f"word2vec/{output}-k{dim}"] = cluster(vectors, 2, seed=seed, by_sign=False)
        if graph.n <= settings.negative_sampling_n:
            for dim in settings.dims:
                model = NegativeSampling(
                    dim, seed=START_SEED + seed, max_iter=settings.descent.max_iter
                ).fit(cooc)
                labels[f"negative-sampling/k{dim}"] = cluster(
                    model.embedding_, 2, seed=seed, by_sign=False
                )
        labels |= classical_labels(graph, seed, window=window)
        found += recovery_rows("peers", dataset, seed, labels, graph.known)
    write_metrics(found, rows)
