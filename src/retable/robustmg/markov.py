"""Robust Markov games over a finite horizon: evaluation, Nash gaps and planning.

With reward sets that are rectangular per state and transition sets per (state, joint action), the
worst case over the whole game is a recursion (Proposition B.1). For steps h = H-1, ..., 0, states s
and V_{i,H} = 0:

    V_{i,h}(s) = x^T Q_{i,h}(s) y - pen_{i,h,s}(x, y),
    Q_{i,h}(s)[a, b] = r_{i,h}(s, a, b) + min over p in P_{h,s,a,b} of p . V_{i,h+1}.

Each player has its own V. Planning is backward induction over equilibria of these regularised stage
games (Theorem 3.6).

A stage before the last is a zero-sum game in disguise only if Q_1 + Q_2 = u_a + w_b. That sum is
the expected accumulated penalty, so it holds (a) for horizon 1, (b) if the penalties are constants
that do not depend on the state, (c) if the transitions are separable, for instance moved by one
player alone. Otherwise stages are general-sum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from retable.robustmg.arrays import POLICY_TOLERANCE, finite
from retable.robustmg.errors import NotDecomposableError
from retable.robustmg.matrix import (
    Equilibrium,
    RobustMatrixGame,
    solve,
    solve_bimatrix,
    solve_zero_sum,
)
from retable.robustmg.regularizers import LinearRegularizer, NormRegularizer, ZeroRegularizer
from retable.robustmg.transitions import TransitionSet, check_distributions
from retable.robustmg.uncertainty import Box, Singleton, UncertaintySet

STAGES = ("auto", "lp", "milp")

Sets = Sequence[UncertaintySet | None] | Sequence[Sequence[UncertaintySet | None]] | None


@dataclass(frozen=True, eq=False)
class RobustMarkovGame:
    """A two-player Markov game with uncertain rewards and transitions.

    rewards_1, rewards_2: (H, S, m, n), or (S, m, n) with horizon for games that do not change with
    time. transitions: (H, S, m, n, S) or (S, m, n, S), rows summing to 1. reward_sets_1,
    reward_sets_2: nested sequences [H][S] or [S] of sets (None: known). transition_set: None
    (known), or a ball whose radius broadcasts against transitions.shape[:-1].

    After construction every array has its leading H and the sets are tuples [H][S].
    """

    rewards_1: np.ndarray
    rewards_2: np.ndarray
    transitions: np.ndarray
    reward_sets_1: Sets = None
    reward_sets_2: Sets = None
    transition_set: TransitionSet | None = None
    horizon: int | None = None

    def __post_init__(self):
        rewards_1 = self._with_steps("rewards_1", self.rewards_1, 3)
        rewards_2 = self._with_steps("rewards_2", self.rewards_2, 3)
        if rewards_1.shape != rewards_2.shape:
            raise ValueError(f"rewards_2 has shape {rewards_2.shape}, must be {rewards_1.shape}")
        steps, states, _, _ = rewards_1.shape
        given = np.asarray(self.transitions, dtype=np.float64)
        transitions = self._with_steps("transitions", given, 4, steps)
        expected = (*rewards_1.shape, states)
        if transitions.shape != expected:
            raise ValueError(f"transitions has shape {given.shape}, must be {expected}[-4:] or so")
        check_distributions("transitions", given)
        object.__setattr__(self, "rewards_1", rewards_1)
        object.__setattr__(self, "rewards_2", rewards_2)
        object.__setattr__(self, "transitions", transitions)
        object.__setattr__(self, "horizon", steps)
        for name in ("reward_sets_1", "reward_sets_2"):
            object.__setattr__(self, name, self._sets(name, getattr(self, name)))
        if self.transition_set is not None:
            self._check_transition_set(given.shape[:-1])

    def _with_steps(self, name, value, ndim, steps=None) -> np.ndarray:
        """Give an array its leading axis of steps."""
        array = np.asarray(value, dtype=np.float64)
        if array.ndim == ndim + 1:
            array = finite(name, array, ndim + 1)
            wanted = steps if steps is not None else self.horizon
            if wanted is not None and array.shape[0] != wanted:
                raise ValueError(f"{name} has {array.shape[0]} steps, horizon is {wanted}")
            return array
        if array.ndim != ndim:
            raise ValueError(f"{name} must have {ndim} or {ndim + 1} axes, got shape {array.shape}")
        wanted = steps if steps is not None else self.horizon
        if wanted is None or int(wanted) != wanted or wanted < 1:
            raise ValueError(
                f"{name} of shape {array.shape} has no axis of steps, so horizon must be an "
                f"integer >= 1, got {wanted}"
            )
        array = finite(name, array, ndim)
        return np.broadcast_to(array, (int(wanted), *array.shape))

    def _sets(self, name, sets) -> tuple[tuple[UncertaintySet, ...], ...]:
        """Bring reward sets into the form [H][S], known rewards as Singleton."""
        steps, states, m, n = self.rewards_1.shape
        if sets is None:
            sets = [None] * states
        flat = all(entry is None or isinstance(entry, UncertaintySet) for entry in sets)
        nested = [list(sets)] * steps if flat else [list(row) for row in sets]
        lengths = {len(row) for row in nested}
        if len(nested) != steps or lengths != {states}:
            raise ValueError(
                f"{name} must be a sequence of {states} sets, or of {steps} sequences of {states}, "
                f"got {len(nested)} of lengths {sorted(lengths)}"
            )
        for h, row in enumerate(nested):
            for s, entry in enumerate(row):
                if entry is not None and not isinstance(entry, UncertaintySet):
                    raise ValueError(
                        f"{name}[{h}][{s}] must be an UncertaintySet or None, got {entry!r}"
                    )
                if entry is not None and entry.shape != (m, n):
                    raise ValueError(f"{name}[{h}][{s}] has shape {entry.shape}, must be {(m, n)}")
        known = Singleton((m, n))
        return tuple(tuple(known if entry is None else entry for entry in row) for row in nested)

    def _check_transition_set(self, batch: tuple[int, ...]):
        if not isinstance(self.transition_set, TransitionSet):
            raise ValueError(
                f"transition_set must be a TransitionSet or None, got {self.transition_set!r}"
            )
        # A radius for each (h, s, a, b) is welcome also where the transitions do not depend on h.
        target = self.transitions.shape[:-1]
        try:
            np.broadcast_to(self.transition_set.radius, target)
        except ValueError:
            raise ValueError(
                f"transition_set: radius has shape {self.transition_set.radius.shape}, must "
                f"broadcast to {batch} or {target}"
            ) from None

    @classmethod
    def zero_sum(
        cls,
        rewards: np.ndarray,
        transitions: np.ndarray,
        reward_sets_1: Sets = None,
        transition_set: TransitionSet | None = None,
        horizon: int | None = None,
    ) -> "RobustMarkovGame":
        """Return the game whose every member is zero-sum: r_2 = -r_1 and R_2 = -R_1."""
        return cls(
            rewards,
            -np.asarray(rewards, dtype=np.float64),
            transitions,
            reward_sets_1,
            _negated(reward_sets_1),
            transition_set,
            horizon,
        )

    @property
    def states(self) -> int:
        """The number of states S."""
        return self.rewards_1.shape[1]

    @property
    def actions(self) -> tuple[int, int]:
        """(m, n), the numbers of actions."""
        return self.rewards_1.shape[2:]

    def continuation(self, h: int, v: np.ndarray) -> np.ndarray:
        """Return the least p . v over the transition set at step h, (S, m, n), for v (S,)."""
        nominal = self.transitions[h]
        if self.transition_set is None:
            return nominal @ v
        at_step = self.transition_set.at(h, self.transitions.shape[:-1])
        return at_step.worst_case(nominal, v)[0]

    def stage_payoffs(self, h: int, v_1: np.ndarray, v_2: np.ndarray):
        """Return (Q_1, Q_2), each (S, m, n), at step h for the values (S,) of the next step."""
        return (
            self.rewards_1[h] + self.continuation(h, v_1),
            self.rewards_2[h] + self.continuation(h, v_2),
        )

    def stages(
        self, h: int, v_1: np.ndarray, v_2: np.ndarray
    ) -> Iterator[tuple[int, RobustMatrixGame]]:
        """Yield (s, regularised stage game) at step h for the values (S,) of the next step."""
        q_1, q_2 = self.stage_payoffs(h, v_1, v_2)
        for s in range(self.states):
            yield (
                s,
                RobustMatrixGame(
                    q_1[s], q_2[s], self.reward_sets_1[h][s], self.reward_sets_2[h][s]
                ),
            )


def _negated(sets: Sets) -> Sets:
    """The same nested sequence with every set negated."""
    if sets is None:
        return None
    return [
        entry
        if entry is None
        else entry.negate()
        if isinstance(entry, UncertaintySet)
        else _negated(entry)
        for entry in sets
    ]


@dataclass(frozen=True, eq=False)
class MarkovEquilibrium:
    """A Markov policy for each player, and how its stages were solved.

    policy_1 (H, S, m), policy_2 (H, S, n); values (2, H+1, S) of players 1 and 2; gap the robust
    Nash gap; stage_methods (H, S) of "lp", "socp", "milp", "extragradient"; iterations (H, S).
    """

    policy_1: np.ndarray
    policy_2: np.ndarray
    values: np.ndarray
    gap: float
    stage_methods: np.ndarray
    iterations: np.ndarray


def _markov_policy(name: str, value: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    policy = finite(name, value, 3)
    if policy.shape != shape:
        raise ValueError(f"{name} has shape {policy.shape}, must be {shape}")
    off = np.argwhere(
        (policy.min(axis=-1) < -POLICY_TOLERANCE)
        | (np.abs(policy.sum(axis=-1) - 1) > POLICY_TOLERANCE)
    )
    if off.size:
        h, s = off[0]
        raise ValueError(
            f"{name}[{h},{s}] must be >= 0 and sum to 1, got smallest entry "
            f"{policy[h, s].min():g} and sum {policy[h, s].sum():.10g}"
        )
    return policy


def _policies(game: RobustMarkovGame, policy_1: np.ndarray, policy_2: np.ndarray):
    m, n = game.actions
    lead = (game.horizon, game.states)
    return (
        _markov_policy("policy_1", policy_1, (*lead, m)),
        _markov_policy("policy_2", policy_2, (*lead, n)),
    )


def evaluate(game: RobustMarkovGame, policy_1: np.ndarray, policy_2: np.ndarray) -> np.ndarray:
    """Return both players' robust values (2, H+1, S) of a joint Markov policy.

    policy_1 (H, S, m), policy_2 (H, S, n). By the explicit worst-case matrix of every stage.
    """
    policy_1, policy_2 = _policies(game, policy_1, policy_2)
    values = np.zeros((2, game.horizon + 1, game.states))
    for h in reversed(range(game.horizon)):
        for s, stage in game.stages(h, *values[:, h + 1]):
            values[:, h, s] = stage.values(policy_1[h, s], policy_2[h, s])
    return values


def nash_gap(game: RobustMarkovGame, policy_1: np.ndarray, policy_2: np.ndarray) -> float:
    """Return the most that a player gains from any step and state on by deviating from there on.

    policy_1 (H, S, m), policy_2 (H, S, n). The best deviation is found by robust dynamic
    programming against the fixed opponent. 0 exactly at a robust Markov perfect equilibrium.
    """
    policy_1, policy_2 = _policies(game, policy_1, policy_2)
    return _nash_gap(game, policy_1, policy_2, evaluate(game, policy_1, policy_2))


def _nash_gap(game, policy_1, policy_2, values) -> float:
    best = np.zeros_like(values)
    for h in reversed(range(game.horizon)):
        for s, stage in game.stages(h, *best[:, h + 1]):
            best[0, h, s] = stage.best_response(1, policy_2[h, s])[1]
            best[1, h, s] = stage.best_response(2, policy_1[h, s])[1]
    return max(float((best - values).max()), 0.0)


def _backward(game: RobustMarkovGame, solve_stage) -> MarkovEquilibrium:
    """Backward induction with one solver for the stages."""
    steps, states, (m, n) = game.horizon, game.states, game.actions
    policy_1, policy_2 = np.zeros((steps, states, m)), np.zeros((steps, states, n))
    values = np.zeros((2, steps + 1, states))
    methods = np.full((steps, states), "", dtype="<U13")
    iterations = np.zeros((steps, states), dtype=np.int64)
    for h in reversed(range(steps)):
        for s, stage in game.stages(h, *values[:, h + 1]):
            found = solve_stage(stage, h, s)
            policy_1[h, s], policy_2[h, s] = found.x, found.y
            values[:, h, s] = stage.values(found.x, found.y)
            methods[h, s], iterations[h, s] = found.method, found.iterations
    gap = _nash_gap(game, policy_1, policy_2, values)
    return MarkovEquilibrium(policy_1, policy_2, values, gap, methods, iterations)


def plan(game: RobustMarkovGame, stage: str = "auto", tol: float = 1e-9) -> MarkovEquilibrium:
    """Return a robust Markov perfect equilibrium by backward induction (Theorem 3.6).

    stage: "lp" solves every stage as a decomposable zero-sum game, "milp" as a bimatrix game by
    mixed-integer programming, "auto" the first where it can and else the second. tol is the Nash
    gap of stages that are solved by extragradient. Raises NotDecomposableError, naming the step and
    the state, where a stage has no such route.
    """
    if stage not in STAGES:
        raise ValueError(f"plan: stage must be one of {', '.join(STAGES)}, got {stage!r}")

    def solve_stage(game: RobustMatrixGame, h: int, s: int) -> Equilibrium:
        refusal = None
        if stage != "milp":
            try:
                return solve(game, tol)
            except NotDecomposableError as error:
                refusal = error
        if stage != "lp":
            folded = _as_bimatrix(game)
            if folded is not None:
                return solve_bimatrix(*folded)
        why = refusal or "a penalty is neither a Box nor a multiple of max(x) or max(y)"
        raise NotDecomposableError(f"plan: step {h}, state {s}: {why}") from refusal

    return _backward(game, solve_stage)


def _as_bimatrix(game: RobustMatrixGame):
    """Return (q1, q2, row_weight, col_weight) with the same best responses, or None."""
    rows = _own_part(game.set_1, 1)
    cols = _own_part(game.set_2, 2)
    if rows is None or cols is None:
        return None
    return game.payoff_1 + rows[0], game.payoff_2 + cols[0], rows[1], cols[1]


def _own_part(uncertainty: UncertaintySet, player: int) -> tuple[np.ndarray, float] | None:
    """Return (matrix to add, weight of max) for a penalty as its own player's choice sees it."""
    if isinstance(uncertainty, Box):
        return uncertainty.low, 0.0
    split = uncertainty.rows_and_cols()
    if split is None:
        return None
    own = split[player - 1]
    nothing = np.zeros(uncertainty.shape)
    if isinstance(own, ZeroRegularizer):
        return nothing, 0.0
    if isinstance(own, LinearRegularizer):
        return nothing - (own.c[:, None] if player == 1 else own.c), 0.0
    if isinstance(own, NormRegularizer) and own.order == 1:
        return nothing, 0.0
    if isinstance(own, NormRegularizer) and np.isinf(own.order):
        return nothing, own.weight
    return None


def zero_sum_shortcut(game: RobustMarkovGame) -> MarkovEquilibrium:
    """Return the policies of the recursion that takes every stage for a zero-sum game.

    Each stage is the saddle point of (Q_1 - Q_2) / 2 = r + P (V_1 - V_2) / 2 with the players'
    penalties. Right for horizon 1, and where the accumulated penalty does not depend on the state:
    then Q_1 + Q_2 is a constant. Where it is u_a + w_b the stage's matrix is Q_1 - 1 w^T, which the
    shortcut's misses by (u_a - w_b) / 2, so it fails for a single controller too; gap (measured in
    the robust game itself) says by how much. `plan` does not use it.
    """

    def solve_stage(stage: RobustMatrixGame, h: int, s: int) -> Equilibrium:
        split_1, split_2 = stage.set_1.rows_and_cols(), stage.set_2.rows_and_cols()
        for uncertainty, split in ((stage.set_1, split_1), (stage.set_2, split_2)):
            if split is None:
                raise NotDecomposableError(
                    f"zero_sum_shortcut: step {h}, state {s}: {uncertainty.describe()}"
                )
        return solve_zero_sum((stage.payoff_1 - stage.payoff_2) / 2, split_1[0], split_2[1])

    return _backward(game, solve_stage)
