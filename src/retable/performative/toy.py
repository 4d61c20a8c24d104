"""The toy of Appendix H with exact oracles: φ(θ) = θ², one bit, no samples.

In one dimension both signs of the direction give the same difference, so nothing here is random,
and many starts run at once. Steps are constant, as in the authors' notebook. What differs from the
notebook, on purpose: LearnModel starts from the last learned model (there from θ = φ), and curves
show the risk of the model that is deployed.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr

from retable.performative import checks

THETA_LIMITS = (0.01, 0.95)
# Targets on the limits 0 and 1 would make the divergence infinite.
TARGET_LIMITS = (0.01, 0.99)


def toy_risk(theta: ArrayLike) -> NDArray[np.float64]:
    """PR(θ) = 2θ³ - 2θ²; its minimum is -8/27 at θ = 2/3."""
    theta = np.asarray(theta, dtype=np.float64)
    return 2 * theta**3 - 2 * theta**2


def toy_direct(
    theta0: ArrayLike, *, iterations: int, step: float, delta: float
) -> NDArray[np.float64]:
    """The models (iterations + 1, k) of two-point descent on PR from the starts theta0 (k,).

    ValueError for starts outside `THETA_LIMITS`, iterations < 1, and step or delta <= 0.
    """
    checks.at_least_one(iterations=iterations)
    checks.positive(step=step, delta=delta)
    theta = _starts(theta0)
    path = [theta]
    for _ in range(iterations):
        theta = np.clip(theta - step * _difference(toy_risk, theta, delta), *THETA_LIMITS)
        path.append(theta)
    return np.array(path)


def toy_reparameterized(
    theta0: ArrayLike,
    *,
    iterations: int,
    step: float,
    delta: float,
    inner: Literal["learned", "exact"] = "learned",
    inner_steps: int = 10,
    inner_step: float = 0.01,
    inner_delta: float = 0.1,
    limits: tuple[float, float] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two-point descent on PR† from φ_0 = θ_0² (k,): models deployed and φ, (iterations + 1, k).

    inner="exact": the model that induces a target φ is √φ, and √φ_t is the deployed model.
    inner="learned": it is found by inner_steps two-point steps on the exact divergence from the
    last ½(θ̂⁺ + θ̂⁻), which is the deployed model. limits: φ is clipped to them after each step;
    without limits the perturbation is min(delta, 0.9 φ_t), so that targets stay above 0.
    ValueError as for `toy_direct`, for another `inner`, and unless 0 < lowest <= highest < 1.
    """
    checks.at_least_one(iterations=iterations, inner_steps=inner_steps)
    checks.positive(step=step, delta=delta, inner_step=inner_step, inner_delta=inner_delta)
    if inner not in ("learned", "exact"):
        raise ValueError(f'inner must be "learned" or "exact", found {inner!r}')
    if limits is not None and not 0 < limits[0] <= limits[1] < 1:
        raise ValueError(f"limits must be rising within (0, 1), found {limits}")
    theta = _starts(theta0)
    phi = theta**2
    if limits is not None:
        phi = np.clip(phi, *limits)
    thetas, phis = [theta], [phi]
    for _ in range(iterations):
        width = np.minimum(delta, 0.9 * phi) if limits is None else delta
        learned = []
        for target in (phi + width, phi - width):
            target = np.clip(target, *TARGET_LIMITS)
            if inner == "exact":
                learned.append(np.sqrt(target))
            else:
                learned.append(_learn(target, theta, inner_steps, inner_step, inner_delta))
        upper, lower = learned
        phi = phi - step * (toy_risk(upper) - toy_risk(lower)) / (2 * width)
        phi = np.clip(phi, *(limits if limits is not None else TARGET_LIMITS))
        theta = np.sqrt(phi) if inner == "exact" else (upper + lower) / 2
        thetas.append(theta)
        phis.append(phi)
    return np.array(thetas), np.array(phis)


def _starts(theta0: ArrayLike) -> NDArray[np.float64]:
    theta = np.asarray(theta0, dtype=np.float64)
    low, high = THETA_LIMITS
    if theta.ndim != 1 or not np.all((theta >= low) & (theta <= high)):
        raise ValueError(f"theta0 must be a vector within [{low}, {high}], found {theta.tolist()}")
    return theta


def _learn(
    target: NDArray, theta: NDArray, steps: int, step: float, delta: float
) -> NDArray[np.float64]:
    def divergence(theta: NDArray) -> NDArray:
        q = np.clip(theta**2, *TARGET_LIMITS)
        return rel_entr(target, q) + rel_entr(1 - target, 1 - q)

    for _ in range(steps):
        theta = np.clip(theta - step * _difference(divergence, theta, delta), *THETA_LIMITS)
    return theta


def _difference(f: Callable[[NDArray], NDArray], x: NDArray, delta: float) -> NDArray:
    return (f(x + delta) - f(x - delta)) / (2 * delta)
