"""Games whose equilibria and values are known."""

import numpy as np
import pytest

from retable.robustmg.games import (
    inspection_game,
    matching_pennies,
    random_markov_game,
    rock_paper_scissors,
)
from retable.robustmg.hardness import (
    bimatrix_to_robust,
    bimatrix_to_state_radius_game,
    bimatrix_to_transition_game,
    robust_to_bimatrix,
)
from retable.robustmg.markov import RobustMarkovGame, evaluate, nash_gap, plan, zero_sum_shortcut
from retable.robustmg.matrix import (
    RobustMatrixGame,
    enumerate_equilibria,
    solve,
    solve_bimatrix,
    solve_zero_sum,
)
from retable.robustmg.regularizers import EntropyRegularizer, NormRegularizer
from retable.robustmg.transitions import ChiSquareBall, KLBall, TVBall, WassersteinBall
from retable.robustmg.uncertainty import Box, EntropySet, EntrywiseBall, OperatorBall

HALF = np.array([0.5, 0.5])
BATTLE = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])


def test_matching_pennies_with_intervals():
    box = Box(np.full((2, 2), -0.3), np.full((2, 2), 0.3))
    found = solve(RobustMatrixGame.zero_sum(matching_pennies(), box))
    np.testing.assert_allclose(found.x, HALF, atol=1e-12)
    np.testing.assert_allclose(found.y, HALF, atol=1e-12)
    np.testing.assert_allclose(found.values, (-0.3, -0.3), atol=1e-12)


def test_identity_with_an_operator_ball():
    found = solve(RobustMatrixGame.zero_sum(np.eye(4), OperatorBall((4, 4), 1, 1, 2.0)))
    np.testing.assert_allclose(found.x, np.full(4, 0.25), atol=1e-12)
    np.testing.assert_allclose(found.values, (-0.25, -0.75), atol=1e-12)


@pytest.mark.parametrize(("weight", "x", "value"), [(3, (0.5, 0.5), 0.5), (1, (1, 0), 2)])
def test_best_response_against_the_largest_probability(weight, x, value):
    response, best = NormRegularizer(np.inf, weight).best_response(np.array([3.0, 1.0]))
    np.testing.assert_allclose(response, x, atol=1e-12)
    assert best == pytest.approx(value, abs=1e-12)


def test_battle_of_the_sexes_is_a_zero_sum_robust_game():
    game, shift = bimatrix_to_robust(*BATTLE)
    assert shift == 3
    np.testing.assert_allclose(game.payoff_1, [[2, 1.5], [1.5, 1]])
    np.testing.assert_allclose(game.set_1.high, [[0, 1.5], [1.5, 0]])
    np.testing.assert_allclose(game.payoff_2, -game.payoff_1)
    found = enumerate_equilibria(*robust_to_bimatrix(game))
    values = sorted(game.values(x, y) for x, y in found)
    np.testing.assert_allclose(values, [(2 / 3, -7 / 3), (1, -1), (2, -2)], atol=1e-9)
    assert all(game.nash_gap(x, y) < 1e-9 for x, y in found)
    mixed = (np.array([2, 1]) / 3, np.array([1, 2]) / 3)
    assert game.nash_gap(*mixed) < 1e-12


@pytest.mark.parametrize("reduction", [bimatrix_to_transition_game, bimatrix_to_state_radius_game])
def test_battle_of_the_sexes_through_markov_games(reduction):
    game, shift = reduction(*BATTLE)
    q_1, q_2 = game.stage_payoffs(0, *evaluate(game, *uniform_policies(game))[:, 1])
    np.testing.assert_allclose(q_1[0], BATTLE[0], atol=1e-12)
    np.testing.assert_allclose(q_2[0], BATTLE[1] - shift, atol=1e-12)
    assert plan(game).gap < 1e-9


def uniform_policies(game):
    return tuple(np.full((game.horizon, game.states, k), 1 / k) for k in game.actions)


def test_radii_that_depend_on_the_state_make_a_coordination_game():
    transitions = np.zeros((3, 2, 2, 3))
    transitions[0, ..., 1] = np.eye(2)
    transitions[0, ..., 2] = 1 - np.eye(2)
    transitions[1, ..., 1] = transitions[2, ..., 2] = 1
    ball = EntrywiseBall((2, 2), np.inf, 1.0)
    game = RobustMarkovGame.zero_sum(
        np.zeros((2, 3, 2, 2)), transitions, [[None] * 3, [None, ball, None]]
    )
    policy_1, policy_2 = uniform_policies(game)
    q_1, q_2 = game.stage_payoffs(0, *evaluate(game, policy_1, policy_2)[:, 1])
    np.testing.assert_allclose(q_1[0], -np.eye(2))
    np.testing.assert_allclose(q_2[0], -np.eye(2))
    np.testing.assert_allclose(evaluate(game, policy_1, policy_2)[:, 0, 0], (-0.5, -0.5))
    policy_1[0, 0], policy_2[0, 0] = (1, 0), (0, 1)
    assert nash_gap(game, policy_1, policy_2) < 1e-12
    policy_2[0, 0] = (1, 0)
    assert nash_gap(game, policy_1, policy_2) == pytest.approx(1)


@pytest.mark.parametrize(
    ("ball", "p", "v", "value"),
    [
        (TVBall(0.2), HALF, (0, 1), 0.3),
        (ChiSquareBall(0.04), HALF, (0, 1), 0.4),
        (KLBall(np.log(2) + 0.25 * np.log(0.25) + 0.75 * np.log(0.75)), HALF, (0, 1), 0.25),
        (TVBall(0.6), (0.2, 0.3, 0.5), (0, 1, 3), 0.2),
        (
            WassersteinBall(0.25, np.abs(np.subtract.outer(range(3), range(3))).astype(float)),
            (0.2, 0.3, 0.5),
            (0, 1, 3),
            1.3,
        ),
        (ChiSquareBall(0.1), (0.2, 0.3, 0.5), (0, 1, 3), 1.8 - np.sqrt(0.156)),
    ],
)
def test_worst_transitions(ball, p, v, value):
    p, v = np.asarray(p), np.asarray(v, float)
    found, q = ball.worst_case(p, v)
    assert found == pytest.approx(value, abs=1e-9)
    assert q @ v == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(q.sum(), 1)


def test_entropy_set_of_one_column():
    game = RobustMatrixGame(
        np.array([[np.log(3)], [0.0]]), np.zeros((2, 1)), EntropySet((2, 1), 1.0, 1), None
    )
    x, value = game.best_response(1, np.ones(1))
    np.testing.assert_allclose(x, (0.75, 0.25), atol=1e-12)
    assert value == pytest.approx(np.log(4))
    assert game.values(x, np.ones(1))[0] == pytest.approx(np.log(4))


def test_entropy_saddle():
    term = EntropyRegularizer(0.5)
    # Policies are as exact as the root of the gap.
    found = solve_zero_sum(np.array([[2.0, -1.0], [-1.0, 1.0]]), term, term, tol=1e-14)
    np.testing.assert_allclose(found.x, (0.449132, 0.550868), atol=1e-6)
    np.testing.assert_allclose(found.y, (0.379582, 0.620418), atol=1e-6)
    assert found.method == "extragradient"


def test_rock_paper_scissors_with_weights():
    found = solve_zero_sum(rock_paper_scissors((1, 1, 2)))
    assert found.values[0] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.x, (0.5, 0.25, 0.25), atol=1e-12)


def test_swapping_the_players_maps_equilibria():
    rng = np.random.default_rng(0)
    b, c = rng.standard_normal((2, 3, 4))
    found = solve_bimatrix(b, c)
    assert RobustMatrixGame(c.T, b.T).nash_gap(found.y, found.x) < 1e-9


def test_plan_of_one_state_and_step_is_solve():
    rng = np.random.default_rng(1)
    payoff = rng.uniform(-1, 1, (3, 4))
    ball = OperatorBall((3, 4), 1, 1, 0.5)
    game = RobustMarkovGame.zero_sum(payoff[None], np.ones((1, 3, 4, 1)), [ball], horizon=1)
    planned, solved = plan(game), solve(RobustMatrixGame.zero_sum(payoff, ball))
    np.testing.assert_allclose(planned.values[:, 0, 0], solved.values, atol=1e-9)


def test_permuting_the_states_permutes_the_values():
    rng = np.random.default_rng(2)
    balls = [OperatorBall((3, 2), 1, 1, radius) for radius in (0.1, 0.5, 0.9)]
    game = random_markov_game(
        "single_controller", rng, states=3, actions=(3, 2), horizon=3, reward_sets=balls
    )
    order = [2, 0, 1]
    moved = RobustMarkovGame.zero_sum(
        game.rewards_1[0][order],
        game.transitions[0][order][..., order],
        [balls[k] for k in order],
        horizon=3,
    )
    np.testing.assert_allclose(plan(moved).values, plan(game).values[:, :, order], atol=1e-9)


def test_the_shortcut_is_exact_with_equal_radii_and_wrong_without():
    rng = np.random.default_rng(0)
    rewards, transitions = rng.uniform(-1, 1, (4, 3, 3)), rng.dirichlet([0.5] * 4, (4, 3, 3))

    def gap(radii):
        sets = [EntrywiseBall((3, 3), np.inf, radius) for radius in radii]
        game = RobustMarkovGame.zero_sum(rewards, transitions, sets, horizon=4)
        return zero_sum_shortcut(game).gap

    assert gap([1, 1, 1, 1]) < 1e-9
    assert gap([0, 0.5, 1, 2]) > 0.1


def test_the_inspection_game_is_planned_by_linear_programs():
    found = plan(inspection_game(4))
    assert found.gap < 1e-9
    assert set(found.stage_methods.ravel()) == {"lp"}
