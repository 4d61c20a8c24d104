"""The toy with exact oracles."""

import numpy as np
import pytest

from retable.performative import BernoulliSquare
from retable.performative.toy import toy_direct, toy_reparameterized, toy_risk

STEPS = {"iterations": 100, "step": 0.01, "delta": 0.1}


def area(curve):
    """The area under the excess risk (k,) of paths (iterations + 1, k)."""
    return np.trapezoid(toy_risk(curve) + 8 / 27, axis=0)


def test_the_risk_is_that_of_the_environment():
    theta = np.linspace(0.05, 0.95, 7)
    np.testing.assert_allclose(toy_risk(theta), BernoulliSquare(1).risk(theta[:, None]))


def test_one_exact_step_by_hand():
    path, phis = toy_reparameterized(
        [0.5], iterations=1, step=0.01, delta=0.1, inner="exact", limits=(0.12, 0.88)
    )

    def dagger(phi):
        return 2 * phi**1.5 - 2 * phi

    phi = 0.25 - 0.01 * (dagger(0.35) - dagger(0.15)) / 0.2
    np.testing.assert_allclose(path[:, 0], [0.5, np.sqrt(phi)], rtol=1e-12)
    np.testing.assert_allclose(phis[:, 0], [0.25, phi], rtol=1e-12)
    path = toy_direct([0.5], iterations=1, step=0.01, delta=0.1)
    slope = (toy_risk(0.6) - toy_risk(0.4)) / 0.2
    np.testing.assert_allclose(path[:, 0], [0.5, 0.5 - 0.01 * slope], rtol=1e-12)


def test_near_zero_the_perturbation_is_shorter():
    """At φ = .0144 it is .9 φ, and the lower target .00144 is raised to .01."""
    path, phis = toy_reparameterized([0.12], iterations=1, step=0.01, delta=0.1, inner="exact")
    width = 0.9 * 0.0144
    difference = toy_risk(np.sqrt(0.0144 + width)) - toy_risk(0.1)
    phi = 0.0144 - 0.01 * difference / (2 * width)
    np.testing.assert_allclose(phis[1], [phi], rtol=1e-12)
    np.testing.assert_allclose(path[1], [np.sqrt(phi)], rtol=1e-12)


def test_learned_models_approach_exact_ones_with_many_inner_steps():
    """They lie around the φ that was just perturbed, the exact ones at the φ that follows.

    The perturbation is short because the middle of √(φ + δ) and √(φ - δ) is not √φ.
    """
    start = np.linspace(0.5, 0.85, 4)
    steps = STEPS | {"delta": 0.02, "iterations": 40}
    exact, _ = toy_reparameterized(start, **steps, inner="exact", limits=(0.12, 0.88))
    learned, _ = toy_reparameterized(
        start, **steps, limits=(0.12, 0.88), inner_steps=400, inner_step=0.02, inner_delta=0.01
    )
    np.testing.assert_allclose(learned[1:], exact[:-1], atol=2e-3)


def test_the_reparametrised_method_wins_from_the_nonconvex_region_only():
    """Moving φ at unit speed moves PR at (PR†')², moving θ at (2θ)² (PR†')²: equal at θ = ½."""
    nonconvex = np.linspace(0.12, 0.4, 10)
    gain = area(toy_direct(nonconvex, **STEPS)) - area(
        toy_reparameterized(nonconvex, **STEPS, inner="exact")[0]
    )
    assert np.all(gain > 0)
    paper = np.sqrt(np.linspace(0.25, 0.8, 10))
    gain = area(toy_direct(paper, **STEPS)) - area(
        toy_reparameterized(paper, **STEPS, inner="exact", limits=(0.12, 0.88))[0]
    )
    assert gain.mean() < 0


def test_models_stay_in_range_and_nothing_is_random():
    start = np.linspace(0.12, 0.4, 10)
    paths = [toy_reparameterized(start, **STEPS)[0] for _ in range(2)]
    np.testing.assert_array_equal(*paths)
    assert paths[0].shape == (101, 10)
    assert np.all((paths[0] > 0) & (paths[0] < 1))
    with pytest.raises(ValueError, match='"learned" or "exact", found \'neither\''):
        toy_reparameterized(start, **STEPS, inner="neither")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"theta0": [0.3, 2.0]},
            r"theta0 must be a vector within \[0\.01, 0\.95\], found \[0\.3, 2",
        ),
        ({"theta0": [np.nan]}, r"theta0 must be .* found \[nan\]"),
        ({"theta0": 0.3}, r"theta0 must be a vector .* found 0\.3"),
        ({"iterations": -1}, "iterations must be a whole number >= 1, found -1"),
        ({"step": 0.0}, r"step must be finite and > 0, found 0\.0"),
        ({"delta": np.nan}, "delta must be finite and > 0, found nan"),
        ({"inner_steps": 0}, "inner_steps must be a whole number >= 1, found 0"),
        ({"inner_delta": -1}, "inner_delta must be finite and > 0, found -1"),
        ({"limits": (0.9, 0.1)}, r"limits must be rising within \(0, 1\), found \(0\.9, 0\.1\)"),
        ({"limits": (0.0, 0.9)}, r"limits must be rising within \(0, 1\)"),
    ],
)
def test_toy_refuses_bad_input(change, message):
    arguments = {"theta0": [0.3]} | STEPS | change
    with pytest.raises(ValueError, match=message):
        toy_reparameterized(**arguments)
    if set(change) & {"theta0", "iterations", "step", "delta"}:
        with pytest.raises(ValueError, match=message):
            toy_direct(**arguments)
