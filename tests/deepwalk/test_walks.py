import numpy as np
import pytest
from scipy import sparse

from retable.deepwalk import (
    Cooccurrence,
    cooccurrence_from_walks,
    expected_cooccurrence,
    karate_club,
    random_walks,
    sbm,
)

PAIR = np.array([[0.0, 1], [1, 0]])
PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(("window", "counts"), [(1, [[0, 6], [6, 0]]), (2, [[4, 6], [6, 4]])])
def test_two_joined_nodes(window, counts):
    walks = random_walks(PAIR, 1, 3, seed=0)
    assert cooccurrence_from_walks(walks, 2, window).toarray().tolist() == counts
    assert expected_cooccurrence(PAIR, 1, 3, window).tolist() == counts


@pytest.mark.parametrize(
    ("window", "counts"),
    [(1, [[0, 3, 0], [3, 0, 3], [0, 3, 0]]), (2, [[1, 3, 1], [3, 2, 3], [1, 3, 1]])],
)
def test_expected_counts_on_a_path(window, counts):
    assert np.allclose(expected_cooccurrence(PATH, 1, 2, window), counts, atol=1e-14)


@pytest.mark.parametrize(
    ("window", "matrix"),
    [
        (1, [[0, 0.75, 0], [0.75, 0, 0.75], [0, 0.75, 0]]),
        (2, [[0.1875, 0.375, 0.1875], [0.375, 0.75, 0.375], [0.1875, 0.375, 0.1875]]),
    ],
)
def test_stationary_limit_on_a_path(window, matrix):
    cooc = Cooccurrence(PATH, window)
    assert np.allclose(cooc.toarray(), matrix, atol=1e-14)
    assert np.allclose(cooc.row_mass, np.sum(matrix, axis=1))


def test_walks_follow_edges_from_every_node_with_one():
    graph = sbm(60, 0.05, 0.01, seed=2)
    assert graph.isolated.any()
    walks = random_walks(graph.adjacency, 3, 7, seed=0)
    active = np.flatnonzero(~graph.isolated)
    assert walks.shape == (3 * active.size, 8)
    assert walks.dtype == np.int64
    assert (np.bincount(walks[:, 0], minlength=60) == 3 * ~graph.isolated).all()
    dense = graph.adjacency.toarray()
    assert (dense[walks[:, :-1], walks[:, 1:]] == 1).all()


def test_walks_are_fixed_by_their_seed():
    graph = karate_club()
    first, again, other = (random_walks(graph.adjacency, 2, 5, seed=s) for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 3.0)])
def test_steps_are_drawn_in_proportion_to_the_weights(weights):
    star = np.zeros((3, 3))
    star[0, 1:] = star[1:, 0] = weights
    walks = random_walks(star, 4000, 1, seed=0)
    from_hub = walks[walks[:, 0] == 0, 1]
    share = weights[1] / sum(weights)
    assert abs(np.mean(from_hub == 2) - share) < 5 * np.sqrt(share * (1 - share) / 4000)
    assert (walks[walks[:, 0] > 0, 1] == 0).all()


def test_counts_of_many_walks_match_a_direct_count():
    walks = np.random.default_rng(0).integers(5, size=(30, 6))
    direct = np.zeros((5, 5))
    for walk in walks:
        for i in range(6):
            for j in range(i + 1, min(i + 3, 6)):
                direct[walk[i], walk[j]] += 1
                direct[walk[j], walk[i]] += 1
    assert (cooccurrence_from_walks(walks, 5, 2).toarray() == direct).all()


def test_counting_in_parts_changes_nothing(monkeypatch):
    walks = random_walks(karate_club().adjacency, 3, 10, seed=0)
    whole = cooccurrence_from_walks(walks, 34, 3).toarray()
    monkeypatch.setattr("retable.deepwalk.walks._PAIRS_AT_A_TIME", 50)
    assert (cooccurrence_from_walks(walks, 34, 3).toarray() == whole).all()


def test_sampled_counts_converge_like_one_over_root_walks():
    adjacency = karate_club().adjacency
    errors = []
    for n_walks in (20, 80, 320, 1280):
        expected = expected_cooccurrence(adjacency, n_walks, 10, 3)
        # The mean of a few draws, so that the slope is not that of one lucky draw.
        draws = [
            np.linalg.norm(
                cooccurrence_from_walks(random_walks(adjacency, n_walks, 10, seed=s), 34, 3)
                - expected
            )
            for s in range(4)
        ]
        errors.append(np.mean(draws) / np.linalg.norm(expected))
    slope = np.polyfit(np.log([20, 80, 320, 1280]), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.06)


def test_stationary_limit_is_the_limit_of_long_walks():
    adjacency = karate_club().adjacency
    limit = Cooccurrence(adjacency, 3).toarray()
    distance = [
        abs(Cooccurrence.from_matrix(expected_cooccurrence(adjacency, 1, n, 3)).toarray() - limit)
        for n in (50, 100, 200)
    ]
    # The first steps of a walk weigh 1/length.
    assert distance[0].max() < 1e-2
    assert np.allclose(distance[1] / 2, distance[2], rtol=0.1, atol=1e-6)


@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_matvec_is_the_product_with_the_dense_matrix(window):
    graph = sbm(80, 0.05, 0.02, seed=0)
    cooc = Cooccurrence(graph.adjacency, window)
    degree = graph.adjacency.sum(axis=1)
    transition = graph.adjacency.toarray() / np.maximum(degree, 1)[:, None]
    power = sum(np.linalg.matrix_power(transition, r) for r in range(1, window + 1))
    dense = degree[:, None] * power
    dense *= 80 / dense.sum()
    rng = np.random.default_rng(0)
    for shape in ((80,), (80, 1), (80, 3)):
        v = rng.standard_normal(shape)
        assert np.allclose(cooc.matvec(v), dense @ v, atol=1e-13)
    assert np.allclose(cooc.toarray(), dense, atol=1e-15)
    assert np.allclose(dense, dense.T)
    assert np.allclose(cooc.row_mass, dense.sum(axis=1))
    assert cooc.row_mass.sum() == pytest.approx(80)
    assert (cooc.isolated == (degree == 0)).all()
    assert cooc.isolated.any()


def test_a_given_matrix_is_scaled_to_mass_n():
    counts = cooccurrence_from_walks(random_walks(PATH, 2, 5, seed=0), 3, 2)
    for matrix in (counts, counts.toarray(), sparse.csr_matrix(counts)):
        cooc = Cooccurrence.from_matrix(matrix)
        assert cooc.n == 3
        assert cooc.raw_mass == counts.sum()
        assert np.allclose(cooc.toarray(), counts.toarray() * 3 / counts.sum())
        assert np.allclose(cooc.matvec(np.ones(3)), cooc.row_mass)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_a_filled_matrix_and_a_sparse_one_multiply_alike(share):
    rng = np.random.default_rng(0)
    upper = np.triu(rng.uniform(size=(40, 40)) * (rng.uniform(size=(40, 40)) < share))
    matrix = upper + upper.T
    cooc = Cooccurrence.from_matrix(sparse.csr_array(matrix))
    for shape in ((40,), (40, 1), (40, 3)):
        v = rng.standard_normal(shape)
        assert np.allclose(cooc.matvec(v), matrix @ v * 40 / matrix.sum(), atol=1e-13)
    assert np.allclose(cooc.toarray(), matrix * 40 / matrix.sum(), atol=1e-15)


def test_the_raw_mass_is_the_sum_before_scaling():
    adjacency = karate_club().adjacency
    assert Cooccurrence(adjacency, 3).raw_mass == pytest.approx(3 * adjacency.sum())


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "square"),
        (np.ones((1, 1)), "at least 2 rows"),
        (np.array([[1, np.nan], [np.nan, 1]]), "finite"),
        (np.zeros((2, 2)), "positive count"),
        (np.array([[2.0, -1], [-1, 2]]), "negative, got a count of -1"),
        (np.array([[0.0, 2], [1, 0]]), "symmetric"),
    ],
)
def test_bad_counts_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        Cooccurrence.from_matrix(matrix)


def test_bad_windows_and_walks_are_refused():
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        Cooccurrence(PATH, 0)
    walks = random_walks(PATH, 1, 3, seed=0)
    for window in (0, 4):
        with pytest.raises(ValueError, match=rf"window must lie in .* = 1..3, got {window}"):
            cooccurrence_from_walks(walks, 3, window)
        with pytest.raises(ValueError, match=rf"window must lie in .* = 1..3, got {window}"):
            expected_cooccurrence(PATH, 1, 3, window)
    with pytest.raises(ValueError, match=r"walks must hold nodes in 0\.\.1"):
        cooccurrence_from_walks(walks, 2, 1)
    with pytest.raises(ValueError, match="window must be at least 1, got nan"):
        Cooccurrence(PATH, float("nan"))
    with pytest.raises(ValueError, match="walks must hold integers, got float64"):
        cooccurrence_from_walks(walks * 0.5, 3, 1)
    with pytest.raises(ValueError, match="n_walks must be at least 1, got nan"):
        random_walks(PATH, float("nan"), 3, seed=0)
    with pytest.raises(ValueError, match=r"v must be \(3,\) or \(3, k\), got \(5,\)"):
        Cooccurrence(PATH, 1).matvec(np.ones(5))
    with pytest.raises(ValueError, match=r"adjacency must be square, got shape \(3,\)"):
        Cooccurrence(np.ones(3), 1)
    with pytest.raises(ValueError, match=r"matrix must be square, got shape \(3,\)"):
        Cooccurrence.from_matrix(np.ones(3))
    with pytest.raises(ValueError, match="walks must have shape"):
        cooccurrence_from_walks(walks[0], 3, 1)
    with pytest.raises(ValueError, match="n_walks must be at least 1, got 0"):
        random_walks(PATH, 0, 3, seed=0)
    with pytest.raises(ValueError, match="walk_length must be at least 1, got 0"):
        random_walks(PATH, 1, 0, seed=0)
    with pytest.raises(ValueError, match="symmetric"):
        random_walks(np.triu(PATH), 1, 2, seed=0)
