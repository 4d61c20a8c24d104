"""Slopes and interpolations on plain numbers; needs numpy alone."""

import math
from collections.abc import Sequence

import numpy as np


def observed_order(hs: Sequence[float], errors: Sequence[float]) -> float:
    """Least-squares slope of log(error) on log(h); at least two different h, all values > 0."""
    hs, errors = np.asarray(hs, dtype=float), np.asarray(errors, dtype=float)
    if hs.shape != errors.shape or hs.ndim != 1 or np.unique(hs).size < 2:
        raise ValueError(
            f"hs and errors have shapes {hs.shape} and {errors.shape}, allowed: equal lengths, "
            "at least 2 different step sizes"
        )
    for name, values in (("hs", hs), ("errors", errors)):
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise ValueError(f"{name} is {values.tolist()}, allowed: finite and > 0")
    x = np.log(hs) - np.log(hs).mean()
    return float(x @ np.log(errors) / (x @ x))


def value_at_loss(losses: Sequence[float], values: Sequence[float], level: float) -> float:
    """Value at the first crossing of a training loss below `level`, linear in the loss.

    `losses` and `values` (n,) belong to the same epochs, in order. With i the first epoch whose
    loss is below `level`, the value is interpolated between epochs i-1 and i. NaN when the level is
    never reached, or when the first epoch is below it already: nothing is extrapolated.
    """
    losses, values = np.asarray(losses, dtype=float), np.asarray(values, dtype=float)
    if losses.size == 0:
        raise ValueError("losses is empty, allowed: at least 1 epoch")
    if losses.shape != values.shape or losses.ndim != 1:
        raise ValueError(
            f"values has shape {values.shape}, allowed: that of losses, {losses.shape}, 1-D"
        )
    below = np.flatnonzero(losses < level)
    if below.size == 0 or below[0] == 0:
        return math.nan
    after = below[0]
    before = after - 1
    weight = (losses[before] - level) / (losses[before] - losses[after])
    return float(values[before] + weight * (values[after] - values[before]))
