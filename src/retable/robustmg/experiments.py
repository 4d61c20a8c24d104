"""The experiments: each draws its games from a seed and yields tidy rows and the games drawn.

The paper has none; these measure its theorems on random games.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

from retable.robustmg.config import (
    EquivalenceSettings,
    HardnessSettings,
    PlanningSettings,
    ReadingsSettings,
    RobustnessSettings,
    ScalingSettings,
    ShortcutSettings,
)
from retable.robustmg.errors import NotDecomposableError
from retable.robustmg.games import inspection_game, random_markov_game, random_matrix_game
from retable.robustmg.hardness import (
    bimatrix_to_robust,
    bimatrix_to_state_radius_game,
    bimatrix_to_transition_game,
    robust_to_bimatrix,
)
from retable.robustmg.markov import MarkovEquilibrium, RobustMarkovGame, plan, zero_sum_shortcut
from retable.robustmg.matrix import (
    RobustMatrixGame,
    count_vertices,
    enumerate_equilibria,
    solve,
    solve_bimatrix,
    solve_zero_sum,
)
from retable.robustmg.polytopes import (
    polytope,
    robust_best_response,
    robust_best_response_cone,
    robust_value,
)
from retable.robustmg.regularizers import EntropyRegularizer
from retable.robustmg.transitions import ChiSquareBall, KLBall, TVBall, WassersteinBall
from retable.robustmg.uncertainty import (
    AdditiveBall,
    Box,
    EntrywiseBall,
    OperatorBall,
    UncertaintySet,
)

Row = dict[str, Any]
Games = dict[str, np.ndarray]
INF = np.inf
BATTLE_OF_THE_SEXES = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])


def _row(dataset: str, method: str, metric: str, value: float, x: float | None = None) -> Row:
    return {"dataset": dataset, "method": method, "metric": metric, "x": x, "value": float(value)}


# Theorem 3.1: the robust game is a regularised game.


def _random_sets(shape: tuple[int, int], radius: float, rng: np.random.Generator):
    """The sets of the equivalence, by name, with one radius; a Box has a lower and an upper one."""
    low, high = -rng.uniform(0, radius, shape), rng.uniform(0, radius, shape)
    return {
        "box": Box(low, high),
        "entrywise-1": EntrywiseBall(shape, 1, radius),
        "entrywise-inf": EntrywiseBall(shape, INF, radius),
        "operator-1-1": OperatorBall(shape, 1, 1, radius),
        "operator-inf-inf": OperatorBall(shape, INF, INF, radius),
        "operator-1-2": OperatorBall(shape, 1, 2, radius),
        "additive-1": AdditiveBall(shape, 1, radius, radius),
    }


def equivalence(seed: int, settings: EquivalenceSettings) -> tuple[list[Row], Games]:
    """Largest difference of robust and regularised values, and of their Nash gaps, per set."""
    rng = np.random.default_rng(seed)
    rows, payoffs = [], []
    for name in _random_sets((2, 2), 1.0, rng):
        values, gaps, pairs = [0.0], [0.0], []
        for _ in range(settings.games):
            shape = tuple(int(k) for k in rng.choice(settings.sizes, 2))
            payoff = random_matrix_game(shape, rng)
            uncertainty = _random_sets(shape, rng.uniform(*settings.radius), rng)[name]
            game = RobustMatrixGame.zero_sum(payoff, uncertainty)
            payoffs.append(payoff)
            for _ in range(settings.policies):
                x, y = rng.dirichlet(np.ones(shape[0])), rng.dirichlet(np.ones(shape[1]))
                robust, best = _by_programs(game, x, y, rng, settings.members)
                regular = game.regularized_values(x, y)
                values.append(np.abs(np.subtract(robust, regular)).max())
                gap = max(0.0, *(np.subtract(best, robust)))
                gaps.append(abs(gap - game.nash_gap(x, y)))
                pairs.append((robust[0], regular[0]))
        rows.append(_row(name, "robust", "value_difference", max(values)))
        rows.append(_row(name, "robust", "gap_difference", max(gaps)))
        # One point of each game, for the figure: x is the regularised value.
        for robust_point, regular_point in pairs[:: settings.policies]:
            rows.append(_row(name, "robust", "robust_value", robust_point, regular_point))
    return rows, _padded(payoffs)


def _by_programs(game: RobustMatrixGame, x, y, rng, members: int):
    """Both players' robust values and best robust values, by programs over the sets."""
    players = ((game.payoff_1, game.set_1), (game.payoff_2, game.set_2))
    values, best = [], []
    for player, (payoff, uncertainty) in enumerate(players, start=1):
        opponent = y if player == 1 else x
        if isinstance(uncertainty, OperatorBall) and uncertainty.q == 2:
            values.append(_sampled_value(payoff, uncertainty, x, y, rng, members))
            best.append(robust_best_response_cone(payoff, uncertainty, player, opponent))
        else:
            ball = polytope(uncertainty)
            values.append(robust_value(payoff, ball, x, y))
            best.append(robust_best_response(payoff, ball, player, opponent))
    return values, best


def _sampled_value(payoff, ball: OperatorBall, x, y, rng, members: int) -> float:
    """The least value over sampled members and the maximiser, for columns in Euclidean balls."""
    columns = rng.standard_normal((members, *ball.shape))
    columns *= ball.radius / np.linalg.norm(columns, axis=1, keepdims=True)
    attained = -ball.maximizer(np.outer(x, y))
    sampled = np.einsum("a,kab,b->k", x, columns, y)
    return float(x @ payoff @ y + min(x @ attained @ y, sampled.min()))


def _padded(payoffs: Sequence[np.ndarray]) -> Games:
    """Payoffs of different sizes as one array, with NaN beyond each game, and their shapes."""
    shapes = np.array([payoff.shape for payoff in payoffs])
    padded = np.full((len(payoffs), *shapes.max(axis=0)), np.nan)
    for k, payoff in enumerate(payoffs):
        padded[k, : payoff.shape[0], : payoff.shape[1]] = payoff
    return {"payoff": padded, "shape": shapes}


# Theorem 3.6: planning by backward induction over regularised stage games.


def planning(seed: int, settings: PlanningSettings) -> tuple[list[Row], Games]:
    """Robust Nash gap of the planned policies, one game of each family."""
    rng = np.random.default_rng(seed)
    s, h = settings.states, settings.horizon
    radii = rng.uniform(0, 1, s)
    small = {
        "states": settings.box_states,
        "actions": (settings.box_actions, settings.box_actions),
        "horizon": settings.box_horizon,
    }
    large = {"states": s, "actions": settings.actions, "horizon": h}
    balls = [OperatorBall(settings.actions, 1, 1, radius) for radius in radii]
    equal = [EntrywiseBall(settings.actions, INF, float(radii[0]))] * s
    boxes = [
        Box(-rng.uniform(0, 1, small["actions"]), rng.uniform(0, 1, small["actions"]))
        for _ in range(small["states"])
    ]
    distance = np.abs(np.subtract.outer(np.arange(small["states"]), np.arange(small["states"])))
    transition_sets = {
        "tv": TVBall(0.1),
        "kl": KLBall(0.05),
        "chi-square": ChiSquareBall(0.05),
        "wasserstein": WassersteinBall(0.2, distance.astype(float)),
    }
    games = {
        "single-controller": random_markov_game(
            "single_controller", rng, reward_sets=balls, **large
        ),
        "equal-radius": random_markov_game("general", rng, reward_sets=equal, **large),
        "box": random_markov_game("general", rng, reward_sets=boxes, **small),
        **{
            f"transitions-{name}": random_markov_game(
                "general", rng, transition_set=transition_set, **small
            )
            for name, transition_set in transition_sets.items()
        },
        "inspection": inspection_game(h),
    }
    rows, arrays = [], {}
    for name, game in games.items():
        found = plan(game)
        rows.append(_row(name, "robust", "nash_gap", found.gap))
        rows += _stage_counts(name, found)
        arrays |= _arrays(name, game)
    return rows, arrays


def _stage_counts(name: str, found: MarkovEquilibrium) -> list[Row]:
    counts = {"lp": "linear_programs", "milp": "mixed_integer_programs"}
    return [
        _row(name, "robust", metric, int((found.stage_methods == method).sum()))
        for method, metric in counts.items()
    ]


def _arrays(name: str, game: RobustMarkovGame) -> Games:
    return {
        f"{name}.rewards": game.rewards_1[0],
        f"{name}.transitions": np.ascontiguousarray(game.transitions[0]),
    }


# What robustness buys: policies of regularised methods in the robust game.


def robustness(seed: int, settings: RobustnessSettings) -> tuple[list[Row], Games]:
    """Nash gaps, guarantees and the price of ignoring uncertainty as the radius grows."""
    rng = np.random.default_rng(seed)
    shape = (settings.size, settings.size)
    payoff = random_matrix_game(shape, rng)
    nominal, entropy = solve_zero_sum(payoff), _EntropyBaseline(payoff)
    uniform = np.full(settings.size, 1 / settings.size)
    rows = []
    for radius in settings.radii:
        game = RobustMatrixGame.zero_sum(payoff, AdditiveBall(shape, 1, radius, radius))
        robust = solve(game)
        soft = entropy.matching(robust.x.max())
        policies = {
            "robust": (robust.x, robust.y),
            "nominal": (nominal.x, nominal.y),
            "entropy": soft,
            "uniform": (uniform, uniform),
        }
        for method, (x, y) in policies.items():
            rows.append(_row("additive-1", method, "nash_gap", game.nash_gap(x, y), radius))
            rows.append(_row("additive-1", method, "max_probability", x.max(), radius))
        guaranteed = game.values(robust.x, robust.y)[0]
        worst = _worst_of_members(payoff, radius, robust.x, robust.y, rng, settings.members)
        ignoring = guaranteed - game.values(nominal.x, robust.y)[0]
        rows.append(_row("additive-1", "robust", "guarantee_slack", worst - guaranteed, radius))
        rows.append(_row("additive-1", "nominal", "price_of_ignoring", ignoring, radius))
    return rows, {"payoff": payoff[None]}


class _EntropyBaseline:
    """Entropy-regularised policies of one game, with tau chosen by player 1's largest probability.

    That probability is not monotone in tau, so a grid of strengths brackets the target first, from
    the weakest on; where no strength from TAUS reaches it, the nearest is taken.
    """

    TAUS = tuple(np.geomspace(0.02, 50.0, 16))

    def __init__(self, payoff: np.ndarray):
        self.payoff = payoff
        self.found = [self._policies(tau) for tau in self.TAUS]
        self.largest = np.array([x.max() for x, _ in self.found])

    def _policies(self, tau: float) -> tuple[np.ndarray, np.ndarray]:
        term = EntropyRegularizer(tau)
        found = solve_zero_sum(self.payoff, term, term, tol=1e-8)
        return found.x, found.y

    def matching(self, target: float) -> tuple[np.ndarray, np.ndarray]:
        excess = self.largest - target
        crossings = np.flatnonzero(excess[:-1] * excess[1:] < 0)
        if not crossings.size:
            return self.found[int(np.argmin(np.abs(excess)))]
        ends = np.log(self.TAUS[crossings[0]]), np.log(self.TAUS[crossings[0] + 1])
        root = brentq(lambda t: self._policies(np.exp(t))[0].max() - target, *ends, xtol=1e-3)
        return self._policies(np.exp(root))


def _worst_of_members(payoff, radius, x, y, rng, members: int) -> float:
    """The least value over sampled members u 1^T + 1 w^T, the corners of the balls among them."""
    draws = rng.laplace(size=(2, members, len(x)))
    sizes = np.abs(draws).sum(axis=2, keepdims=True)
    # Half of the members on the sphere, half inside; then every corner.
    inside = np.concatenate([np.ones(members // 2), rng.uniform(size=members - members // 2)])
    bonus = radius * draws / sizes * inside[None, :, None]
    corners = -radius * np.eye(len(x))
    costs_x = np.concatenate([bonus[0] @ x, corners @ x])
    costs_y = np.concatenate([bonus[1] @ y, corners @ y])
    pairs = costs_x[:members] + costs_y[:members]
    corner_pairs = np.add.outer(costs_x[members:], costs_y[members:])
    return float(x @ payoff @ y + min(pairs.min(), corner_pairs.min()))


# Theorems 4.1 and 5.5: every bimatrix game is a zero-sum robust game.


def hardness(seed: int, settings: HardnessSettings) -> tuple[list[Row], Games]:
    """Round trip of the reduction; equilibria of both games, how many and how different."""
    rng = np.random.default_rng(seed)
    n = settings.size
    errors, forth, back, several, spreads, refused = [], [], [], [], [], []
    drawn = rng.standard_normal((settings.games, 2, n, n))
    for b, c in drawn:
        game, shift = bimatrix_to_robust(b, c)
        again_b, again_c = robust_to_bimatrix(game)
        errors.append(max(np.abs(again_b - b).max(), np.abs(again_c + shift - c).max()))
        ours, theirs = enumerate_equilibria(b, c), enumerate_equilibria(again_b, again_c)
        forth += [game.nash_gap(x, y) <= 1e-9 for x, y in ours]
        back += [RobustMatrixGame(b, c).nash_gap(x, y) <= 1e-9 for x, y in theirs]
        values = [x @ b @ y for x, y in ours]
        spreads.append(np.ptp(values))
        several.append(len(values) >= 2 and spreads[-1] > 1e-6)
        refused.append(_refuses(game))
    rows = [
        _row("bimatrix", "robust", "roundtrip_error", max(errors)),
        _row("bimatrix", "robust", "share_matched", min(np.mean(forth), np.mean(back))),
        _row("bimatrix", "robust", "share_several_values", np.mean(several)),
        _row("bimatrix", "robust", "value_spread", np.mean(spreads)),
        _row("bimatrix", "lp", "share_refused", np.mean(refused)),
    ]
    for size in settings.sizes:
        games = rng.standard_normal((settings.games_per_size, 2, size, size))
        counts = [len(enumerate_equilibria(*pair)) for pair in games]
        vertices = [count_vertices(*pair) for pair in games]
        rows.append(_row("bimatrix", "robust", "equilibria", np.mean(counts), size))
        rows.append(_row("bimatrix", "robust", "vertices", np.mean(vertices), size))
    b, c = BATTLE_OF_THE_SEXES
    matrix_game, _ = bimatrix_to_robust(b, c)
    found = solve_bimatrix(*robust_to_bimatrix(matrix_game))
    gap = matrix_game.nash_gap(found.x, found.y)
    rows.append(_row("battle-of-the-sexes", "milp", "nash_gap", gap))
    for name, reduction in (
        ("transitions", bimatrix_to_transition_game),
        ("state-radius", bimatrix_to_state_radius_game),
    ):
        planned = plan(reduction(b, c)[0])
        rows.append(_row(f"battle-of-the-sexes-{name}", "milp", "nash_gap", planned.gap))
    return rows, {"payoff": drawn.reshape(-1, n, n)}


def _refuses(game: RobustMatrixGame) -> bool:
    try:
        solve(game)
    except NotDecomposableError:
        return True
    return False


# Section 4: decomposable zero-sum games are linear programs.


def scaling(seed: int, settings: ScalingSettings) -> tuple[list[Row], Games]:
    """Simplex iterations over the size of the game; linear programs over states and steps."""
    rng = np.random.default_rng(seed)
    rows, gaps = [], []
    for n in settings.sizes:
        iterations = []
        for _ in range(settings.games):
            payoff = random_matrix_game((n, n), rng)
            found = solve(RobustMatrixGame.zero_sum(payoff, AdditiveBall((n, n), 1, 1.0, 1.0)))
            iterations.append(found.iterations)
            gaps.append(found.gap)
        rows.append(_row("matrix", "lp", "iterations", np.mean(iterations), n))
    grid = {
        "states": [(s, settings.fixed) for s in settings.states],
        "horizon": [(settings.fixed, h) for h in settings.horizons],
    }
    arrays = {}
    for name, pairs in grid.items():
        for states, horizon in pairs:
            game = _single_controller(states, horizon, settings.actions, rng)
            found = plan(game, stage="lp")
            gaps.append(found.gap)
            programs = int((found.stage_methods == "lp").sum())
            x = states if name == "states" else horizon
            rows.append(_row(name, "lp", "linear_programs", programs, x))
            extra = programs - states * horizon
            rows.append(_row(name, "lp", "extra_linear_programs", extra, x))
            arrays |= _arrays(f"{name}{x}", game)
    rows.append(_row("all", "lp", "nash_gap", max(gaps)))
    return rows, arrays


def _single_controller(states: int, horizon: int, actions: int, rng) -> RobustMarkovGame:
    shape = (actions, actions)
    sets = [AdditiveBall(shape, 1, radius, radius) for radius in rng.uniform(0, 1, states)]
    return random_markov_game(
        "single_controller",
        rng,
        states=states,
        actions=shape,
        horizon=horizon,
        reward_sets=sets,
    )


# Which L1 and L-infinity balls are decomposable.


def _readings(shape: tuple[int, int], radius: float) -> dict[str, UncertaintySet]:
    return {
        "operator-1-1": OperatorBall(shape, 1, 1, radius),
        "operator-inf-inf": OperatorBall(shape, INF, INF, radius),
        "entrywise-inf": EntrywiseBall(shape, INF, radius),
        "additive-1": AdditiveBall(shape, 1, radius, radius),
        "additive-inf": AdditiveBall(shape, INF, radius, radius),
        "entrywise-1": EntrywiseBall(shape, 1, radius),
    }


def readings(seed: int, settings: ReadingsSettings) -> tuple[list[Row], Games]:
    """How far the penalty is from a term in x plus a term in y, for each reading of the balls.

    Where the set names its two terms, their sum is compared with the support function. The
    entrywise L1 ball names none; its interaction between x and y (a double difference, zero exactly
    for a sum of two terms) is reported in its place.
    """
    rng = np.random.default_rng(seed)
    rows, payoffs = [], []
    for name in _readings((2, 2), 1.0):
        residuals, gaps = [0.0], []
        for _ in range(settings.games):
            shape = tuple(int(k) for k in rng.choice(settings.sizes, 2))
            uncertainty = _readings(shape, rng.uniform(*settings.radius))[name]
            payoffs.append(random_matrix_game(shape, rng))
            count = max(2, settings.policies // settings.games)
            xs, ys = (
                rng.dirichlet(np.ones(shape[0]), count),
                rng.dirichlet(np.ones(shape[1]), count),
            )
            terms = uncertainty.rows_and_cols()
            if terms is None:
                residuals += _interactions(uncertainty, xs, ys)
                continue
            residuals += [
                abs(uncertainty.support(-np.outer(x, y)) - terms[0].value(x) - terms[1].value(y))
                for x, y in zip(xs, ys, strict=True)
            ]
            gaps.append(solve(RobustMatrixGame.zero_sum(payoffs[-1], uncertainty)).gap)
        method = "lp" if gaps else "product"
        rows.append(_row(name, method, "decomposition_residual", max(residuals)))
        if gaps:
            rows.append(_row(name, method, "nash_gap", max(gaps)))
    return rows, _padded(payoffs)


def _interactions(uncertainty: UncertaintySet, xs, ys) -> Iterable[float]:
    for x, other_x, y, other_y in zip(xs[:-1], xs[1:], ys[:-1], ys[1:], strict=True):
        corners = [
            uncertainty.support(-np.outer(a, b))
            for a, b in ((x, y), (other_x, y), (x, other_y), (other_x, other_y))
        ]
        yield abs(corners[0] - corners[1] - corners[2] + corners[3])


# When a stage before the last is zero-sum.


def shortcut(seed: int, settings: ShortcutSettings) -> tuple[list[Row], Games]:
    """Robust Nash gap of the zero-sum recursion: equal and unequal radii, one controller."""
    rng = np.random.default_rng(seed)
    shape = (settings.actions, settings.actions)
    concentration = np.full(settings.states, 0.5)
    rewards = rng.uniform(-1, 1, (settings.states, *shape))
    moved_by_both = rng.dirichlet(concentration, (settings.states, *shape))
    moved_by_one = np.repeat(
        rng.dirichlet(concentration, (settings.states, 1, settings.actions)), settings.actions, 1
    )
    equal, unequal = np.ones(settings.states), np.resize([0.0, 0.5, 1.0, 2.0], settings.states)
    families = {
        "state-dependent": (moved_by_both, unequal),
        "equal": (moved_by_both, equal),
        "single-controller": (moved_by_one, unequal),
    }
    rows = []
    for scale in settings.scales:
        for name, (transitions, radii) in families.items():
            sets = [EntrywiseBall(shape, INF, scale * radius) for radius in radii]
            game = RobustMarkovGame.zero_sum(rewards, transitions, sets, horizon=settings.horizon)
            rows.append(_row(name, "shortcut", "nash_gap", zero_sum_shortcut(game).gap, scale))
            rows.append(_row(name, "robust", "nash_gap", plan(game).gap, scale))
    return rows, {
        "rewards": rewards,
        "transitions": moved_by_both,
        "single-controller.transitions": moved_by_one,
    }


EXPERIMENTS: dict[str, tuple[Callable[..., tuple[list[Row], Games]], type]] = {
    "equivalence": (equivalence, EquivalenceSettings),
    "planning": (planning, PlanningSettings),
    "robustness": (robustness, RobustnessSettings),
    "hardness": (hardness, HardnessSettings),
    "scaling": (scaling, ScalingSettings),
    "readings": (readings, ReadingsSettings),
    "shortcut": (shortcut, ShortcutSettings),
}
