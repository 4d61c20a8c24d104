"""Norms, dual vectors and the checks of arrays that the whole room shares."""

import numpy as np

POLICY_TOLERANCE = 1e-8
"""How far a policy may lie off the simplex."""


def dual_order(order: float) -> float:
    """Return p* with 1/p + 1/p* = 1, for p in [1, inf]."""
    if order == 1:
        return np.inf
    return 1.0 if np.isinf(order) else order / (order - 1)


def vector_norm(v: np.ndarray, order: float, axis: int = -1) -> np.ndarray:
    """Return ||v||_order along an axis; scaled first, so that high orders do not overflow."""
    size = np.abs(v)
    scale = size.max(axis=axis, keepdims=True)
    safe = np.where(scale > 0, scale, 1.0)
    norm = np.linalg.norm(size / safe, ord=order, axis=axis)
    return np.squeeze(safe, axis=axis) * norm


def dual_vector(v: np.ndarray, order: float, axis: int = -1) -> np.ndarray:
    """Return g of the shape of v with ||g||_order <= 1 and <g, v> = ||v||_{order*} along the axis.

    g is zero where v is zero along the whole axis, and of norm exactly 1 elsewhere.
    """
    size = np.abs(v)
    scale = size.max(axis=axis, keepdims=True)
    if np.isinf(order):
        return np.sign(v)
    if order == 1:
        first = np.argmax(size, axis=axis, keepdims=True)
        g = np.zeros_like(v)
        np.put_along_axis(g, first, np.take_along_axis(np.sign(v), first, axis), axis)
        return g
    # Hölder's equality case: |g| proportional to |v|^(p* - 1).
    weight = (size / np.where(scale > 0, scale, 1.0)) ** (dual_order(order) - 1)
    norm = np.expand_dims(vector_norm(weight, order, axis), axis)
    return np.sign(v) * weight / np.where(norm > 0, norm, 1.0)


def separable(
    q: np.ndarray, tol: float = 1e-10, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Split q (m, n) into (u (m,), w (n,)) with q[a, b] = u[a] + w[b], or return None.

    tol bounds the largest residual relative to scale, by default max |q|; a sum in which large
    payoffs cancel needs theirs. w has mean zero, so q = u 1^T gives w = 0.
    """
    q = matrix("q", q)
    u = q.mean(axis=1)
    w = q.mean(axis=0) - q.mean()
    residual = np.abs(q - u[:, None] - w).max()
    return (u, w) if residual <= tol * (np.abs(q).max() if scale is None else scale) else None


def unit_scale(q: np.ndarray, *weights: float) -> tuple[float, float]:
    """Return (centre, scale > 0) with (q - centre) / scale in [-1, 1].

    Solvers' tolerances are absolute, and equilibria do not depend on a payoff's origin and unit.
    Differences that are rounding beside q, or a millionth of a penalty's weight, are not blown up.
    """
    low, high = float(q.min()), float(q.max())
    centre, half = low + (high - low) / 2, (high - low) / 2
    scale = max(half, 1e-13 * abs(centre), *(1e-6 * weight for weight in weights))
    return centre, scale if scale > 0 else 1.0


def finite(name: str, value: np.ndarray, ndim: int) -> np.ndarray:
    """Return value as a float64 array of ndim dimensions, or say what is wrong with it."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(
            f"{name} must be a non-empty array of {ndim} dimension(s), got shape {array.shape}"
        )
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        where = ",".join(map(str, bad[0]))
        raise ValueError(f"{name}[{where}] is {array[tuple(bad[0])]}, must be finite")
    return array


def matrix(name: str, value: np.ndarray, shape: tuple[int, int] | None = None) -> np.ndarray:
    """Return value as a finite float64 matrix, of the given shape when there is one."""
    array = finite(name, value, 2)
    if shape is not None and array.shape != tuple(shape):
        raise ValueError(f"{name} has shape {array.shape}, must be {tuple(shape)}")
    return array


def policy(name: str, value: np.ndarray, size: int) -> np.ndarray:
    """Return value as a float64 probability vector of the given size."""
    array = finite(name, value, 1)
    if array.size != size:
        raise ValueError(f"{name} has {array.size} entries, must have {size}")
    if array.min() < -POLICY_TOLERANCE:
        raise ValueError(f"{name} has the entry {array.min():g}, must be >= 0")
    if abs(array.sum() - 1) > POLICY_TOLERANCE:
        raise ValueError(f"{name} sums to {array.sum():.10g}, must be 1")
    return array


def simplex(value: np.ndarray) -> np.ndarray:
    """Return a solver's policy without its rounding: entries of -1e-17, a sum of 1 + 1e-16."""
    clipped = np.maximum(value, 0.0)
    return clipped / clipped.sum()


def order_of_norm(owner: str, name: str, value: float) -> float:
    """Return a norm's order as a float in [1, inf]."""
    value = float(value)
    if not value >= 1:
        raise ValueError(f"{owner}: {name} must be in [1, inf], got {value:g}")
    return value


def non_negative(owner: str, name: str, value: float) -> float:
    """Return a radius or a weight as a finite float >= 0."""
    value = float(value)
    if not 0 <= value < np.inf:
        raise ValueError(f"{owner}: {name} must be >= 0, got {value:g}")
    return value


def shape_of_game(owner: str, value: tuple[int, int]) -> tuple[int, int]:
    """Return (m, n) as two positive integers."""
    shape = tuple(value)
    if len(shape) != 2 or any(int(k) != k or k < 1 for k in shape):
        raise ValueError(f"{owner}: shape must be two positive integers (m, n), got {value}")
    return int(shape[0]), int(shape[1])
