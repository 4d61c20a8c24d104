import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from retable.common.data.arrays import save_arrays
from retable.common.errors import InputError
from retable.deepwalk import (
    karate_club,
    largest_component,
    load_graph,
    save_graph,
    sbm,
    sbm_const,
    sbm_log,
)
from retable.deepwalk.graphs import _decode_pair, _uniform_subset, check_adjacency

PATH = sparse.csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))


def test_pair_index_enumerates_all_pairs():
    i, j = _decode_pair(np.arange(7 * 6 // 2))
    assert [(a, b) for a in range(7) for b in range(a)] == list(zip(i, j, strict=True))


@given(st.integers(min_value=2, max_value=2**30), st.data())
def test_pair_index_is_exact_where_the_square_root_is_not(i, data):
    j = data.draw(st.sampled_from([0, 1, i // 2, i - 2, i - 1]))
    first, second = _decode_pair(np.array([i * (i - 1) // 2 + j]))
    assert (first[0], second[0]) == (i, j)


@given(st.integers(0, 60), st.data())
def test_subsets_are_distinct_and_in_range(total, data):
    count = data.draw(st.integers(0, total))
    subset = _uniform_subset(np.random.default_rng(0), max(total, 1), count)
    assert subset.size == count == np.unique(subset).size
    assert ((subset >= 0) & (subset < max(total, 1))).all()


def test_subsets_are_uniform():
    rng = np.random.default_rng(0)
    draws = np.array([np.sort(_uniform_subset(rng, 5, 2)) for _ in range(5000)])
    counts = np.bincount(draws[:, 0] * 5 + draws[:, 1], minlength=25)
    counts = counts[counts > 0]
    assert counts.size == 10
    # Each of the 10 subsets is drawn 500 times on average, standard deviation 21.
    assert abs(counts - 500).max() < 5 * 21


def test_sbm_is_simple_symmetric_and_balanced():
    graph = sbm(301, 0.1, 0.02, seed=0)
    adjacency = graph.adjacency
    assert adjacency.dtype == np.float64
    assert (adjacency.data == 1).all()
    assert (adjacency != adjacency.T).nnz == 0
    assert (adjacency.diagonal() == 0).all()
    assert sorted(np.bincount(graph.labels)) == [150, 151]
    assert graph.labels.dtype == np.int64


@pytest.mark.parametrize(("p", "q", "k"), [(0.1, 0.02, 2), (0.9, 0.6, 2), (0.05, 0.1, 3)])
def test_sbm_has_the_right_density_in_every_block(p, q, k):
    n = 600
    graph = sbm(n, p, q, k, seed=1)
    size = n // k
    dense = graph.adjacency.toarray()
    for g in range(k):
        for h in range(g + 1):
            block = dense[g * size : (g + 1) * size, h * size : (h + 1) * size]
            pairs = size * (size - 1) / 2 if g == h else size * size
            edges = block.sum() / (2 if g == h else 1)
            rate = p if g == h else q
            assert abs(edges - pairs * rate) < 5 * math.sqrt(pairs * rate * (1 - rate))


def test_sbm_degenerate_probabilities():
    complete = sbm(6, 1.0, 1.0, seed=0).adjacency.toarray()
    assert (complete == 1 - np.eye(6)).all()
    two_cliques = sbm(6, 1.0, 0.0, seed=0).adjacency.toarray()
    assert (two_cliques == np.kron(np.eye(2), 1 - np.eye(3))).all()


def test_sbm_is_fixed_by_its_seed():
    first, again, other = (sbm_log(500, 6, 1, seed=s).adjacency for s in (3, 3, 4))
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


def test_regimes_set_the_probabilities():
    n = 20_000
    degree_log = sbm_log(n, 6, 1, seed=0).adjacency.nnz / n
    degree_const = sbm_const(n, 8, 2, seed=0).adjacency.nnz / n
    assert degree_log == pytest.approx(3.5 * math.log(n), rel=0.02)
    assert degree_const == pytest.approx(5, rel=0.02)


def test_disassortative_graphs_are_marked():
    assert sbm(100, 0.1, 0.3, seed=0).disassortative
    assert not sbm(100, 0.3, 0.1, seed=0).disassortative


def test_isolated_nodes_are_kept_and_flagged():
    graph = sbm_const(400, 2, 0.5, seed=0)
    assert graph.n == 400
    degree = graph.adjacency.sum(axis=1)
    assert (graph.isolated == (degree == 0)).all()
    assert graph.isolated.any()
    assert (graph.known[graph.isolated] == -1).all()
    assert (graph.known[~graph.isolated] == graph.labels[~graph.isolated]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0.5, 0.5), "n must be at least 2, got 1"),
        ((10, 1.5, 0.5), r"p must be a probability in \[0, 1\], got 1.5"),
        ((10, 0.5, -0.1), r"q must be a probability in \[0, 1\], got -0.1"),
        ((10, 0.5, float("nan")), "q must be a probability"),
        ((10, 0.5, 0.1, 11), r"k must lie in 1..n = 1..10, got 11"),
        ((10, 0.0, 0.0), "no edge was drawn with n = 10"),
    ],
)
def test_sbm_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        sbm(*arguments, seed=0)


def test_regimes_say_which_a_and_n_leave_the_unit_interval():
    with pytest.raises(ValueError, match=r"a ln\(n\)/n must lie in .* with a = 30 and n = 100"):
        sbm_log(100, 30, 1, seed=0)
    with pytest.raises(ValueError, match=r"b 1/n must lie in .* with b = 101 and n = 100"):
        sbm_const(100, 8, 101, seed=0)
    with pytest.raises(ValueError, match="n must be at least 2, got 1"):
        sbm_log(1, 1, 1, seed=0)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"square, got shape \(2, 3\)"),
        (np.zeros((1, 1)), "at least 2 nodes, got 1"),
        (np.zeros((3, 3)), "at least one edge"),
        (np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]]), "symmetric"),
        (np.array([[0, 2], [1, 0]]), "symmetric"),
        (np.array([[0, -1], [-1, 0]]), "negative, got a weight of -1"),
        (np.array([[0, np.nan], [np.nan, 0]]), "finite"),
        (np.array([[1, 1], [1, 0]]), "self-loops, got one at node 0"),
    ],
)
def test_bad_adjacency_is_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_adjacency(matrix)


def test_checking_leaves_the_argument_alone():
    matrix = sparse.csr_array((np.ones(4), [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    checked = check_adjacency(matrix)
    assert checked.toarray().tolist() == [[0, 2], [2, 0]]
    assert matrix.nnz == 4


def test_indices_are_short_where_they_can_be():
    long = sbm(50, 0.2, 0.1, seed=0).adjacency
    for name in ("indices", "indptr"):
        setattr(long, name, getattr(long, name).astype(np.int64))
    checked = check_adjacency(long)
    assert checked.indices.dtype == checked.indptr.dtype == np.int32
    assert long.indices.dtype == np.int64
    assert (checked != long).nnz == 0


def test_largest_component():
    matrix = np.zeros((6, 6))
    for i, j in [(0, 1), (2, 4), (4, 5)]:
        matrix[i, j] = matrix[j, i] = 1
    assert largest_component(matrix).tolist() == [2, 4, 5]


def test_karate_club():
    graph = karate_club()
    assert graph.n == 34
    assert graph.adjacency.nnz == 2 * 78
    assert (graph.adjacency.data == 1).all()
    assert sorted(np.bincount(graph.labels)) == [17, 17]


def test_graph_files_return_what_was_saved(tmp_path):
    graph = sbm(50, 0.3, 0.1, k=3, seed=0)
    save_graph(tmp_path / "graph.npz", graph)
    again = load_graph(tmp_path / "graph.npz")
    assert (graph.adjacency != again.adjacency).nnz == 0
    assert (graph.labels == again.labels).all()
    with np.load(tmp_path / "graph.npz") as arrays:
        assert arrays["indices"].dtype == np.int32
        assert arrays["labels"].dtype == np.int8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": None}, "graph.npz: the array 'labels' is missing"),
        ({"labels": np.zeros(5, np.int8)}, "labels: 5 entries, must be one for each of 3 nodes"),
        ({"labels": np.full(3, -1, np.int8)}, "labels: smallest value -1, must be >= 0"),
        ({"labels": np.zeros(3)}, "labels: dtype float64, must be int8"),
        ({"indices": np.array([1, 0, 7, 1], np.int32)}, "graph.npz: indices"),
        ({"indices": np.array([1, 0, 0, 1], np.int32)}, "graph.npz: adjacency must be symmetric"),
    ],
)
def test_damaged_graph_files_are_refused(tmp_path, change, message):
    arrays = {
        "indptr": PATH.indptr.astype(np.int64),
        "indices": PATH.indices.astype(np.int32),
        "labels": np.array([0, 0, 1], np.int8),
    }
    arrays = {name: value for name, value in (arrays | change).items() if value is not None}
    save_arrays(tmp_path / "graph.npz", arrays)
    with pytest.raises(InputError, match=message):
        load_graph(tmp_path / "graph.npz")


def test_weighted_graphs_are_not_saved_as_unweighted(tmp_path):
    graph = karate_club()
    weighted = type(graph)(graph.adjacency * 2, graph.labels)
    with pytest.raises(ValueError, match="unweighted"):
        save_graph(tmp_path / "graph.npz", weighted)
