"""Recursion, gaps and units of payoff, each against an enumeration or another solver."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

from retable.robustmg.arrays import separable
from retable.robustmg.games import random_markov_game
from retable.robustmg.markov import RobustMarkovGame, evaluate, nash_gap, plan, zero_sum_shortcut
from retable.robustmg.matrix import (
    RobustMatrixGame,
    count_vertices,
    enumerate_equilibria,
    solve,
    solve_bimatrix,
    solve_zero_sum,
)
from retable.robustmg.regularizers import EntropyRegularizer, NormRegularizer
from retable.robustmg.transitions import ChiSquareBall
from retable.robustmg.uncertainty import AdditiveBall, Box, EntrywiseBall

INF = np.inf


def plain_values(rewards, transitions, policy_1, policy_2):
    """Values of one known game, by the textbook recursion."""
    value = np.zeros(transitions.shape[-1])
    for h in reversed(range(len(rewards))):
        q = rewards[h] + transitions @ value
        value = np.einsum("sa,sab,sb->s", policy_1[h], q, policy_2[h])
    return value


def test_the_robust_value_is_the_least_over_every_vertex_of_the_boxes():
    rng = np.random.default_rng(0)
    rewards = rng.uniform(-1, 1, (2, 2, 2, 2))
    transitions = rng.dirichlet(np.ones(2), (2, 2, 2))
    # Two uncertain entries in each of the four (step, state) boxes: 2^8 vertices.
    low, high = np.zeros_like(rewards), np.zeros_like(rewards)
    low[..., 0, :], high[..., 0, :] = -rng.uniform(0, 1, (2, 2, 2)), rng.uniform(0, 1, (2, 2, 2))
    sets = [[Box(low[h, s], high[h, s]) for s in range(2)] for h in range(2)]
    game = RobustMarkovGame.zero_sum(rewards, transitions, sets)
    policy_1, policy_2 = rng.dirichlet(np.ones(2), (2, 2, 2))
    uncertain = np.argwhere(high > low)
    worst = np.full((2, 2), INF)
    for choice in itertools.product((False, True), repeat=len(uncertain)):
        member = rewards.copy()
        for index, upper in zip(map(tuple, uncertain), choice, strict=True):
            member[index] += high[index] if upper else low[index]
        value = plain_values(member, transitions, policy_1, policy_2)
        worst = np.minimum(worst, [value, -value])
    np.testing.assert_allclose(evaluate(game, policy_1, policy_2)[:, 0], worst, atol=1e-12)


def test_the_gap_is_the_best_of_all_pure_deviations_where_penalties_are_bilinear():
    rng = np.random.default_rng(1)
    boxes = [Box(-rng.uniform(0, 1, (2, 3)), rng.uniform(0, 1, (2, 3))) for _ in range(2)]
    game = random_markov_game(
        "general", rng, states=2, actions=(2, 3), horizon=2, reward_sets=boxes
    )
    policy_1, policy_2 = (rng.dirichlet(np.ones(k), (2, 2)) for k in (2, 3))
    current = evaluate(game, policy_1, policy_2)
    best = np.full(current.shape, -INF)
    for player, (policy, k) in enumerate(((policy_1, 2), (policy_2, 3))):
        for actions in itertools.product(range(k), repeat=4):
            pure = np.eye(k)[list(actions)].reshape(policy.shape)
            pair = (pure, policy_2) if player == 0 else (policy_1, pure)
            best[player] = np.maximum(best[player], evaluate(game, *pair)[player])
    assert nash_gap(game, policy_1, policy_2) == pytest.approx((best - current).max(), abs=1e-12)


@pytest.mark.parametrize("unit", [1e-8, 1e-4, 1.0, 1e5])
@pytest.mark.parametrize("origin", [0.0, 100.0])
def test_solvers_do_not_depend_on_the_unit_and_the_origin_of_payoffs(unit, origin):
    rng = np.random.default_rng(2)
    b, c = unit * (rng.uniform(-1, 1, (2, 4, 3)) + origin)
    exact = 1e-9 * unit * (1 + origin)
    assert solve_bimatrix(b, c, 0.2 * unit, 0.3 * unit).gap < exact
    assert all(RobustMatrixGame(b, c).nash_gap(x, y) < exact for x, y in enumerate_equilibria(b, c))
    # Zero-sum games whose sum is a constant, by a linear, a cone program and extragradient.
    for p in (1, 2):
        ball = AdditiveBall((4, 3), p, 0.4 * unit, 0.3 * unit)
        assert solve(RobustMatrixGame(b, -b + 2 * origin * unit, ball, ball)).gap < exact
    term = EntropyRegularizer(0.5 * unit)
    assert solve_zero_sum(b, term, term, tol=exact).gap <= exact


def test_penalties_far_above_the_payoffs_are_solved():
    payoff = 1 + 1e-16 * np.random.default_rng(3).uniform(-1, 1, (3, 3))
    for p in (1, 2, INF):
        assert solve(RobustMatrixGame.zero_sum(payoff, AdditiveBall((3, 3), p, 1, 1))).gap < 1e-9
    assert solve_bimatrix(payoff, payoff, 1.0, 1.0).gap < 1e-9


def test_separable_is_relative_to_the_payoffs():
    tiny = 1e-12 * np.eye(2)
    assert separable(tiny) is None
    total = np.add.outer([1.0, 2.0], [3.0, -1.0, 0.0])
    np.testing.assert_allclose(np.add.outer(*separable(total)), total, atol=1e-12)
    # Rounding of a sum in which payoffs of size 1 cancel.
    assert separable(1e-16 * np.eye(2), scale=1.0) is not None


@pytest.mark.parametrize("order", [1.5, 2, INF])
def test_saddle_values_against_the_opponents_own_program(order):
    """The minimiser's side of the saddle point, written down and solved on its own."""
    rng = np.random.default_rng(4)
    payoff = rng.uniform(-1, 1, (4, 5))
    rows, cols = NormRegularizer(order, 0.6), NormRegularizer(order, 0.4)
    y, level, z = cp.Variable(5, nonneg=True), cp.Variable(), cp.Variable(4, nonneg=True)
    dual = {1.5: 3, 2: 2, INF: 1}[order]
    problem = cp.Problem(
        cp.Minimize(level + 0.4 * cp.pnorm(y, order)),
        [payoff @ y <= level + z, cp.pnorm(z, dual) <= 0.6, cp.sum(y) == 1],
    )
    expected = problem.solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    assert solve_zero_sum(payoff, rows, cols).values[0] == pytest.approx(expected, abs=1e-8)


def test_chi_square_against_a_search_over_its_dual():
    rng = np.random.default_rng(5)
    for radius in (1e-3, 0.05, 0.5, 3.0, 30.0):
        p, v = rng.dirichlet(np.full(5, 0.4)), np.round(rng.standard_normal(5), 1)
        clipped = np.minimum(v, np.linspace(v.min(), v.max(), 50_001)[:, None])
        variance = np.maximum((clipped - (clipped @ p)[:, None]) ** 2 @ p, 0)
        dual = (clipped @ p - np.sqrt(radius * variance)).max()
        value, q = ChiSquareBall(radius).worst_case(p, v)
        assert value == pytest.approx(dual, abs=1e-6)
        assert ((q - p) ** 2 / p).sum() <= radius * (1 + 1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_one_controller_makes_stages_separable_but_not_the_shortcut_exact(seed):
    sets = [EntrywiseBall((3, 3), INF, radius) for radius in (0, 0.5, 1, 2)]
    game = random_markov_game(
        "single_controller",
        np.random.default_rng(seed),
        states=4,
        actions=(3, 3),
        horizon=5,
        reward_sets=sets,
    )
    planned = plan(game, stage="lp")
    assert planned.gap < 1e-9
    # Q_1 + Q_2 = w_b, so the stage is Q_1 - 1 w^T; the shortcut's (Q_1 - Q_2) / 2 lacks half of w.
    assert zero_sum_shortcut(game).gap > 0.01


def test_vertices_of_a_coordination_game():
    # Each polytope is {x >= 0, 3 x_i + x_j <= 1}: two corners on the axes and one inside.
    assert count_vertices(np.eye(2), np.eye(2)) == 6
