"""Uncertainty sets of transitions: the worst case of q . v over all q near a nominal p.

Every set is (s, a)-rectangular. `worst_case` takes a batch of nominal distributions p (..., S) and
one vector v (S,) of values, and returns (value (...), q (..., S)) with value = q . v attained by a
member q. Radii are scalars or arrays that broadcast against the batch. All are exact up to
rounding: sorted greedy filling, or one root in one unknown.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import xlogy

from retable.robustmg.arrays import finite

_NO_RADIUS = 1e-200
"""Below it a chi-square ball is its centre: its level would overflow."""


class TransitionSet(ABC):
    """A ball around each nominal next-state distribution."""

    radius: np.ndarray | float

    def __post_init__(self):
        radius = np.asarray(self.radius, dtype=np.float64)
        wrong = radius[~(np.isfinite(radius) & (radius >= 0))]
        if wrong.size:
            raise ValueError(f"{type(self).__name__}: radius must be >= 0, got {wrong[0]:g}")
        object.__setattr__(self, "radius", radius)

    def worst_case(self, p: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (value (...), q (..., S)): the least q . v over the set, and where it is attained.

        p (..., S) are distributions, v (S,) is finite.
        """
        v = finite("v", v, 1)
        p = np.asarray(p, dtype=np.float64)
        if p.ndim < 1 or p.shape[-1] != v.size:
            raise ValueError(f"p has shape {p.shape}, its last axis must have {v.size} states")
        check_distributions("p", p)
        try:
            radius = np.broadcast_to(self.radius, p.shape[:-1])
        except ValueError:
            raise ValueError(
                f"{type(self).__name__}: radius has shape {self.radius.shape}, must broadcast to "
                f"{p.shape[:-1]}"
            ) from None
        q = self._worst(p, v, radius[..., None])
        return q @ v, q

    def at(self, index, shape: tuple[int, ...]) -> "TransitionSet":
        """Return the set with the radii of one index of a batch of the given shape."""
        return replace(self, radius=np.broadcast_to(self.radius, shape)[index])

    @abstractmethod
    def _worst(self, p: np.ndarray, v: np.ndarray, radius: np.ndarray) -> np.ndarray:
        """Return q (..., S); radius has shape (..., 1)."""


def check_distributions(name: str, p: np.ndarray) -> None:
    """Raise ValueError unless the last axis of p holds distributions (sums within 1e-8 of 1)."""
    bad = np.argwhere(~np.isfinite(p) | (p < -1e-12))
    if bad.size:
        where = ",".join(map(str, bad[0]))
        raise ValueError(f"{name}[{where}] is {p[tuple(bad[0])]:g}, must be a probability")
    total = p.sum(axis=-1)
    off = np.argwhere(np.abs(total - 1) > 1e-8)
    if len(off):
        where = f"[{','.join(map(str, off[0]))}]" if total.ndim else ""
        raise ValueError(f"{name}{where} sums to {total[tuple(off[0])]:.10g}, must be 1")


def _fill(budget: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Pour a budget (..., 1) into room (..., K) in the order of the last axis."""
    before = np.cumsum(room, axis=-1) - room
    return np.clip(budget - before, 0.0, room)


def _unsorted(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Undo values = original[..., order]."""
    out = np.empty_like(values)
    out[..., order] = values
    return out


def _move_to_worst(p: np.ndarray, v: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Move mass (..., 1) from the states of largest v to the state of smallest v."""
    order = np.argsort(-v, kind="stable")
    taken = p[..., order]
    taken[..., -1] = 0.0
    taken = _fill(mass, taken)
    q = p[..., order] - taken
    q[..., -1] += taken.sum(axis=-1)
    return _unsorted(q, order)


@dataclass(frozen=True, eq=False)
class TVBall(TransitionSet):
    """All q with 1/2 ||q - p||_1 <= radius: the mass of the best states goes to the worst."""

    radius: np.ndarray | float

    def _worst(self, p, v, radius):
        return _move_to_worst(p, v, radius)


@dataclass(frozen=True, eq=False)
class L1Ball(TransitionSet):
    """All q with ||q - p||_1 <= radius: a TVBall of half the radius."""

    radius: np.ndarray | float

    def _worst(self, p, v, radius):
        return _move_to_worst(p, v, radius / 2)


@dataclass(frozen=True, eq=False)
class LInfBall(TransitionSet):
    """All q with |q_s - p_s| <= radius for every state: fill the worst states first."""

    radius: np.ndarray | float

    def _worst(self, p, v, radius):
        order = np.argsort(v, kind="stable")
        low = np.maximum(p - radius, 0.0)[..., order]
        high = np.minimum(p + radius, 1.0)[..., order]
        rest = p.sum(axis=-1, keepdims=True) - low.sum(axis=-1, keepdims=True)
        return _unsorted(low + _fill(rest, high - low), order)


@dataclass(frozen=True, eq=False)
class KLBall(TransitionSet):
    """All q with KL(q || p) <= radius.

    q is proportional to p exp(-v / lam), and KL falls in lam from -ln p(worst states) to 0; the
    dual max over lam of -lam ln E_p exp(-v / lam) - lam radius is attained where KL is the radius.
    Values are taken relative to their minimum over the support of p, so that small lam does not
    underflow.
    """

    radius: np.ndarray | float

    def _worst(self, p, v, radius):
        support = p > 0
        lowest = np.min(np.where(support, v, np.inf), axis=-1, keepdims=True)
        height = np.where(support, v - lowest, 0.0)
        spread = height.max(axis=-1, keepdims=True)
        unit = height / np.where(spread > 0, spread, 1.0)

        def tilted(log_lam):
            weight = np.where(support, p * np.exp(-unit * np.exp(-log_lam)), 0.0)
            return weight / weight.sum(axis=-1, keepdims=True)

        def divergence(q):
            ratio = np.divide(q, p, out=np.ones_like(p), where=support)
            return xlogy(q, ratio).sum(axis=-1, keepdims=True)

        # In units of the spread: at e^-40 only the worst states are left, at e^25 q is p.
        low, high = np.full_like(spread, -40.0), np.full_like(spread, 25.0)
        for _ in range(64):
            middle = (low + high) / 2
            inside = divergence(tilted(middle)) <= radius
            low, high = np.where(inside, low, middle), np.where(inside, middle, high)
        worst = tilted(np.full_like(spread, -40.0))
        q = np.where(divergence(worst) <= radius, worst, tilted(high))
        return np.where((radius > 0) & (spread > 0), q, p)


@dataclass(frozen=True, eq=False)
class ChiSquareBall(TransitionSet):
    """All q absolutely continuous with sum_s (q_s - p_s)^2 / p_s <= radius.

    q is proportional to p (c - v)_+ for a level c. With the k worst states active, of mass P, mean
    mu and variance s of v, the divergence equals the radius at c = mu + sqrt(s / (P (1 + d) - 1));
    the right k is the first whose level does not pass the next state's value. This is where the
    dual max over c of E_p min(v, c) - sqrt(d Var_p min(v, c)) is attained.
    """

    radius: np.ndarray | float

    def _worst(self, p, v, radius):
        order = np.argsort(v, kind="stable")
        mass, values = p[..., order], v[order] - v.min()
        total = np.cumsum(mass, axis=-1)
        safe = np.where(total > 0, total, 1.0)
        mean = np.cumsum(mass * values, axis=-1) / safe
        # E (v - mean)^2 over the first k states, by the running update that does not cancel.
        previous = np.concatenate([np.zeros_like(mean[..., :1]), mean[..., :-1]], axis=-1)
        variance = np.cumsum(mass * (values - previous) * (values - mean), axis=-1) / safe
        variance = np.maximum(variance, 0.0)
        # P (1 + d) - 1 with 1 - P as a sum of what is left, exact for the last state.
        left = np.flip(np.cumsum(np.flip(mass, -1), axis=-1), -1) - mass
        left[..., -1] = 0.0
        excess = np.maximum(radius, _NO_RADIUS) * total - left
        valid = (excess > 0) & (total > 0)
        level = mean + np.sqrt(variance / np.where(valid, excess, 1.0))
        following = np.append(values[1:], np.inf)
        valid &= level <= following
        # The last k is valid for every radius > 0.
        k = np.argmax(valid, axis=-1)[..., None]
        chosen_level = np.take_along_axis(level, k, -1)
        chosen_variance = np.take_along_axis(variance, k, -1)
        active = np.arange(v.size) <= k
        # Without variance among the active states their shares stay in proportion.
        tilt = np.where(chosen_variance > 0, np.maximum(chosen_level - values, 0.0), 1.0)
        weight = np.where(active, mass * tilt, 0.0)
        weight_sum = weight.sum(axis=-1, keepdims=True)
        q = weight / np.where(weight_sum > 0, weight_sum, 1.0)
        return np.where(radius > _NO_RADIUS, _unsorted(q, order), p)


@dataclass(frozen=True, eq=False)
class WassersteinBall(TransitionSet):
    """All q that optimal transport reaches from p at cost <= radius.

    metric (S, S) holds the cost of moving a unit of mass from s to t: non-negative, zero on the
    diagonal. From each state the useful targets are the lower convex hull of (cost, value); all
    hulls' segments, steepest first, are bought until the radius is spent.
    """

    radius: np.ndarray | float
    metric: np.ndarray

    def __post_init__(self):
        super().__post_init__()
        metric = finite("WassersteinBall: metric", self.metric, 2)
        if metric.shape[0] != metric.shape[1]:
            raise ValueError(f"WassersteinBall: metric must be square, got shape {metric.shape}")
        if metric.min() < 0 or np.any(np.diag(metric) != 0):
            raise ValueError(
                "WassersteinBall: metric must be >= 0 with a zero diagonal, got smallest entry "
                f"{metric.min():g} and largest diagonal entry {np.abs(np.diag(metric)).max():g}"
            )
        object.__setattr__(self, "metric", metric)

    def _worst(self, p, v, radius):
        states = v.size
        if self.metric.shape[0] != states:
            raise ValueError(
                f"WassersteinBall: metric has shape {self.metric.shape}, must be "
                f"({states}, {states})"
            )
        home, segments = self._segments(v)
        q = np.zeros(p.shape)
        np.add.at(q, (..., home), p)
        if not segments:
            return q
        source, before, after, cost = (np.array(column) for column in zip(*segments, strict=True))
        room = p[..., source] * cost
        moved = _fill(radius, room) / cost
        np.add.at(q, (..., before), -moved)
        np.add.at(q, (..., after), moved)
        return np.maximum(q, 0.0)

    def _segments(self, v: np.ndarray):
        """Where each state's mass goes for free, and the moves (from, before, after, cost) to buy.

        The moves stand in the order of their fall in value per unit of cost, steepest first.
        """
        home = np.empty(v.size, dtype=int)
        moves = []
        for s, cost in enumerate(self.metric):
            hull = []
            for t in np.lexsort((v, cost)):
                if hull and v[t] >= v[hull[-1]]:
                    continue
                while len(hull) > 1 and _slope(hull[-2], hull[-1], cost, v) >= _slope(
                    hull[-1], t, cost, v
                ):
                    hull.pop()
                hull.append(int(t))
            home[s] = hull[0]
            moves += [
                (_slope(a, b, cost, v), s, a, b, cost[b] - cost[a]) for a, b in pairwise(hull)
            ]
        moves.sort(key=lambda move: move[0])
        return home, [move[1:] for move in moves]


def _slope(a: int, b: int, cost: np.ndarray, v: np.ndarray) -> float:
    """Change of value per unit of cost from target a to the dearer target b; negative."""
    return (v[b] - v[a]) / (cost[b] - cost[a])
