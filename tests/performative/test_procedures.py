"""The two levels, the baselines, and the account of their samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.performative import (
    BernoulliSquare,
    Blind,
    LogitPricing,
    Schedule,
    direct,
    direct_one_point,
    growth_exponent,
    known_map,
    learn_model,
    one_point_gradient,
    optimize,
    regret,
    repeated_gradient,
    two_point_gradient,
    unit_sphere,
)

BASELINES = [direct, direct_one_point, repeated_gradient, known_map]
PRICING = LogitPricing([0.5, 0.0], 1.0, theta_max=4.0, phi_min=0.01, phi_max=0.7)


def rng(seed=0):
    return np.random.default_rng(seed)


class Recorded:
    """An environment that notes every deployed model and every target of a divergence."""

    def __init__(self, env):
        self.env, self.deployed, self.targets = env, [], []

    def __getattr__(self, name):
        return getattr(self.env, name)

    def sample(self, theta, n, rng):
        self.deployed.append(theta)
        return self.env.sample(theta, n, rng)

    def kl(self, phi, q):
        self.targets.append(phi)
        return self.env.kl(phi, q)


# Zeroth-order estimates


def test_two_point_gradient_of_a_linear_function():
    for seed, delta in ((0, 0.5), (1, 1e-3), (2, 7.0)):
        slope = two_point_gradient(lambda x: 3 * x[0], np.array([0.2]), delta, rng(seed))
        np.testing.assert_allclose(slope, [3.0], rtol=1e-10)
    c = np.array([1.0, -2.0, 0.5])
    generator = rng()
    mean = np.mean(
        [two_point_gradient(lambda x: c @ x, np.ones(3), 0.1, generator) for _ in range(40_000)],
        axis=0,
    )
    np.testing.assert_allclose(mean, c, atol=0.05)


def test_one_point_gradient_is_unbiased_for_the_smoothed_function():
    """A quadratic's smoothed gradient is its gradient."""
    x, generator = np.array([0.4, -0.3]), rng()
    estimates = [
        one_point_gradient(lambda y: y @ y + y[0], x, 0.5, generator) for _ in range(200_000)
    ]
    np.testing.assert_allclose(np.mean(estimates, axis=0), 2 * x + [1, 0], atol=0.02)


@given(d=st.integers(1, 20), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_directions_have_length_one(d, seed):
    u = unit_sphere(rng(seed), d)
    assert u.shape == (d,)
    assert np.linalg.norm(u) == pytest.approx(1.0)
    if d == 1:
        assert abs(u[0]) == 1.0


def test_directions_are_uniform():
    generator = rng()
    u = np.array([unit_sphere(generator, 3) for _ in range(20_000)])
    np.testing.assert_allclose(u.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(u.T @ u / len(u), np.eye(3) / 3, atol=0.02)


@pytest.mark.parametrize("estimate", [one_point_gradient, two_point_gradient])
def test_estimates_refuse_a_width_of_zero(estimate):
    for delta in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"delta must be finite and > 0, found {delta}"):
            estimate(lambda x: x[0], np.zeros(1), delta, rng())
    with pytest.raises(ValueError, match="d must be a whole number >= 1, found 0"):
        unit_sphere(rng(), 0)


# LearnModel


def test_learn_model_induces_the_target():
    env = BernoulliSquare(1)
    for start in (0.2, 0.8):
        learned = learn_model(
            Blind(env),
            [0.36],
            [start],
            steps=400,
            n_kl=64,
            delta=0.3 * 400**-0.25,
            step_size=0.2,
            rng=rng(),
        )
        assert env.distribution_map(learned.theta)[0] == pytest.approx(0.36, abs=0.02)


def test_learn_model_error_falls_with_the_steps():
    env = BernoulliSquare(2)

    def rms(steps):
        errors = [
            env.distribution_map(
                learn_model(
                    env,
                    [0.36, 0.36],
                    [0.3, 0.3],
                    steps=steps,
                    n_kl=64,
                    delta=0.3 * (2 / steps) ** 0.25,
                    step_size=0.2 / math.sqrt(2),
                    rng=rng(seed),
                ).theta
            )
            - 0.36
            for seed in range(16)
        ]
        return math.sqrt(np.mean(np.sum(np.square(errors), axis=1)))

    assert rms(320) < rms(20) / 2


def test_learn_model_follows_its_equations():
    """One step by hand: θ_1 = Π(θ_0 - η (1/2δ)(κ+ - κ-) w), from the very samples it drew."""
    env, theta0, target = BernoulliSquare(1), 0.4, np.array([0.3])
    directions, samples = rng(3).spawn(2)
    w = unit_sphere(directions, 1)
    kappa = [
        env.kl(target, env.estimate(env.sample(theta, 50, samples)))
        for theta in (theta0 + 0.2 * w, theta0 - 0.2 * w)
    ]
    expected = theta0 - 0.1 * (kappa[0] - kappa[1]) / 0.4 * w
    learned = learn_model(
        env, target, [theta0], steps=1, n_kl=50, delta=0.2, step_size=0.1, rng=rng(3)
    )
    np.testing.assert_allclose(learned.theta, expected, rtol=1e-12)
    np.testing.assert_allclose(learned.log.theta, [theta0 + 0.2 * w, theta0 - 0.2 * w])
    assert learned.log.n.tolist() == [50, 50]
    assert learned.log.level.tolist() == ["inner", "inner"]


def test_learn_model_takes_shorter_and_shorter_steps():
    """Three steps η/√(s+1) in two dimensions, retraced from the models that were deployed."""
    env, target = BernoulliSquare(2), np.array([0.3, 0.5])
    directions, samples = rng(6).spawn(2)
    theta, iterates = np.array([0.5, 0.6]), []
    for s in range(3):
        w = unit_sphere(directions, 2)
        kappa = [
            env.kl(target, env.estimate(env.sample(theta + sign * 0.1 * w, 40, samples)))
            for sign in (1, -1)
        ]
        theta = theta - 0.05 / math.sqrt(s + 1) * (2 / 0.2) * (kappa[0] - kappa[1]) * w
        assert env.theta_set.contains(theta)
        iterates.append(theta)
    learned = learn_model(
        env, target, [0.5, 0.6], steps=3, n_kl=40, delta=0.1, step_size=0.05, rng=rng(6)
    )
    np.testing.assert_allclose(learned.theta, (iterates[1] + iterates[2]) / 2, rtol=1e-12)


def test_learn_model_averages_the_last_half_of_its_iterates():
    """Two steps average one iterate, the last; three average the last two."""
    env = BernoulliSquare(1)

    def learn(steps, average):
        return learn_model(
            env,
            [0.3],
            [0.4],
            steps=steps,
            n_kl=20,
            delta=0.1,
            step_size=0.1,
            rng=rng(5),
            average=average,
        ).theta

    np.testing.assert_array_equal(learn(2, "tail"), learn(2, "last"))
    np.testing.assert_allclose(learn(3, "tail"), (learn(2, "last") + learn(3, "last")) / 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps must be a whole number >= 1, found 0"),
        ({"n_kl": 0}, "n_kl must be a whole number >= 1, found 0"),
        ({"steps": math.nan}, "steps must be a whole number >= 1, found nan"),
        ({"n_kl": 2.5}, r"n_kl must be a whole number >= 1, found 2\.5"),
        ({"target": ["a"]}, r"target must be an array of numbers, found \['a'\]"),
        ({"delta": math.inf}, "delta must be finite and > 0, found inf"),
        ({"delta": 0.0}, "delta must be finite and > 0, found 0.0"),
        ({"step_size": -1.0}, "step_size must be finite and > 0, found -1.0"),
        ({"target": [0.95]}, r"target=\[0.95\] lies outside Box"),
        ({"target": [0.3, 0.3]}, r"target must have shape \(1,\), found \(2,\)"),
        ({"theta0": [0.99]}, r"theta0=\[0.99\] lies outside Box"),
        ({"theta0": [math.nan]}, r"theta0=\[nan\] lies outside Box"),
        ({"theta0": 0.3}, r"theta0 must have shape \(1,\), found \(\)"),
        ({"average": "first"}, "average must be one of .*, found 'first'"),
    ],
)
def test_learn_model_refuses_bad_input(change, message):
    arguments = {
        "target": [0.36],
        "theta0": [0.3],
        "steps": 4,
        "n_kl": 8,
        "delta": 0.1,
        "step_size": 0.1,
    } | change
    with pytest.raises(ValueError, match=message):
        learn_model(BernoulliSquare(1), **arguments, rng=rng())


# Schedule


def test_schedule_values():
    schedule = Schedule.from_budget(2**17, 32, 1, 1)
    assert (schedule.inner_steps, schedule.outer_steps) == (64, 15)
    assert schedule.delta == pytest.approx(0.125)
    assert schedule.step_size == pytest.approx(1 / math.sqrt(15))
    assert schedule.delta_inner == pytest.approx(0.3 * 64**-0.25)
    assert schedule.step_inner == pytest.approx(0.2)
    schedule = Schedule.from_budget(2**18, 32, 1, 1)
    assert (schedule.inner_steps, schedule.outer_steps) == (101, 19)


def test_schedule_is_exact_at_cubes():
    """M = 8^k makes M^(2/3)/4 the integer 4^(k-1)."""
    for k in range(3, 11):
        assert Schedule.from_budget(8**k, 1, 1, 1).inner_steps == max(8, 4 ** (k - 1))


def test_schedule_scales_with_the_dimensions():
    one, many = (Schedule.from_budget(2**17, 32, d, d) for d in (1, 16))
    assert many.delta == pytest.approx(4 * one.delta)
    assert many.step_size == pytest.approx(4 * one.step_size)
    assert many.delta_inner == pytest.approx(2 * one.delta_inner)
    assert many.step_inner == pytest.approx(one.step_inner / 4)


@given(budget=st.integers(51, 2**22), n_kl=st.integers(1, 64))
@settings(max_examples=200, deadline=None)
def test_schedule_never_passes_its_budget(budget, n_kl):
    try:
        schedule = Schedule.from_budget(budget, n_kl, 1, 1)
    except ValueError:
        assert budget < n_kl * (6 * max(8, int((budget // n_kl) ** (2 / 3) / 4 + 1)) + 3)
        return
    s, t = schedule.inner_steps, schedule.outer_steps
    assert n_kl * (1 + t * (4 * s + 2) + 2 * s) <= budget
    assert n_kl * (1 + (t + 1) * (4 * s + 2) + 2 * s) > budget


def test_schedule_refuses_bad_input():
    with pytest.raises(
        ValueError, match=r"budget must be finite and >= 1632 samples .*, found 1000"
    ):
        Schedule.from_budget(1000, 32, 1, 1)
    with pytest.raises(ValueError, match="n_kl must be a whole number >= 1, found 0"):
        Schedule.from_budget(1000, 0, 1, 1)
    for budget in (-1000, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"budget must be finite and >= 1632.* {budget}"):
            Schedule.from_budget(budget, 32, 1, 1)
        with pytest.raises(ValueError, match=f"budget must be finite and >= 1632.* {budget}"):
            optimize(BernoulliSquare(1), [0.3], budget=budget, n_kl=32, rng=rng())
    for count in (1.5, math.nan):
        with pytest.raises(ValueError, match=f"n_kl must be a whole number >= 1, found {count}"):
            Schedule.from_budget(2**17, count, 1, 1)
        with pytest.raises(ValueError, match=f"outer_steps must be a whole .* found {count}"):
            Schedule(count, 8, 0.1, 0.1, 0.1, 0.1)
    with pytest.raises(ValueError, match="c_eta must be finite and > 0, found 0"):
        Schedule.from_budget(2**17, 32, 1, 1, c_eta=0)
    with pytest.raises(ValueError, match="outer_steps must be a whole number >= 1, found 0"):
        Schedule(0, 1, 0.1, 0.1, 0.1, 0.1)
    with pytest.raises(ValueError, match=r"delta must be finite and > 0, found -0\.1"):
        Schedule(1, 1, -0.1, 0.1, 0.1, 0.1)


# Algorithm 1


@pytest.mark.parametrize(
    ("env", "theta0", "budget"),
    [
        (BernoulliSquare(1), [0.3], 2**13),
        (BernoulliSquare(3), [0.3] * 3, 2**14 + 77),
        (PRICING, [0.0, 0.0], 2**14),
    ],
)
def test_optimize_stays_within_its_budget_and_sets(env, theta0, budget):
    seen = Recorded(env)
    blind = Blind(seen)
    result = optimize(blind, theta0, budget=budget, n_kl=16, rng=rng())
    log = result.log
    assert log.n.sum() == blind.n_samples <= budget
    assert len(log) == blind.n_deployments == len(seen.deployed)
    np.testing.assert_array_equal(log.theta, seen.deployed)
    assert all(env.theta_set.contains(theta) for theta in seen.deployed)
    assert all(env.phi_set.contains(target) for target in seen.targets)
    assert all(env.phi_set.contains(phi) for phi in result.phis)
    schedule = Schedule.from_budget(budget, 16, env.d_theta, env.d_phi)
    s, t = schedule.inner_steps, schedule.outer_steps
    counts = {name: int((log.level == name).sum()) for name in ("start", "inner", "outer", "final")}
    assert counts == {"start": 1, "inner": 4 * s * t, "outer": 2 * t, "final": 2 * s}
    assert result.phis.shape == (t + 1, env.d_phi)
    assert result.thetas.shape == (t, env.d_theta)
    np.testing.assert_array_equal(log.theta[0], theta0)
    assert log.iteration[0] == 0
    assert np.all(np.diff(log.iteration) >= 0)
    assert log.iteration.max() == t + 1


def test_optimize_follows_its_equations():
    """φ_2 from φ_1, the direction and the two mean losses that were logged."""
    env = BernoulliSquare(2)
    schedule = Schedule(2, 8, 0.2, 0.5, 0.1, 0.1)
    result = optimize(env, [0.5, 0.6], budget=10**5, n_kl=32, schedule=schedule, rng=rng(7))
    outer, _, samples = rng(7).spawn(3)
    margin = 0.2 / math.sqrt(2)
    phi = env.phi_set.project(env.estimate(env.sample(np.array([0.5, 0.6]), 32, samples)), margin)
    np.testing.assert_array_equal(result.phis[0], phi)
    losses = result.log.loss_mean[result.log.level == "outer"].reshape(-1, 2)
    models = result.log.theta[result.log.level == "outer"].reshape(-1, 2, 2)
    for t in range(2):
        u = unit_sphere(outer, 2)
        phi = env.phi_set.project(phi - 0.5 * (2 / 0.4) * (losses[t, 0] - losses[t, 1]) * u, margin)
        np.testing.assert_allclose(result.phis[t + 1], phi, rtol=1e-12)
        np.testing.assert_allclose(result.thetas[t], models[t].mean(axis=0))


def test_optimize_hands_targets_and_starts_to_learn_model():
    env = Recorded(BernoulliSquare(2))
    delta, steps, outer_steps = 0.2, 8, 3
    schedule = Schedule(outer_steps, steps, delta, 0.3, 0.05, 0.05)
    result = optimize(env, [0.5, 0.6], budget=10**5, n_kl=64, schedule=schedule, rng=rng(3))
    log = result.log
    directions, _, _ = rng(3).spawn(3)
    # Each LearnModel has one target for its 2S divergences.
    targets = np.array(env.targets).reshape(2 * outer_steps + 1, 2 * steps, 2)
    assert np.all(targets == targets[:, :1])
    # The first two models that it deploys lie on both sides of its start.
    starts = log.theta[np.isin(log.level, ["inner", "final"])].reshape(-1, 2 * steps, 2)[:, :2]
    expected = [np.array([0.5, 0.6]), *result.thetas]
    for t in range(outer_steps):
        u = unit_sphere(directions, 2)
        for k, sign in enumerate((1, -1)):
            wanted = env.phi_set.project(result.phis[t] + sign * delta * u)
            np.testing.assert_array_equal(targets[2 * t + k, 0], wanted)
            np.testing.assert_allclose(starts[2 * t + k].mean(axis=0), expected[t])
    # The last one: the mean of the last ⌈T/2⌉ parameters, from the last learned models.
    np.testing.assert_allclose(targets[-1, 0], result.phis[-2:].mean(axis=0))
    np.testing.assert_allclose(starts[-1].mean(axis=0), result.thetas[-1])


def test_optimize_needs_nothing_that_is_hidden():
    for env, theta0 in ((BernoulliSquare(2), [0.3, 0.3]), (PRICING, [0.0, 0.0])):
        runs = [
            optimize(world, theta0, budget=2**13, n_kl=16, rng=rng(1))
            for world in (env, Blind(env))
        ]
        np.testing.assert_array_equal(runs[0].theta, runs[1].theta)
        np.testing.assert_array_equal(runs[0].phis, runs[1].phis)
        for name in ("theta", "n", "level", "iteration", "loss_mean"):
            np.testing.assert_array_equal(getattr(runs[0].log, name), getattr(runs[1].log, name))
        other = optimize(env, theta0, budget=2**13, n_kl=16, rng=rng(2))
        assert not np.array_equal(other.theta, runs[0].theta)


def test_optimize_finds_the_optimum_from_the_nonconvex_region():
    env = BernoulliSquare(1)
    excess = [
        env.risk(optimize(Blind(env), [0.2], budget=2**18, n_kl=32, rng=rng(seed)).theta)
        - env.optimal_risk
        for seed in range(3)
    ]
    assert max(excess) < 0.02


def test_optimize_caps_its_own_width_and_refuses_a_wider_one():
    narrow = LogitPricing([0.5, 0.0], 1.0, theta_max=4.0, phi_min=0.1, phi_max=0.3)
    largest = math.sqrt(2) * narrow.phi_set.max_margin()
    assert Schedule.from_budget(2**13, 16, 2, 2).delta > largest
    result = optimize(narrow, [0.0, 0.0], budget=2**13, n_kl=16, rng=rng())
    assert all(narrow.phi_set.contains(phi) for phi in result.phis)
    wide = Schedule(1, 8, 1.01 * largest, 0.1, 0.1, 0.1)
    with pytest.raises(ValueError, match=f"schedule.delta must be <= {largest:.6g}, .* is empty"):
        optimize(narrow, [0.0, 0.0], budget=2**13, n_kl=16, schedule=wide, rng=rng())
    exact = Schedule(1, 8, largest, 0.1, 0.1, 0.1)
    optimize(narrow, [0.0, 0.0], budget=2**13, n_kl=16, schedule=exact, rng=rng())


def test_optimize_cuts_a_schedule_that_asks_for_too_much():
    env, schedule = BernoulliSquare(1), Schedule(100, 8, 0.1, 0.1, 0.1, 0.1)
    # 1 + 3(4·8 + 2) + 2·8 = 119 deployments pay three outer steps.
    for deployments, steps in ((119, 3), (118, 2)):
        result = optimize(
            env, [0.3], budget=4 * deployments + 3, n_kl=4, schedule=schedule, rng=rng()
        )
        assert len(result.thetas) == steps
        assert result.log.n.sum() <= 4 * deployments


def test_procedures_refuse_bad_input():
    env, schedule = BernoulliSquare(1), Schedule(1, 8, 0.1, 0.1, 0.1, 0.1)
    # One outer step with the first and the last costs 6·8 + 3 = 51 deployments.
    with pytest.raises(
        ValueError, match=r"budget must be finite and >= 204 samples \(51 .*\), found 203"
    ):
        optimize(env, [0.3], budget=203, n_kl=4, schedule=schedule, rng=rng())
    assert optimize(env, [0.3], budget=204, n_kl=4, schedule=schedule, rng=rng()).log.n.sum() == 204
    with pytest.raises(ValueError, match="n_kl must be a whole number >= 1, found 0"):
        optimize(env, [0.3], budget=10**4, n_kl=0, schedule=schedule, rng=rng())
    for method in (optimize, *BASELINES):
        options = {} if method is optimize else {"step": 1.0}
        with pytest.raises(ValueError, match=r"theta0=\[0.01\] lies outside Box"):
            method(env, [0.01], budget=10**4, n_kl=8, rng=rng(), **options)
        with pytest.raises(ValueError, match=r"theta0 must have shape \(1,\), found \(2,\)"):
            method(env, [0.3, 0.3], budget=10**4, n_kl=8, rng=rng(), **options)
        with pytest.raises(
            ValueError, match=r"budget must be finite and >= \d+ samples .*, found 3"
        ):
            method(env, [0.3], budget=3, n_kl=8, rng=rng(), **options)
    for method in BASELINES:
        with pytest.raises(ValueError, match="step must be finite and > 0, found 0"):
            method(env, [0.3], budget=10**4, n_kl=8, rng=rng(), step=0)


def test_a_loss_that_is_not_finite_stops_with_its_iteration():
    class Broken(BernoulliSquare):
        def loss(self, z, theta):
            return np.where(theta[0] > 0.6, np.nan, super().loss(z, theta))

    with pytest.raises(ValueError, match=r"loss at iteration \d+ \(\w+ deployment\) is nan"):
        optimize(Broken(1), [0.5], budget=2**15, n_kl=16, rng=rng())


# Baselines


@pytest.mark.parametrize("method", BASELINES)
def test_baselines_use_their_whole_budget_and_no_more(method):
    env = BernoulliSquare(2)
    runs = [
        method(env, [0.3, 0.4], budget=32 * 101 + 5, n_kl=32, step=0.3, rng=rng(1))
        for _ in range(2)
    ]
    log = runs[0].log
    pairs = method is direct
    assert len(log) == (100 if pairs else 101)
    assert set(log.level) == {"outer"}
    assert all(env.theta_set.contains(theta) for theta in log.theta)
    np.testing.assert_array_equal(log.theta, runs[1].log.theta)
    thetas = runs[0].thetas
    np.testing.assert_array_equal(thetas[0], [0.3, 0.4])
    half = math.ceil(len(thetas) / 2)
    np.testing.assert_allclose(runs[0].theta, thetas[-half:].mean(axis=0))
    if pairs:
        np.testing.assert_allclose((log.theta[0] + log.theta[1]) / 2, [0.3, 0.4])


def test_baselines_follow_their_equations():
    """Three steps c√d/√(t+1) of each, from what was logged or drawn again."""
    env, c, delta, start = BernoulliSquare(2), 0.05, 0.1, np.array([0.5, 0.6])
    sizes = c * np.sqrt(2 / np.array([1, 2, 3]))
    common = {"budget": 32 * 8, "n_kl": 32, "step": c}

    result = direct(env, start, rng=rng(4), delta=delta, **common)
    pairs, losses = result.log.theta.reshape(-1, 2, 2), result.log.loss_mean.reshape(-1, 2)
    for t in range(3):
        u = (pairs[t, 0] - pairs[t, 1]) / (2 * delta)
        gradient = 2 / (2 * delta) * (losses[t, 0] - losses[t, 1]) * u
        np.testing.assert_allclose(
            result.thetas[t + 1], result.thetas[t] - sizes[t] * gradient, rtol=1e-9
        )

    result = direct_one_point(env, start, rng=rng(4), delta=delta, **common | {"step": c / 10})
    for t in range(3):
        u = (result.log.theta[t] - result.thetas[t]) / delta
        gradient = 2 / delta * result.log.loss_mean[t] * u
        np.testing.assert_allclose(
            result.thetas[t + 1], result.thetas[t] - sizes[t] / 10 * gradient, rtol=1e-9
        )

    result = repeated_gradient(env, start, rng=rng(4), **common)
    _, samples = rng(4).spawn(2)
    for t in range(3):
        z = env.sample(result.thetas[t], 32, samples)
        np.testing.assert_allclose(
            result.thetas[t + 1],
            result.thetas[t] - sizes[t] * (z - result.thetas[t]).mean(axis=0),
        )

    result = known_map(env, start, rng=rng(4), **common)
    for t in range(3):
        gradient = env.risk_phi_gradient(result.phis[t])
        np.testing.assert_allclose(result.phis[t + 1], result.phis[t] - sizes[t] * gradient)
    np.testing.assert_allclose(result.thetas, np.sqrt(result.phis))


@pytest.mark.parametrize("method", BASELINES)
def test_a_longer_baseline_run_begins_like_a_shorter_one(method):
    env = BernoulliSquare(2)
    short, long = (
        method(env, [0.3, 0.4], budget=budget, n_kl=32, step=0.3, rng=rng(1))
        for budget in (2**10, 2**12)
    )
    prefix = long.log.until(2**10)
    for name in ("theta", "n", "level", "iteration", "loss_mean"):
        np.testing.assert_array_equal(getattr(short.log, name), getattr(prefix, name))


def test_known_map_and_direct_search_reach_the_optimum():
    env = BernoulliSquare(1)
    for method, step in ((known_map, 0.3), (direct, 1.0)):
        result = method(env, [0.5], budget=2**16, n_kl=32, step=step, rng=rng())
        assert env.risk(result.theta) - env.optimal_risk < 1e-3


def test_ignoring_the_reaction_ends_at_a_stable_point_that_is_not_optimal():
    """Repeated gradient descent drives θ to 1, where E z = θ², and stops at the set's end .95."""
    env = BernoulliSquare(1)
    result = repeated_gradient(env, [0.3], budget=2**16, n_kl=32, step=1.0, rng=rng())
    assert result.theta[0] == pytest.approx(0.95, abs=0.01)
    assert env.risk(result.theta) - env.optimal_risk > 0.2


# Regret


@pytest.mark.parametrize("method", ["optimize", *[m.__name__ for m in BASELINES]])
def test_regret_counts_every_sample_and_never_falls(method):
    env = BernoulliSquare(1)
    if method == "optimize":
        log = optimize(env, [0.3], budget=2**13, n_kl=16, rng=rng()).log
    else:
        by_name = {m.__name__: m for m in BASELINES}
        log = by_name[method](env, [0.3], budget=2**13, n_kl=16, step=0.5, rng=rng()).log
    for charge in ("all", "outer"):
        samples, total = regret(log, env, charge)
        assert samples[-1] == log.n.sum()
        assert len(total) == len(log)
        assert total[0] >= 0
        assert np.all(np.diff(total) >= 0)
    by_hand = np.sum(log.n * (2 * log.theta[:, 0] ** 3 - 2 * log.theta[:, 0] ** 2 + 8 / 27))
    assert regret(log, env)[1][-1] == pytest.approx(by_hand)


def test_regret_by_hand():
    class Hand:
        theta = np.array([[0.5], [0.6], [0.7], [2 / 3], [0.5], [0.8]])
        n = np.array([10, 10, 10, 10, 10, 10])
        level = np.array(["start", "inner", "inner", "outer", "outer", "final"])
        iteration = np.array([0, 1, 1, 1, 1, 2])

    env = BernoulliSquare(1)
    at = dict(zip((0.5, 0.8), np.ravel(env.risk([[0.5], [0.8]])) + 8 / 27, strict=True))
    samples, total = regret(Hand, env, charge="outer")
    np.testing.assert_array_equal(samples, [10, 20, 30, 40, 50, 60])
    assert total[0] == pytest.approx(10 * at[0.5])
    # The learned models 2/3 and .5: their mean excess is charged four times.
    assert total[4] - total[0] == pytest.approx(40 * (0 + at[0.5]) / 2)
    assert total[5] - total[4] == pytest.approx(10 * at[0.8])
    with pytest.raises(ValueError, match=r"charge must be one of .*, found 'inner'"):
        regret(Hand, env, charge="inner")
    Hand.level = np.array(["start"] + ["inner"] * 4 + ["final"])
    with pytest.raises(ValueError, match='an iteration has no "outer" deployment'):
        regret(Hand, env, charge="outer")


def test_regret_of_nothing_is_empty():
    env = BernoulliSquare(1)
    log = direct(env, [0.6], budget=2**10, n_kl=16, step=0.5, rng=rng()).log.until(0)
    for charge in ("all", "outer"):
        assert [len(part) for part in regret(log, env, charge)] == [0, 0]


def test_regret_notices_a_wrong_optimum():
    env = BernoulliSquare(1)
    log = direct(env, [0.6], budget=2**10, n_kl=16, step=0.5, rng=rng()).log
    env.optimal_risk = -0.2
    with pytest.raises(ValueError, match=r"optimal_risk=-0\.2 is beaten by"):
        regret(log, env)


def test_growth_exponent_of_a_power():
    n = np.array([2**10, 2**13, 2**15])
    assert growth_exponent(n, 3.0 * n ** (5 / 6)) == pytest.approx(5 / 6)
    with pytest.raises(ValueError, match="vectors of one length >= 2"):
        growth_exponent([10], [1])
    for bad in (0.0, math.nan, math.inf):
        with pytest.raises(
            ValueError, match=rf"regrets must be finite and > 0, found \[1\.0, {bad}"
        ):
            growth_exponent([10, 20], [1, bad])
        with pytest.raises(ValueError, match=rf"ns must be finite and > 0, found \[10\.0, {bad}"):
            growth_exponent([10, bad], [1, 2])
    with pytest.raises(ValueError, match="ns must not all be equal"):
        growth_exponent([10, 10], [1, 2])


def test_regret_grows_slower_than_the_samples():
    env = BernoulliSquare(1)
    budgets = [2**13, 2**15, 2**17]
    totals = [
        np.mean(
            [
                regret(optimize(env, [0.3], budget=n, n_kl=32, rng=rng(seed)).log, env)[1][-1]
                for seed in range(3)
            ]
        )
        for n in budgets
    ]
    assert growth_exponent(budgets, totals) < 1
