"""Checks of arguments that the procedures share."""

import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def point(name: str, x: ArrayLike, space: Any, d: int) -> NDArray[np.float64]:
    """x as a float array (d,) that lies in `space`; ValueError otherwise."""
    x = vector(name, x, d).copy()
    if not space.contains(x):
        raise ValueError(f"{name}={x.tolist()} lies outside {space}")
    return x


def vector(name: str, x: ArrayLike, d: int) -> NDArray[np.float64]:
    """x as a float array (d,); ValueError otherwise."""
    x = _floats(name, x)
    if x.shape != (d,):
        raise ValueError(f"{name} must have shape ({d},), found {x.shape}")
    return x


def points(name: str, x: ArrayLike, d: int) -> NDArray[np.float64]:
    """x as a float array (..., d); ValueError otherwise."""
    x = _floats(name, x)
    if x.ndim == 0 or x.shape[-1] != d:
        raise ValueError(f"{name} must have shape (..., {d}), found {x.shape}")
    return x


def at_least_one(**counts: int) -> None:
    """ValueError for what is no whole number >= 1."""
    for name, value in counts.items():
        if not (isinstance(value, Integral) and value >= 1):
            raise ValueError(f"{name} must be a whole number >= 1, found {value}")


def positive(**values: float) -> None:
    """ValueError for a value that is not finite and above 0."""
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be finite and > 0, found {value}")


def deployments(budget: int, n_kl: int, least: int) -> int:
    """How many deployments of n_kl samples a budget pays; ValueError when fewer than `least`."""
    at_least_one(n_kl=n_kl)
    if not (n_kl * least <= budget and math.isfinite(budget)):
        raise ValueError(
            f"budget must be finite and >= {n_kl * least} samples ({least} deployments of "
            f"n_kl={n_kl}), found {budget}"
        )
    return int(budget // n_kl)


def _floats(name: str, x: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, found {x!r}") from None
