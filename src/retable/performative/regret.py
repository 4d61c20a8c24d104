"""Regret: what all performative samples cost beyond the optimum."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retable.performative.log import Log

CHARGES = ("all", "outer")


def regret(
    log: Log, env: Any, charge: str = "all"
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Samples drawn so far (k,) and regret so far (k,), after each deployment.

    charge="all": R = Σ_i n_i [PR(θ_i) - PR*] over all deployments i, those within LearnModel too.
    charge="outer": all samples of an outer iteration are charged at the mean excess of its learned
    models, the reading under which T·S deployments are T rounds; start and final step at their own
    excess. env must be `Known`: its closed forms give PR and PR*. ValueError for another charge,
    and when a deployed model beats the optimum by more than rounding.
    """
    if charge not in CHARGES:
        raise ValueError(f"charge must be one of {CHARGES}, found {charge!r}")
    n = np.asarray(log.n, dtype=np.int64)
    excess = excess_risk(np.asarray(log.theta), env)
    if charge == "outer":
        excess = _outer_excess(excess, np.asarray(log.level), np.asarray(log.iteration))
    return np.cumsum(n), np.cumsum(n * excess)


def excess_risk(theta: ArrayLike, env: Any) -> NDArray[np.float64]:
    """PR(θ) - PR* (...) of models θ (..., d_Θ), at least 0.

    ValueError when a model beats PR* by more than rounding: then PR* is not the optimum.
    """
    excess = np.asarray(env.risk(theta)) - env.optimal_risk
    rounding = 1e-12 * max(1.0, abs(env.optimal_risk))
    if excess.size and not excess.min() >= -rounding:
        raise ValueError(f"optimal_risk={env.optimal_risk} is beaten by {-excess.min()}")
    return np.maximum(excess, 0.0)


def _outer_excess(
    excess: NDArray[np.float64], level: NDArray[np.str_], iteration: NDArray[np.int32]
) -> NDArray[np.float64]:
    """`excess`, that of inner and outer deployments replaced by their iteration's outer mean."""
    outer = level == "outer"
    counts = np.bincount(iteration[outer], minlength=iteration.max(initial=0) + 1)
    sums = np.bincount(iteration[outer], weights=excess[outer], minlength=len(counts))
    loop = outer | (level == "inner")
    if np.any(counts[iteration[loop]] == 0):
        raise ValueError('log: an iteration has no "outer" deployment to charge its samples at')
    charged = excess.copy()
    charged[loop] = sums[iteration[loop]] / counts[iteration[loop]]
    return charged


def growth_exponent(ns: ArrayLike, regrets: ArrayLike) -> float:
    """The slope of log(regret) on log(n) by least squares: regret grows like n^slope.

    ns and regrets (m,), m >= 2, finite and > 0, not all ns equal; ValueError otherwise.
    """
    ns = np.asarray(ns, dtype=np.float64)
    regrets = np.asarray(regrets, dtype=np.float64)
    if ns.ndim != 1 or ns.shape != regrets.shape or len(ns) < 2:
        raise ValueError(
            f"ns and regrets must be vectors of one length >= 2, "
            f"found shapes {ns.shape} and {regrets.shape}"
        )
    for name, values in (("ns", ns), ("regrets", regrets)):
        if not np.all((values > 0) & np.isfinite(values)):
            raise ValueError(f"{name} must be finite and > 0, found {values.tolist()}")
    if np.ptp(ns) == 0:
        raise ValueError(f"ns must not all be equal, found {ns.tolist()}")
    x = np.log(ns) - np.log(ns).mean()
    return float(x @ np.log(regrets) / (x @ x))
