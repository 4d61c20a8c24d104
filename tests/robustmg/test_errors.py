"""Bad input is refused in one line that names the argument, the value and what is allowed."""

import numpy as np
import pytest

from retable.robustmg.errors import NotDecomposableError
from retable.robustmg.games import random_markov_game
from retable.robustmg.hardness import bimatrix_to_robust
from retable.robustmg.markov import RobustMarkovGame, nash_gap, plan
from retable.robustmg.matrix import RobustMatrixGame, solve
from retable.robustmg.polytopes import polytope
from retable.robustmg.regularizers import EntropyRegularizer, KLRegularizer, NormRegularizer
from retable.robustmg.transitions import TVBall, WassersteinBall
from retable.robustmg.uncertainty import (
    AdditiveBall,
    Box,
    EntropySet,
    EntrywiseBall,
    KLSet,
    OperatorBall,
)

ZERO = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OperatorBall((2, 2), 1, 1, -0.1), "OperatorBall: radius must be >= 0, got -0.1"),
        (lambda: EntrywiseBall((2, 2), 0.5, 1), r"EntrywiseBall: p must be in \[1, inf\], got 0.5"),
        (lambda: OperatorBall((2, 2), 1, 0, 1), r"OperatorBall: q must be in \[1, inf\], got 0"),
        (lambda: AdditiveBall((2, 2), 1, 1, -1), "AdditiveBall: col_radius must be >= 0, got -1"),
        (lambda: AdditiveBall((2, 0), 1, 1, 1), "shape must be two positive integers"),
        (lambda: Box(ZERO + 1, ZERO), r"Box: low must be <= high, got low\[0,0\] = 1 > 0"),
        (lambda: Box(ZERO, np.zeros((2, 3))), r"Box: high has shape \(2, 3\), must be \(2, 2\)"),
        (lambda: Box(ZERO + np.nan, ZERO), r"Box: low\[0,0\] is nan, must be finite"),
        (lambda: EntropySet((2, 2), -1), "EntropySet: tau must be >= 0, got -1"),
        (lambda: EntropySet((2, 2), 1, 3), "EntropySet: player must be 1 or 2, got 3"),
        (lambda: KLSet((2, 2), 1, [0.3, 0.3, 0.4]), "KLSet: reference has 3 entries, must have 2"),
        (lambda: KLRegularizer(1, [0.5, 0.6]), "reference must be positive and sum to 1"),
        (lambda: NormRegularizer(2, np.inf), "NormRegularizer: weight must be >= 0, got inf"),
        (lambda: EntropyRegularizer(-2), "EntropyRegularizer: tau must be >= 0, got -2"),
        (lambda: RobustMatrixGame(ZERO, np.zeros((3, 2))), r"payoff_2 has shape \(3, 2\)"),
        (
            lambda: RobustMatrixGame(ZERO, ZERO, OperatorBall((3, 2), 1, 1, 1)),
            r"set_1 has shape \(3, 2\), must be \(2, 2\)",
        ),
        (lambda: TVBall(-1), "TVBall: radius must be >= 0, got -1"),
        (lambda: TVBall(0.1).worst_case([0.5, 0.4], [0, 1]), "p sums to 0.9, must be 1"),
        (lambda: TVBall(0.1).worst_case([0.5, 0.5], [0, 1, 2]), "its last axis must have 3"),
        (lambda: WassersteinBall(1, [[0, 1]]), "metric must be square"),
        (lambda: WassersteinBall(1, [[1.0]]), "zero diagonal"),
        (lambda: random_markov_game("odd", None, states=2, actions=(2, 2), horizon=1), "kind must"),
        (lambda: bimatrix_to_robust(ZERO, np.zeros((2, 3))), r"c has shape \(2, 3\)"),
        (lambda: polytope(EntrywiseBall((2, 2), 2, 1)), "no linear description"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_policies_off_the_simplex():
    game = RobustMatrixGame.zero_sum(ZERO)
    with pytest.raises(ValueError, match=r"x sums to 1\.1, must be 1"):
        game.values([0.6, 0.5], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"y has the entry -0\.1, must be >= 0"):
        game.nash_gap([0.5, 0.5], [1.1, -0.1])
    with pytest.raises(ValueError, match="player must be 1 or 2, got 0"):
        game.best_response(0, [0.5, 0.5])


def test_what_does_not_decompose():
    product = RobustMatrixGame.zero_sum(ZERO, EntrywiseBall((2, 2), 1, 1))
    with pytest.raises(
        NotDecomposableError, match=r"r\*max\(x\)\*max\(y\), a product; use nash_gap"
    ):
        solve(product)
    general = RobustMatrixGame(np.eye(2), np.eye(2))
    with pytest.raises(NotDecomposableError, match="not of the form u_a"):
        solve(general)


def test_plan_names_the_step_and_the_state():
    ball = EntrywiseBall((2, 2), 1, 1)
    transitions = np.full((2, 2, 2, 2), 0.5)
    game = RobustMarkovGame.zero_sum(np.zeros((2, 2, 2)), transitions, [None, ball], horizon=2)
    with pytest.raises(NotDecomposableError, match="plan: step 1, state 1: "):
        plan(game)
    with pytest.raises(ValueError, match="stage must be one of auto, lp, milp, got 'best'"):
        plan(game, stage="best")


def test_norms_that_are_hard_to_compute():
    ball = OperatorBall((2, 2), 3, 2, 1)
    with pytest.raises(NotImplementedError, match="rank above one"):
        ball.support(np.eye(2))
    with pytest.raises(NotImplementedError, match="contains is implemented for"):
        ball.contains(np.eye(2))
    with pytest.raises(NotImplementedError, match="depends on the policy"):
        EntropySet((2, 2), 1).support(np.eye(2))


def test_markov_games_of_the_wrong_form():
    transitions = np.full((3, 2, 2, 3), 1 / 3)
    transitions[2, 0, 1] = (0.5, 0.4, 0.03)
    with pytest.raises(ValueError, match=r"transitions\[2,0,1\] sums to 0\.93, must be 1"):
        RobustMarkovGame.zero_sum(np.zeros((3, 2, 2)), transitions, horizon=2)
    good = np.full((3, 2, 2, 3), 1 / 3)
    with pytest.raises(ValueError, match="horizon must be an integer >= 1, got None"):
        RobustMarkovGame.zero_sum(np.zeros((3, 2, 2)), good)
    with pytest.raises(ValueError, match="must be a sequence of 3 sets"):
        RobustMarkovGame.zero_sum(np.zeros((3, 2, 2)), good, [None], horizon=1)
    game = RobustMarkovGame.zero_sum(np.zeros((3, 2, 2)), good, horizon=1)
    policy = np.full((1, 3, 2), 0.5)
    with pytest.raises(ValueError, match=r"policy_1\[0,0\] must be >= 0 and sum to 1"):
        nash_gap(game, policy * 0.9, policy)
    with pytest.raises(ValueError, match=r"policy_2 has shape \(1, 3, 3\), must be \(1, 3, 2\)"):
        nash_gap(game, policy, np.full((1, 3, 3), 1 / 3))
