"""Graph entropy and its bounds: known values, and what must hold for every graph."""

import itertools
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.gemax.entropy import (
    chromatic_entropy,
    graph_entropy,
    is_orthonormal_representation,
    maximal_stable_sets,
    nearest_representation,
    orthonormal_lower_bound,
    packing_updates,
    shannon_entropy,
)


def graph(n: int, edges) -> np.ndarray:
    adjacency = np.zeros((n, n), dtype=int)
    for i, j in edges:
        adjacency[i, j] = adjacency[j, i] = 1
    return adjacency


def path(n: int) -> np.ndarray:
    return graph(n, [(i, i + 1) for i in range(n - 1)])


def cycle(n: int) -> np.ndarray:
    return graph(n, [(i, (i + 1) % n) for i in range(n)])


def complete(n: int) -> np.ndarray:
    return graph(n, itertools.combinations(range(n), 2))


def uniform(n: int) -> np.ndarray:
    return np.full(n, 1 / n)


@st.composite
def weighted_graphs(draw, largest: int = 8, bipartite: bool = False):
    n = draw(st.integers(2, largest))
    pairs = list(itertools.combinations(range(n), 2))
    if bipartite:
        side = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        pairs = [(i, j) for i, j in pairs if side[i] != side[j]]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weights = np.array(draw(st.lists(st.integers(1, 20), min_size=n, max_size=n)), dtype=float)
    return graph(n, edges), weights / weights.sum()


@pytest.mark.parametrize(
    ("adjacency", "value"),
    [
        (path(3), 0.636514),
        (cycle(5), np.log(2.5)),
        (complete(4), np.log(4)),
        (cycle(4), np.log(2)),
        (path(5), 0.673012),
        (graph(4, []), 0.0),
    ],
)
def test_known_entropies(adjacency, value):
    found = graph_entropy(adjacency, uniform(len(adjacency)))
    assert found.value == pytest.approx(value, abs=1e-6)
    assert 0 <= found.gap < 1e-7


def test_path_of_four_converges_slowly():
    found = graph_entropy(path(4), uniform(4), tol=1e-5)
    assert found.value == pytest.approx(np.log(2), abs=1e-5)


def test_known_packings():
    found = graph_entropy(path(3), uniform(3))
    assert found.packing == pytest.approx([2 / 3, 1 / 3, 2 / 3], abs=1e-5)
    found = graph_entropy(path(3), [0.5, 0.2, 0.3])
    assert found.value == pytest.approx(0.500402, abs=1e-6)
    assert found.packing == pytest.approx([0.8, 0.2, 0.8], abs=1e-5)
    assert graph_entropy(cycle(5), uniform(5)).packing == pytest.approx([0.4] * 5, abs=1e-5)


def test_vertices_without_probability_are_left_out():
    found = graph_entropy(path(3), [0.5, 0.0, 0.5])
    assert found.value == 0
    assert found.packing.tolist() == [1, 1, 1]
    assert graph_entropy(path(3), [0.5, 0.5, 0]).value == pytest.approx(np.log(2), abs=1e-6)


def test_an_update_limit_is_told(monkeypatch, caplog):
    monkeypatch.setattr("retable.gemax.entropy.MOST_UPDATES", 20)
    caplog.set_level(logging.WARNING)
    found = graph_entropy(path(4), uniform(4), tol=1e-12)
    assert found.gap > 1e-12
    assert "after 20 updates" in caplog.text


def test_stable_sets():
    sets = maximal_stable_sets(cycle(5))
    assert sets.shape == (5, 5)
    assert sets.sum(1).tolist() == [2] * 5
    assert maximal_stable_sets(complete(3)).tolist() == np.eye(3, dtype=bool).tolist()
    # Three pairs of twins: 2^3 choices.
    with pytest.raises(ValueError, match="more than 7 maximal stable sets"):
        maximal_stable_sets(graph(6, [(0, 1), (2, 3), (4, 5)]), max_sets=7)


def stable_subsets(adjacency: np.ndarray) -> np.ndarray:
    """All stable sets, maximal or not, by trying every subset: (sets, n)."""
    subsets = np.array(list(itertools.product([0, 1], repeat=len(adjacency))))
    inside = np.einsum("si,ij,sj->s", subsets, adjacency, subsets)
    return subsets[inside == 0]


def random_graph(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    upper = np.triu(generator.random((n, n)) < generator.uniform(0.2, 0.8), 1)
    return (upper | upper.T).astype(int), generator.dirichlet(np.ones(n))


def brute_force_entropy(adjacency: np.ndarray, p: np.ndarray) -> float:
    """The definition handed to a conic solver, over the hull of all stable sets."""
    import cvxpy

    shares = cvxpy.Variable(len(stable_subsets(adjacency)), nonneg=True)
    packing = stable_subsets(adjacency).T @ shares
    problem = cvxpy.Problem(cvxpy.Minimize(-p @ cvxpy.log(packing)), [cvxpy.sum(shares) == 1])
    return problem.solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", range(20))
def test_entropy_is_the_minimum_over_all_stable_sets(seed):
    generator = np.random.default_rng(seed)
    adjacency, p = random_graph(generator, int(generator.integers(3, 8)))
    expected = brute_force_entropy(adjacency, p)
    found = graph_entropy(adjacency, p, tol=1e-6)
    assert found.value == pytest.approx(expected, abs=3e-6)
    # Early on the gap bounds what is missing.
    early = graph_entropy(adjacency, p, tol=0.05)
    assert expected - 1e-6 <= early.value <= expected + early.gap + 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_bound_of_random_representations_by_brute_force(seed):
    generator = np.random.default_rng(seed)
    adjacency, p = random_graph(generator, int(generator.integers(3, 8)))
    expected = brute_force_entropy(adjacency, p)
    sets = stable_subsets(adjacency)
    for _ in range(20):
        z = nearest_representation(adjacency, generator.normal(size=(len(p), 3)))
        assert is_orthonormal_representation(adjacency, z, 1e-9)
        c = generator.normal(size=len(p))
        c /= np.linalg.norm(c)
        assert (sets @ (z @ c) ** 2).max() <= 1 + 1e-9
        assert orthonormal_lower_bound(z, c, p) <= expected + 1e-6


def test_bound_is_attained():
    # On complete graphs equal vectors: b = 1 and the bound is the Shannon entropy, the entropy.
    p = np.array([0.5, 0.3, 0.2])
    z = np.ones((3, 1))
    assert orthonormal_lower_bound(z, [1.0], p) == pytest.approx(shannon_entropy(p))
    assert graph_entropy(complete(3), p).value == pytest.approx(shannon_entropy(p), abs=1e-6)


def test_lovasz_umbrella():
    # Five unit vectors about the handle, opened so far that those two apart are orthogonal.
    cosine = 5**-0.25
    sine = np.sqrt(1 - cosine**2)
    angles = 2 * np.pi * np.arange(5) / 5
    z = np.stack([np.full(5, cosine), sine * np.cos(angles), sine * np.sin(angles)], axis=1)
    assert is_orthonormal_representation(cycle(5), z, 1e-9)
    bound = orthonormal_lower_bound(z, [1, 0, 0], uniform(5))
    assert bound == pytest.approx(0.804719, abs=1e-6)
    assert bound <= graph_entropy(cycle(5), uniform(5)).value


def test_chromatic_entropy_of_the_cycle():
    assert chromatic_entropy(cycle(5), uniform(5)) == pytest.approx(1.054920, abs=1e-6)
    assert chromatic_entropy(graph(3, []), uniform(3)) == pytest.approx(0, abs=1e-12)


def brute_force_colourings(adjacency: np.ndarray, p: np.ndarray) -> float:
    n = len(p)
    least = np.inf
    for colours in itertools.product(range(n), repeat=n):
        classes = np.array(colours)
        if (adjacency * (classes[:, None] == classes)).any():
            continue
        masses = np.bincount(classes, weights=p)
        masses = masses[masses > 0]
        least = min(least, -(masses * np.log(masses)).sum())
    return least


@settings(max_examples=25, deadline=None)
@given(weighted_graphs(largest=5))
def test_chromatic_entropy_is_the_least_over_colourings(weighted):
    adjacency, p = weighted
    assert chromatic_entropy(adjacency, p) == pytest.approx(
        brute_force_colourings(adjacency, p), abs=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(weighted_graphs())
def test_between_its_bounds(weighted):
    adjacency, p = weighted
    found = graph_entropy(adjacency, p, tol=1e-5)
    assert found.value <= chromatic_entropy(adjacency, p) + 2e-5
    assert chromatic_entropy(adjacency, p) <= shannon_entropy(p) + 1e-9
    # The packing lies in the polytope: it fits every orthonormal bound, here the trivial one.
    vectors = np.random.default_rng(0).normal(size=(len(p), 4))
    exact = nearest_representation(adjacency, vectors)
    assert is_orthonormal_representation(adjacency, exact, 1e-8)
    centre = p @ exact
    centre /= np.linalg.norm(centre)
    assert orthonormal_lower_bound(exact, centre, p) <= found.value + 1e-9
    assert ((exact @ centre) ** 2 @ found.packing) <= 1 + 1e-6


@settings(max_examples=30, deadline=None)
@given(weighted_graphs(), st.randoms(use_true_random=False))
def test_an_edge_more_never_lowers_it(weighted, random):
    adjacency, p = weighted
    missing = np.argwhere(np.triu(adjacency == 0, 1))
    if not len(missing):
        return
    i, j = random.choice(missing.tolist())
    more = adjacency.copy()
    more[i, j] = more[j, i] = 1
    less = graph_entropy(adjacency, p, tol=1e-6)
    assert graph_entropy(more, p, tol=1e-6).value >= less.value - less.gap - 1e-9


@settings(max_examples=25, deadline=None)
@given(weighted_graphs(largest=6, bipartite=True))
def test_perfect_graphs_split_the_entropy(weighted):
    adjacency, p = weighted
    complement = 1 - adjacency - np.eye(len(p), dtype=int)
    both = [graph_entropy(part, p, tol=1e-6) for part in (adjacency, complement)]
    total = sum(result.value for result in both)
    slack = sum(result.gap for result in both) + 1e-9
    assert shannon_entropy(p) - 1e-9 <= total <= shannon_entropy(p) + slack


@settings(max_examples=25, deadline=None)
@given(weighted_graphs())
def test_updates_are_monotone(weighted):
    adjacency, p = weighted
    points = itertools.islice(packing_updates(maximal_stable_sets(adjacency), p), 60)
    values = [-(p * np.log(packing)).sum() for packing, _ in points]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize(
    ("adjacency", "p", "message"),
    [
        ([[0, 1], [0, 0]], [0.5, 0.5], r"adj: not symmetric: entries \(0, 1\) and \(1, 0\) differ"),
        ([[0, 2], [2, 0]], [0.5, 0.5], "adj: holds 2; entries must be 0 or 1"),
        ([[1, 0], [0, 0]], [0.5, 0.5], "adj: vertex 0 has a self-loop"),
        (np.zeros((0, 0)), [], "adj: the graph has no vertices"),
        (np.zeros((2, 3)), [0.5, 0.5], r"adj: shape \(2, 3\), must be \(n, n\)"),
        (path(2), [0.5, 0.6], "p: sums to 1.1, must sum to 1"),
        (path(2), [-0.5, 1.5], "p: smallest entry -0.5"),
        (path(2), [1.0], r"p: shape \(1,\), must be \(2,\)"),
        (path(2), [np.nan, 1.0], "p: smallest entry nan"),
    ],
)
def test_bad_input(adjacency, p, message):
    with pytest.raises(ValueError, match=message):
        graph_entropy(np.array(adjacency), p)


def test_bad_vectors():
    with pytest.raises(ValueError, match="c: norm 2"):
        orthonormal_lower_bound(np.eye(2), [2, 0], uniform(2))
    with pytest.raises(ValueError, match=r"z, c: shapes \(2, 2\) and \(3,\)"):
        orthonormal_lower_bound(np.eye(2), [1, 0, 0], uniform(2))
    with pytest.raises(ValueError, match="z: row 1 is zero"):
        nearest_representation(path(2), [[1.0, 0], [0, 0]])
    with pytest.raises(ValueError, match=r"z: shape \(2, 0\), must be \(2, d\) with d >= 1"):
        is_orthonormal_representation(path(2), np.zeros((2, 0)))
    with pytest.raises(ValueError, match="adj: 13 vertices; at most 12"):
        chromatic_entropy(path(13), uniform(13))
