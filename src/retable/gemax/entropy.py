"""Koerner's graph entropy of small graphs, and what bounds it.

H(G, P) = min over a in VP(G) of -sum_i P_i log a_i, in nats, where the vertex-packing polytope
VP(G) is the convex hull of the indicator vectors of the stable sets (no two vertices adjacent).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from retable.gemax.checks import check_adjacency, check_distribution

logger = logging.getLogger("retable")
MOST_UPDATES = 200_000
MOST_SETS = 200_000
_CHROMATIC_VERTICES = 12


@dataclass(frozen=True)
class EntropyResult:
    """The entropy of a graph.

    Attributes:
        value: nats.
        packing: (n,) the minimising point of VP(G); 1 where P is 0.
        gap: the value is at most this far above the minimum.
    """

    value: float
    packing: np.ndarray
    gap: float


def shannon_entropy(p: Any) -> float:
    """Entropy of a distribution in nats; 0 log 0 = 0."""
    p = np.asarray(p, dtype=np.float64)
    p = check_distribution(p, p.size)
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def maximal_stable_sets(adj: Any, max_sets: int = MOST_SETS) -> np.ndarray:
    """All stable sets that no vertex can join: (sets, n) bool, one row a set.

    They are the maximal cliques of the complement. Raises ValueError for a bad adjacency matrix
    and where there are more than `max_sets`.
    """
    import networkx as nx

    adjacency = check_adjacency(adj)
    n = len(adjacency)
    complement = nx.from_numpy_array(~adjacency & ~np.eye(n, dtype=bool))
    found = []
    for clique in nx.find_cliques(complement):
        found.append(sorted(clique))
        if len(found) > max_sets:
            raise ValueError(
                f"adj: more than {max_sets} maximal stable sets (n = {n}); max_sets allows no more"
            )
    sets = np.zeros((len(found), n), dtype=bool)
    for row, members in enumerate(sorted(found)):
        sets[row, members] = True
    return sets


def packing_updates(sets: np.ndarray, p: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Points of VP(G) on which the objective falls, each with the gap that bounds its error.

    A point is a = sum_S l_S 1_S with weights l of the stable sets, uniform at first; the update is
    l_S <- l_S g_S with g_S = sum_{i in S} P_i / a_i, which keeps sum l = 1 and lowers -sum P log a
    (it is expectation maximisation for the mixture of the sets). By convexity
    log max_S g_S bounds the distance to the minimum.

    Args:
        sets: (S, n) bool.
        p: (n,) with positive entries.
    """
    members = sets.astype(np.float64)
    weights = np.full(len(sets), 1 / len(sets))
    while True:
        packing = weights @ members
        gains = members @ (p / packing)
        yield packing, float(np.log(gains.max()))
        weights *= gains


def graph_entropy(adj: Any, p: Any, tol: float = 1e-7, max_sets: int = MOST_SETS) -> EntropyResult:
    """Exact graph entropy H(G, P) of a small graph, to within `tol` nats.

    Args:
        adj: (n, n) symmetric 0/1 without self-loops.
        p: (n,) distribution over the vertices; those with P = 0 are left out.
        tol: the gap at which the updates end; after 200 000 of them a warning is logged.
        max_sets: refuse graphs with more maximal stable sets.

    Raises:
        ValueError: bad adjacency matrix or distribution; tol <= 0; too many stable sets.
    """
    if not tol > 0:
        raise ValueError(f"tol: {tol}, must be > 0: the gap reaches 0 in the limit alone")
    adjacency = check_adjacency(adj)
    p = check_distribution(p, len(adjacency))
    support = p > 0
    sets = maximal_stable_sets(adjacency[np.ix_(support, support)], max_sets)
    for update, (inner, gap) in enumerate(packing_updates(sets, p[support])):  # noqa: B007
        if gap < tol:
            break
        if update == MOST_UPDATES:
            logger.warning("graph_entropy: gap %.3g after %d updates, not %g", gap, update, tol)
            break
    packing = np.ones(len(p))
    packing[support] = inner
    value = float(-(p[support] * np.log(inner)).sum())
    # Rounding may leave an edgeless graph a hair below zero.
    return EntropyResult(max(value, 0.0), packing, max(gap, 0.0))


def is_orthonormal_representation(adj: Any, z: Any, tol: float = 1e-6) -> bool:
    """Whether z (n, d) has unit rows that are orthogonal for every pair that is not adjacent."""
    adjacency, z = check_adjacency(adj), _check_vectors(z, adj)
    products = z @ z.T
    other = ~adjacency & ~np.eye(len(z), dtype=bool)
    unit = np.abs(products.diagonal() - 1) <= tol
    return bool(unit.all() and (np.abs(products[other]) <= tol).all())


def orthonormal_lower_bound(z: Any, c: Any, p: Any) -> float:
    """Lower bound H(P) + sum_i P_i log (c.z_i)^2 of the graph entropy, in nats.

    For an orthonormal representation z (n, d) and a unit vector c (d,), b_i = (c.z_i)^2 sums to at
    most 1 on every stable set; maximising sum P log a under b.a <= 1 gives a_i = P_i / b_i. It is
    -inf where a vertex with P > 0 is orthogonal to c.

    Raises:
        ValueError: c is no unit vector; shapes that do not fit.
    """
    z, c = np.asarray(z, dtype=np.float64), np.asarray(c, dtype=np.float64)
    if z.ndim != 2 or c.shape != (z.shape[1],):
        raise ValueError(f"z, c: shapes {z.shape} and {c.shape}, must be (n, d) and (d,)")
    if not abs(np.linalg.norm(c) - 1) <= 1e-6:
        raise ValueError(f"c: norm {np.linalg.norm(c)}, must be 1")
    p = check_distribution(p, len(z))
    with np.errstate(divide="ignore"):
        logs = np.log((z @ c) ** 2)
    return shannon_entropy(p) + float((p[p > 0] * logs[p > 0]).sum())


def nearest_representation(adj: Any, z: Any) -> np.ndarray:
    """An exact orthonormal representation (n, n) near the unit directions of z (n, d).

    The Gram matrix of z gets zeros for pairs that are not adjacent and ones on the diagonal, is
    mixed with the identity just enough to be positive semidefinite, and is factorised.
    """
    adjacency, z = check_adjacency(adj), _check_vectors(z, adj)
    norms = np.linalg.norm(z, axis=1, keepdims=True)
    if not (norms > 0).all():
        raise ValueError(f"z: row {int(norms.argmin())} is zero; it has no direction")
    z = z / norms
    gram = np.where(adjacency, z @ z.T, 0.0) + np.eye(len(z))
    smallest = np.linalg.eigvalsh(gram)[0]
    if smallest < 0:
        share = -smallest / (1 - smallest)
        gram = (1 - share) * gram + share * np.eye(len(z))
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0))


def chromatic_entropy(adj: Any, p: Any) -> float:
    """Least entropy of the colour classes over all colourings, in nats: an upper bound of H(G, P).

    Exact, for n <= 12 (ValueError beyond): colour classes are taken off one after the other, each
    with the first vertex that is left.
    """
    adjacency = check_adjacency(adj)
    n = len(adjacency)
    if n > _CHROMATIC_VERTICES:
        raise ValueError(f"adj: {n} vertices; at most {_CHROMATIC_VERTICES} are allowed")
    p = check_distribution(p, n)
    neighbours = [sum(1 << j for j in np.flatnonzero(row).tolist()) for row in adjacency]

    @cache
    def mass(members: int) -> float:
        total = sum(p[i] for i in range(n) if members >> i & 1)
        return -total * np.log(total) if total > 0 else 0.0

    def classes(free: int, members: int) -> Iterator[int]:
        """Stable sets that hold `members` and otherwise vertices of `free`."""
        yield members
        while free:
            lowest = free & -free
            free ^= lowest
            yield from classes(free & ~neighbours[lowest.bit_length() - 1], members | lowest)

    @cache
    def least(left: int) -> float:
        if not left:
            return 0.0
        first = left & -left
        rest = left ^ first
        free = rest & ~neighbours[first.bit_length() - 1]
        return min(mass(chosen) + least(left & ~chosen) for chosen in classes(free, first))

    return float(least((1 << n) - 1))


def _check_vectors(z: Any, adj: Any) -> np.ndarray:
    z = np.asarray(z, dtype=np.float64)
    n = adj.shape[0] if hasattr(adj, "shape") else len(adj)
    if z.ndim != 2 or len(z) != n or z.shape[1] < 1:
        raise ValueError(f"z: shape {z.shape}, must be ({n}, d) with d >= 1")
    return z
