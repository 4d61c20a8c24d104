"""Uncertainty sets of one state's reward matrix, and the penalties that they amount to.

For a compact convex set R of m x n perturbations the robust value of policies x, y is

    min over R in R of x^T (A + R) y = x^T A y - sigma(-x y^T),   sigma(W) = max_R <R, W>,

so the set acts as the penalty sigma(-x y^T) (Theorem 3.1). Where that penalty is a term in x plus
a term in y the set is decomposable (section 4), and a linear program plans the zero-sum game.

Both players' matrices are m x n, rows are player 1's actions. 1/p + 1/p* = 1, and
||R||_{p->q} = max ||R v||_q / ||v||_p.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from retable.robustmg.arrays import (
    dual_order,
    dual_vector,
    matrix,
    non_negative,
    order_of_norm,
    policy,
    separable,
    shape_of_game,
    vector_norm,
)
from retable.robustmg.regularizers import (
    EntropyRegularizer,
    KLRegularizer,
    LinearRegularizer,
    NormRegularizer,
    Regularizer,
    ZeroRegularizer,
)

RANK_ONE_TOLERANCE = 1e-12


class UncertaintySet(ABC):
    """A convex set of m x n perturbations of one player's rewards in one state."""

    shape: tuple[int, int]

    @abstractmethod
    def support(self, W: np.ndarray) -> float:
        """Return sigma(W) = max over the set of <R, W>, for any W (m, n)."""

    @abstractmethod
    def maximizer(self, W: np.ndarray) -> np.ndarray:
        """Return a member R (m, n) of the set with <R, W> = sigma(W)."""

    @abstractmethod
    def contains(self, R: np.ndarray, tol: float = 1e-9) -> bool:
        """Return whether R (m, n) lies in the set, up to tol."""

    def negate(self) -> "UncertaintySet":
        """Return the set of all -R: the other player's set in a zero-sum game."""
        return self  # every ball around zero is its own negative

    @abstractmethod
    def penalty(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return sigma(-x y^T), what uncertainty costs at the policies x (m,), y (n,)."""

    @abstractmethod
    def worst_case(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a member R (m, n) that minimises x^T R y."""

    @abstractmethod
    def own_term(self, player: int, opponent: np.ndarray) -> tuple[Regularizer, float]:
        """Return the penalty as a function of one player's policy, the opponent's being fixed.

        player is 1 (rows) or 2 (columns). The penalty is the regulariser's value plus the constant.
        """

    @abstractmethod
    def rows_and_cols(self) -> tuple[Regularizer, Regularizer] | None:
        """Return the terms (in x, in y) whose sum is the penalty, or None if it does not split."""

    def describe(self) -> str:
        """Return the penalty in words, for error messages."""
        return f"penalty of {type(self).__name__}"

    def _policies(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return policy("x", x, self.shape[0]), policy("y", y, self.shape[1])

    def _opponent(self, player: int, opponent: np.ndarray) -> np.ndarray:
        if player not in (1, 2):
            raise ValueError(f"player must be 1 or 2, got {player}")
        return policy("opponent", opponent, self.shape[2 - player])


class _Decomposable(UncertaintySet):
    """A set whose penalty always splits: what one player sees follows from the two terms."""

    def penalty(self, x: np.ndarray, y: np.ndarray) -> float:
        x, y = self._policies(x, y)
        rows, cols = self.rows_and_cols()
        return rows.value(x) + cols.value(y)

    def own_term(self, player: int, opponent: np.ndarray) -> tuple[Regularizer, float]:
        opponent = self._opponent(player, opponent)
        rows, cols = self.rows_and_cols()
        return (rows, cols.value(opponent)) if player == 1 else (cols, rows.value(opponent))


@dataclass(frozen=True, eq=False)
class Box(UncertaintySet):
    """All R with low <= R <= high entry by entry ((s, a)-rectangular).

    Penalty -x^T low y: an ordinary bimatrix term, which splits only if low[a, b] = -(u_a + w_b).
    """

    low: np.ndarray
    high: np.ndarray

    def __post_init__(self):
        low = matrix("Box: low", self.low)
        high = matrix("Box: high", self.high, low.shape)
        above = np.argwhere(low > high)
        if above.size:
            a, b = above[0]
            raise ValueError(
                f"Box: low must be <= high, got low[{a},{b}] = {low[a, b]:g} > {high[a, b]:g}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def shape(self) -> tuple[int, int]:
        return self.low.shape

    def support(self, W: np.ndarray) -> float:
        W = matrix("W", W, self.shape)
        return float(np.maximum(self.low * W, self.high * W).sum())

    def maximizer(self, W: np.ndarray) -> np.ndarray:
        return np.where(matrix("W", W, self.shape) > 0, self.high, self.low)

    def contains(self, R: np.ndarray, tol: float = 1e-9) -> bool:
        R = matrix("R", R, self.shape)
        return bool((self.low - tol <= R).all() and (self.high + tol >= R).all())

    def negate(self) -> "Box":
        return Box(-self.high, -self.low)

    def penalty(self, x: np.ndarray, y: np.ndarray) -> float:
        x, y = self._policies(x, y)
        return float(-(x @ self.low @ y))

    def worst_case(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        self._policies(x, y)
        return self.low.copy()

    def own_term(self, player: int, opponent: np.ndarray) -> tuple[Regularizer, float]:
        opponent = self._opponent(player, opponent)
        low = self.low if player == 1 else self.low.T
        return LinearRegularizer(-(low @ opponent)), 0.0

    def rows_and_cols(self) -> tuple[Regularizer, Regularizer] | None:
        split = separable(-self.low)
        return None if split is None else (LinearRegularizer(split[0]), LinearRegularizer(split[1]))

    def describe(self) -> str:
        return "penalty of Box is -x^T low y and low is not of the form -(u_a + w_b)"


@dataclass(frozen=True, eq=False)
class EntrywiseBall(UncertaintySet):
    """All R whose entries have p-norm <= radius, taken as one vector of length m n.

    Penalty radius ||x||_{p*} ||y||_{p*}: a product, except the constant radius at p = inf.
    """

    shape: tuple[int, int]
    p: float
    radius: float

    def __post_init__(self):
        object.__setattr__(self, "shape", shape_of_game("EntrywiseBall", self.shape))
        object.__setattr__(self, "p", order_of_norm("EntrywiseBall", "p", self.p))
        object.__setattr__(self, "radius", non_negative("EntrywiseBall", "radius", self.radius))

    def support(self, W: np.ndarray) -> float:
        W = matrix("W", W, self.shape)
        return self.radius * float(vector_norm(W.ravel(), dual_order(self.p)))

    def maximizer(self, W: np.ndarray) -> np.ndarray:
        W = matrix("W", W, self.shape)
        return self.radius * dual_vector(W.ravel(), self.p).reshape(self.shape)

    def contains(self, R: np.ndarray, tol: float = 1e-9) -> bool:
        R = matrix("R", R, self.shape)
        return bool(vector_norm(R.ravel(), self.p) <= self.radius + tol)

    def penalty(self, x: np.ndarray, y: np.ndarray) -> float:
        x, y = self._policies(x, y)
        dual = dual_order(self.p)
        return self.radius * float(vector_norm(x, dual) * vector_norm(y, dual))

    def worst_case(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = self._policies(x, y)
        return -self.radius * np.outer(dual_vector(x, self.p), dual_vector(y, self.p))

    def own_term(self, player: int, opponent: np.ndarray) -> tuple[Regularizer, float]:
        opponent = self._opponent(player, opponent)
        dual = dual_order(self.p)
        return NormRegularizer(dual, self.radius * float(vector_norm(opponent, dual))), 0.0

    def rows_and_cols(self) -> tuple[Regularizer, Regularizer] | None:
        if np.isinf(self.p) or self.radius == 0:
            return ZeroRegularizer(), NormRegularizer(1, self.radius)
        return None

    def describe(self) -> str:
        if self.p == 1:
            return "penalty of EntrywiseBall(p=1) is r*max(x)*max(y), a product"
        dual = dual_order(self.p)
        return (
            f"penalty of EntrywiseBall(p={self.p:g}) is r*||x||_{dual:g}*||y||_{dual:g}, a product"
        )


@dataclass(frozen=True, eq=False)
class OperatorBall(UncertaintySet):
    """All R with induced norm ||R||_{p->q} <= radius.

    Penalty radius ||x||_{q*} ||y||_p. It splits for p = 1 (radius ||x||_{q*}, as ||y||_1 = 1) and
    for q = inf (radius ||y||_p). p = q = 1 is the largest column sum, p = q = inf the largest row
    sum. `support` of a W of rank above one, and `contains`, need p = 1, q = inf or p = q = 2; the
    norm is NP-hard to compute in general, so other pairs raise NotImplementedError.
    """

    shape: tuple[int, int]
    p: float
    q: float
    radius: float

    def __post_init__(self):
        object.__setattr__(self, "shape", shape_of_game("OperatorBall", self.shape))
        object.__setattr__(self, "p", order_of_norm("OperatorBall", "p", self.p))
        object.__setattr__(self, "q", order_of_norm("OperatorBall", "q", self.q))
        object.__setattr__(self, "radius", non_negative("OperatorBall", "radius", self.radius))

    def support(self, W: np.ndarray) -> float:
        W = matrix("W", W, self.shape)
        if self.p == 1:
            return self.radius * float(vector_norm(W, dual_order(self.q), axis=0).sum())
        if np.isinf(self.q):
            return self.radius * float(vector_norm(W, self.p, axis=1).sum())
        if self.p == self.q == 2:
            return self.radius * float(np.linalg.norm(W, ord="nuc"))
        u, v = self._rank_one(W)
        return self.radius * float(vector_norm(u, dual_order(self.q)) * vector_norm(v, self.p))

    def maximizer(self, W: np.ndarray) -> np.ndarray:
        W = matrix("W", W, self.shape)
        if self.p == 1:
            return self.radius * dual_vector(W, self.q, axis=0)
        if np.isinf(self.q):
            return self.radius * dual_vector(W, dual_order(self.p), axis=1)
        if self.p == self.q == 2:
            U, _, Vt = np.linalg.svd(W, full_matrices=False)
            return self.radius * U @ Vt
        return self._attaining(*self._rank_one(W))

    def _attaining(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The member g h^T, ||g||_q = ||h||_{p*} = 1, with the largest inner product with u v^T."""
        g, h = dual_vector(u, self.q), dual_vector(v, dual_order(self.p))
        return self.radius * np.outer(g, h)

    def _rank_one(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split W = u v^T, or refuse."""
        U, s, Vt = np.linalg.svd(W, full_matrices=False)
        if s.size > 1 and s[1] > RANK_ONE_TOLERANCE * s[0]:
            raise NotImplementedError(
                f"OperatorBall(p={self.p:g}, q={self.q:g}): the support function of a matrix of "
                "rank above one is implemented for p = 1, q = inf and p = q = 2"
            )
        return s[0] * U[:, 0], Vt[0]

    def contains(self, R: np.ndarray, tol: float = 1e-9) -> bool:
        R = matrix("R", R, self.shape)
        if self.p == 1:
            norm = vector_norm(R, self.q, axis=0).max()
        elif np.isinf(self.q):
            norm = vector_norm(R, dual_order(self.p), axis=1).max()
        elif self.p == self.q == 2:
            norm = np.linalg.norm(R, ord=2)
        else:
            raise NotImplementedError(
                f"OperatorBall(p={self.p:g}, q={self.q:g}): contains is implemented for p = 1, "
                "q = inf and p = q = 2"
            )
        return bool(norm <= self.radius + tol)

    def penalty(self, x: np.ndarray, y: np.ndarray) -> float:
        x, y = self._policies(x, y)
        return self.radius * float(vector_norm(x, dual_order(self.q)) * vector_norm(y, self.p))

    def worst_case(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = self._policies(x, y)
        return -self._attaining(x, y)

    def own_term(self, player: int, opponent: np.ndarray) -> tuple[Regularizer, float]:
        opponent = self._opponent(player, opponent)
        orders = (dual_order(self.q), self.p)
        own, other = orders if player == 1 else orders[::-1]
        return NormRegularizer(own, self.radius * float(vector_norm(opponent, other))), 0.0

    def rows_and_cols(self) -> tuple[Regularizer, Regularizer] | None:
        if self.p == 1:
            return NormRegularizer(dual_order(self.q), self.radius), ZeroRegularizer()
        if np.isinf(self.q) or self.radius == 0:
            return ZeroRegularizer(), NormRegularizer(self.p, self.radius)
        return None

    def describe(self) -> str:
        return (
            f"penalty of OperatorBall(p={self.p:g}, q={self.q:g}) is "
            f"r*||x||_{dual_order(self.q):g}*||y||_{self.p:g}, a product"
        )


@dataclass(frozen=True, eq=False)
class AdditiveBall(_Decomposable):
    """All R = u 1^T + 1 w^T with ||u||_p <= row_radius and ||w||_p <= col_radius.

    Each action has an uncertain bonus of its own. Penalty row_radius ||x||_{p*} +
    col_radius ||y||_{p*}, which always splits.
    """

    shape: tuple[int, int]
    p: float
    row_radius: float
    col_radius: float

    def __post_init__(self):
        object.__setattr__(self, "shape", shape_of_game("AdditiveBall", self.shape))
        object.__setattr__(self, "p", order_of_norm("AdditiveBall", "p", self.p))
        for name in ("row_radius", "col_radius"):
            value = non_negative("AdditiveBall", name, getattr(self, name))
            object.__setattr__(self, name, value)

    def support(self, W: np.ndarray) -> float:
        W = matrix("W", W, self.shape)
        dual = dual_order(self.p)
        rows = vector_norm(W.sum(axis=1), dual)
        cols = vector_norm(W.sum(axis=0), dual)
        return float(self.row_radius * rows + self.col_radius * cols)

    def maximizer(self, W: np.ndarray) -> np.ndarray:
        W = matrix("W", W, self.shape)
        u = self.row_radius * dual_vector(W.sum(axis=1), self.p)
        w = self.col_radius * dual_vector(W.sum(axis=0), self.p)
        return u[:, None] + w

    def contains(self, R: np.ndarray, tol: float = 1e-9) -> bool:
        R = matrix("R", R, self.shape)
        u = R.mean(axis=1)
        w = R.mean(axis=0) - R.mean()
        if np.abs(R - u[:, None] - w).max() > tol:
            return False
        # u and w are known only up to (u + c, w - c): R is a member if one c meets both bounds.
        rows = _shifts_within(u, self.p, self.row_radius + tol)
        cols = _shifts_within(-w, self.p, self.col_radius + tol)
        if rows is None or cols is None:
            return False
        return max(rows[0], cols[0]) <= min(rows[1], cols[1])

    def worst_case(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = self._policies(x, y)
        u = -self.row_radius * dual_vector(x, self.p)
        w = -self.col_radius * dual_vector(y, self.p)
        return u[:, None] + w

    def rows_and_cols(self) -> tuple[Regularizer, Regularizer]:
        dual = dual_order(self.p)
        return NormRegularizer(dual, self.row_radius), NormRegularizer(dual, self.col_radius)


def _shifts_within(u: np.ndarray, p: float, radius: float) -> tuple[float, float] | None:
    """Return the interval of all c with ||u + c||_p <= radius, or None if there is none."""
    if np.isinf(p):
        low, high = -radius - u.min(), radius - u.max()
        return (low, high) if low <= high else None
    if p == 1:
        best = -float(np.median(u))
    elif np.ptp(u) == 0:
        best = -float(u[0])
    else:
        # The derivative of ||u + c||_p^p has one root between the extreme entries.
        def slope(c):
            return float((np.sign(u + c) * np.abs(u + c) ** (p - 1)).sum())

        best = brentq(slope, -u.max(), -u.min(), xtol=1e-15)

    def excess(c):
        return float(vector_norm(u + c, p)) - radius

    if excess(best) > 0:
        return None
    # ||u + best + t|| >= |t| - ||u + best||, so a step of 2 radius + 1 is outside.
    step = 2 * radius + 1
    low = brentq(excess, best - step, best, xtol=1e-15)
    high = brentq(excess, best, best + step, xtol=1e-15)
    return low, high


@dataclass(frozen=True, eq=False)
class Singleton(_Decomposable):
    """The set {0}: rewards are known."""

    shape: tuple[int, int]

    def __post_init__(self):
        object.__setattr__(self, "shape", shape_of_game("Singleton", self.shape))

    def support(self, W: np.ndarray) -> float:
        matrix("W", W, self.shape)
        return 0.0

    def maximizer(self, W: np.ndarray) -> np.ndarray:
        matrix("W", W, self.shape)
        return np.zeros(self.shape)

    def contains(self, R: np.ndarray, tol: float = 1e-9) -> bool:
        return bool(np.abs(matrix("R", R, self.shape)).max() <= tol)

    def worst_case(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        self._policies(x, y)
        return np.zeros(self.shape)

    def rows_and_cols(self) -> tuple[Regularizer, Regularizer]:
        return ZeroRegularizer(), ZeroRegularizer()


class _PolicyDependent(_Decomposable):
    """A set that depends on one player's policy z: R >= -tau ln(z / reference) entry by entry.

    Its support function is finite only at minus the policies' product, so `support`, `maximizer`,
    `contains` and `negate` raise NotImplementedError.
    """

    shape: tuple[int, int]
    tau: float
    player: int

    def _check(self):
        name = type(self).__name__
        object.__setattr__(self, "shape", shape_of_game(name, self.shape))
        object.__setattr__(self, "tau", non_negative(name, "tau", self.tau))
        if self.player not in (1, 2):
            raise ValueError(f"{name}: player must be 1 or 2, got {self.player}")

    @abstractmethod
    def _term(self) -> EntropyRegularizer | KLRegularizer:
        """The penalty of the player whose policy the set depends on."""

    def rows_and_cols(self) -> tuple[Regularizer, Regularizer]:
        term, none = self._term(), ZeroRegularizer()
        return (term, none) if self.player == 1 else (none, term)

    def worst_case(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        own = self._policies(x, y)[self.player - 1]
        # An action of probability 0 has an infinite bound and weight 0: any finite entry serves.
        log_ratio = np.log(np.maximum(own, np.finfo(float).tiny))
        bound = -self.tau * (log_ratio - self._term().log_reference(own.size))
        return np.broadcast_to(bound[:, None] if self.player == 1 else bound, self.shape).copy()

    def _refuse(self, operation: str):
        raise NotImplementedError(
            f"{type(self).__name__} depends on the policy: {operation} is not defined without one, "
            "use penalty(x, y) or worst_case(x, y)"
        )

    def support(self, W: np.ndarray) -> float:
        self._refuse("support")

    def maximizer(self, W: np.ndarray) -> np.ndarray:
        self._refuse("maximizer")

    def contains(self, R: np.ndarray, tol: float = 1e-9) -> bool:
        self._refuse("contains")

    def negate(self) -> UncertaintySet:
        self._refuse("negate")


@dataclass(frozen=True, eq=False)
class EntropySet(_PolicyDependent):
    """All R with R[a, b] >= -tau ln x_a (player 1; ln y_b for player 2). Penalty tau sum x ln x."""

    shape: tuple[int, int]
    tau: float
    player: int = 1

    def __post_init__(self):
        self._check()

    def _term(self) -> EntropyRegularizer:
        return EntropyRegularizer(self.tau)


@dataclass(frozen=True, eq=False)
class KLSet(_PolicyDependent):
    """All R with R[a, b] >= -tau ln(x_a / reference_a) (y_b for player 2).

    Penalty tau KL(x || reference); reference is a positive distribution over the player's actions.
    """

    shape: tuple[int, int]
    tau: float
    reference: np.ndarray
    player: int = 1

    def __post_init__(self):
        self._check()
        term = KLRegularizer(self.tau, self.reference)
        if term.reference.size != self.shape[self.player - 1]:
            raise ValueError(
                f"KLSet: reference has {term.reference.size} entries, "
                f"must have {self.shape[self.player - 1]}"
            )
        object.__setattr__(self, "reference", term.reference)

    def _term(self) -> KLRegularizer:
        return KLRegularizer(self.tau, self.reference)
