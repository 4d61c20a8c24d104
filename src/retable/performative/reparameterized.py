"""Algorithm 1: bandit minimisation of an indirectly convex risk, with LearnModel inside."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retable.performative import checks
from retable.performative.environments import Environment
from retable.performative.learn_model import descend_divergence
from retable.performative.log import Deployments, Log
from retable.performative.zeroth_order import two_point_gradient

LEAST_INNER_STEPS = 8


@dataclass(frozen=True)
class Schedule:
    """How many steps of which size the two levels take.

    outer_steps T; inner_steps S (each deploys twice); delta: length of the perturbation of φ;
    step_size: η of the outer steps; delta_inner: length of the perturbation of θ; step_inner: η_in
    of the inner steps η_in/√(s+1). ValueError for steps < 1 and for lengths or sizes <= 0.
    """

    outer_steps: int
    inner_steps: int
    delta: float
    step_size: float
    delta_inner: float
    step_inner: float

    def __post_init__(self) -> None:
        checks.at_least_one(outer_steps=self.outer_steps, inner_steps=self.inner_steps)
        checks.positive(
            delta=self.delta,
            step_size=self.step_size,
            delta_inner=self.delta_inner,
            step_inner=self.step_inner,
        )

    @classmethod
    def from_budget(
        cls,
        budget: int,
        n_kl: int,
        d_theta: int,
        d_phi: int,
        *,
        c_delta: float = 0.5,
        c_eta: float = 1.0,
        c_in: float = 0.3,
        c_step: float = 0.2,
    ) -> "Schedule":
        """The schedule that balances the errors of a budget of N samples.

        With M = ⌊N/N_KL⌋ deployments: S = max(8, ⌊M^(2/3)/4⌋), T = ⌊(M - 1 - 2S)/(4S + 2)⌋,
        δ = c_δ √d_Φ M^(-1/6), η = c_η √d_Φ/√T, δ_in = c_in d_Θ^(1/4) S^(-1/4),
        η_in = c_step/√d_Θ. Then the outer error T^(-1/2), the smoothing δ and the inner error
        S^(-1/2)/δ all fall like M^(-1/6), and regret grows like N_KL^(1/6) N^(5/6), the paper's
        bound. A direction of length δ moves a coordinate by about δ/√d, hence the factors of d.
        ValueError when the budget does not pay one outer step.
        """
        checks.at_least_one(d_theta=d_theta, d_phi=d_phi)
        checks.positive(c_delta=c_delta, c_eta=c_eta, c_in=c_in, c_step=c_step)
        m = checks.deployments(budget, n_kl, least=6 * LEAST_INNER_STEPS + 3)
        s = max(LEAST_INNER_STEPS, _quarter_two_thirds(m))
        checks.deployments(budget, n_kl, least=6 * s + 3)
        t = (m - 1 - 2 * s) // (4 * s + 2)
        return cls(
            outer_steps=t,
            inner_steps=s,
            delta=c_delta * math.sqrt(d_phi) * m ** (-1 / 6),
            step_size=c_eta * math.sqrt(d_phi / t),
            delta_inner=c_in * (d_theta / s) ** 0.25,
            step_inner=c_step / math.sqrt(d_theta),
        )


@dataclass(frozen=True)
class Result:
    """What a run returns.

    theta (d_Θ,): the model to use; phis: the distribution parameters that were visited, (T+1, d_Φ)
    for `optimize`, (0, d_Φ) for methods that know none; log: all deployments; thetas (T, d_Θ): the
    model around which outer step t = 1..T looked.
    """

    theta: NDArray[np.float64]
    phis: NDArray[np.float64]
    log: Log
    thetas: NDArray[np.float64]


def optimize(
    env: Environment,
    theta0: ArrayLike,
    *,
    budget: int,
    n_kl: int,
    schedule: Schedule | None = None,
    rng: np.random.Generator,
) -> Result:
    """Minimise the performative risk with at most `budget` samples (Algorithm 1).

    theta0 (d_Θ,) in Θ: the model deployed first; n_kl: samples of each deployment; schedule: by
    default `Schedule.from_budget` with its δ capped at 0.9 of the largest that leaves Φ_δ, the set
    Φ shrunk by δ/√d_Φ, room; one that asks for more than the budget is cut short so that the last
    step still fits. Every sample is charged: 1 + T(4S + 2) + 2S deployments. rng is spawned three
    times, for outer directions, inner directions and samples. ValueError for theta0 outside Θ, an
    explicit δ that empties Φ_δ, or a budget below n_kl (6S + 3), one outer step.
    """
    theta0 = checks.point("theta0", theta0, env.theta_set, env.d_theta)
    root = math.sqrt(env.d_phi)
    largest = root * env.phi_set.max_margin()
    if schedule is None:
        schedule = Schedule.from_budget(budget, n_kl, env.d_theta, env.d_phi)
        delta = min(schedule.delta, 0.9 * largest)
    else:
        delta = schedule.delta
        if delta > largest:
            raise ValueError(
                f"schedule.delta must be <= {largest:.6g}, else the shrunk set of distribution "
                f"parameters is empty; found {delta:.6g}"
            )
    steps = schedule.inner_steps
    m = checks.deployments(budget, n_kl, least=6 * steps + 3)
    outer_steps = min(schedule.outer_steps, (m - 1 - 2 * steps) // (4 * steps + 2))

    margin = delta / root
    outer, inner, samples = rng.spawn(3)
    deployments = Deployments(env, n_kl, samples, capacity=m)

    def learn(target: NDArray, start: NDArray, level: str, t: int) -> NDArray:
        return descend_divergence(
            deployments,
            target,
            start,
            steps=steps,
            delta=schedule.delta_inner,
            step_size=schedule.step_inner,
            directions=inner,
            level=level,
            iteration=t,
        )

    # The map is unknown: where the start stands in Φ must be estimated too.
    z, _ = deployments.deploy(theta0, "start", 0)
    phis = np.empty((outer_steps + 1, env.d_phi))
    phis[0] = env.phi_set.project(env.estimate(z), margin)
    thetas = np.empty((outer_steps, env.d_theta))
    theta = theta0
    for t in range(1, outer_steps + 1):
        learned: list[NDArray] = []

        def risk(phi: NDArray, t: int = t, start: NDArray = theta, learned=learned) -> float:
            """Mean loss of a model that was learned to induce φ, from fresh samples."""
            learned.append(learn(env.phi_set.project(phi), start, "inner", t))
            _, loss_mean = deployments.deploy(learned[-1], "outer", t)
            return loss_mean

        gradient = two_point_gradient(risk, phis[t - 1], delta, outer)
        phis[t] = env.phi_set.project(phis[t - 1] - schedule.step_size * gradient, margin)
        theta = thetas[t - 1] = (learned[0] + learned[1]) / 2

    tail = math.ceil(outer_steps / 2)
    theta = learn(phis[-tail:].mean(axis=0), theta, "final", outer_steps + 1)
    return Result(theta, phis, deployments.log(), thetas)


def _quarter_two_thirds(m: int) -> int:
    """⌊m^(2/3)/4⌋ in integers: the largest s with (4s)³ <= m² (floats miss exact powers)."""
    s = round(m ** (2 / 3) / 4)
    while (4 * s) ** 3 > m * m:
        s -= 1
    while (4 * (s + 1)) ** 3 <= m * m:
        s += 1
    return s
