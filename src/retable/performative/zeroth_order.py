"""Gradient estimates from function values alone.

With u uniform on the unit sphere of R^d both are unbiased for the gradient of F smoothed over a
ball of radius δ, E[F(x + δv)] with v uniform in the unit ball.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from retable.performative import checks


def unit_sphere(rng: np.random.Generator, d: int) -> NDArray[np.float64]:
    """A direction (d,), uniform on the unit sphere of R^d; for d = 1 it is +1 or -1."""
    checks.at_least_one(d=d)
    if d == 1:
        return np.array([1.0 if rng.random() < 0.5 else -1.0])
    direction = rng.standard_normal(d)
    return direction / math.sqrt(direction @ direction)


def two_point_gradient(
    f: Callable[[NDArray[np.float64]], float],
    x: NDArray[np.float64],
    delta: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """(d/2δ) (F(x + δu) - F(x - δu)) u, from the values of f at two points around x (d,).

    f is asked at x + δu first. ValueError for delta <= 0.
    """
    checks.positive(delta=delta)
    u = unit_sphere(rng, len(x))
    return len(x) / (2 * delta) * (f(x + delta * u) - f(x - delta * u)) * u


def one_point_gradient(
    f: Callable[[NDArray[np.float64]], float],
    x: NDArray[np.float64],
    delta: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """(d/δ) F(x + δu) u, from one value of f near x (d,). ValueError for delta <= 0."""
    checks.positive(delta=delta)
    u = unit_sphere(rng, len(x))
    return len(x) / delta * f(x + delta * u) * u
