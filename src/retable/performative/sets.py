"""Convex sets of models and of distribution parameters, with their Euclidean projections."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retable.performative import checks


@dataclass(frozen=True)
class Box:
    """The box [lo, hi]^dim.

    ValueError for dim < 1, limits that are not finite, or hi < lo.
    """

    lo: float
    hi: float
    dim: int

    def __post_init__(self) -> None:
        checks.at_least_one(dim=self.dim)
        if not (math.isfinite(self.lo) and math.isfinite(self.hi) and self.lo <= self.hi):
            raise ValueError(f"Box: need finite lo <= hi, found lo={self.lo}, hi={self.hi}")

    def max_margin(self) -> float:
        """The largest margin that `project` accepts: half the side."""
        return (self.hi - self.lo) / 2

    def project(self, x: ArrayLike, margin: float = 0.0) -> NDArray[np.float64]:
        """The closest point to x (..., dim) in [lo + margin, hi - margin]^dim.

        Balls of radius `margin` around it stay inside the box. ValueError for a margin that is
        negative or above `max_margin()`, or for x of another shape.
        """
        _check_margin(margin, self.max_margin())
        # Two ufuncs: np.clip costs more than the rest of a deployment in small dimensions.
        lowest, highest = self.lo + margin, max(self.hi - margin, self.lo + margin)
        return np.minimum(np.maximum(checks.points("x", x, self.dim), lowest), highest)

    def contains(self, x: ArrayLike, tol: float = 1e-12) -> bool:
        """Whether x (dim,) lies in the box, up to `tol` in each coordinate."""
        x = checks.vector("x", x, self.dim)
        return bool(np.all(x >= self.lo - tol) and np.all(x <= self.hi + tol))

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """n points (n, dim), uniform on the box."""
        return rng.uniform(self.lo, self.hi, size=(n, self.dim))


@dataclass(frozen=True)
class CappedSimplex:
    """The set {x in R^dim : x_i >= lo, Σ x_i <= total}.

    ValueError for dim < 1, values that are not finite, or total < dim·lo (an empty set).
    """

    dim: int
    lo: float
    total: float

    def __post_init__(self) -> None:
        checks.at_least_one(dim=self.dim)
        finite = math.isfinite(self.lo) and math.isfinite(self.total)
        if not (finite and self.dim * self.lo <= self.total):
            raise ValueError(
                f"CappedSimplex: need finite dim*lo <= total, "
                f"found dim={self.dim}, lo={self.lo}, total={self.total}"
            )

    def max_margin(self) -> float:
        """The largest margin that `project` accepts: the radius of the largest ball inside.

        A margin m raises the dim lower limits by m and moves the cap, whose normal has length
        √dim, by m√dim; something is left while dim·(lo + m) <= total - m√dim.
        """
        return (self.total - self.dim * self.lo) / (self.dim + math.sqrt(self.dim))

    def project(self, x: ArrayLike, margin: float = 0.0) -> NDArray[np.float64]:
        """The closest point to x (dim,) in {x_i >= lo + margin, Σ x_i <= total - margin·√dim}.

        Balls of radius `margin` around it stay inside the set. ValueError for a margin that is
        negative or above `max_margin()`, or for x of another shape or not finite.
        """
        _check_margin(margin, self.max_margin())
        x = checks.vector("x", x, self.dim)
        if not math.isfinite(x.sum()):
            raise ValueError(f"x must be finite, found {x.tolist()}")
        lo = self.lo + margin
        capacity = max(self.total - margin * math.sqrt(self.dim) - self.dim * lo, 0.0)
        above = x - lo
        positive = np.maximum(above, 0.0)
        if positive.sum() <= capacity:
            return lo + positive
        # On the face Σ = capacity the solution is max(above - τ, 0): τ is the threshold at which
        # the k largest coordinates alone remain positive.
        descending = np.sort(above)[::-1]
        thresholds = (np.cumsum(descending) - capacity) / np.arange(1, self.dim + 1)
        k = np.flatnonzero(descending >= thresholds)[-1]
        return lo + np.maximum(above - thresholds[k], 0.0)

    def contains(self, x: ArrayLike, tol: float = 1e-12) -> bool:
        """Whether x (dim,) lies in the set, up to `tol` in each coordinate and in the sum."""
        x = checks.vector("x", x, self.dim)
        return bool(np.all(x >= self.lo - tol) and x.sum() <= self.total + tol)

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """n points (n, dim), uniform on the set."""
        # All but the last coordinate of a flat Dirichlet law are uniform on {y >= 0, Σy <= 1}.
        shares = rng.dirichlet(np.ones(self.dim + 1), size=n)[:, :-1]
        return self.lo + (self.total - self.dim * self.lo) * shares


def _check_margin(margin: float, largest: float) -> None:
    # The last digit of a margin that was computed to be the largest is forgiven.
    if not 0.0 <= margin <= largest * (1 + 1e-12):
        raise ValueError(f"margin must lie in [0, {largest:.6g}], found {margin:.6g}")
