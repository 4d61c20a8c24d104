"""What an adjacency matrix, a distribution and weights must be, with one clear line otherwise."""

from typing import Any

import numpy as np


def check_adjacency(adjacency: Any, name: str = "adj") -> np.ndarray:
    """The adjacency matrix as a dense (n, n) boolean array.

    Raises:
        ValueError: not square, without vertices, not binary, with self-loops, not symmetric.
    """
    dense = adjacency.toarray() if hasattr(adjacency, "toarray") else np.asarray(adjacency)
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
        raise ValueError(f"{name}: shape {dense.shape}, must be (n, n)")
    if not len(dense):
        raise ValueError(f"{name}: the graph has no vertices")
    if not np.isin(dense, (0, 1)).all():
        bad = dense[~np.isin(dense, (0, 1))][0]
        raise ValueError(f"{name}: holds {bad}; entries must be 0 or 1")
    if dense.diagonal().any():
        vertex = int(dense.diagonal().argmax())
        raise ValueError(f"{name}: vertex {vertex} has a self-loop; none is allowed")
    if (dense != dense.T).any():
        i, j = np.argwhere(dense != dense.T)[0]
        raise ValueError(f"{name}: not symmetric: entries ({i}, {j}) and ({j}, {i}) differ")
    return dense.astype(bool)


def check_distribution(p: Any, n: int, name: str = "p") -> np.ndarray:
    """The distribution over n vertices in float64, its rounding taken off; else ValueError."""
    p = np.asarray(p, dtype=np.float64)
    if p.shape != (n,):
        raise ValueError(f"{name}: shape {p.shape}, must be ({n},)")
    if not (p >= 0).all():
        raise ValueError(f"{name}: smallest entry {p.min()}, entries must be >= 0")
    if abs(p.sum() - 1) > 1e-6:
        raise ValueError(f"{name}: sums to {p.sum()}, must sum to 1")
    return p / p.sum()
