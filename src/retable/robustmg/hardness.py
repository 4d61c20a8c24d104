"""Every bimatrix game is a zero-sum game with uncertain rewards (Theorems 4.1 and 5.5).

For a bimatrix game (B, C) let k = max(0, max(B + C)), C' = C - k, A = (B - C')/2 and
rho = -(B + C')/2 >= 0. In the zero-sum game A whose entries are each known up to +-rho the players'
robust values are x^T (A - rho) y = x^T B y and x^T (-A - rho) y = x^T C' y. So its robust
equilibria are the equilibria of (B, C), gap for gap, and finding one is PPAD-hard. The same payoffs
arise from uncertain transitions, and from radii that depend on the state.
"""

import numpy as np

from retable.robustmg.arrays import matrix
from retable.robustmg.markov import RobustMarkovGame
from retable.robustmg.matrix import RobustMatrixGame
from retable.robustmg.transitions import TVBall
from retable.robustmg.uncertainty import Box, EntrywiseBall


def _mean_and_radius(b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return (A, rho, shift) of the module's head."""
    b = matrix("b", b)
    c = matrix("c", c, b.shape)
    shift = max(0.0, float((b + c).max()))
    shifted = c - shift
    # Rounding may leave -1e-16 where b + c is largest.
    return (b - shifted) / 2, np.maximum(-(b + shifted) / 2, 0.0), shift


def _scale(rho: np.ndarray) -> float:
    """K, the largest radius, or 1 where rewards are certain."""
    return float(rho.max()) if rho.max() > 0 else 1.0


def bimatrix_to_robust(b: np.ndarray, c: np.ndarray) -> tuple[RobustMatrixGame, float]:
    """Return (zero-sum game with independent intervals, shift) whose values are b and c - shift."""
    mean, rho, shift = _mean_and_radius(b, c)
    return RobustMatrixGame.zero_sum(mean, Box(-rho, rho)), shift


def robust_to_bimatrix(game: RobustMatrixGame) -> tuple[np.ndarray, np.ndarray]:
    """Return the bimatrix game (b, c) of a game with Box sets: payoffs at their lowest."""
    for name in ("set_1", "set_2"):
        uncertainty = getattr(game, name)
        if not isinstance(uncertainty, Box):
            raise ValueError(f"{name} must be a Box, got {type(uncertainty).__name__}")
    return game.payoff_1 + game.set_1.low, game.payoff_2 + game.set_2.low


def bimatrix_to_transition_game(b: np.ndarray, c: np.ndarray) -> tuple[RobustMarkovGame, float]:
    """Return (two-state, two-step zero-sum game with known rewards, shift).

    Step 0, state 0 pays A; step 1 pays player 1 +K in state 0 and -K in state 1, whatever is
    played. Both states follow with probability 1/2, uncertain by rho / (2 K).
    """
    mean, rho, shift = _mean_and_radius(b, c)
    scale = _scale(rho)
    rewards = np.zeros((2, 2, *mean.shape))
    rewards[0, 0] = mean
    rewards[1, 0], rewards[1, 1] = scale, -scale
    radius = np.zeros((2, 2, *mean.shape))
    radius[0, 0] = rho / (2 * scale)
    transitions = np.full((2, 2, *mean.shape, 2), 0.5)
    # With two states |q_0 - p_0| is the total variation distance.
    return RobustMarkovGame.zero_sum(rewards, transitions, transition_set=TVBall(radius)), shift


def bimatrix_to_state_radius_game(b: np.ndarray, c: np.ndarray) -> tuple[RobustMarkovGame, float]:
    """Return (three-state, two-step zero-sum game of entrywise L-infinity balls, shift).

    Step 0, state 0 pays A and leads to state 1 with probability rho / K, else to state 2. At step 1
    state 1 alone has a ball, of radius K: a decomposable set, whose radius depends on the state.
    """
    mean, rho, shift = _mean_and_radius(b, c)
    scale = _scale(rho)
    rewards = np.zeros((2, 3, *mean.shape))
    rewards[0, 0] = mean
    transitions = np.zeros((3, *mean.shape, 3))
    transitions[0, ..., 1] = rho / scale
    transitions[0, ..., 2] = 1 - rho / scale
    transitions[1, ..., 1] = transitions[2, ..., 2] = 1.0
    ball = EntrywiseBall(mean.shape, np.inf, scale)
    sets = [[None, None, None], [None, ball, None]]
    return RobustMarkovGame.zero_sum(rewards, transitions, sets), shift
