"""Robust matrix games: values, Nash gaps, and the solvers of one stage.

Player i holds A_i (m x n, also player 2's) and an uncertainty set R_i, and values policies x, y by

    V_i(x, y) = min over R in R_i of x^T (A_i + R) y = x^T A_i y - pen_i(x, y).

A robust Nash equilibrium is a Nash equilibrium of these V_i. In a zero-sum robust game A_2 = -A_1
and R_2 = -R_1; both players are pessimistic, so V_1 + V_2 = -(pen_1 + pen_2) <= 0 for sets around
zero: the robust game is general-sum.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from retable.robustmg.arrays import (
    dual_order,
    matrix,
    non_negative,
    policy,
    separable,
    simplex,
    unit_scale,
)
from retable.robustmg.errors import NotDecomposableError, SolverError
from retable.robustmg.regularizers import (
    EntropyRegularizer,
    KLRegularizer,
    LinearRegularizer,
    NormRegularizer,
    Regularizer,
    ZeroRegularizer,
)
from retable.robustmg.uncertainty import Singleton, UncertaintySet

_NOTHING = ZeroRegularizer()
_HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_CLARABEL = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
_INACCURATE_GAP = 1e-7
"""Largest Nash gap, payoffs in [-1, 1], at which a cone solver's 'inaccurate' is an answer."""
_EXTRAGRADIENT_STEPS = 200_000


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Policies x (m,), y (n,), both players' values, the Nash gap, and how they were found.

    gap is the larger of the two players' gains from a best deviation. iterations are those of the
    solver (simplex pivots, cone steps, branch-and-bound nodes or extragradient steps); method is
    "lp", "socp", "milp" or "extragradient".
    """

    x: np.ndarray
    y: np.ndarray
    values: tuple[float, float]
    gap: float
    iterations: int
    method: str


@dataclass(frozen=True, eq=False)
class RobustMatrixGame:
    """A two-player game with payoffs (m, n) and one uncertainty set of rewards for each player.

    None stands for a player who knows the rewards.
    """

    payoff_1: np.ndarray
    payoff_2: np.ndarray
    set_1: UncertaintySet | None = None
    set_2: UncertaintySet | None = None

    def __post_init__(self):
        payoff_1 = matrix("payoff_1", self.payoff_1)
        object.__setattr__(self, "payoff_1", payoff_1)
        object.__setattr__(self, "payoff_2", matrix("payoff_2", self.payoff_2, payoff_1.shape))
        for name in ("set_1", "set_2"):
            uncertainty = getattr(self, name)
            if uncertainty is None:
                object.__setattr__(self, name, Singleton(payoff_1.shape))
            elif uncertainty.shape != payoff_1.shape:
                raise ValueError(f"{name} has shape {uncertainty.shape}, must be {payoff_1.shape}")

    @classmethod
    def zero_sum(
        cls, payoff: np.ndarray, set_1: UncertaintySet | None = None
    ) -> "RobustMatrixGame":
        """Return the game in which every member is zero-sum: A_2 = -A and R_2 = -R_1."""
        payoff = matrix("payoff", payoff)
        return cls(payoff, -payoff, set_1, None if set_1 is None else set_1.negate())

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n), the numbers of actions."""
        return self.payoff_1.shape

    def _players(self):
        return (self.payoff_1, self.set_1), (self.payoff_2, self.set_2)

    def values(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Return (V_1, V_2) by each player's explicit worst-case matrix."""
        x, y = policy("x", x, self.shape[0]), policy("y", y, self.shape[1])
        first, second = (float(x @ (a + r.worst_case(x, y)) @ y) for a, r in self._players())
        return first, second

    def regularized_values(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Return (V_1, V_2) by the support functions: payoff minus penalty (Theorem 3.1)."""
        x, y = policy("x", x, self.shape[0]), policy("y", y, self.shape[1])
        first, second = (float(x @ a @ y) - r.penalty(x, y) for a, r in self._players())
        return first, second

    def best_response(self, player: int, opponent: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a player's best policy against a fixed opponent, and its robust value.

        player is 1 (rows) or 2 (columns); the closed forms of the regularised game.
        """
        if player not in (1, 2):
            raise ValueError(f"player must be 1 or 2, got {player}")
        opponent = policy("opponent", opponent, self.shape[2 - player])
        payoff, uncertainty = self._players()[player - 1]
        own, other = uncertainty.own_term(player, opponent)
        response, value = own.best_response((payoff if player == 1 else payoff.T) @ opponent)
        return response, value - other

    def gaps(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Return what each player gains by a best deviation from x (m,), y (n,); both >= 0."""
        current = self.regularized_values(x, y)
        best = self.best_response(1, y)[1], self.best_response(2, x)[1]
        # The policy itself is a deviation; without the maximum, rounding gives -1e-17.
        return max(best[0] - current[0], 0.0), max(best[1] - current[1], 0.0)

    def nash_gap(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the larger of the two gaps; 0 exactly at a robust Nash equilibrium."""
        return max(self.gaps(x, y))


def solve(game: RobustMatrixGame, tol: float = 1e-9) -> Equilibrium:
    """Return a robust Nash equilibrium of a decomposable zero-sum game (Lemma 4.2).

    With pen_1 = O_11(x) + O_12(y), pen_2 = O_21(x) + O_22(y) and A_1 + A_2 = u 1^T + 1 w^T, terms
    in the opponent's policy change no best response, so the equilibria are the saddle points of
    x^T (A_1 - 1 w^T) y - O_11(x) + O_22(y). tol is the Nash gap at which extragradient stops.

    Raises NotDecomposableError when a penalty or the sum of the payoffs does not split. A Box game
    is then the bimatrix game (A_1 + low_1, A_2 + low_2), for solve_bimatrix.
    """
    payoff, rows, cols = _saddle_of(game)
    saddle = solve_zero_sum(payoff, rows, cols, tol)
    x, y = saddle.x, saddle.y
    return Equilibrium(
        x, y, game.values(x, y), game.nash_gap(x, y), saddle.iterations, saddle.method
    )


def _saddle_of(game: RobustMatrixGame) -> tuple[np.ndarray, Regularizer, Regularizer]:
    """Return (payoff, rows, cols) of the saddle function, or say why there is none."""
    split_1, split_2 = game.set_1.rows_and_cols(), game.set_2.rows_and_cols()
    for uncertainty, split in ((game.set_1, split_1), (game.set_2, split_2)):
        if split is None:
            raise NotDecomposableError(
                f"solve: {uncertainty.describe()}; use nash_gap to check a candidate"
            )
    largest = float(max(np.abs(game.payoff_1).max(), np.abs(game.payoff_2).max()))
    total = separable(game.payoff_1 + game.payoff_2, scale=largest)
    if total is None:
        raise NotDecomposableError(
            "solve: payoff_1 + payoff_2 is not of the form u_a + w_b, the game is general-sum; "
            "use nash_gap to check a candidate"
        )
    return game.payoff_1 - total[1], split_1[0], split_2[1]


def solve_zero_sum(
    payoff: np.ndarray,
    rows: Regularizer = _NOTHING,
    cols: Regularizer = _NOTHING,
    tol: float = 1e-9,
) -> Equilibrium:
    """Return a saddle point of max_x min_y x^T payoff y - rows(x) + cols(y).

    values are (v, -v) and gap is that of this zero-sum game. Norms of order 1 and inf, linear terms
    and nothing make a linear program; entropy or KL of both players extragradient; the rest a cone
    program. Raises SolverError when a solver does not find the optimum.
    """
    payoff = matrix("payoff", payoff)
    folded, own_rows, own_cols = payoff, _simplified(rows), _simplified(cols)
    # On the simplex g.x = x^T (g 1^T) y, so a linear term is part of the matrix.
    if isinstance(own_rows, LinearRegularizer):
        folded, own_rows = folded - own_rows.c[:, None], _NOTHING
    if isinstance(own_cols, LinearRegularizer):
        folded, own_cols = folded + own_cols.c, _NOTHING
    centre, scale = unit_scale(folded, _strength(own_rows), _strength(own_cols))
    folded = (folded - centre) / scale
    own_rows, own_cols = _divided(own_rows, scale), _divided(own_cols, scale)
    weights = _top_weight(own_rows), _top_weight(own_cols)
    if None not in weights:
        x, y, iterations = _saddle_lp(folded, *weights)
        method = "lp"
    elif _is_entropic(own_rows) and _is_entropic(own_cols):
        x, y, iterations = _saddle_extragradient(folded, own_rows, own_cols, tol / scale)
        method = "extragradient"
    else:
        x, y, iterations = _saddle_cone(folded, own_rows, own_cols)
        method = "socp"
    value = float(x @ payoff @ y) - rows.value(x) + cols.value(y)
    return Equilibrium(
        x, y, (value, -value), _saddle_gap(payoff, rows, cols, x, y), iterations, method
    )


def _saddle_gap(payoff, rows, cols, x, y) -> float:
    """The larger gain of one player by a best deviation in the saddle function."""
    gain_1 = rows.best_response(payoff @ y)[1] - (float(x @ payoff @ y) - rows.value(x))
    gain_2 = cols.best_response(-(x @ payoff))[1] + float(x @ payoff @ y) + cols.value(y)
    return max(gain_1, gain_2, 0.0)


def _simplified(term: Regularizer) -> Regularizer:
    """Drop what is constant on the simplex: weight 0, tau 0 and norms of order 1."""
    constant = (isinstance(term, NormRegularizer) and (term.weight == 0 or term.order == 1)) or (
        _is_entropic(term) and term.tau == 0
    )
    return _NOTHING if constant else term


def _strength(term: Regularizer) -> float:
    """The weight or the temperature of a term."""
    if isinstance(term, NormRegularizer):
        return term.weight
    return term.tau if _is_entropic(term) else 0.0


def _divided(term: Regularizer, scale: float) -> Regularizer:
    """The term in units of the payoff's scale."""
    if isinstance(term, NormRegularizer):
        return replace(term, weight=term.weight / scale)
    return replace(term, tau=term.tau / scale) if _is_entropic(term) else term


def _is_entropic(term: Regularizer) -> bool:
    return isinstance(term, EntropyRegularizer | KLRegularizer)


def _top_weight(term: Regularizer) -> float | None:
    """Return w where the term is w * max(x), or None where it is something else."""
    if isinstance(term, ZeroRegularizer):
        return 0.0
    if isinstance(term, NormRegularizer) and np.isinf(term.order):
        return term.weight
    return None


def _linprog(*args, **kwargs):
    result = linprog(*args, **kwargs, method="highs-ds", options=_HIGHS)
    if result.status != 0:
        raise SolverError(f"HiGHS did not report optimal: {result.message}")
    return result


def _saddle_lp(a: np.ndarray, row_weight: float, col_weight: float):
    """max_x min_y x^T a y - row_weight max(x) + col_weight max(y), as one linear program.

    max  v - row_weight s   s.t.  v - z_j <= (a^T x)_j,  sum(z) <= col_weight,  x_i <= s,
    sum(x) = 1, all but v non-negative. y is the dual of the first constraints.
    """
    m, n = a.shape
    # Variables: x (m), v, s, z (n).
    cost = np.concatenate([np.zeros(m), [-1.0, row_weight], np.zeros(n)])
    cover = np.hstack([-a.T, np.ones((n, 1)), np.zeros((n, 1)), -np.eye(n)])
    top = np.hstack([np.eye(m), np.zeros((m, 1)), -np.ones((m, 1)), np.zeros((m, n))])
    spend = np.concatenate([np.zeros(m + 2), np.ones(n)])[None]
    result = _linprog(
        cost,
        A_ub=np.vstack([cover, top, spend]),
        b_ub=np.concatenate([np.zeros(n + m), [col_weight]]),
        A_eq=np.concatenate([np.ones(m), np.zeros(n + 2)])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None), (0, None)] + [(0, None)] * n,
    )
    # Marginals of a <= row are non-positive in a minimisation.
    return simplex(result.x[:m]), simplex(-result.ineqlin.marginals[:n]), int(result.nit)


def _saddle_cone(a: np.ndarray, rows: Regularizer, cols: Regularizer):
    """The saddle point as a cone program in x, by cvxpy and Clarabel.

    The inner minimum is a maximum by duality: min_y c.y + w||y||_q is the largest v with
    (c - v)_- inside the dual ball, and min_y c.y + tau KL(y || mu) is -tau ln sum mu exp(-c/tau).
    """
    import cvxpy as cp

    m, n = a.shape
    x = cp.Variable(m, nonneg=True)
    c = cp.Variable(n)
    # y is the price of this constraint: a dual solution is accurate to the solver's tolerance,
    # while a soft best response to x would only be to its root.
    cover = c <= a.T @ x
    constraints = [cp.sum(x) == 1, cover]
    if _is_entropic(cols):
        inner = -cols.tau * cp.log_sum_exp(cols.log_reference(n) - c / cols.tau)
    elif isinstance(cols, NormRegularizer):
        inner, z = cp.Variable(), cp.Variable(n, nonneg=True)
        constraints += [inner - z <= c, cp.pnorm(z, dual_order(cols.order)) <= cols.weight]
    else:
        inner = cp.min(c)
    if _is_entropic(rows):
        penalty = rows.tau * cp.sum(cp.rel_entr(x, np.exp(rows.log_reference(m))))
    elif isinstance(rows, NormRegularizer):
        penalty = rows.weight * cp.pnorm(x, rows.order)
    else:
        penalty = 0.0
    problem = cp.Problem(cp.Maximize(inner - penalty), constraints)
    problem.solve(solver=cp.CLARABEL, **_CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverError(f"Clarabel did not report optimal: {problem.status}")
    policy_1, policy_2 = simplex(x.value), simplex(cover.dual_value)
    if problem.status == cp.OPTIMAL_INACCURATE:
        gap = _saddle_gap(a, rows, cols, policy_1, policy_2)
        if gap > _INACCURATE_GAP:
            raise SolverError(f"Clarabel stopped at {problem.status} with a Nash gap of {gap:.3g}")
    return policy_1, policy_2, int(problem.solver_stats.num_iters)


def _saddle_extragradient(a: np.ndarray, rows: Regularizer, cols: Regularizer, tol: float):
    """Extragradient on log-policies for entropy or KL of both players; linear for tau > 0.

    log x <- (1 - eta tau) log x + eta (a y + tau log mu), with y first the current and then the
    predicted opponent.
    """
    m, n = a.shape
    scale = max(float(np.abs(a).max()), np.finfo(float).tiny)
    eta = min(1 / (2 * max(rows.tau, cols.tau)), 1 / (4 * scale))
    pull_1, pull_2 = rows.tau * rows.log_reference(m), cols.tau * cols.log_reference(n)
    log_x, log_y = np.zeros(m), np.zeros(n)

    def softmax(logits: np.ndarray) -> np.ndarray:
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    def step_1(y: np.ndarray) -> np.ndarray:
        return (1 - eta * rows.tau) * log_x + eta * (a @ y + pull_1)

    def step_2(x: np.ndarray) -> np.ndarray:
        return (1 - eta * cols.tau) * log_y + eta * (pull_2 - x @ a)

    for iteration in range(1, _EXTRAGRADIENT_STEPS + 1):
        x, y = softmax(log_x), softmax(log_y)
        x_ahead, y_ahead = softmax(step_1(y)), softmax(step_2(x))
        log_x, log_y = step_1(y_ahead), step_2(x_ahead)
        # The exact soft best responses to the current policies polish the answer.
        x, y = softmax(log_x), softmax(log_y)
        x, y = rows.best_response(a @ y)[0], cols.best_response(-(x @ a))[0]
        if _saddle_gap(a, rows, cols, x, y) <= tol:
            return x, y, iteration
    raise SolverError(
        f"extragradient did not reach a Nash gap of {tol:g} in {_EXTRAGRADIENT_STEPS} steps"
    )


def solve_bimatrix(
    q1: np.ndarray, q2: np.ndarray, row_weight: float = 0.0, col_weight: float = 0.0
) -> Equilibrium:
    """Return one equilibrium of x^T q1 y - row_weight max(x), x^T q2 y - col_weight max(y).

    Exact, for small games: a mixed-integer program over both players' optimality conditions finds
    the supports, a linear program on these supports the policies. The time grows exponentially
    with the number of actions in the worst case (no better is known: the problem is PPAD-hard).
    values are those of the two functions above; raises SolverError when HiGHS finds no point.
    """
    q1 = matrix("q1", q1)
    q2 = matrix("q2", q2, q1.shape)
    row_weight = non_negative("solve_bimatrix", "row_weight", row_weight)
    col_weight = non_negative("solve_bimatrix", "col_weight", col_weight)
    m, n = q1.shape
    (centre_1, scale_1), (centre_2, scale_2) = (
        unit_scale(q1, row_weight),
        unit_scale(q2, col_weight),
    )
    program = _BimatrixProgram(
        (q1 - centre_1) / scale_1,
        (q2 - centre_2) / scale_2,
        row_weight / scale_1,
        col_weight / scale_2,
    )
    found = milp(
        np.zeros(program.size),
        constraints=[
            LinearConstraint(program.a_ub, -np.inf, program.b_ub),
            LinearConstraint(program.a_eq, program.b_eq, program.b_eq),
        ],
        integrality=program.integrality,
        bounds=Bounds(program.low, program.high),
    )
    if found.status != 0:
        raise SolverError(f"HiGHS did not report optimal: {found.message}")
    # HiGHS accepts binaries that are off by 1e-6, which a big-M row would turn into a gap; on fixed
    # supports the conditions are linear. The two gaps decide which of the points is the answer.
    polished = linprog(
        np.zeros(program.size),
        A_ub=program.a_ub,
        b_ub=program.b_ub,
        A_eq=program.a_eq,
        b_eq=program.b_eq,
        bounds=np.transpose(program.fixed(found.x)),
        method="highs-ds",
        options=_HIGHS,
    )
    row_term, col_term = NormRegularizer(np.inf, row_weight), NormRegularizer(np.inf, col_weight)

    def outcome(point: np.ndarray):
        x, y = simplex(point[:m]), simplex(point[m : m + n])
        values = (
            float(x @ q1 @ y) - row_term.value(x),
            float(x @ q2 @ y) - col_term.value(y),
        )
        best = row_term.best_response(q1 @ y)[1], col_term.best_response(x @ q2)[1]
        return max(best[0] - values[0], best[1] - values[1], 0.0), x, y, values

    points = [found.x] if polished.status != 0 else [found.x, polished.x]
    gap, x, y, values = min(map(outcome, points), key=lambda candidate: candidate[0])
    return Equilibrium(x, y, values, gap, int(found.mip_node_count), "milp")


class _BimatrixProgram:
    """Both players' optimality conditions as one mixed-integer feasibility program.

    x is a best response to c = q1 y under the penalty w max(x) iff for some level v and lam >= 0,
    sum(lam) = w: c_i - lam_i <= v, with equality where x_i > 0, and lam_i > 0 only where x_i is
    max(x). Binaries say which actions are played and which are at the top. Variables in order:
    x, y, then for each player v, top, lam, played, topped.
    """

    def __init__(self, q1, q2, row_weight, col_weight):
        m, n = q1.shape
        self.size = (m + n) + (2 + 3 * m) + (2 + 3 * n)
        x, y = np.arange(m), m + np.arange(n)
        conditions = [
            self._conditions(q1, row_weight, x, y, m + n),
            self._conditions(q2.T, col_weight, y, x, m + n + 2 + 3 * m),
        ]
        self.a_ub = np.vstack([c[0] for c in conditions])
        self.b_ub = np.concatenate([c[1] for c in conditions])
        self.a_eq = np.vstack([c[2] for c in conditions])
        self.b_eq = np.concatenate([c[3] for c in conditions])
        self.integrality = np.zeros(self.size)
        self.low, self.high = np.zeros(self.size), np.full(self.size, np.inf)
        for _, _, _, _, level, binaries in conditions:
            self.low[level] = -np.inf
            self.integrality[binaries] = 1
            self.high[binaries] = 1

    def _conditions(self, q, weight, own, other, start):
        k = len(own)
        level, top = start, start + 1
        lam = start + 2 + np.arange(k)
        played, topped = lam + k, lam + 2 * k
        big = np.ptp(q) + 2 * weight + 1
        each = np.arange(k)

        def block(*entries):
            rows = np.zeros((k, self.size))
            for columns, coefficient in entries:
                rows[each, columns] += coefficient
            return rows

        reward = np.zeros((k, self.size))
        reward[:, other] = q
        rows = [
            (reward + block((lam, -1.0), (level, -1.0)), 0.0),
            (block((lam, 1.0), (level, 1.0), (played, big)) - reward, big),
            (block((own, 1.0), (played, -1.0)), 0.0),
            (block((lam, 1.0), (topped, -weight)), 0.0),
            (block((top, 1.0), (own, -1.0), (topped, 1.0)), 1.0),
            (block((own, 1.0), (top, -1.0)), 0.0),
        ]
        sums = np.zeros((2, self.size))
        sums[0, own] = 1.0
        sums[1, lam] = 1.0
        return (
            np.vstack([a for a, _ in rows]),
            np.repeat([b for _, b in rows], k),
            sums,
            np.array([1.0, weight]),
            level,
            np.concatenate([played, topped]),
        )

    def fixed(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds with the binaries fixed at a point's rounded values."""
        binary = self.integrality > 0
        rounded = np.round(point)
        return np.where(binary, rounded, self.low), np.where(binary, rounded, self.high)


def count_vertices(b: np.ndarray, c: np.ndarray) -> int:
    """Return how many vertices of both best-response polytopes enumerate_equilibria looks at.

    b, c: (m, n), at least two actions each.
    """
    from nashpy.polytope import build_halfspaces, non_trivial_vertices

    game = _bounded(matrix("b", b), matrix("c", c))
    polytopes = build_halfspaces(game.payoff_2.T), build_halfspaces(game.payoff_1)
    return sum(1 for halfspaces in polytopes for _ in non_trivial_vertices(halfspaces))


def _bounded(b: np.ndarray, c: np.ndarray) -> RobustMatrixGame:
    """The same game with payoffs in [1, 3]: strictly positive ones bound both polytopes."""
    (centre_b, scale_b), (centre_c, scale_c) = unit_scale(b), unit_scale(c)
    return RobustMatrixGame((b - centre_b) / scale_b + 2, (c - centre_c) / scale_c + 2)


def enumerate_equilibria(b: np.ndarray, c: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return all extreme equilibria (x, y) of the bimatrix game (b, c), both m x n.

    All equilibria, when the game is non-degenerate. By vertex enumeration, so exponential in the
    number of actions; pairs that rounding made look complete are refused by their Nash gap.
    """
    b = matrix("b", b)
    c = matrix("c", c, b.shape)
    game = _bounded(b, c)
    if 1 in b.shape:
        # One player has no choice and the polytopes have no interior: every best reply is pure.
        m, n = b.shape
        pairs = [(np.eye(m)[i], np.eye(n)[j]) for i in range(m) for j in range(n)]
    else:
        from nashpy import Game

        pairs = Game(game.payoff_1, game.payoff_2).vertex_enumeration()
    distinct: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}
    for x, y in pairs:
        x, y = simplex(np.asarray(x)), simplex(np.asarray(y))
        if game.nash_gap(x, y) <= 1e-8:
            distinct.setdefault(tuple(np.round(np.concatenate([x, y]), 7)), (x, y))
    return list(distinct.values())
