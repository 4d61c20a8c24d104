"""What needs no training: graph kernels (GraKeL), and counts of vertices, edges and node labels."""

from collections.abc import Sequence

import numpy as np

from retable.gemax.data import GraphSet, dense


def wl_kernel(graphs: GraphSet, iterations: int = 5) -> np.ndarray:
    """Weisfeiler-Lehman subtree kernel, normalised: (G, G). Vertices with equal features match."""
    from grakel import GraphKernel

    kernel = GraphKernel(
        [{"name": "weisfeiler_lehman", "n_iter": iterations}, "subtree_wl"], normalize=True
    )
    return kernel.fit_transform(_grakel_graphs(graphs))


def graphlet_kernel(
    graphs: GraphSet, sizes: Sequence[int] = (3, 4), samples: int = 100, seed: int = 0
) -> np.ndarray:
    """Mean of the normalised kernels of sampled graphlets of each size: (G, G)."""
    from grakel.kernels import GraphletSampling

    inputs = _grakel_graphs(graphs)
    return np.mean(
        [
            GraphletSampling(
                k=size,
                sampling={"n_samples": samples},
                normalize=True,
                random_state=seed,
            ).fit_transform(inputs)
            for size in sizes
        ],
        axis=0,
    )


def histograms(graphs: GraphSet) -> np.ndarray:
    """Counts of node labels (the 0/1 columns of the features), of vertices and of edges: (G, f').

    Node attributes are not counted: f' is the number of labels and 2.
    """
    labels = _label_columns(graphs)
    rows = [
        [*np.asarray(x)[:, labels].sum(0), len(x), adjacency.sum() / 2]
        for adjacency, x in zip(graphs.adjacency, graphs.features, strict=True)
    ]
    return np.array(rows, dtype=np.float64)


def _label_columns(graphs: GraphSet) -> np.ndarray:
    """Which columns of the features are one-hot labels: (f,) bool. Attributes are no labels."""
    return np.isin(np.concatenate([np.asarray(x) for x in graphs.features]), (0, 1)).all(0)


def _grakel_graphs(graphs: GraphSet) -> list[list[dict]]:
    """GraKeL's form: edges as a dictionary of neighbours, a label a vertex."""
    stacked = np.concatenate([np.asarray(x) for x in graphs.features])
    _, names = np.unique(stacked[:, _label_columns(graphs)], axis=0, return_inverse=True)
    found, start = [], 0
    for adjacency in graphs.adjacency:
        matrix = dense(adjacency)
        n = len(matrix)
        neighbours = {i: np.flatnonzero(row).tolist() for i, row in enumerate(matrix)}
        labels = dict(enumerate(names[start : start + n].tolist()))
        found.append([neighbours, labels])
        start += n
    return found
