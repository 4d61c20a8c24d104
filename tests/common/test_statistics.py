"""Intervals against scipy and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retable.common.statistics import bootstrap_mean, slope_interval, t_interval

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@given(values=VALUES, level=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_t_interval_is_that_of_scipy(values: list[float], level: float) -> None:
    found = t_interval(values, level)
    scale = stats.sem(values)
    assert found.n == len(values)
    assert found.value == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)
    if scale > 1e-9:
        low, high = stats.t.interval(level, len(values) - 1, np.mean(values), scale)
        assert found.low == pytest.approx(low, rel=1e-9, abs=1e-9)
        assert found.high == pytest.approx(high, rel=1e-9, abs=1e-9)


def test_t_interval_by_hand() -> None:
    """Values 1, 2, 3: mean 2, standard error 1/sqrt(3), quantile 4.302653 (two degrees)."""
    found = t_interval([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.high - 2.0 == pytest.approx(4.302652729911275 / np.sqrt(3))
    assert 2.0 - found.low == pytest.approx(found.high - 2.0)


def test_one_value_has_no_interval() -> None:
    found = t_interval([3.5])
    assert (found.value, found.n) == (3.5, 1)
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7, -2.3, 1e-12, 1e9 + 0.1, 0.0])
@pytest.mark.parametrize("count", [2, 3, 5, 7, 10])
def test_no_spread_gives_an_interval_of_length_0(value: float, count: int) -> None:
    """Exactly: rounding in the mean must not decide a claim whose threshold is the value."""
    found = t_interval([value] * count)
    assert (found.value, found.low, found.high) == (value, value, value)


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [1.0, np.nan], [1.0, np.inf]])
def test_t_interval_refuses(values: list) -> None:
    with pytest.raises(ValueError, match="t_interval: "):
        t_interval(values)


def test_bootstrap_against_the_normal_interval() -> None:
    """For many units the percentile bootstrap of a mean is the normal interval."""
    values = np.random.default_rng(3).normal(5, 2, 2000)
    found = bootstrap_mean(values, seed=0)
    half = 1.959964 * values.std() / np.sqrt(len(values))
    assert found.value == pytest.approx(values.mean())
    assert found.n == 2000
    assert found.low == pytest.approx(values.mean() - half, abs=0.06 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.06 * half)


def test_bootstrap_depends_on_its_seed_alone() -> None:
    values = np.arange(20.0)
    assert bootstrap_mean(values, 1) == bootstrap_mean(list(values), 1)
    assert bootstrap_mean(values, 1) != bootstrap_mean(values, 2)
    np.random.seed(0)  # noqa: NPY002 - the global generator must not matter
    assert bootstrap_mean(values, 1, repeats=700) == bootstrap_mean(values, 1, repeats=700)


def test_bootstrap_of_two_units_in_closed_form() -> None:
    """Of the units 0 and 1, a sample has mean 0, 1/2, 1 with probability 1/4, 1/2, 1/4."""
    found = bootstrap_mean([0.0, 1.0], seed=0)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    middle = bootstrap_mean([0.0, 1.0], seed=0, level=0.4)
    assert (middle.low, middle.high) == (0.5, 0.5)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.nan], [[1.0, 2.0], [3.0, 4.0]]])
def test_bootstrap_refuses(values: list) -> None:
    with pytest.raises(ValueError, match="bootstrap_mean: needs >= 2 finite values"):
        bootstrap_mean(values, seed=0)


def test_slope_by_hand() -> None:
    """Residual variance 1/6 * ... of the points (0, 0), (1, 2), (2, 1), (3, 3): slope 0.8."""
    x, y = np.arange(4.0), np.array([0.0, 2.0, 1.0, 3.0])
    found = slope_interval(x, y)
    residuals = y - y.mean() - 0.8 * (x - x.mean())
    error = np.sqrt((residuals**2).sum() / 2 / ((x - x.mean()) ** 2).sum())
    assert found.value == pytest.approx(0.8)
    assert found.high == pytest.approx(0.8 + stats.t.ppf(0.975, 2) * error)
    assert found.low == pytest.approx(0.8 - stats.t.ppf(0.975, 2) * error)
    assert found.n == 4


def test_slope_of_an_exact_line() -> None:
    found = slope_interval([1, 2, 3, 4], [3, 5, 7, 9])
    assert found.value == pytest.approx(2)
    assert found.high - found.low == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2]), ([1, 2, 3], [1, 2]), ([], [])])
def test_slope_refuses(x: list, y: list) -> None:
    with pytest.raises(ValueError, match="slope_interval: needs >= 3 points"):
        slope_interval(x, y)
