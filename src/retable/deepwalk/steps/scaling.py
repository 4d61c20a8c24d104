"""Time and memory against the number of edges, and beside other ways to compute the same."""

import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import ScalingSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.embedding import loss_and_grad
from retable.deepwalk.experiments import deepwalk, draw, row
from retable.deepwalk.graphs import Graph
from retable.deepwalk.peers import word2vec
from retable.deepwalk.spectral import linear_embedding, spectral_embedding
from retable.deepwalk.walks import random_walks


def scaling(rows: Path, *, dataset: str, seeds: Seeds, settings: ScalingSettings) -> None:
    """Write ratios of CPU times taken side by side in alternation, and of peak memory.

    dataset: `sbm_log_a6_b1` for (a, b) = (6, 1); the sizes are the settings' `nodes`.
    """
    found = []
    for seed in seeds:
        blocks = [BlockModel.parse(f"{dataset}_n{n}") for n in settings.nodes]
        graphs = [draw(block, seed) for block in blocks]
        found += _growth_of_costs(dataset, seed, graphs, settings)
        found += _softmax(BlockModel.parse(f"{dataset}_n{settings.softmax_n}"), seed, settings)
        found += _fits(BlockModel.parse(f"{dataset}_n{settings.fit_n}"), seed, settings)
    write_metrics(found, rows)


def _growth_of_costs(
    dataset: str, seed: int, graphs: list[Graph], settings: ScalingSettings
) -> list[dict]:
    """Cost of one gradient and peak memory of a fit, relative to the smallest graph."""
    descent = settings.descent
    coocs = [Cooccurrence(graph.adjacency, descent.window) for graph in graphs]
    # Vectors of the length that they have for most of a descent.
    ends = [deepwalk(descent, seed, max_iter=25).fit(cooc) for cooc in coocs]
    times = _alternate(
        [
            partial(loss_and_grad, end.embedding_, end.context_, cooc, "auto")
            for end, cooc in zip(ends, coocs, strict=True)
        ],
        settings.repeats,
    )
    memory = [_peak_memory(graph, settings) for graph in graphs]
    edges = np.array([graph.adjacency.nnz / 2 for graph in graphs])
    rows = []
    for name, costs in (("time", times), ("memory", np.array(memory, dtype=float))):
        slope = np.polyfit(np.log(edges), np.log(costs), 1)[0]
        rows.append(row("scaling", dataset, "deepwalk", seed, f"{name}_slope", slope))
        for graph, cost, count in zip(graphs[1:], costs[1:], edges[1:], strict=True):
            place = f"{dataset}_n{graph.n}"
            ratio = cost / costs[0] / (count / edges[0])
            rows.append(row("scaling", place, "deepwalk", seed, f"{name}_per_edge_ratio", ratio))
    return rows


def _softmax(block: BlockModel, seed: int, settings: ScalingSettings) -> list[dict]:
    """CPU time of a gradient with all pairs in the softmax, as a multiple of the interpolated."""
    cooc = Cooccurrence(draw(block, seed).adjacency, settings.descent.window)
    end = deepwalk(settings.descent, seed, max_iter=25).fit(cooc)
    fast, slow = _alternate(
        [
            partial(loss_and_grad, end.embedding_, end.context_, cooc, softmax)
            for softmax in ("chebyshev", "exact")
        ],
        settings.repeats,
    )
    return [row("scaling", str(block), "exact softmax", seed, "gradient_time_ratio", slow / fast)]


def _fits(block: BlockModel, seed: int, settings: ScalingSettings) -> list[dict]:
    """CPU time of other methods from the graph to the embedding, as multiples of DeepWalk's."""
    graph = draw(block, seed)

    def own() -> None:
        deepwalk(settings.descent, seed).fit(Cooccurrence(graph.adjacency, settings.descent.window))

    def sampled() -> None:
        sampling = settings.sampling
        walks = random_walks(graph.adjacency, sampling.n_walks, sampling.walk_length, seed=seed)
        word2vec(walks, graph.n, 1, epochs=1, seed=seed)

    others = {
        "spectral/normalized": lambda: spectral_embedding(graph.adjacency, "normalized"),
        "linear": lambda: linear_embedding(
            Cooccurrence(graph.adjacency, settings.descent.window), seed=seed
        ),
        "word2vec/hierarchical-k1": sampled,
    }
    base, *times = _alternate([own, *others.values()], min(3, settings.repeats))
    return [
        row("scaling", str(block), method, seed, "fit_time_ratio", taken / base)
        for method, taken in zip(others, times, strict=True)
    ]


def _alternate(calls: Sequence[Callable[[], object]], repeats: int) -> np.ndarray:
    """Median CPU time of each call over rounds in which all take turns, in s; (calls,)."""
    times = np.empty((repeats, len(calls)))
    for turn in range(repeats):
        for number, call in enumerate(calls):
            begin = time.process_time()
            call()
            times[turn, number] = time.process_time() - begin
    return np.median(times, axis=0)


def _peak_memory(graph: Graph, settings: ScalingSettings) -> int:
    """Most memory that counts and three steps of descent allocate at once, in bytes."""
    tracemalloc.start()
    try:
        cooc = Cooccurrence(graph.adjacency, settings.descent.window)
        deepwalk(settings.descent, 0, max_iter=3).fit(cooc)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
