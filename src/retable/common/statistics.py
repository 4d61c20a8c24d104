"""Intervals: Student t over seeds, bootstrap over units, slopes of fitted lines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval; `low` and `high` are NaN where there is none."""

    value: float
    low: float
    high: float
    n: int


def t_interval(values: Sequence[float] | np.ndarray, level: float = 0.95) -> Interval:
    """Mean and Student t interval of independent values (one a seed).

    One value has no interval; values without spread have one of length 0. ValueError for an
    empty or not finite sequence.
    """
    sample = np.asarray(values, float)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(f"t_interval: needs a sequence of values, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise ValueError(f"t_interval: values must be finite, got {sample.tolist()}")
    n = sample.size
    if n > 1 and (sample == sample[0]).all():
        # Rounding in the mean would otherwise put the value itself outside of its interval.
        return Interval(*[float(sample[0])] * 3, n)
    mean = float(sample.mean())
    if n == 1:
        return Interval(mean, float("nan"), float("nan"), 1)
    half = float(stdtrit(n - 1, (1 + level) / 2) * sample.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def bootstrap_mean(
    values: ArrayLike, seed: int, *, repeats: int = 10_000, level: float = 0.95
) -> Interval:
    """Mean over units (users, graphs, ...) and its percentile bootstrap interval.

    Args:
        values: (units,) one number a unit, for example a paired difference.
        seed: of the resampling.
        repeats: bootstrap samples.
        level: of the interval.
    """
    sample = np.asarray(values, float)
    if sample.ndim != 1 or sample.size < 2 or not np.isfinite(sample).all():
        raise ValueError(f"bootstrap_mean: needs >= 2 finite values, got shape {sample.shape}")
    generator = np.random.default_rng(seed)
    # Resampling n units with replacement = drawing how often each of them counts.
    means = np.empty(repeats)
    for start in range(0, repeats, 500):
        stop = min(start + 500, repeats)
        picks = generator.integers(0, sample.size, size=(stop - start, sample.size))
        means[start:stop] = sample[picks].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(sample.mean()), float(low), float(high), sample.size)


def slope_interval(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Interval:
    """Slope of the least-squares line of y on x and its t interval; needs >= 3 points."""
    from scipy.stats import linregress

    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape != y.shape or x.ndim != 1 or x.size < 3:
        raise ValueError(f"slope_interval: needs >= 3 points, got shapes {x.shape} and {y.shape}")
    fit = linregress(x, y)
    half = float(stdtrit(x.size - 2, (1 + level) / 2) * fit.stderr)
    return Interval(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half, x.size)
