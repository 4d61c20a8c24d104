"""Algorithm 2, LearnModel: find a model that induces a wanted distribution."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retable.performative import checks
from retable.performative.environments import Environment
from retable.performative.log import Deployments, Log
from retable.performative.zeroth_order import two_point_gradient

AVERAGES = ("tail", "last")


@dataclass(frozen=True)
class Learned:
    """The learned model theta (d_Θ,) and the log of what was deployed to find it."""

    theta: NDArray[np.float64]
    log: Log


def learn_model(
    env: Environment,
    target: ArrayLike,
    theta0: ArrayLike,
    *,
    steps: int,
    n_kl: int,
    delta: float,
    step_size: float,
    rng: np.random.Generator,
    average: str = "tail",
) -> Learned:
    """A model whose distribution is close to p_target, by zeroth-order descent on KL (Algorithm 2).

    target (d_Φ,) in Φ; theta0 (d_Θ,) in Θ: the start; steps S >= 1; n_kl: samples of each of the
    2S deployments; delta: length of the perturbation of θ; step_size: η in η/√(s+1);
    average: "tail" returns the mean of the last ⌈S/2⌉ iterates, whose error falls like S^(-1/2),
    "last" the last iterate, whose error falls like S^(-1/4). rng is spawned twice, for the
    directions and for the samples. ValueError for anything outside these ranges.
    """
    checks.at_least_one(steps=steps, n_kl=n_kl)
    checks.positive(delta=delta, step_size=step_size)
    if average not in AVERAGES:
        raise ValueError(f"average must be one of {AVERAGES}, found {average!r}")
    target = checks.point("target", target, env.phi_set, env.d_phi)
    theta0 = checks.point("theta0", theta0, env.theta_set, env.d_theta)
    directions, samples = rng.spawn(2)
    deployments = Deployments(env, n_kl, samples, capacity=2 * steps)
    theta = descend_divergence(
        deployments,
        target,
        theta0,
        steps=steps,
        delta=delta,
        step_size=step_size,
        directions=directions,
        average=average,
    )
    return Learned(theta, deployments.log())


def descend_divergence(
    deployments: Deployments,
    target: NDArray[np.float64],
    theta0: NDArray[np.float64],
    *,
    steps: int,
    delta: float,
    step_size: float,
    directions: np.random.Generator,
    level: str = "inner",
    iteration: int = 1,
    average: str = "tail",
) -> NDArray[np.float64]:
    """LearnModel on deployments that are already being logged; arguments are not checked."""
    env = deployments.env

    def divergence(theta: NDArray[np.float64]) -> float:
        """KL(p_target || p_φ̂), φ̂ estimated from samples of the deployed model: the KL oracle."""
        z, _ = deployments.deploy(env.theta_set.project(theta), level, iteration)
        return env.kl(target, env.estimate(z))

    theta = theta0
    tail = math.ceil(steps / 2) if average == "tail" else 1
    total = np.zeros_like(theta0)
    for s in range(steps):
        gradient = two_point_gradient(divergence, theta, delta, directions)
        theta = env.theta_set.project(theta - step_size / math.sqrt(s + 1) * gradient)
        if s >= steps - tail:
            total += theta
    # The mean of points of Θ lies in Θ up to rounding, which the projection takes away.
    return env.theta_set.project(total / tail)
