import math

import numpy as np
import pytest
import torch
from scipy import stats

from retable.adambias import (
    bilinear,
    defect_coefficient,
    flat_classifier,
    global_error,
    memory_coefficient,
    mlp,
    observed_order,
    value_at_loss,
)

START = torch.tensor([2.8, 3.5], dtype=torch.float64)


def test_global_error():
    a = torch.tensor([[0.0, 1.0], [2.0, -3.0]])
    b = torch.tensor([[0.0, 0.5], [2.0, -1.0]])
    assert global_error(a, b) == 2.0
    with pytest.raises(ValueError, match=r"traj_b has shape \(1, 2\)"):
        global_error(a, b[:1])


def test_observed_order():
    hs = [0.1, 0.05, 0.025]
    assert observed_order(hs, [3 * h**1.7 for h in hs]) == pytest.approx(1.7)
    errors = [1.0, 0.3, 0.06]
    fit = stats.linregress(np.log(hs), np.log(errors))
    assert observed_order(hs, errors) == pytest.approx(fit.slope)


@pytest.mark.parametrize(
    ("hs", "errors", "message"),
    [
        ([0.1, 0.1], [1.0, 2.0], "at least 2 different step sizes"),
        ([0.1, 0.2], [1.0], "equal lengths"),
        ([0.1, 0.2], [1.0, 0.0], r"errors is \[1\.0, 0\.0\], allowed: finite and > 0"),
        ([0.1, -0.2], [1.0, 1.0], r"hs is \[0\.1, -0\.2\], allowed: finite and > 0"),
    ],
)
def test_bad_orders(hs, errors, message):
    with pytest.raises(ValueError, match=message):
        observed_order(hs, errors)


@pytest.mark.parametrize(
    ("beta", "rho", "eps", "theory", "measured"),
    [
        (0.9, 0.95, 1e-2, -20.0, -20.02),
        (0.9, 0.5, 1e-2, 16.0, 16.02),
        (0.5, 0.5, 1e-2, 0.0, 0.0),
        (0.9, 0.95, 1e6, 18.5, 18.49),
    ],
)
def test_defect_on_the_bilinear_problem(beta, rho, eps, theory, measured):
    fit = defect_coefficient(
        bilinear(), START, h=1e-4, steps=300, start=270, beta=beta, rho=rho, eps=eps
    )
    assert fit.kappa_theory == pytest.approx(theory, abs=0.01)
    assert fit.kappa == pytest.approx(measured, abs=0.02)
    if theory:
        assert fit.scale == pytest.approx(1.0, abs=0.005)
        assert fit.r2_predicted > 0.999


def test_the_defect_is_pooled_over_the_steps_that_were_asked_for():
    """κ of the theory is the mean over n = start..steps-1 of c_n(β) - c_n(ρ), ε far below."""
    fit = defect_coefficient(
        bilinear(), START, h=1e-4, steps=5, start=2, beta=0.9, rho=0.95, eps=1e-8
    )
    expected = [memory_coefficient(0.9, n) - memory_coefficient(0.95, n) for n in (2, 3, 4)]
    assert fit.kappa_theory == pytest.approx(np.mean(expected), abs=1e-9)


def _network(seed=0):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (40,), generator=generator)
    return flat_classifier(mlp(5, 4, 3), images, labels, generator)


def test_defect_on_a_network_prefers_the_one_norm():
    loss, start = _network()
    fit = defect_coefficient(
        loss, start, h=5e-6, steps=105, start=100, beta=0.9, rho=0.95, eps=1e-4
    )
    assert fit.scale == pytest.approx(1.0, abs=0.05)
    assert fit.r2_predicted > 0.95
    assert fit.r2_predicted - fit.r2_two_norm > 0.5


def test_defect_needs_a_window():
    kwargs = {"h": 1e-3, "beta": 0.9, "rho": 0.9, "eps": 0.1}
    with pytest.raises(ValueError, match="start is 5, allowed: 0 <= start < steps = 5"):
        defect_coefficient(bilinear(), START, steps=5, start=5, **kwargs)
    with pytest.raises(ValueError, match="start is -1"):
        defect_coefficient(bilinear(), START, steps=5, start=-1, **kwargs)


def test_value_at_loss():
    losses, values = [2.0, 1.0, 0.4, 0.6, 0.2], [10.0, 20.0, 26.0, 99.0, 50.0]
    assert value_at_loss(losses, values, 0.7) == pytest.approx(23.0)
    assert value_at_loss(losses, values, 0.5) == pytest.approx(25.0)  # the first crossing
    assert value_at_loss(losses, values, 0.3) == pytest.approx(99.0 - 49.0 * 0.75)
    assert value_at_loss(losses, values, 1.0) == pytest.approx(20.0)  # strictly below
    assert math.isnan(value_at_loss(losses, values, 0.1))  # never reached
    assert math.isnan(value_at_loss(losses, values, 3.0))  # below from the start


def test_value_at_loss_bad_input():
    with pytest.raises(ValueError, match="losses is empty, allowed: at least 1 epoch"):
        value_at_loss([], [], 0.5)
    with pytest.raises(ValueError, match=r"values has shape \(1,\), allowed: that of losses"):
        value_at_loss([1.0, 2.0], [1.0], 0.5)
