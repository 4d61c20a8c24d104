"""What the experiments share: named graphs, the methods to compare, tidy rows."""

from functools import partial
from typing import Any

import numpy as np

from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import Descent
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.embedding import DeepWalk, cluster
from retable.deepwalk.graphs import Graph, largest_component, sbm_log
from retable.deepwalk.metrics import accuracy, exact_recovery
from retable.deepwalk.spectral import linear_embedding, spectral_embedding
from retable.deepwalk.theory import signal

# Random starts are drawn from other streams than the graphs.
START_SEED = 1_000_000


def draw(block: BlockModel, seed: int) -> Graph:
    """Draw a graph from a named block model."""
    return sbm_log(block.n, block.a, block.b, block.k, seed=seed)


def block_signal(block: BlockModel, window: int) -> float:
    """The signal s of a named block model (`theory.signal`)."""
    return signal(block.a, block.b, window, block.k)


def row(
    experiment: str,
    dataset: str,
    method: str,
    seed: int | None,
    metric: str,
    value: float,
    x: float | None = None,
) -> dict[str, Any]:
    """One tidy row, in the form that `write_metrics` takes."""
    keys = ("experiment", "dataset", "method", "seed", "metric", "value", "x")
    return dict(
        zip(keys, (experiment, dataset, method, seed, metric, float(value), x), strict=True)
    )


def recovery_rows(
    experiment: str, dataset: str, seed: int, labels: dict[str, np.ndarray], truth: np.ndarray
) -> list[dict[str, Any]]:
    """Accuracy and exact recovery (0 or 1) of each method's labels on one graph."""
    make = partial(row, experiment, dataset)
    rows = []
    for method, found in labels.items():
        rows.append(make(method, seed, "accuracy", accuracy(found, truth)))
        rows.append(make(method, seed, "exact", exact_recovery(found, truth)))
    return rows


def deepwalk(descent: Descent, seed: int, *, dim: int = 1, **changes: Any) -> DeepWalk:
    """The method with an experiment's settings; `changes` override single ones."""
    settings = descent.model_dump(exclude={"window"}) | changes
    return DeepWalk(dim=dim, seed=START_SEED + seed, **settings)


def classical_labels(
    graph: Graph, seed: int, *, window: int, k: int = 2, component: bool = False
) -> dict[str, np.ndarray]:
    """Labels of what DeepWalk is compared with, in k - 1 dimensions, on the same graph.

    Spectral embeddings of three matrices, and `linear`: power iteration on DeepWalk's own centred
    co-occurrence matrix. With `component`, also the normalised matrix of the largest connected
    component alone (other nodes get the label 0), since small components lead it astray.
    """
    kinds = ("adjacency", "normalized", "regularized")
    embeddings = {
        f"spectral/{kind}": spectral_embedding(graph.adjacency, kind, k - 1) for kind in kinds
    }
    cooc = Cooccurrence(graph.adjacency, window)
    embeddings["linear"] = linear_embedding(cooc, k - 1, seed=START_SEED + seed)
    if component:
        inside = largest_component(graph.adjacency)
        whole = np.zeros((graph.n, k - 1))
        whole[inside] = spectral_embedding(graph.adjacency[inside][:, inside], "normalized", k - 1)
        embeddings["spectral/normalized-component"] = whole
    return {method: cluster(x, k, seed=seed) for method, x in embeddings.items()}


def largest_rise(loss: np.ndarray) -> float:
    """The largest rise of the loss in one step, as a share of it; 0 if it never rises."""
    return float(max(0.0, np.max(np.diff(loss) / np.abs(loss[:-1]), initial=0.0)))


def centred_product(x: np.ndarray, y: np.ndarray, labels: np.ndarray) -> float:
    """(mean z x)(mean z y) with z = +-1 the communities and y centred; theory: artanh(s)."""
    z = 2.0 * labels - 1
    return float(np.mean(z * x[:, 0]) * np.mean(z * (y[:, 0] - y.mean())))
