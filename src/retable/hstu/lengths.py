"""Closed forms of Stochastic Length: lengths, probabilities, savings (section 3.3)."""

import math
from collections.abc import Callable

import numpy as np


def short_length(n_max: int, alpha: float) -> int:
    """L = floor(n_max^(alpha/2)), the length that long histories are cut to.

    With it attention over a user costs O(n_max^alpha) in expectation instead of O(n_max^2).
    """
    if not 1 < alpha <= 2:
        raise ValueError(f"alpha must lie in (1, 2], got {alpha}")
    if n_max < 1:
        raise ValueError(f"n_max must be at least 1, got {n_max}")
    # 2^-40 of slack: 100^(2/2) must be 100 although the power may round to 99.99...
    return min(n_max, math.floor(n_max ** (alpha / 2) * (1 + 2**-40)))


def keep_probability(n: int, n_max: int, alpha: float) -> float:
    """Probability that a history of n events (n <= n_max) is kept whole.

    1 when n <= L = floor(n_max^(alpha/2)), else n_max^alpha / n^2.
    """
    short = short_length(n_max, alpha)
    if not 1 <= n <= n_max:
        raise ValueError(f"n must lie in 1..n_max = {n_max}, got {n}")
    return 1.0 if n <= short else min(1.0, n_max**alpha / n**2)


def sparsity(lengths: np.ndarray, alpha: float, n_max: int | None = None) -> dict[str, float]:
    """Expected shares of tokens and of attention pairs (n^2) that Stochastic Length removes.

    lengths: the users' history lengths; n_max: the longest allowed, by default the longest given.
    Returns {"token": ..., "attention": ...}, each in [0, 1).
    """
    n = np.asarray(lengths, dtype=np.float64)
    if n.size == 0 or n.min() < 1:
        raise ValueError("lengths must be a non-empty array of lengths >= 1")
    n_max = int(n.max()) if n_max is None else n_max
    if n.max() > n_max:
        raise ValueError(f"lengths go up to {int(n.max())}, more than n_max = {n_max}")
    short = short_length(n_max, alpha)
    p = np.where(n <= short, 1.0, np.minimum(1.0, n_max**alpha / n**2))
    return {
        "token": float(1 - (p * n + (1 - p) * short).sum() / n.sum()),
        "attention": float(1 - (p * n**2 + (1 - p) * short**2).sum() / (n**2).sum()),
    }


def expected_cost(n: int, alpha: float, cost: Callable[[int], float]) -> float:
    """Mean cost of a user with the longest history n: p cost(n) + (1 - p) cost(L)."""
    p = keep_probability(n, n, alpha)
    return p * cost(n) + (1 - p) * cost(short_length(n, alpha))
