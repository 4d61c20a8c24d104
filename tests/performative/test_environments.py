"""Closed forms against test values, finite differences and samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.performative import BernoulliSquare, Blind, LogitPricing

# Buyers of MovieLens-100K's five largest genres, and those who bought nothing.
BOUGHT = [15176.73, 8868.40, 5067.85, 4863.83, 4630.65]
NOT_BOUGHT = 44625


def movielens():
    return LogitPricing.from_counts(BOUGHT, NOT_BOUGHT, theta_max=4.0, phi_min=0.002, phi_max=0.46)


ENVIRONMENTS = [
    BernoulliSquare(1),
    BernoulliSquare(3),
    LogitPricing([2.0], 1.0),
    LogitPricing([0.0, 1.0, 2.0], 2.0),
    movielens(),
]
IDS = ["bit", "bits", "one product", "three products", "movielens"]
each_environment = pytest.mark.parametrize("env", ENVIRONMENTS, ids=IDS)


def test_bernoulli_square_values():
    env = BernoulliSquare(1)
    assert env.risk([0.5]) == pytest.approx(-0.25)
    assert env.risk_phi([0.25]) == pytest.approx(-0.25)
    assert env.risk([0.25]) == pytest.approx(-0.09375)
    assert env.optimal_risk == pytest.approx(-0.2962962963, abs=1e-10)
    np.testing.assert_allclose(env.optimal_theta, [2 / 3])
    np.testing.assert_allclose(env.optimal_phi, [4 / 9])


def test_bernoulli_divergence_values():
    env = BernoulliSquare(1)
    assert env.kl([0.25], [0.36]) == pytest.approx(0.0277929942, abs=1e-10)
    assert env.kl([0.5], [0.25]) == pytest.approx(0.1438410362, abs=1e-10)
    assert BernoulliSquare(2).kl([0.25, 0.5], [0.36, 0.25]) == pytest.approx(0.1716340304)


def test_estimates_by_hand():
    """Half an observation is added to each outcome."""
    z = np.array([[True, False], [True, True], [True, False]])
    np.testing.assert_allclose(BernoulliSquare(2).estimate(z), [3.5 / 4, 1.5 / 4])
    bought = np.array([0, 2, 2, 1, 0])
    np.testing.assert_allclose(LogitPricing([0, 0], 1).estimate(bought), [1.5 / 6.5, 2.5 / 6.5])


def test_one_product_values():
    env = LogitPricing(a=[2], b=1)
    np.testing.assert_allclose(env.optimal_theta, [2.0])
    np.testing.assert_allclose(env.optimal_phi, [0.5])
    assert env.optimal_risk == pytest.approx(-1.0)
    assert env.risk_hessian([6.0])[0, 0] == pytest.approx(-0.066839, abs=1e-6)
    assert env.risk_hessian([2.0])[0, 0] == pytest.approx(0.5)


def test_several_products_values():
    two = LogitPricing(a=[1, 1], b=1)
    np.testing.assert_allclose(two.optimal_theta, [1.8526055020] * 2, atol=1e-10)
    np.testing.assert_allclose(two.optimal_phi, [0.2301098375] * 2, atol=1e-10)
    assert two.optimal_risk == pytest.approx(-0.8526055020, abs=1e-10)
    np.testing.assert_allclose(
        two.risk_phi_hessian([0.2, 0.3]), [[11, 6], [6, 9.3333333]], atol=1e-7
    )
    three = LogitPricing(a=[0, 1, 2], b=2)
    np.testing.assert_allclose(three.optimal_theta, [1.1069137155] * 3, atol=1e-10)
    np.testing.assert_allclose(
        three.optimal_phi, [0.0493631879, 0.1341830565, 0.3647473642], atol=1e-10
    )
    assert three.optimal_risk == pytest.approx(-0.6069137155, abs=1e-10)


def test_movielens_values():
    env = movielens()
    np.testing.assert_allclose(
        env.a, [-1.078531, -1.615800, -2.175378, -2.216468, -2.265597], atol=2e-6
    )
    np.testing.assert_allclose(env.optimal_theta, [1.248294] * 5, atol=1e-6)
    assert env.optimal_risk == pytest.approx(-0.248294, abs=1e-6)
    np.testing.assert_allclose(
        env.optimal_phi, [0.078191, 0.045690, 0.026110, 0.025059, 0.023857], atol=1e-6
    )
    assert env.distribution_map(np.zeros(5)).sum() == pytest.approx(0.46385, abs=1e-5)
    assert env.risk(np.zeros(5)) == 0.0


def finite_difference(f, x, h=1e-5):
    """Central differences (..., d) of f at x (d,)."""
    steps = h * np.eye(len(x))
    return np.stack([(f(x + e) - f(x - e)) / (2 * h) for e in steps], axis=-1)


@each_environment
def test_derivatives_match_finite_differences(env):
    rng = np.random.default_rng(0)
    theta = rng.uniform(0.3, 0.9, size=env.d_theta) * min(env.theta_set.hi, 3.0)
    phi = env.phi_set.project(env.optimal_phi * rng.uniform(0.8, 1.1, size=env.d_phi))
    np.testing.assert_allclose(
        env.risk_phi_gradient(phi), finite_difference(env.risk_phi, phi), rtol=1e-5, atol=1e-8
    )
    np.testing.assert_allclose(
        env.risk_phi_hessian(phi),
        finite_difference(env.risk_phi_gradient, phi),
        rtol=1e-4,
        atol=1e-5,
    )
    np.testing.assert_allclose(
        env.risk_hessian(theta),
        finite_difference(lambda t: finite_difference(env.risk, t, 1e-4), theta, 1e-4),
        rtol=1e-4,
        atol=1e-6,
    )


@each_environment
def test_the_two_risks_are_one_function(env):
    theta = env.theta_set.sample(np.random.default_rng(1), 50)
    phi = env.distribution_map(theta)
    np.testing.assert_allclose(env.inverse_map(phi), theta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(env.risk_phi(phi), env.risk(theta), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(env.distribution_map(env.optimal_theta), env.optimal_phi)
    np.testing.assert_allclose(env.risk_phi_gradient(env.optimal_phi), 0, atol=1e-12)
    assert env.risk(env.optimal_theta) == pytest.approx(env.optimal_risk)
    assert np.all(env.risk(theta) >= env.optimal_risk)


@each_environment
def test_risk_is_the_mean_loss_of_the_samples(env):
    rng = np.random.default_rng(2)
    theta = env.theta_set.project(0.8 * env.optimal_theta)
    z = env.sample(theta, 200_000, rng)
    loss = env.loss(z, theta)
    assert loss.shape == (200_000,)
    assert loss.mean() == pytest.approx(float(env.risk(theta)), abs=5 * loss.std() / 447)
    np.testing.assert_allclose(env.estimate(z), env.distribution_map(theta), atol=6e-3)
    gradient = env.loss_gradient(z, theta).mean(axis=0)
    np.testing.assert_allclose(
        gradient, finite_difference(lambda t: env.loss(z, t).mean(), theta), atol=1e-7
    )


@pytest.mark.parametrize("env", [BernoulliSquare(2), movielens()], ids=["bits", "movielens"])
def test_reparametrisation_makes_a_nonconvex_risk_convex(env):
    rng = np.random.default_rng(3)
    in_theta = np.linalg.eigvalsh(env.risk_hessian(env.theta_set.sample(rng, 500)))
    in_phi = np.linalg.eigvalsh(env.risk_phi_hessian(env.phi_set.sample(rng, 500)))
    assert in_theta.min() < -0.005
    assert in_phi.min() > 0


@each_environment
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_divergence_to_the_induced_distribution_is_convex_in_the_model(env, seed):
    rng = np.random.default_rng(seed)
    target = env.phi_set.sample(rng, 1)[0]
    a, b = env.theta_set.sample(rng, 2)
    kl = [env.kl(target, env.distribution_map(theta)) for theta in (a, (a + b) / 2, b)]
    assert min(kl) >= 0
    assert kl[1] <= (kl[0] + kl[2]) / 2 + 1e-12
    assert env.kl(target, target) == pytest.approx(0, abs=1e-15)


@each_environment
def test_estimates_of_one_sample_stay_off_the_boundary(env):
    rng = np.random.default_rng(4)
    for theta in env.theta_set.sample(rng, 20):
        q = env.estimate(env.sample(theta, 1, rng))
        assert q.shape == (env.d_phi,)
        assert np.isfinite(env.kl(env.optimal_phi, q))


@each_environment
def test_divergence_on_the_boundary_is_an_error(env):
    with pytest.raises(ValueError, match="distribution parameter on the boundary"):
        env.kl(env.optimal_phi, np.zeros(env.d_phi))
    full = np.full(env.d_phi, 1.0 if isinstance(env, BernoulliSquare) else 1 / env.d_phi)
    with pytest.raises(ValueError, match="distribution parameter on the boundary"):
        env.kl(env.optimal_phi, full)
    with pytest.raises(ValueError, match="no probabilities"):
        env.kl(np.full(env.d_phi, 1.5), env.optimal_phi)


def test_choices_do_not_overflow_at_large_utilities():
    env = LogitPricing([800.0, 1.0], 1.0, theta_max=1000.0)
    np.testing.assert_allclose(env.distribution_map([0.0, 0.0]), [1.0, 0.0], atol=1e-300)
    np.testing.assert_allclose(env.distribution_map([900.0, 900.0]), [0, 0], atol=1e-40)


def test_pricing_refuses_bad_input():
    with pytest.raises(ValueError, match="b must be finite and > 0, found 0"):
        LogitPricing([1.0], 0)
    with pytest.raises(ValueError, match="b must be finite and > 0, found nan"):
        LogitPricing([1.0], float("nan"))
    with pytest.raises(ValueError, match="a must be a finite vector"):
        LogitPricing([[1.0]], 1)
    with pytest.raises(ValueError, match=r"d\*phi_min <= phi_max < 1, found d=2, phi_min=0.6"):
        LogitPricing([1.0, 1.0], 1, phi_min=0.6)
    with pytest.raises(ValueError, match=r"finite counts > 0, found \[3.0, 0.0\]"):
        LogitPricing.from_counts([3, 0], 5)
    with pytest.raises(ValueError, match="not_bought must be finite and > 0, found -1"):
        LogitPricing.from_counts([3, 2], -1)
    for bought in ([], 3, [math.inf]):
        with pytest.raises(ValueError, match="bought must be a vector of finite counts > 0, found"):
            LogitPricing.from_counts(bought, 5)
    with pytest.raises(ValueError, match="theta_max must be finite and > 0, found -1"):
        LogitPricing([1.0], 1, theta_max=-1)
    with pytest.raises(ValueError, match=r"optimal_theta=\[2.0\] lies outside Box"):
        LogitPricing([2.0], 1, theta_max=1.5).optimal_risk  # noqa: B018


@each_environment
def test_wrong_shapes_are_refused(env):
    wrong = np.full(env.d_theta + 1, 0.1)
    z = env.sample(env.optimal_theta, 3, np.random.default_rng(0))
    for call in (
        env.distribution_map,
        env.inverse_map,
        env.risk,
        env.risk_phi,
        env.risk_phi_gradient,
        env.risk_hessian,
        env.risk_phi_hessian,
        lambda x: env.sample(x, 3, np.random.default_rng(0)),
        lambda x: env.loss(z, x),
        lambda x: env.loss_gradient(z, x),
        lambda x: env.kl(x, env.optimal_phi),
        lambda x: env.kl(env.optimal_phi, x),
    ):
        with pytest.raises(ValueError, match=rf"must have shape \((\.\.\.)?,? ?{env.d_theta},?\)"):
            call(wrong)
    for call in (
        lambda x: env.sample(x, 3, np.random.default_rng(0)),
        lambda x: env.loss(z, x),
        lambda x: env.kl(env.optimal_phi, x),
    ):  # one model at a time
        with pytest.raises(ValueError, match=rf"must have shape \({env.d_theta},\), found \(1, "):
            call(np.full((1, env.d_theta), 0.1))
    for d in (0, 1.5, math.nan):
        with pytest.raises(ValueError, match=f"d must be a whole number >= 1, found {d}"):
            BernoulliSquare(d)


@each_environment
def test_samples_of_another_shape_or_kind_are_refused(env):
    bits = isinstance(env, BernoulliSquare)
    theta = env.optimal_theta
    d = env.d_phi
    wrong = (
        [np.ones((4, d + 1), bool), np.ones(4, bool), np.ones((0, d), bool)]
        if bits
        else [np.array([[0, 1]]), np.array([], int), np.array([0, d + 1]), np.array([0, -1])]
    )
    for z in wrong:
        for call in (
            env.estimate,
            lambda z: env.loss(z, theta),
            lambda z: env.loss_gradient(z, theta),
        ):
            with pytest.raises(ValueError, match=r"z must (have shape|lie in 0\.\.)"):
                call(z)


@each_environment
def test_models_and_parameters_out_of_range_are_refused(env):
    rng = np.random.default_rng(0)
    unknown = np.full(env.d_theta, math.nan)
    with pytest.raises(ValueError, match=r"theta must (lie in \[-1, 1\]|be finite).*nan"):
        env.sample(unknown, 3, rng)
    if isinstance(env, BernoulliSquare):
        with pytest.raises(ValueError, match=r"theta must lie in \[-1, 1\].*2"):
            env.sample(np.full(env.d_theta, 2.0), 3, rng)
    for phi in (unknown, np.full(env.d_phi, -0.1), np.full(env.d_phi, 1.1)):
        for call in (env.inverse_map, env.risk_phi, env.risk_phi_gradient, env.risk_phi_hessian):
            with pytest.raises(ValueError, match=r"phi(:| must).*found \["):
                call(phi)
    with pytest.raises(ValueError, match=r"q: distribution parameter on the boundary.*nan"):
        env.kl(env.optimal_phi, unknown)


@each_environment
def test_a_blind_environment_hides_what_a_learner_must_not_know(env):
    blind = Blind(env)
    for name in (
        "distribution_map",
        "inverse_map",
        "risk",
        "risk_phi",
        "risk_phi_gradient",
        "risk_hessian",
        "risk_phi_hessian",
        "loss_gradient",
        "optimal_theta",
        "optimal_phi",
        "optimal_risk",
    ):
        assert hasattr(env, name)
        with pytest.raises(AttributeError, match=f"cannot see '{name}'"):
            getattr(blind, name)
    theta = env.optimal_theta
    z = blind.sample(theta, 7, np.random.default_rng(5))
    np.testing.assert_array_equal(z, env.sample(theta, 7, np.random.default_rng(5)))
    np.testing.assert_array_equal(blind.loss(z, theta), env.loss(z, theta))
    blind.sample(theta, 3, np.random.default_rng(5))
    assert (blind.n_samples, blind.n_deployments) == (10, 2)
