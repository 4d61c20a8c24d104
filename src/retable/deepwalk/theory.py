"""What the analysis predicts: signal, growth, fixed point, thresholds.

Derivation, with z = +-1 the indicator of two equal communities. In expectation
C = (1 1^T + s z z^T)/n, s = mean_{r=1..w} lambda^r, lambda = (p - q)/(p + q), since P z = lambda z.
For short x, y the softmax is Q = (1 1^T + x (y - mean y)^T)/n to first order, hence a gradient
step is x += eta M y, y += eta M^T x with M = C - c 1^T/n: power iteration, in which z grows by
1 + eta s per step. A balanced point x = t u z, y = (t/u) z puts the softmax mass
(1 + tanh t^2)/2 on the own community, and is stationary where this equals (1 + s)/2.
"""

import math

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds
from scipy.special import bdtr, gammaln, xlog1py, xlogy

from retable.deepwalk.cooccurrence import Cooccurrence


def signal(p: float, q: float, window: int, k: int = 2) -> float:
    """s = mean_{r=1..window} lambda^r with lambda = (p - q)/(p + (k - 1) q), in [-1, 1].

    The leading singular value of M (k - 1 of them are equal); negative only for q > p.
    """
    if not window >= 1:
        raise ValueError(f"window must be at least 1, got {window}")
    if k < 2:
        raise ValueError(f"k must be at least 2, got {k}")
    if not (p >= 0 and q >= 0 and p + (k - 1) * q > 0):
        raise ValueError(f"p and q must be >= 0 and not both 0, got p = {p:g}, q = {q:g}")
    ratio = (p - q) / (p + (k - 1) * q)
    return float(np.mean(ratio ** np.arange(1, window + 1)))


def fixed_point(s: float) -> float:
    """t^2 = artanh(s): the product x_i y_i at the balanced stationary point (y centred)."""
    if not -1 < s < 1:
        raise ValueError(f"s must lie in (-1, 1), got {s:g}")
    return math.atanh(s)


def fixed_point_loss(s: float, n: int) -> float:
    """The loss at the balanced stationary point: n (ln n + ln cosh t^2 - s t^2)."""
    t2 = fixed_point(s)
    return n * (math.log(n) + math.log(math.cosh(t2)) - s * t2)


def exact_threshold(a: float, b: float) -> bool:
    """Whether two communities can be recovered exactly at p = a ln(n)/n, q = b ln(n)/n.

    sqrt(a) - sqrt(b) > sqrt(2) in absolute value (Abbe, Bandeira, Hall 2016).
    """
    for name, value in (("a", a), ("b", b)):
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, got {value:g}")
    return abs(math.sqrt(a) - math.sqrt(b)) > math.sqrt(2)


def leading_singular_values(cooc: Cooccurrence, k: int = 2) -> np.ndarray:
    """The k largest singular values of M = C - c 1^T/n, descending; (k,)."""
    if not 1 <= k < cooc.n - 1:
        raise ValueError(f"k must lie in 1..n - 2 = 1..{cooc.n - 2}, got {k}")
    operator = LinearOperator(
        (cooc.n, cooc.n),
        matvec=lambda v: centred_matvec(cooc, v.reshape(-1)),
        rmatvec=lambda v: centred_rmatvec(cooc, v.reshape(-1)),
        dtype=np.float64,
    )
    start = np.random.default_rng(0).standard_normal(cooc.n)
    values = svds(operator, k=k, v0=start, tol=1e-8, return_singular_vectors=False)
    return np.sort(values)[::-1]


def centred_matvec(cooc: Cooccurrence, v: np.ndarray) -> np.ndarray:
    """M v = C v - c mean(v); v (n,) or (n, k)."""
    return cooc.matvec(v) - np.multiply.outer(cooc.row_mass, v.mean(axis=0))


def centred_rmatvec(cooc: Cooccurrence, v: np.ndarray) -> np.ndarray:
    """M^T v = C v - (c . v)/n; v (n,) or (n, k)."""
    return cooc.matvec(v) - (cooc.row_mass @ v) / cooc.n


def alignment_steps(n: int, s: float, s2: float, step: float) -> float:
    """Steps until the linear phase aligns x with z: ln sqrt(n) / ln((1 + eta s)/(1 + eta s2)).

    A random start overlaps z by about 1/sqrt(n); z grows by 1 + eta s per step, directions
    orthogonal to it by at most 1 + eta s2, s2 the second singular value. inf for s <= s2.
    """
    if s <= s2:
        return math.inf
    return math.log(math.sqrt(n)) / math.log((1 + step * s) / (1 + step * s2))


def expected_lost_nodes(n: int, p: float, q: float) -> float:
    """n P(cross-degree >= own degree): nodes of two communities that no method can place.

    These have as many neighbours in the other community as in their own, even if the labels of
    all other nodes are known. Own degree ~ Bin(n/2 - 1, p), cross-degree ~ Bin(n/2, q).
    """
    half = n // 2
    # Beyond twenty standard deviations the cross-degrees do not count.
    most = half * q + 20 * math.sqrt(half * q * (1 - q)) + 20
    degrees = np.arange(min(half, math.ceil(most)) + 1)
    ways = gammaln(half + 1) - gammaln(degrees + 1) - gammaln(half - degrees + 1)
    cross = np.exp(ways + xlogy(degrees, q) + xlog1py(half - degrees, -q))
    own_at_most = bdtr(np.minimum(degrees, half - 1), half - 1, p)
    return float(n * np.sum(cross * own_at_most))
