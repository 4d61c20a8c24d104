"""Games to play with: classics, random games, and an inspection game."""

from collections.abc import Sequence

import numpy as np

from retable.robustmg.markov import RobustMarkovGame, Sets
from retable.robustmg.transitions import TransitionSet
from retable.robustmg.uncertainty import AdditiveBall

KINDS = ("general", "single_controller")


def matching_pennies() -> np.ndarray:
    """Return player 1's payoffs (2, 2): 1 where the pennies match, -1 where they do not."""
    return np.array([[1.0, -1.0], [-1.0, 1.0]])


def rock_paper_scissors(weights: Sequence[float] = (1.0, 1.0, 1.0)) -> np.ndarray:
    """Return player 1's payoffs (3, 3); weights are what a win with rock, paper, scissors pays."""
    rock, paper, scissors = (float(w) for w in weights)
    return np.array([[0.0, -paper, rock], [paper, 0.0, -scissors], [-rock, scissors, 0.0]])


def random_matrix_game(
    shape: tuple[int, int], rng: np.random.Generator, low: float = -1.0, high: float = 1.0
) -> np.ndarray:
    """Return payoffs (m, n), independent and uniform between low and high."""
    return rng.uniform(low, high, shape)


def random_markov_game(
    kind: str,
    rng: np.random.Generator,
    *,
    states: int,
    actions: tuple[int, int],
    horizon: int,
    reward_sets: Sets = None,
    transition_set: TransitionSet | None = None,
    concentration: float = 0.5,
) -> RobustMarkovGame:
    """Return a zero-sum Markov game with rewards uniform(-1, 1) that do not change with time.

    kind "general": next states are Dirichlet(concentration) for each (s, a, b);
    "single_controller": for each (s, b), so that player 2 alone moves the state.
    """
    if kind not in KINDS:
        raise ValueError(
            f"random_markov_game: kind must be one of {', '.join(KINDS)}, got {kind!r}"
        )
    m, n = actions
    rewards = rng.uniform(-1, 1, (states, m, n))
    alpha = np.full(states, concentration)
    if kind == "general":
        transitions = rng.dirichlet(alpha, (states, m, n))
    else:
        moved = rng.dirichlet(alpha, (states, 1, n))
        transitions = np.broadcast_to(moved, (states, m, n, states))
    return RobustMarkovGame.zero_sum(rewards, transitions, reward_sets, transition_set, horizon)


def inspection_game(
    horizon: int = 6,
    radius: float = 0.2,
    *,
    violations: int = 5,
    cost: float = 0.3,
    unnoticed: float = 0.6,
    order: float = np.inf,
) -> RobustMarkovGame:
    """Return an inspection game whose state is the number of undetected violations, 0..violations.

    Player 1 inspects (row 0) or waits (row 1), player 2 violates (column 0) or complies (column 1).
    An inspection costs `cost` and catches a violation for a fine of 1 + s; a violation that nobody
    inspects costs the inspector 1 + s/2. Player 2 alone moves the state: a violation stays
    unnoticed with probability `unnoticed` and adds one; complying lets one lapse as often. Fines
    and costs in state s are uncertain by AdditiveBall(order) of radius (1 + s) * radius: the longer
    the record, the less is known.
    """
    count = np.arange(violations + 1)
    rewards = np.zeros((violations + 1, 2, 2))
    rewards[:, 0, 0] = 1 + count - cost
    rewards[:, 0, 1] = -cost
    rewards[:, 1, 0] = -(1 + count / 2)
    transitions = np.zeros((violations + 1, 2, 2, violations + 1))
    for column, target in ((0, np.minimum(count + 1, violations)), (1, np.maximum(count - 1, 0))):
        for row in range(2):
            transitions[count, row, column, target] += unnoticed
            transitions[count, row, column, count] += 1 - unnoticed
    sets = [AdditiveBall((2, 2), order, (1 + s) * radius, (1 + s) * radius) for s in count]
    return RobustMarkovGame.zero_sum(rewards, transitions, sets, horizon=horizon)
