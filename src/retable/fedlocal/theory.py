"""When local steps keep a feature that global updates lose.

Derived for the data model of `retable.fedlocal.data_model`, while the logistic derivative is still
near ½. Let a = ⟨w_r, v_b⟩ > 0 be a filter's projection on a minor client's feature. The minor
client's own loss gives da/dt = (3/2) α³ a², each of the `in_degree` = s major clients' gives
da/dt = -(3/2) γ³ a². A global update follows the mean of these, with the sign of α³ - sγ³. After I
local steps of size η from a_0, in the time τ = (3/2) η I a_0, the minor client holds
a_0/(1 - α³τ), a major one a_0/(1 + γ³τ): growth outruns decay.
"""

import numpy as np


def _check(alpha: float, gamma: float, in_degree: float) -> None:
    for name, value in (("alpha", alpha), ("gamma", gamma)):
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be positive")
    if gamma >= alpha:
        raise ValueError(f"gamma is {gamma}; it must be below alpha = {alpha}")
    if not in_degree >= 0:
        raise ValueError(f"in_degree is {in_degree}; it must not be negative")


def net_growth(
    tau: float | np.ndarray, alpha: float, gamma: float, in_degree: float
) -> float | np.ndarray:
    """Relative growth of the averaged projection over one round, times the number of clients.

    α³τ/(1 - α³τ) - s γ³τ/(1 + γ³τ) for τ ≥ 0 of any shape; infinite from τ = 1/α³ on, where the
    minor client learns its feature within the round.
    """
    _check(alpha, gamma, in_degree)
    tau = np.asarray(tau, dtype=np.float64)
    if not np.all(tau >= 0):
        raise ValueError(f"tau is {tau.min()}; it must not be negative")
    gain, loss = alpha**3 * tau, gamma**3 * tau
    blown_up = gain >= 1
    growth = gain / np.where(blown_up, 1.0, 1 - gain) - in_degree * loss / (1 + loss)
    return np.where(blown_up, np.inf, growth)[()]


def critical_tau(alpha: float, gamma: float, in_degree: float) -> float:
    """The time τ* = (sγ³ - α³)/(α³γ³(1 + s)) above which the average keeps the feature.

    0 where sγ³ ≤ α³: there even a global update amplifies it.
    """
    _check(alpha, gamma, in_degree)
    gain, loss = alpha**3, gamma**3
    return max(0.0, (in_degree * loss - gain) / (gain * loss * (1 + in_degree)))


def critical_local_steps(
    alpha: float, gamma: float, in_degree: float, lr: float, projection: float
) -> float:
    """The number of local steps I* = τ*/((3/2) η a_0) above which the average keeps the feature.

    `lr` η > 0; `projection` a_0 > 0 is the largest initial projection of a filter on the feature.
    """
    for name, value in (("lr", lr), ("projection", projection)):
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be positive")
    return critical_tau(alpha, gamma, in_degree) / (1.5 * lr * projection)
