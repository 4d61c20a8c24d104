import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval

from retable.deepwalk import (
    ConvergenceError,
    Cooccurrence,
    DeepWalk,
    accuracy,
    karate_club,
    linear_dynamics,
    loss_and_grad,
    sbm,
    sbm_const,
    sbm_log,
    theory,
)
from retable.deepwalk.descent import descend
from retable.deepwalk.softmax import _interpolate, _series, chebyshev_sums, exact_sums


def expected_matrix(n, s):
    """The expectation of C on two equal blocks, and the indicator z."""
    z = np.repeat([1.0, -1.0], n // 2)
    return Cooccurrence.from_matrix((1 + s * np.outer(z, z)) / n), z


def pair(n, k, scale, seed=0):
    return scale * np.random.default_rng(seed).standard_normal((2, n, k))


@pytest.fixture(scope="module")
def cooc():
    return Cooccurrence(sbm_log(300, 6, 1, seed=0).adjacency, 3)


def test_loss_and_gradient_at_zero(cooc):
    zero = np.zeros((300, 2))
    loss, grad_x, grad_y = loss_and_grad(zero, zero, cooc)
    assert loss == pytest.approx(300 * np.log(300), rel=1e-14)
    assert abs(grad_x).max() == 0
    assert abs(grad_y).max() < 1e-15


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_loss_and_gradient_against_the_formula(cooc, dim):
    x, y = pair(300, dim, 1.0)
    c = cooc.toarray()
    exponential = np.exp(x @ y.T)
    q = exponential / exponential.sum(axis=1, keepdims=True)
    residual = cooc.row_mass[:, None] * q - c
    loss, grad_x, grad_y = loss_and_grad(x, y, cooc)
    assert loss == pytest.approx(-np.sum(c * np.log(q)), rel=1e-13)
    assert np.allclose(grad_x, residual @ y, atol=1e-13)
    assert np.allclose(grad_y, residual.T @ x, atol=1e-13)
    assert np.allclose(residual.sum(axis=1), 0, atol=1e-13)


@pytest.mark.parametrize(("dim", "softmax"), [(1, "chebyshev"), (1, "exact"), (3, "exact")])
def test_gradient_equals_finite_differences(cooc, dim, softmax):
    x, y = pair(300, dim, 0.7)
    direction_x, direction_y = pair(300, dim, 1.0, seed=1)
    h = 1e-5

    def loss(t):
        return loss_and_grad(x + t * direction_x, y + t * direction_y, cooc, softmax)[0]

    _, grad_x, grad_y = loss_and_grad(x, y, cooc, softmax)
    slope = np.sum(grad_x * direction_x) + np.sum(grad_y * direction_y)
    # Fourth-order differences: error h^4 plus rounding of 1e-13 / h.
    numeric = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
    assert numeric == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [2, 3, 600])
def test_interpolated_sums_are_exact(scale, n):
    x, y = pair(n, 1, scale)
    mass = np.random.default_rng(1).uniform(0.2, 3, n)
    fast, slow = chebyshev_sums(x, y, mass), exact_sums(x, y, mass)
    for a, b in zip(fast, slow, strict=True):
        assert abs(a - b).max() <= 1e-9 * abs(b).max()


def test_interpolation_resolves_long_and_shifted_embeddings():
    x, y = pair(600, 1, 4.0)
    mass = np.ones(600)
    fast, slow = chebyshev_sums(x, y + 20, mass), exact_sums(x, y + 20, mass)
    for a, b in zip(fast, slow, strict=True):
        assert abs(a - b).max() <= 1e-8 * abs(b).max()


@pytest.mark.parametrize("m", [1, 2, 3, 4, 24, 96])
def test_series_are_summed_as_by_the_recurrence(m):
    rng = np.random.default_rng(m)
    coefficients = rng.standard_normal((2, m)) * 0.7 ** np.arange(m)
    t = np.concatenate([[-1.0, 0.0, 1.0], rng.uniform(-1, 1, 50)])
    padded = np.pad(coefficients, ((0, 0), (0, max(0, 4 - m))))
    assert np.allclose(_series(padded, t), chebval(t, coefficients.T), rtol=0, atol=1e-13)


def test_interpolation_takes_no_more_nodes_than_it_needs():
    """The decay of the first coefficients tells how many suffice: 24, then the right number."""
    tried = []

    def runge(v):
        tried.append(v.size)
        return 1 / (1 + 4 * v[None] ** 2)

    t = np.linspace(-1, 1, 40)
    assert np.allclose(_interpolate(runge, t), 1 / (1 + 4 * t**2), atol=1e-9)
    assert tried == [24, 64]


def test_interpolation_of_constant_embeddings():
    ones = np.ones((5, 1))
    sums = chebyshev_sums(0.3 * ones, 2 * ones, np.arange(5.0))
    assert np.allclose(sums.log_z, 0.6 + np.log(5))
    assert np.allclose(sums.expected_context, 2)
    assert np.allclose(sums.expected_source, 0.3 * 10 / 5)


def test_interpolation_gives_up_on_absurd_lengths(cooc):
    x, y = pair(300, 1, 300.0)
    assert chebyshev_sums(x, y, cooc.row_mass) is None
    with pytest.raises(ConvergenceError, match="too long for interpolated softmax sums"):
        loss_and_grad(x, y, cooc, "chebyshev")
    exact, auto = loss_and_grad(x, y, cooc, "exact"), loss_and_grad(x, y, cooc, "auto")
    assert exact[0] == auto[0]
    assert (exact[1] == auto[1]).all()


def test_blocks_of_rows_change_nothing(monkeypatch, cooc):
    x, y = pair(300, 2, 1.0)
    whole = exact_sums(x, y, cooc.row_mass)
    monkeypatch.setattr("retable.deepwalk.softmax._ROWS", 7)
    monkeypatch.setattr("retable.deepwalk.softmax._COLUMNS", 11)
    for a, b in zip(whole, exact_sums(x, y, cooc.row_mass), strict=True):
        assert np.allclose(a, b, rtol=1e-13, atol=1e-15)
    fast = chebyshev_sums(x[:, :1], y[:, :1], cooc.row_mass)
    for a, b in zip(fast, exact_sums(x[:, :1], y[:, :1], cooc.row_mass), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dim", [1, 2])
def test_loss_is_blind_to_shift_and_gauge(cooc, dim):
    x, y = pair(300, dim, 0.8)
    loss = loss_and_grad(x, y, cooc)[0]
    assert loss_and_grad(x, y + np.array([0.3, -2.0])[:dim], cooc)[0] == pytest.approx(loss)
    assert loss_and_grad(x * 1.7, y / 1.7, cooc)[0] == pytest.approx(loss, rel=1e-13)


def test_relabelling_the_nodes_permutes_everything():
    graph = sbm_log(200, 6, 1, seed=0)
    order = np.random.default_rng(0).permutation(200)
    shuffled = graph.adjacency[order][:, order]
    x, y = pair(200, 1, 0.5)
    loss, grad_x, grad_y = loss_and_grad(x, y, Cooccurrence(graph.adjacency, 3))
    again, grad_u, grad_v = loss_and_grad(x[order], y[order], Cooccurrence(shuffled, 3))
    assert again == pytest.approx(loss, rel=1e-13)
    assert np.allclose(grad_u, grad_x[order], atol=1e-13)
    assert np.allclose(grad_v, grad_y[order], atol=1e-13)


def test_one_step_on_the_expected_matrix_grows_by_the_signal():
    s, eps = 0.392, 1e-3
    cooc, z = expected_matrix(200, s)
    x = y = eps * z[:, None]
    _, grad_x, grad_y = loss_and_grad(x, y, cooc)
    for new in (x - grad_x, y - grad_y):
        assert abs(new - (1 + s) * x).max() < 10 * eps**3
    linear_x, linear_y = linear_dynamics(cooc, x, y, 1.0, 1)
    assert np.allclose(linear_x, (1 + s) * x, atol=1e-15)
    assert np.allclose(linear_y, (1 + s) * y, atol=1e-15)


def test_descent_on_the_expected_matrix_reaches_the_fixed_point():
    cooc, z = expected_matrix(200, 0.392)
    model = DeepWalk(max_iter=300, tol=0, seed=0).fit(cooc)
    x, y = model.embedding_[:, 0], model.context_[:, 0]
    product = x * (y - y.mean())
    assert abs(product - 0.414161).max() < 5e-4
    assert accuracy(model.labels(2), (z > 0).astype(int)) == 1
    assert model.history_["loss"][-1] == pytest.approx(theory.fixed_point_loss(0.392, 200))
    assert model.n_iter_ == 300


def test_the_fixed_point_is_stationary():
    s = 0.392
    cooc, z = expected_matrix(200, s)
    t, u = np.sqrt(theory.fixed_point(s)), 1.7
    loss, grad_x, grad_y = loss_and_grad(t * u * z[:, None], t / u * z[:, None], cooc)
    assert max(abs(grad_x).max(), abs(grad_y).max()) < 1e-15 * 200
    assert loss == pytest.approx(theory.fixed_point_loss(s, 200), rel=1e-13)


def test_short_embeddings_follow_the_linearised_dynamics():
    cooc = Cooccurrence(sbm_log(400, 6, 1, seed=0).adjacency, 3)
    model = DeepWalk(init_scale=1e-6, max_iter=8, seed=0)
    x0, y0 = model.start(400)
    model.fit(cooc)
    x, y = linear_dynamics(cooc, x0, y0, 1.0, 8)
    assert np.allclose(model.embedding_, x, rtol=1e-6, atol=1e-10)
    assert np.allclose(model.context_, y, rtol=1e-6, atol=1e-10)


def test_a_tiny_start_is_not_taken_for_convergence():
    graph = sbm_log(400, 8, 1, seed=0)
    model = DeepWalk(init_scale=1e-9, seed=0).fit(Cooccurrence(graph.adjacency, 3))
    assert model.history_["grad_rms"][0] < 1e-6
    assert model.converged_
    assert accuracy(model.labels(2), graph.known) == 1


def test_recovery_and_history_on_a_block_model():
    graph = sbm_log(1000, 8, 1, seed=0)
    model = DeepWalk(seed=1).fit(Cooccurrence(graph.adjacency, 3), graph.known)
    assert model.converged_
    assert accuracy(model.labels(2), graph.known) == 1
    assert model.embedding_.shape == model.context_.shape == (1000, 1)
    history = model.history_
    assert {len(values) for values in history.values()} == {model.n_iter_ + 1}
    assert history["grad_rms"][-1] < 1e-6 < 1.5 * history["grad_rms"][-2]
    assert (np.diff(history["loss"]) <= 1e-10 * history["loss"][:-1]).all()
    assert history["alignment"][-1] > 0.95 > history["alignment"][0]
    assert np.allclose(
        history["grad_rms"], np.maximum(history["grad_rms_x"], history["grad_rms_y"])
    )


@pytest.mark.parametrize("softmax", ["auto", "chebyshev"])
def test_interpolation_gives_the_same_embedding(softmax):
    cooc = Cooccurrence(sbm_log(300, 6, 1, seed=0).adjacency, 3)
    fast, slow = (DeepWalk(softmax=s, seed=0).fit(cooc) for s in (softmax, "exact"))
    assert np.allclose(fast.embedding_, slow.embedding_, atol=1e-7)
    assert fast.n_iter_ == slow.n_iter_


def test_the_seed_fixes_every_byte():
    cooc = Cooccurrence(sbm_log(300, 6, 1, seed=0).adjacency, 3)
    first, again, other = (DeepWalk(seed=s).fit(cooc) for s in (0, 0, 1))
    assert first.embedding_.tobytes() == again.embedding_.tobytes()
    assert first.embedding_.tobytes() != other.embedding_.tobytes()


def test_first_phase_stops_short():
    cooc = Cooccurrence(sbm_log(500, 6, 1, seed=0).adjacency, 3)
    model = DeepWalk(phase1_only=True, seed=0).fit(cooc)
    assert model.history_["x_rms"][-1] >= 0.1 > model.history_["x_rms"][-2]
    assert not model.converged_


def test_the_guard_halves_steps_that_raise_the_loss():
    graph = sbm_const(1000, 6.9, 1.4, seed=0)
    model = DeepWalk(max_iter=150, seed=0).fit(Cooccurrence(graph.adjacency, 3))
    steps = model.history_["step"]
    assert steps[0] == 1
    assert steps[-1] < 1
    assert (np.diff(steps) <= 0).all()
    assert (np.diff(model.history_["loss"]) <= 1e-10 * model.history_["loss"][:-1]).all()


def test_no_step_lowers_a_loss_that_jumps():
    def jumps(x, y):
        return float(np.any(x != 0)), np.ones_like(x), np.zeros_like(y)

    with pytest.raises(ConvergenceError, match="still rises after 20 halvings of step 1"):
        descend(jumps, np.zeros((2, 1)), np.zeros((2, 1)), step=1.0, max_iter=5, tol=0)


def test_values_that_are_not_finite_stop_the_descent():
    def broken(x, y):
        return 1.0, np.full_like(x, np.nan), y

    with pytest.raises(ConvergenceError, match="not finite after 0 steps"):
        descend(broken, np.zeros((2, 1)), np.zeros((2, 1)), step=1.0, max_iter=5, tol=0)


def test_isolated_nodes_stay_at_their_start():
    graph = sbm_const(300, 4, 0.4, seed=0)
    assert graph.isolated.any()
    model = DeepWalk(max_iter=60, seed=3).fit(Cooccurrence(graph.adjacency, 3))
    start, _ = model.start(300)
    assert (model.isolated_ == graph.isolated).all()
    assert (model.embedding_[graph.isolated] == start[graph.isolated]).all()
    assert (model.labels(2)[graph.isolated] == -1).all()
    assert (model.labels(2)[~graph.isolated] >= 0).all()


def test_uniform_start():
    x, y = DeepWalk(init="uniform", init_scale=0.5, seed=0).start(2000)
    assert abs(x).max() < 0.5
    assert np.std(y) == pytest.approx(0.5 / np.sqrt(3), rel=0.05)


def test_disassortative_blocks_are_found_too():
    graph = sbm_log(500, 1, 8, seed=0)
    model = DeepWalk(seed=0).fit(Cooccurrence(graph.adjacency, 1))
    assert accuracy(model.labels(2), graph.known) == 1
    # The signal is negative at distance 1: x and y have opposite signs.
    z = 2 * graph.labels - 1
    assert np.mean(z * model.embedding_[:, 0]) * np.mean(z * model.context_[:, 0]) < 0


def test_three_blocks_in_two_dimensions():
    graph = sbm(300, 0.3, 0.03, k=3, seed=0)
    model = DeepWalk(dim=2, seed=0).fit(Cooccurrence(graph.adjacency, 3))
    assert accuracy(model.labels(3), graph.known) == 1


def test_more_dimensions_lower_the_loss():
    cooc = Cooccurrence(karate_club().adjacency, 2)
    one, two = (DeepWalk(dim=d, step=0.1, max_iter=2000, seed=0).fit(cooc) for d in (1, 2))
    assert two.history_["loss"][-1] < one.history_["loss"][-1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 0}, "dim must be at least 1, got 0"),
        ({"init_scale": 0}, "init_scale must be positive, got 0; zero is a stationary point"),
        ({"init_scale": -1.0}, "init_scale must be positive, got -1.0"),
        ({"step": 0.0}, "step must be positive, got 0.0"),
        ({"step": float("nan")}, "step must be positive, got nan"),
        ({"dim": float("nan")}, "dim must be at least 1, got nan"),
        ({"max_iter": float("nan")}, "max_iter must be at least 1, got nan"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"tol": -1.0}, "tol must be >= 0, got -1.0"),
        ({"softmax": "fast"}, "softmax must be 'auto', 'exact' or 'chebyshev', got 'fast'"),
        ({"softmax": "chebyshev", "dim": 2}, "softmax 'chebyshev' needs dim = 1, got 2"),
        ({"init": "zeros"}, "init must be 'normal' or 'uniform', got 'zeros'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DeepWalk(**settings, seed=0)


def test_bad_arguments_are_refused(cooc):
    with pytest.raises(ValueError, match="dim must be at most n = 300, got 301"):
        DeepWalk(dim=301, seed=0).fit(cooc)
    with pytest.raises(ValueError, match="labels need dim = 1"):
        DeepWalk(dim=2, seed=0).fit(cooc, np.zeros(300, dtype=int))
    with pytest.raises(ValueError, match=r"x and y must be \(300, k\) alike"):
        loss_and_grad(np.zeros((300, 1)), np.zeros((300, 2)), cooc)
    with pytest.raises(ValueError, match="softmax must be"):
        loss_and_grad(np.zeros((300, 1)), np.zeros((300, 1)), cooc, "fast")
    model = DeepWalk(max_iter=1, seed=0).fit(cooc)
    with pytest.raises(ValueError, match=r"k must lie in 1..n = 1..300, got 0"):
        model.labels(0)
