"""Graphs with communities: the symmetric stochastic block model, and Zachary's karate club."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from retable.common.data.arrays import ArraySpec, check_arrays, load_arrays, save_arrays
from retable.common.errors import InputError


@dataclass(frozen=True)
class Graph:
    """An undirected graph and the community of each node.

    adjacency: csr (n, n) float64, symmetric, no loops; labels: (n,) int64 in 0..k-1;
    disassortative: edges between communities are likelier than inside (q > p), so that the
    community signal of an odd distance is negative.
    """

    adjacency: sparse.csr_array
    labels: np.ndarray
    disassortative: bool = False

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.adjacency.shape[0]

    @property
    def isolated(self) -> np.ndarray:
        """(n,) bool: nodes without an edge, of which no method can know the community."""
        return np.diff(self.adjacency.indptr) == 0

    @property
    def known(self) -> np.ndarray:
        """(n,) int64: the labels, with -1 at isolated nodes (accuracy leaves these out)."""
        return np.where(self.isolated, -1, self.labels)


def check_adjacency(adjacency) -> sparse.csr_array:
    """The adjacency matrix as csr float64 with sorted indices, checked.

    Accepts a dense or sparse matrix, weighted or not. Raises ValueError if it is not square, has
    fewer than two nodes, no edges, a value that is negative or not finite, a self-loop, or is not
    symmetric.
    """
    matrix = sparse.csr_array(adjacency, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"adjacency must be square, got shape {matrix.shape}")
    if matrix.shape[0] < 2:
        raise ValueError(f"adjacency must have at least 2 nodes, got {matrix.shape[0]}")
    if not np.isfinite(matrix.data).all():
        raise ValueError("adjacency must be finite, got NaN or infinite weights")
    if matrix.data.size and matrix.data.min() < 0:
        raise ValueError(f"adjacency must not be negative, got a weight of {matrix.data.min():g}")
    # csr_array(csr_array) shares its arrays with the argument, which must stay as it is.
    if not matrix.has_canonical_format or (matrix.data == 0).any():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    matrix = short_indices(matrix)
    if matrix.nnz == 0:
        raise ValueError("adjacency must have at least one edge, got none")
    loops = np.flatnonzero(matrix.diagonal())
    if loops.size:
        raise ValueError(f"adjacency must have no self-loops, got one at node {loops[0]}")
    transposed = matrix.T.tocsr()
    if not (
        np.array_equal(matrix.indptr, transposed.indptr)
        and np.array_equal(matrix.indices, transposed.indices)
        and np.array_equal(matrix.data, transposed.data)
    ):
        raise ValueError("adjacency must be symmetric, got one that differs from its transpose")
    return matrix


def short_indices(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same matrix with 32-bit indices where these suffice: products read half as much."""
    if matrix.indices.dtype == np.int32 or max(matrix.nnz, *matrix.shape) > np.iinfo(np.int32).max:
        return matrix
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=matrix.shape)


def sbm(n: int, p: float, q: float, k: int = 2, *, seed: int) -> Graph:
    """Draw a graph from the symmetric stochastic block model, in time linear in its edges.

    n nodes in k communities of equal size (to within one node, in order), each pair joined
    independently: with probability p inside a community and q between two. q > p is allowed and
    marked as `disassortative`. Raises ValueError for n < 2, k outside 1..n, probabilities outside
    [0, 1], and a draw without any edge.
    """
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n}")
    if not 1 <= k <= n:
        raise ValueError(f"k must lie in 1..n = 1..{n}, got {k}")
    for name, value in (("p", p), ("q", q)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be a probability in [0, 1], got {value}")
    rng = np.random.default_rng(seed)
    bounds = np.arange(k + 1) * n // k
    sizes = np.diff(bounds)
    heads, tails = [], []
    for g in range(k):
        for h in range(g + 1):
            if g == h:
                first, second = _decode_pair(
                    _distinct(rng, sizes[g] * (sizes[g] - 1) // 2, probability=p)
                )
            else:
                pairs = _distinct(rng, sizes[g] * sizes[h], probability=q)
                first, second = np.divmod(pairs, sizes[h])
            heads.append(first + bounds[g])
            tails.append(second + bounds[h])
    head, tail = np.concatenate(heads), np.concatenate(tails)
    if head.size == 0:
        raise ValueError(f"no edge was drawn with n = {n}, p = {p:g}, q = {q:g}, seed = {seed}")
    upper = sparse.coo_array((np.ones(head.size), (head, tail)), shape=(n, n)).tocsr()
    adjacency = (upper + upper.T).tocsr()
    adjacency.sort_indices()
    labels = np.repeat(np.arange(k, dtype=np.int64), sizes)
    return Graph(adjacency, labels, disassortative=q > p)


def sbm_log(n: int, a: float, b: float, k: int = 2, *, seed: int) -> Graph:
    """Draw a block model of logarithmic degree: p = a ln(n)/n inside and q = b ln(n)/n between.

    With k = 2 the communities can be recovered exactly if sqrt(a) - sqrt(b) > sqrt(2). Raises
    ValueError, beyond those of `sbm`, where a ln(n)/n or b ln(n)/n leaves [0, 1].
    """
    scale = math.log(n) / n if n >= 2 else math.nan
    return sbm(n, *_probabilities(n, a, b, scale, "ln(n)/n"), k, seed=seed)


def sbm_const(n: int, a: float, b: float, k: int = 2, *, seed: int) -> Graph:
    """Draw a block model of constant degree: p = a/n inside and q = b/n between.

    With k = 2 the communities can be found better than by chance if (a - b)^2 > 2 (a + b).
    Raises ValueError, beyond those of `sbm`, where a/n or b/n leaves [0, 1].
    """
    return sbm(n, *_probabilities(n, a, b, 1 / n if n >= 2 else math.nan, "1/n"), k, seed=seed)


def largest_component(adjacency) -> np.ndarray:
    """Indices of the nodes in the largest connected component, ascending (the first of equals)."""
    _, component = connected_components(check_adjacency(adjacency), directed=False)
    return np.flatnonzero(component == np.bincount(component).argmax())


def karate_club() -> Graph:
    """Zachary's karate club: 34 members, 78 friendships without weights, the 2 factions."""
    import networkx

    club = networkx.karate_club_graph()
    adjacency = networkx.to_scipy_sparse_array(club, weight=None, dtype=np.float64, format="csr")
    officer = [club.nodes[node]["club"] == "Officer" for node in club]
    return Graph(check_adjacency(adjacency), np.asarray(officer, dtype=np.int64))


def save_graph(path: Path, graph: Graph) -> None:
    """Write an unweighted graph as npz: indptr (int64), indices (int32), labels (int8)."""
    if (graph.adjacency.data != 1).any():
        raise ValueError("graph must be unweighted, got edge weights other than 1")
    arrays = {
        "indptr": graph.adjacency.indptr.astype(np.int64),
        "indices": graph.adjacency.indices.astype(np.int32),
        "labels": graph.labels.astype(np.int8),
    }
    save_arrays(path, arrays)


def load_graph(path: Path) -> Graph:
    """Read a graph in the form that `save_graph` writes, and check it.

    Raises InputError, which is a ValueError, naming the file: for missing arrays, an index out of
    range, labels that are not one non-negative number a node, and whatever `check_adjacency`
    refuses.
    """
    arrays = load_arrays(path)
    spec = {
        "indptr": ArraySpec("int64", ("n + 1",), low=0),
        "indices": ArraySpec("int32", ("2 edges",), low=0),
        "labels": ArraySpec("int8", ("n",), low=0),
    }
    check_arrays(arrays, spec, str(path))
    indptr, indices, labels = (arrays[name] for name in spec)
    n = indptr.size - 1
    if labels.size != n:
        raise InputError(
            f"{path}: labels: {labels.size} entries, must be one for each of {n} nodes"
        )
    try:
        matrix = sparse.csr_array((np.ones(indices.size), indices, indptr), shape=(n, n))
        matrix.check_format(full_check=True)
        return Graph(check_adjacency(matrix), labels.astype(np.int64))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _probabilities(n: int, a: float, b: float, scale: float, text: str) -> tuple[float, float]:
    """p and q of a regime, in which a and b count edges in units of n * scale."""
    for name, value in (("a", a), ("b", b)):
        if n >= 2 and not 0 <= value * scale <= 1:
            raise ValueError(
                f"{name} {text} must lie in [0, 1], got {value * scale:g} "
                f"with {name} = {value:g} and n = {n}"
            )
    return a * scale, b * scale


def _distinct(rng: np.random.Generator, total: int, *, probability: float) -> np.ndarray:
    """A random subset of 0..total-1 that takes each number with the given probability."""
    count = int(rng.binomial(total, probability))
    if 2 * count > total:
        # Few are left out: draw those. The subset is as large as `total` here anyway.
        taken = np.ones(total, dtype=bool)
        taken[_uniform_subset(rng, total, total - count)] = False
        return np.flatnonzero(taken)
    return _uniform_subset(rng, total, count)


def _uniform_subset(rng: np.random.Generator, total: int, count: int) -> np.ndarray:
    """`count` distinct numbers below `total`, each subset equally likely; (count,) int64."""
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        # 5 % too many, since some repeat. All numbers are treated alike, so the union of several
        # draws, cut at random to `count`, is a uniform subset.
        draw = rng.integers(total, size=math.ceil(1.05 * (count - found.size)) + 8)
        found = np.unique(np.concatenate([found, draw]))
    return rng.permutation(found)[:count]


def _decode_pair(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pair i > j with index = i (i - 1)/2 + j."""
    i = ((1 + np.sqrt(1 + 8 * index.astype(np.float64))) / 2).astype(np.int64)
    # The square root is rounded; the true i is at most one off.
    i -= i * (i - 1) // 2 > index
    i += i * (i + 1) // 2 <= index
    return i, index - i * (i - 1) // 2
