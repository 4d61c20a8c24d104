import numpy as np
import pytest

from retable.deepwalk import (
    Cooccurrence,
    NegativeSampling,
    accuracy,
    karate_club,
    linear_embedding,
    random_walks,
    sbm,
    sbm_log,
    spectral_embedding,
    word2vec,
)
from retable.deepwalk.embedding import cluster
from retable.deepwalk.peers import negative_sampling_loss_and_grad


def dense_operator(adjacency, kind):
    a = adjacency.toarray()
    n, degree = len(a), a.sum(axis=1)
    if kind == "adjacency":
        return a
    if kind == "regularized":
        tau = degree.mean()
        a, degree = a + tau / n, degree + tau
    scale = np.divide(1, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    return scale[:, None] * a * scale


@pytest.mark.parametrize("kind", ["adjacency", "normalized", "regularized"])
@pytest.mark.parametrize("dim", [1, 3])
def test_spectral_embedding_against_a_dense_solver(kind, dim):
    adjacency = sbm(90, 0.3, 0.05, k=4, seed=0).adjacency
    values, vectors = np.linalg.eigh(dense_operator(adjacency, kind))
    expected = vectors[:, np.argsort(-values)[1 : dim + 1]]
    found = spectral_embedding(adjacency, kind, dim)
    assert found.shape == (90, dim)
    assert np.allclose(abs(np.sum(found * expected, axis=0)), 1, atol=1e-8)


@pytest.mark.parametrize("kind", ["adjacency", "normalized", "regularized"])
def test_spectral_embedding_finds_two_blocks(kind):
    graph = sbm_log(1000, 8, 1, seed=0)
    assert accuracy(cluster(spectral_embedding(graph.adjacency, kind), 2, seed=0), graph.known) == 1


def test_spectral_embedding_refuses():
    adjacency = karate_club().adjacency
    with pytest.raises(ValueError, match=r"kind must be .* got 'laplacian'"):
        spectral_embedding(adjacency, "laplacian")
    with pytest.raises(ValueError, match=r"dim must lie in 1..n - 2 = 1..32, got 33"):
        spectral_embedding(adjacency, dim=33)


@pytest.mark.parametrize("dim", [1, 2])
def test_power_iteration_finds_the_singular_vectors(dim):
    graph = sbm(120, 0.4, 0.05, k=3, seed=0)
    cooc = Cooccurrence(graph.adjacency, 3)
    m = cooc.toarray() - np.outer(cooc.row_mass, np.ones(120)) / 120
    left = np.linalg.svd(m)[0][:, :dim]
    found = linear_embedding(cooc, dim, tol=1e-12, seed=0)
    # In one dimension the two leading values are nearly equal, so only their span is sharp.
    overlap = np.linalg.svd(np.linalg.svd(m)[0][:, :2].T @ found, compute_uv=False)
    assert np.allclose(overlap, 1, atol=1e-6)
    if dim == 2:
        assert np.allclose(np.linalg.svd(left.T @ found, compute_uv=False), 1, atol=1e-6)
    with pytest.raises(ValueError, match="dim must lie in"):
        linear_embedding(cooc, 0, seed=0)


def test_negative_sampling_gradient_equals_finite_differences():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (20, 20)) * 1.0
    noise = rng.uniform(0, 2, (20, 20))
    x, y, dx, dy = rng.standard_normal((4, 20, 2))
    h = 1e-5

    def loss(t):
        return negative_sampling_loss_and_grad(x + t * dx, y + t * dy, counts, noise)[0]

    _, grad_x, grad_y = negative_sampling_loss_and_grad(x, y, counts, noise)
    numeric = (loss(h) - loss(-h)) / (2 * h)
    assert numeric == pytest.approx(np.sum(grad_x * dx) + np.sum(grad_y * dy), rel=1e-7)


def test_negative_sampling_learns_the_shifted_mutual_information():
    # Without a constraint on the rank, x_i . y_j = log(C_ij / (c_i c_j / n)) - log b.
    n, s, b = 8, 0.4, 5
    z = np.repeat([1.0, -1.0], n // 2)
    cooc = Cooccurrence.from_matrix((1 + s * np.outer(z, z)) / n)
    model = NegativeSampling(dim=2, negatives=b, max_iter=5000, tol=1e-10, seed=0).fit(cooc)
    assert model.converged_
    expected = np.log(cooc.toarray() * n) - np.log(b)
    assert np.allclose(model.embedding_ @ model.context_.T, expected, atol=1e-6)


def test_negative_sampling_refuses():
    for settings, message in [
        ({"dim": 0}, "dim"),
        ({"negatives": 0}, "negatives must be at least 1, got 0"),
        ({"init_scale": 0.0}, "init_scale must be positive"),
        ({"init_scale": float("inf")}, "init_scale must be positive, got inf"),
        ({"step": -1.0}, "step must be positive, got -1.0"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"tol": float("nan")}, "tol must be >= 0, got nan"),
    ]:
        with pytest.raises(ValueError, match=message):
            NegativeSampling(**settings, seed=0)
    with pytest.raises(ValueError, match="dim must be at most n = 3, got 9"):
        NegativeSampling(9, seed=0).fit(Cooccurrence(np.ones((3, 3)) - np.eye(3), 1))


@pytest.mark.parametrize("output", ["hierarchical", "negative"])
def test_word2vec_is_fixed_by_its_seed_and_finds_blocks(output):
    graph = sbm_log(200, 8, 0.5, seed=0)
    walks = random_walks(graph.adjacency, 10, 20, seed=0)
    first, again = (word2vec(walks, 200, 8, output=output, seed=1) for _ in range(2))
    assert first.shape == (200, 8)
    assert first.tobytes() == again.tobytes()
    assert accuracy(cluster(first, 2, seed=0), graph.known) > 0.95


def test_word2vec_places_every_vector_at_its_node():
    # Two separate pairs of cliques: nodes of a clique must be closest to each other.
    walks = random_walks(np.kron(np.eye(2), 1 - np.eye(5)), 50, 20, seed=0)
    vectors = word2vec(walks, 11, 4, seed=0)
    assert (vectors[10] == 0).all()
    unit = vectors[:10] / np.linalg.norm(vectors[:10], axis=1, keepdims=True)
    similarity = unit @ unit.T
    assert similarity[:5, :5].min() > similarity[:5, 5:].max()


def test_word2vec_refuses():
    walks = np.array([[0, 1]])
    with pytest.raises(ValueError, match=r"output must be .* got 'full'"):
        word2vec(walks, 2, 1, output="full", seed=0)
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        word2vec(walks, 2, 0, seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"walks": np.array([[0, 5]])}, r"walks must hold nodes in 0\.\.2, got 0 to 5"),
        ({"walks": np.zeros((0, 3), dtype=int)}, r"walks must have shape .* got \(0, 3\)"),
        ({"walks": np.array([[0.5, 1.0]])}, "walks must hold integers, got float64"),
    ],
)
def test_word2vec_refuses_what_would_hang_or_mislead(change, message):
    arguments = {"walks": np.array([[0, 1, 2]]), "window": 2, "epochs": 1} | change
    with pytest.raises(ValueError, match=message):
        word2vec(arguments.pop("walks"), 3, 1, seed=0, **arguments)
