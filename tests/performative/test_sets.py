"""Projections on boxes and capped simplices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from retable.performative import Box, CappedSimplex

SETS = [
    Box(-1.0, 2.0, 3),
    CappedSimplex(2, 0.0, 1.0),
    CappedSimplex(5, 0.002, 0.46),
    CappedSimplex(1, 0.1, 0.9),
]


def test_projection_on_the_capped_simplex_by_hand():
    simplex = CappedSimplex(2, lo=0, total=1)
    np.testing.assert_allclose(simplex.project([0.8, 0.6]), [0.6, 0.4], atol=1e-15)
    np.testing.assert_allclose(simplex.project([0.2, 0.3]), [0.2, 0.3], atol=1e-15)
    np.testing.assert_allclose(simplex.project([-1.0, 0.3]), [0.0, 0.3], atol=1e-15)
    np.testing.assert_allclose(simplex.project([3.0, 0.0]), [1.0, 0.0], atol=1e-15)


def test_projection_on_the_box_by_hand():
    box = Box(0.0, 1.0, 2)
    np.testing.assert_array_equal(box.project([-3.0, 0.4]), [0.0, 0.4])
    np.testing.assert_array_equal(box.project([-3.0, 0.9], margin=0.25), [0.25, 0.75])
    np.testing.assert_array_equal(box.project([[2.0, 0.4]]), [[1.0, 0.4]])


@pytest.mark.parametrize("space", SETS)
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_projection_is_the_closest_point(space, seed, share):
    """The variational inequality (x - p)·(y - p) <= 0 for all y in the set characterises p."""
    rng = np.random.default_rng(seed)
    margin = share * space.max_margin()
    x = rng.normal(size=space.dim)
    p = space.project(x, margin)
    assert space.contains(p)
    np.testing.assert_allclose(space.project(p, margin), p, atol=1e-12)
    others = np.array([space.project(y, margin) for y in rng.normal(size=(30, space.dim))])
    assert np.all((others - p) @ (x - p) <= 1e-12)


def test_projection_agrees_with_a_general_solver():
    space = CappedSimplex(4, 0.05, 0.7)
    for x in np.random.default_rng(0).normal(0.2, 0.4, size=(10, 4)):
        solved = minimize(
            lambda y, x=x: np.sum((y - x) ** 2),
            np.full(4, 0.1),
            method="SLSQP",
            bounds=[(0.05, None)] * 4,
            constraints={"type": "ineq", "fun": lambda y: 0.7 - y.sum()},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(space.project(x), solved.x, atol=1e-6)


@pytest.mark.parametrize("space", SETS)
def test_balls_of_the_margin_stay_inside(space):
    rng = np.random.default_rng(1)
    for margin in (0.3 * space.max_margin(), space.max_margin()):
        for x in rng.normal(size=(50, space.dim)):
            p = space.project(x, margin)
            normals = -np.eye(space.dim)
            if isinstance(space, CappedSimplex):
                normals = np.vstack((normals, np.full(space.dim, 1 / math.sqrt(space.dim))))
            else:
                normals = np.vstack((normals, np.eye(space.dim)))
            assert all(space.contains(p + margin * normal) for normal in normals)


@pytest.mark.parametrize("space", SETS)
def test_uniform_samples_lie_inside_and_fill_the_set(space):
    x = space.sample(np.random.default_rng(2), 4000)
    assert x.shape == (4000, space.dim)
    assert all(space.contains(row) for row in x)
    if isinstance(space, CappedSimplex):
        # A coordinate of a uniform point of the unit simplex {y >= 0, Σy <= 1} has mean 1/(d+1).
        expected = space.lo + (space.total - space.dim * space.lo) / (space.dim + 1)
    else:
        expected = (space.lo + space.hi) / 2
    np.testing.assert_allclose(x.mean(axis=0), expected, rtol=0.1)


@pytest.mark.parametrize("space", SETS)
def test_a_margin_that_leaves_nothing_is_refused(space):
    with pytest.raises(ValueError, match=r"margin must lie in \[0, "):
        space.project(np.zeros(space.dim), 1.01 * space.max_margin())
    with pytest.raises(ValueError, match=r"found -0\.1"):
        space.project(np.zeros(space.dim), -0.1)


@pytest.mark.parametrize("space", SETS)
def test_points_of_another_shape_are_refused(space):
    x = np.zeros(space.dim + 1)
    for call in (space.project, space.contains):
        with pytest.raises(ValueError, match=r"x must have shape .*, found \(\d,\)"):
            call(x)
        with pytest.raises(ValueError, match="x must be an array of numbers, found 'here'"):
            call("here")


def test_the_capped_simplex_needs_finite_points():
    with pytest.raises(ValueError, match=r"x must be finite, found \[nan, 0\.9\]"):
        CappedSimplex(2, 0.0, 1.0).project([math.nan, 0.9])


def test_empty_sets_are_refused():
    with pytest.raises(ValueError, match="lo <= hi, found lo=2, hi=1"):
        Box(2, 1, 3)
    with pytest.raises(ValueError, match="dim must be a whole number >= 1, found 0"):
        Box(0, 1, 0)
    with pytest.raises(ValueError, match=r"dim\*lo <= total, found dim=5, lo=0.3, total=1.0"):
        CappedSimplex(5, 0.3, 1.0)
