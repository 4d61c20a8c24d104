"""Convex penalties on one player's own policy, with their exact best responses.

The best response of a regularised player is `max over the simplex of c.x - value(x)`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, xlogy

from retable.robustmg.arrays import (
    dual_order,
    finite,
    non_negative,
    order_of_norm,
    vector_norm,
)


class Regularizer(ABC):
    """A convex function of a policy."""

    @abstractmethod
    def value(self, x: np.ndarray) -> float:
        """Return the penalty of a policy x (m,)."""

    @abstractmethod
    def best_response(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the policy x (m,) that maximises c.x - value(x), and that maximum."""


def _pure(index: int, size: int) -> np.ndarray:
    x = np.zeros(size)
    x[index] = 1.0
    return x


@dataclass(frozen=True)
class ZeroRegularizer(Regularizer):
    """No penalty."""

    def value(self, x: np.ndarray) -> float:
        return 0.0

    def best_response(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        best = int(np.argmax(c))
        return _pure(best, len(c)), float(c[best])


@dataclass(frozen=True, eq=False)
class LinearRegularizer(Regularizer):
    """Penalty c.x, a known cost of each action; c has shape (m,)."""

    c: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "c", finite("LinearRegularizer: c", self.c, 1))

    def value(self, x: np.ndarray) -> float:
        return float(self.c @ x)

    def best_response(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        return ZeroRegularizer().best_response(c - self.c)


@dataclass(frozen=True)
class NormRegularizer(Regularizer):
    """Penalty weight * ||x||_order, order in [1, inf], weight >= 0.

    The best response's value is the smallest v with ||(c - v)_+||_{order*} <= weight: by duality
    max_x c.x - weight ||x|| = min over ||z||_* <= weight of max_a (c - z)_a, and the cheapest z
    that brings every entry of c down to v is (c - v)_+.
    """

    order: float
    weight: float

    def __post_init__(self):
        object.__setattr__(self, "order", order_of_norm("NormRegularizer", "order", self.order))
        object.__setattr__(self, "weight", non_negative("NormRegularizer", "weight", self.weight))

    def value(self, x: np.ndarray) -> float:
        return self.weight * float(vector_norm(x, self.order))

    def best_response(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        # ||x||_1 = 1 on the simplex, so order 1 is a constant.
        if self.weight == 0 or self.order == 1:
            x, best = ZeroRegularizer().best_response(c)
            return x, best - self.weight
        if np.isinf(self.order):
            return self._level_tops(c)
        return self._level_root(c)

    def _level_tops(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        """Order inf: the best x is uniform on the k best actions, for the best k."""
        descending = np.argsort(-c, kind="stable")
        counts = np.arange(1, len(c) + 1)
        levels = (np.cumsum(c[descending]) - self.weight) / counts
        k = int(np.argmax(levels))
        x = np.zeros(len(c))
        x[descending[: k + 1]] = 1 / counts[k]
        return x, float(levels[k])

    def _level_root(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        """Orders between: the level by a root in units of the weight, then x from its excess."""
        dual = dual_order(self.order)
        below = (c - c.max()) / self.weight

        def excess(depth: float) -> np.ndarray:
            return np.maximum(below + depth, 0.0)

        # At depth 1 the best action alone has excess 1, so the norm is at least 1.
        depth = brentq(
            lambda t: float(vector_norm(excess(t), dual)) - 1.0,
            0.0,
            1.0,
            xtol=1e-15,
            rtol=1e-14,
        )
        x = excess(depth) ** (dual - 1)
        x /= x.sum()
        return x, float(c @ x) - self.value(x)


@dataclass(frozen=True)
class EntropyRegularizer(Regularizer):
    """Penalty tau * sum_a x_a ln x_a (the negative entropy), tau >= 0."""

    tau: float

    def __post_init__(self):
        object.__setattr__(self, "tau", non_negative("EntropyRegularizer", "tau", self.tau))

    def log_reference(self, size: int) -> np.ndarray:
        """Return the logarithm of the measure that the policy is compared with: all ones."""
        return np.zeros(size)

    def value(self, x: np.ndarray) -> float:
        return self.tau * float(xlogy(x, x).sum())

    def best_response(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        return _soft_response(c, self.tau, self.log_reference(len(c)))


@dataclass(frozen=True, eq=False)
class KLRegularizer(Regularizer):
    """Penalty tau * KL(x || reference), tau >= 0, reference (m,) a positive distribution."""

    tau: float
    reference: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "tau", non_negative("KLRegularizer", "tau", self.tau))
        reference = finite("KLRegularizer: reference", self.reference, 1)
        if reference.min() <= 0 or abs(reference.sum() - 1) > 1e-8:
            raise ValueError(
                "KLRegularizer: reference must be positive and sum to 1, got smallest entry "
                f"{reference.min():g} and sum {reference.sum():.10g}"
            )
        object.__setattr__(self, "reference", reference)

    def log_reference(self, size: int) -> np.ndarray:
        """Return ln(reference) (m,)."""
        return np.log(self.reference)

    def value(self, x: np.ndarray) -> float:
        return self.tau * float((xlogy(x, x) - x * np.log(self.reference)).sum())

    def best_response(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        return _soft_response(c, self.tau, self.log_reference(len(c)))


def _soft_response(c: np.ndarray, tau: float, log_reference: np.ndarray):
    """x proportional to reference exp(c / tau), value tau logsumexp(c / tau + log reference)."""
    if tau == 0:
        return ZeroRegularizer().best_response(c)
    top = c.max()
    logits = (c - top) / tau + log_reference
    total = logsumexp(logits)
    return np.exp(logits - total), float(top + tau * total)
