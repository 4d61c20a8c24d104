import numpy as np
import pytest

from retable.fedlocal.theory import critical_local_steps, critical_tau, net_growth


def test_the_critical_time():
    assert critical_tau(1, 0.65, 10) == pytest.approx(0.5780609923, abs=1e-10)
    assert critical_tau(1, 0.5, 16) == pytest.approx(8 / 17, abs=1e-12)


def test_no_threshold_where_global_updates_suffice():
    assert critical_tau(1, 0.5, 8) == 0
    assert critical_tau(1, 0.5, 4) == 0
    assert critical_local_steps(1, 0.5, 4, 0.1, 0.05) == 0


def test_the_critical_number_of_local_steps():
    steps = critical_local_steps(1, 0.65, 10, lr=0.2, projection=0.0412)
    assert steps == pytest.approx(46.77, abs=0.01)


def test_net_growth():
    assert net_growth(0.3, 1, 0.65, 10) == pytest.approx(-0.3325931, abs=1e-7)
    assert net_growth(0.8, 1, 0.65, 10) == pytest.approx(2.1987374, abs=1e-7)
    assert net_growth(0.0, 1, 0.65, 10) == 0
    np.testing.assert_array_equal(net_growth(np.array([0.5, 0.9]), 2, 1, 3)[0:], np.inf)


@pytest.mark.parametrize(("alpha", "gamma", "s"), [(1, 0.65, 10), (2, 1.5, 4), (0.7, 0.69, 2)])
def test_growth_changes_sign_at_the_critical_time(alpha, gamma, s):
    tau = critical_tau(alpha, gamma, s)
    assert 0 < tau < alpha**-3
    assert net_growth(tau, alpha, gamma, s) == pytest.approx(0, abs=1e-12)
    assert net_growth(0.99 * tau, alpha, gamma, s) < 0 < net_growth(1.01 * tau, alpha, gamma, s)


def test_growth_is_that_of_the_two_differential_equations():
    # da/dt = ±(3/2) c³ a² by small Euler steps, for the minor client and one major client.
    alpha, gamma, s, a0, lr, steps = 1.2, 0.8, 5, 0.05, 0.0005, 10_000
    up = down = a0
    for _ in range(steps):
        up += lr * 1.5 * alpha**3 * up**2
        down -= lr * 1.5 * gamma**3 * down**2
    growth = ((up - a0) + s * (down - a0)) / a0
    assert growth == pytest.approx(net_growth(1.5 * lr * steps * a0, alpha, gamma, s), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: critical_tau(1, 1, 3), "gamma is 1; it must be below alpha = 1"),
        (lambda: critical_tau(0, -1, 3), "alpha is 0; it must be positive"),
        (lambda: critical_tau(1, 0.5, -1), "in_degree is -1; it must not be negative"),
        (lambda: critical_tau(1, 0.5, float("nan")), "in_degree is nan; it must not be negative"),
        (lambda: net_growth(float("nan"), 1, 0.5, 3), "tau is nan; it must not be negative"),
        (lambda: net_growth(-0.1, 1, 0.5, 3), "tau is -0.1; it must not be negative"),
        (lambda: critical_local_steps(1, 0.5, 9, 0, 1), "lr is 0; it must be positive"),
        (lambda: critical_local_steps(1, 0.5, 9, 0.1, -1), "projection is -1; it must be positive"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
