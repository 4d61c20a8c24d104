"""Random walks, and how often two nodes meet in them within a window."""

import numpy as np
from scipy import sparse

from retable.deepwalk.graphs import check_adjacency

# Pairs counted at a time, so that the working memory does not grow with the number of walks.
_PAIRS_AT_A_TIME = 2**22


def random_walks(adjacency, n_walks: int, walk_length: int, *, seed: int) -> np.ndarray:
    """Walk `n_walks` times from every node that has an edge, `walk_length` steps each.

    Returns (n_walks * m, walk_length + 1) int64, m the number of nodes with an edge; the next node
    is drawn in proportion to the edge weights (uniformly without weights). Raises ValueError for
    n_walks < 1, walk_length < 1, or an adjacency that `check_adjacency` refuses.
    """
    matrix = check_adjacency(adjacency)
    _check_counts(n_walks=n_walks, walk_length=walk_length)
    rng = np.random.default_rng(seed)
    indptr, indices, weights = matrix.indptr, matrix.indices, matrix.data
    degree = np.diff(indptr)
    weighted = (weights != weights[0]).any()
    cumulative = np.concatenate([[0.0], np.cumsum(weights)])

    node = np.tile(np.flatnonzero(degree), n_walks)
    walks = np.empty((node.size, walk_length + 1), dtype=np.int64)
    walks[:, 0] = node
    for step in range(1, walk_length + 1):
        if weighted:
            low, high = cumulative[indptr[node]], cumulative[indptr[node + 1]]
            edge = np.searchsorted(cumulative, low + rng.random(node.size) * (high - low), "right")
            # A sum that is rounded up could point one past the node's last edge.
            edge = np.clip(edge - 1, indptr[node], indptr[node + 1] - 1)
        else:
            edge = indptr[node] + rng.integers(degree[node])
        node = indices[edge]
        walks[:, step] = node
    return walks


def cooccurrence_from_walks(walks: np.ndarray, n: int, window: int) -> sparse.csr_array:
    """Count the pairs of nodes at distance 1..window in the walks, in both orders.

    walks: (m, length + 1) integers in 0..n-1. Returns csr (n, n) float64, symmetric. Raises
    ValueError for window outside 1..length and for nodes outside 0..n-1.
    """
    walks = check_walks(walks, n)
    _check_window(window, walks.shape[1] - 1)
    counts = sparse.csr_array((n, n), dtype=np.float64)
    rows = max(1, _PAIRS_AT_A_TIME // walks.shape[1])
    for start in range(0, walks.shape[0], rows):
        part = walks[start : start + rows]
        for distance in range(1, window + 1):
            pair = (part[:, :-distance].ravel(), part[:, distance:].ravel())
            counts += sparse.coo_array((np.ones(pair[0].size), pair), shape=(n, n)).tocsr()
    return (counts + counts.T).tocsr()


def check_walks(walks: np.ndarray, n: int) -> np.ndarray:
    """The walks as an array; raises ValueError unless they are integers (m, length + 1) below n."""
    walks = np.asarray(walks)
    if walks.ndim != 2 or walks.shape[0] == 0 or walks.shape[1] < 2:
        raise ValueError(f"walks must have shape (m >= 1, length + 1 >= 2), got {walks.shape}")
    if not np.issubdtype(walks.dtype, np.integer):
        raise ValueError(f"walks must hold integers, got {walks.dtype}")
    if walks.min() < 0 or walks.max() >= n:
        raise ValueError(f"walks must hold nodes in 0..{n - 1}, got {walks.min()} to {walks.max()}")
    return walks


def expected_cooccurrence(adjacency, n_walks: int, walk_length: int, window: int) -> np.ndarray:
    """The expectation of the counts over the walks; (n, n) float64, dense, for small graphs.

    With P = D^-1 A and pi_t the expected number of walkers at each node after t of L steps, a pair
    at distance r is counted L - r + 1 times in each walk:
    n_walks * sum_{r <= window} sum_{t <= L - r} (diag(pi_t) P^r + its transpose).
    """
    matrix = check_adjacency(adjacency)
    _check_counts(n_walks=n_walks, walk_length=walk_length)
    _check_window(window, walk_length)
    degree = matrix.sum(axis=1)
    transition = np.divide(
        matrix.toarray(), degree[:, None], out=np.zeros(matrix.shape), where=degree[:, None] > 0
    )
    walkers = [(degree > 0).astype(np.float64)]
    for _ in range(walk_length - 1):
        walkers.append(walkers[-1] @ transition)
    counts = np.zeros(matrix.shape)
    power = np.eye(matrix.shape[0])
    for distance in range(1, window + 1):
        power = power @ transition
        counts += np.sum(walkers[: walk_length - distance + 1], axis=0)[:, None] * power
    return n_walks * (counts + counts.T)


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if not value >= 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def _check_window(window: int, walk_length: int) -> None:
    if not 1 <= window <= walk_length:
        raise ValueError(f"window must lie in 1..walk_length = 1..{walk_length}, got {window}")
