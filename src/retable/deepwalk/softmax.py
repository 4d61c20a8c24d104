"""The sums over all nodes in the softmax, exactly or (in one dimension) in near-linear time.

With Z_i = sum_l exp(x_i . y_l) and Q_ij = exp(x_i . y_j)/Z_i, loss and gradients need log Z_i,
(Q Y)_i and (Q^T diag(c) X)_j: as they stand, O(n^2) exponentials.

In one dimension they are smooth functions of one variable, log Z(x_i), g(x_i) and h(y_j):
    log Z(v) = log sum_j e^{v y_j},   g(v) = sum_j y_j e^{v y_j} / Z(v),
    h(v) = sum_i (c_i x_i / Z_i) e^{v x_i}.
They are evaluated at m Chebyshev nodes of the range of their argument (m n exponentials) and
interpolated everywhere else. With R = max|x| max|y| the coefficients of h fall off like
(R/2)^m/m!, those of log Z and g in the end only geometrically, since Z has complex zeros.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

# Rows of the softmax held at a time: working memory 1024 n instead of n^2.
_ROWS = 1024
# Columns of the m x n exponentials, or polynomials, held at a time, so that they stay in the
# processor's cache.
_COLUMNS = 8192
# Numbers of nodes to choose from. Where 1536 are too few |x||y| is in the hundreds: no embedding
# is that long.
_NODES = (24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536)
# The last three coefficients, relative to the largest, at which an interpolant is accepted.
_TAIL = 1e-10
_TINY = np.finfo(np.float64).tiny


class SoftmaxSums(NamedTuple):
    """log Z (n,), Q Y (n, k) and Q^T diag(c) X (n, k)."""

    log_z: np.ndarray
    expected_context: np.ndarray
    expected_source: np.ndarray


def exact_sums(x: np.ndarray, y: np.ndarray, row_mass: np.ndarray) -> SoftmaxSums:
    """The sums as they are written, in blocks of rows: O(n^2 k) time, O(n) rows of memory.

    x, y: (n, k); row_mass: c (n,).
    """
    n = x.shape[0]
    log_z, context, source = np.empty(n), np.empty_like(x), np.zeros_like(y)
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)
        q = x[rows] @ y.T
        shift = q.max(axis=1, keepdims=True)
        np.exp(np.subtract(q, shift, out=q), out=q)
        z = q.sum(axis=1, keepdims=True)
        q /= z
        log_z[rows] = (shift + np.log(z))[:, 0]
        context[rows] = q @ y
        source += q.T @ (row_mass[rows, None] * x[rows])
    return SoftmaxSums(log_z, context, source)


def chebyshev_sums(x: np.ndarray, y: np.ndarray, row_mass: np.ndarray) -> SoftmaxSums | None:
    """The sums in one dimension by Chebyshev interpolation, relative error about 1e-10.

    x, y: (n, 1); row_mass: c (n,). Starts with 24 nodes and takes more until the last three
    coefficients vanish. None if 1536 nodes do not resolve the sums: |x||y| is in the hundreds.
    """
    x, y = x[:, 0], y[:, 0]
    y_range = (y.min(), y.max())

    def log_z_and_mean(v: np.ndarray) -> np.ndarray:
        """log Z(v) and g(v); (2, m)."""
        shift = np.maximum(v * y_range[0], v * y_range[1])
        ones_and_y = np.stack([np.ones_like(y), y], axis=1)
        z, weighted = _exponential_sums(v, y, ones_and_y, -shift[:, None]).T
        return np.stack([shift + np.log(z), weighted / z])

    at_x = _interpolate(log_z_and_mean, x)
    if at_x is None:
        return None
    log_z, context = at_x
    mass_x = (row_mass * x)[:, None]

    def source(v: np.ndarray) -> np.ndarray:
        """h(v); (1, m). No shift is needed: v x_i <= log Z_i wherever v is in the range of y."""
        return _exponential_sums(v, x, mass_x, -log_z[None, :]).T

    at_y = _interpolate(source, y)
    if at_y is None:
        return None
    return SoftmaxSums(log_z, context[:, None], at_y[0][:, None])


def _exponential_sums(
    v: np.ndarray, points: np.ndarray, weights: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """sum_j exp(v_k points_j + shift_kj) weights_j; (m, columns of weights).

    shift: (m, 1) or (1, n).
    """
    total = np.zeros((v.size, weights.shape[1]))
    for start in range(0, points.size, _COLUMNS):
        part = slice(start, start + _COLUMNS)
        exponent = np.multiply.outer(v, points[part])
        exponent += shift if shift.shape[1] == 1 else shift[:, part]
        total += np.exp(exponent, out=exponent) @ weights[part]
    return total


def _interpolate(functions, points: np.ndarray) -> np.ndarray | None:
    """Evaluate smooth functions, given as (m,) -> (r, m), at many points; (r, n) or None."""
    low, high = points.min(), points.max()
    centre, radius = (low + high) / 2, (high - low) / 2
    if radius == 0:
        radius = 1.0
    needed = 0.0
    for m in _NODES:
        if m < needed:
            continue
        nodes, transform = _nodes_and_transform(m)
        coefficients = functions(centre + radius * nodes) @ transform
        size = np.abs(coefficients)
        tail = (size[:, -3:].max(axis=1) / size.max(axis=1).clip(min=_TINY)).max()
        if tail <= _TAIL:
            return _series(coefficients, (points - centre) / radius)
        # At this geometric rate, so many nodes bring the coefficients down to _TAIL.
        needed = m * np.log(_TAIL) / np.log(min(tail, 0.5))
    return None


@lru_cache
def _nodes_and_transform(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev nodes (m,), and the matrix (m, m) from values there to coefficients."""
    angles = np.pi * (np.arange(m) + 0.5) / m
    # Discrete orthogonality of the Chebyshev polynomials at these nodes.
    transform = np.cos(np.outer(angles, np.arange(m))) * (2 / m)
    transform[:, 0] /= 2
    return np.cos(angles), transform


def _series(coefficients: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Chebyshev series with the coefficients (r, m) at t (n,) in [-1, 1]; (r, n)."""
    result = np.empty((coefficients.shape[0], t.size))
    # The last terms, which are rounding, are left out.
    size = np.abs(coefficients)
    used = np.flatnonzero((size > 1e-14 * size.max(axis=1, keepdims=True)).any(axis=0))
    degree = max(1, used[-1]) if used.size else 1
    for start in range(0, t.size, _COLUMNS):
        part = t[start : start + _COLUMNS]
        basis = np.empty((degree + 1, part.size))
        basis[0], basis[1] = 1, part
        known = 1
        while known < degree:
            # T_(k+j) = 2 T_k T_j - T_(k-j): all degrees to 2 k at once from those to k.
            more = min(known, degree - known)
            new = basis[known + 1 : known + 1 + more]
            np.multiply(basis[1 : more + 1], 2 * basis[known], out=new)
            new -= basis[known - more : known][::-1]
            known += more
        result[:, start : start + _COLUMNS] = coefficients[:, : degree + 1] @ basis
    return result
