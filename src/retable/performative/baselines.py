"""The naive methods, and a reference that is given what the others must learn.

All take steps c·√d/√(t+1), t = 0, 1, ..., with c the argument `step`: none knows the horizon. They
return the mean of the last half of their iterates.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retable.performative import checks
from retable.performative.environments import Environment
from retable.performative.log import Deployments
from retable.performative.reparameterized import Result
from retable.performative.zeroth_order import one_point_gradient, two_point_gradient


def direct(
    env: Environment,
    theta0: ArrayLike,
    *,
    budget: int,
    n_kl: int,
    step: float,
    rng: np.random.Generator,
    delta: float = 0.1,
) -> Result:
    """Two-point zeroth-order descent on the performative risk itself, the paper's baseline.

    Each step deploys Π_Θ(θ ± δu), n_kl samples each. delta: length of the perturbation of θ.
    ValueError for theta0 outside Θ, step or delta <= 0, or a budget below one step.
    """
    return _zeroth_order(
        two_point_gradient,
        2,
        env,
        theta0,
        budget=budget,
        n_kl=n_kl,
        step=step,
        rng=rng,
        delta=delta,
    )


def direct_one_point(
    env: Environment,
    theta0: ArrayLike,
    *,
    budget: int,
    n_kl: int,
    step: float,
    rng: np.random.Generator,
    delta: float = 0.1,
) -> Result:
    """One-point zeroth-order descent on the performative risk: one deployment a step.

    Arguments and errors as for `direct`.
    """
    return _zeroth_order(
        one_point_gradient,
        1,
        env,
        theta0,
        budget=budget,
        n_kl=n_kl,
        step=step,
        rng=rng,
        delta=delta,
    )


def repeated_gradient(
    env: Any,
    theta0: ArrayLike,
    *,
    budget: int,
    n_kl: int,
    step: float,
    rng: np.random.Generator,
) -> Result:
    """Repeated gradient descent: deploy, then follow ∇_θℓ at the samples as if they did not react.

    env must be `Differentiable` besides being an `Environment`. ValueError for theta0 outside Θ,
    step <= 0, or a budget below one deployment.
    """
    theta0 = checks.point("theta0", theta0, env.theta_set, env.d_theta)
    checks.positive(step=step)
    m = checks.deployments(budget, n_kl, least=1)
    _, samples = rng.spawn(2)
    deployments = Deployments(env, n_kl, samples, capacity=m)

    def gradient(theta: NDArray, t: int) -> NDArray:
        z, _ = deployments.deploy(theta, "outer", t)
        return env.loss_gradient(z, theta).mean(axis=0)

    thetas = _descend(gradient, theta0, env.theta_set, step, m)
    return Result(tail_mean(thetas), np.empty((0, env.d_phi)), deployments.log(), thetas)


def known_map(
    env: Any,
    theta0: ArrayLike,
    *,
    budget: int,
    n_kl: int,
    step: float,
    rng: np.random.Generator,
) -> Result:
    """Descent on the exact gradient of PR† with the map known: a reference, no bandit method.

    env must be `Known` besides being an `Environment`. It deploys the model that induces each φ_t
    and ignores the samples. ValueError as for `repeated_gradient`.
    """
    theta0 = checks.point("theta0", theta0, env.theta_set, env.d_theta)
    checks.positive(step=step)
    m = checks.deployments(budget, n_kl, least=1)
    _, samples = rng.spawn(2)
    deployments = Deployments(env, n_kl, samples, capacity=m)
    thetas = np.empty((m, env.d_theta))

    def gradient(phi: NDArray, t: int) -> NDArray:
        thetas[t - 1] = env.theta_set.project(env.inverse_map(phi))
        deployments.deploy(thetas[t - 1], "outer", t)
        return env.risk_phi_gradient(phi)

    phi0 = env.phi_set.project(env.distribution_map(theta0))
    phis = _descend(gradient, phi0, env.phi_set, step, m)
    return Result(tail_mean(thetas), phis, deployments.log(), thetas)


def _zeroth_order(
    estimator: Callable,
    deployments_a_step: int,
    env: Environment,
    theta0: ArrayLike,
    *,
    budget: int,
    n_kl: int,
    step: float,
    rng: np.random.Generator,
    delta: float,
) -> Result:
    theta0 = checks.point("theta0", theta0, env.theta_set, env.d_theta)
    checks.positive(step=step, delta=delta)
    m = checks.deployments(budget, n_kl, least=deployments_a_step)
    directions, samples = rng.spawn(2)
    deployments = Deployments(env, n_kl, samples, capacity=m)

    def gradient(theta: NDArray, t: int) -> NDArray:
        def risk(perturbed: NDArray) -> float:
            return deployments.deploy(env.theta_set.project(perturbed), "outer", t)[1]

        return estimator(risk, theta, delta, directions)

    thetas = _descend(gradient, theta0, env.theta_set, step, m // deployments_a_step)
    return Result(tail_mean(thetas), np.empty((0, env.d_phi)), deployments.log(), thetas)


def _descend(
    gradient: Callable[[NDArray, int], NDArray],
    x0: NDArray,
    space: Any,
    step: float,
    steps: int,
) -> NDArray:
    """The points (steps, d) at which projected descent from x0 asked for a gradient."""
    xs = np.empty((steps, len(x0)))
    x = x0
    for t in range(1, steps + 1):
        xs[t - 1] = x
        x = space.project(x - step * math.sqrt(len(x) / t) * gradient(x, t))
    return xs


def tail_mean(thetas: NDArray) -> NDArray:
    """The mean (d,) of the last ⌈T/2⌉ of T iterates (T, d)."""
    return thetas[-math.ceil(len(thetas) / 2) :].mean(axis=0)
