"""Checks of arguments that the procedures share."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def point(name: str, x: ArrayLike, space: Any, d: int) -> NDArray[np.float64]:
    """x as a float array (d,) that lies in `space`; ValueError otherwise."""
    x = np.array(x, dtype=np.float64)
    if x.shape != (d,):
        raise ValueError(f"{name} must have shape ({d},), found {x.shape}")
    if not space.contains(x):
        raise ValueError(f"{name}={x.tolist()} lies outside {space}")
    return x


def at_least_one(**counts: int) -> None:
    """ValueError for a count below 1."""
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be >= 1, found {value}")


def positive(**values: float) -> None:
    """ValueError for a value that is not above 0 and finite."""
    for name, value in values.items():
        if not (value > 0 and np.isfinite(value)):
            raise ValueError(f"{name} must be > 0, found {value}")


def deployments(budget: int, n_kl: int, least: int) -> int:
    """How many deployments of n_kl samples a budget pays; ValueError when fewer than `least`."""
    at_least_one(n_kl=n_kl)
    if budget < n_kl * least:
        raise ValueError(
            f"budget must be >= {n_kl * least} samples ({least} deployments of n_kl={n_kl}), "
            f"found {budget}"
        )
    return int(budget // n_kl)
