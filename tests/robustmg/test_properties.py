"""Support functions, maximisers, values and gaps hold what theory says of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.robustmg.matrix import RobustMatrixGame, solve, solve_bimatrix
from retable.robustmg.polytopes import (
    polytope,
    robust_best_response,
    robust_best_response_cone,
    robust_value,
)
from retable.robustmg.transitions import (
    ChiSquareBall,
    KLBall,
    L1Ball,
    LInfBall,
    TVBall,
    WassersteinBall,
)
from retable.robustmg.uncertainty import (
    AdditiveBall,
    Box,
    EntropySet,
    EntrywiseBall,
    KLSet,
    OperatorBall,
    Singleton,
)

INF = np.inf
SHAPE = (3, 4)
DISTANCE = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)


def sets(radius, rng):
    return [
        Box(-radius * rng.uniform(size=SHAPE), radius * rng.uniform(size=SHAPE)),
        *(EntrywiseBall(SHAPE, p, radius) for p in (1, 1.5, 2, INF)),
        *(OperatorBall(SHAPE, 1, q, radius) for q in (1, 2, INF)),
        *(OperatorBall(SHAPE, p, INF, radius) for p in (2, INF)),
        OperatorBall(SHAPE, 2, 2, radius),
        *(AdditiveBall(SHAPE, p, radius, radius / 2) for p in (1, 2, INF)),
        Singleton(SHAPE),
    ]


@given(seed=st.integers(0, 10_000), radius=st.floats(0, 3), factor=st.floats(0, 5))
@settings(max_examples=25, deadline=None)
def test_support_functions(seed, radius, factor):
    rng = np.random.default_rng(seed)
    W, V = rng.standard_normal((2, *SHAPE))
    x, y = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    for ball in sets(radius, rng):
        R = ball.maximizer(W)
        assert ball.contains(R), ball
        assert np.sum(R * W) == pytest.approx(ball.support(W), abs=1e-9)
        assert ball.support(factor * W) == pytest.approx(factor * ball.support(W), abs=1e-9)
        assert ball.support(W + V) <= ball.support(W) + ball.support(V) + 1e-9
        assert ball.penalty(x, y) == pytest.approx(ball.support(-np.outer(x, y)), abs=1e-9)
        worst = ball.worst_case(x, y)
        assert ball.contains(worst), ball
        assert x @ worst @ y == pytest.approx(-ball.penalty(x, y), abs=1e-9)
        terms = ball.rows_and_cols()
        if terms is not None:
            split = terms[0].value(x) + terms[1].value(y)
            assert split == pytest.approx(ball.penalty(x, y), abs=1e-9)
        assert ball.negate().contains(-R), ball


@given(seed=st.integers(0, 10_000), radius=st.floats(0.01, 2))
@settings(max_examples=15, deadline=None)
def test_programs_over_the_set_agree_with_the_regularised_game(seed, radius):
    rng = np.random.default_rng(seed)
    payoff = rng.uniform(-1, 1, SHAPE)
    x, y = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    for ball in sets(radius, rng):
        game = RobustMatrixGame.zero_sum(payoff, ball)
        cone = isinstance(ball, OperatorBall) and (ball.p, ball.q) == (1, 2)
        try:
            described = None if cone else polytope(ball)
        except ValueError:
            continue
        for player, a, own, opponent in ((1, payoff, game.set_1, y), (2, -payoff, game.set_2, x)):
            best = game.best_response(player, opponent)[1]
            if cone:
                found = robust_best_response_cone(a, own, player, opponent)
                assert found == pytest.approx(best, abs=1e-7)
                continue
            described = polytope(own)
            value = game.regularized_values(x, y)[player - 1]
            assert robust_value(a, described, x, y) == pytest.approx(value, abs=1e-9)
            found = robust_best_response(a, described, player, opponent)
            assert found == pytest.approx(best, abs=1e-8)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_values_fall_with_the_radius_and_gaps_are_not_negative(seed):
    rng = np.random.default_rng(seed)
    payoff = rng.uniform(-1, 1, SHAPE)
    x, y = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    earlier = (payoff.ravel() @ np.outer(x, y).ravel(), -(x @ payoff @ y))
    for radius in (0, 0.5, 1, 2):
        game = RobustMatrixGame.zero_sum(payoff, AdditiveBall(SHAPE, 1, radius, radius))
        values = game.values(x, y)
        np.testing.assert_allclose(values, game.regularized_values(x, y), atol=1e-10)
        assert all(now <= before + 1e-12 for now, before in zip(values, earlier, strict=True))
        if radius == 0:
            np.testing.assert_allclose(values, earlier, atol=1e-12)
        earlier = values
        assert min(game.gaps(x, y)) >= 0
        shifted = RobustMatrixGame(payoff + 3, -payoff - 7, game.set_1, game.set_2)
        np.testing.assert_allclose(shifted.gaps(x, y), game.gaps(x, y), atol=1e-9)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, INF])
def test_additive_balls_of_every_order_are_solved(p):
    rng = np.random.default_rng(3)
    game = RobustMatrixGame.zero_sum(rng.uniform(-1, 1, (5, 4)), AdditiveBall((5, 4), p, 0.5, 0.3))
    found = solve(game)
    assert found.gap < 1e-7
    assert found.method == ("lp" if p in (1, INF) else "socp")


@pytest.mark.parametrize("player", [1, 2])
def test_entropy_of_one_player_is_a_cone_program(player):
    rng = np.random.default_rng(4)
    payoff = rng.uniform(-1, 1, (3, 3))
    own = EntropySet((3, 3), 0.3, player)
    kl = KLSet((3, 3), 0.3, [0.2, 0.3, 0.5], player)
    for uncertain in (own, kl):
        game = RobustMatrixGame(
            payoff, -payoff, *((uncertain, None) if player == 1 else (None, uncertain))
        )
        found = solve(game)
        assert found.gap < 1e-6
        assert found.method == "socp"


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.7, 0.0), (0.3, 1.2)])
def test_bimatrix_games_with_penalties(weights):
    rng = np.random.default_rng(5)
    q1, q2 = rng.standard_normal((2, 4, 3))
    found = solve_bimatrix(q1, q2, *weights)
    sets_ = [OperatorBall((4, 3), 1, 1, weights[0]), OperatorBall((4, 3), INF, INF, weights[1])]
    # ||x||_inf for the rows, ||y||_inf for the columns.
    assert RobustMatrixGame(q1, q2, *sets_).nash_gap(found.x, found.y) < 1e-9


@given(seed=st.integers(0, 10_000), radius=st.floats(0, 1.5))
@settings(max_examples=40, deadline=None)
def test_worst_transitions_lie_between_the_minimum_and_the_mean(seed, radius):
    rng = np.random.default_rng(seed)
    p, v = rng.dirichlet(np.full(4, 0.5), (2, 3)), rng.standard_normal(4)
    for ball in (
        TVBall(radius),
        L1Ball(radius),
        LInfBall(radius),
        KLBall(radius),
        ChiSquareBall(radius),
        WassersteinBall(radius, DISTANCE),
    ):
        value, q = ball.worst_case(p, v)
        assert value.shape == (2, 3)
        assert (value <= p @ v + 1e-9).all()
        assert (value >= v.min() - 1e-9).all()
        np.testing.assert_allclose(q.sum(axis=-1), 1, atol=1e-9)
        assert (q >= -1e-12).all()
        larger = type(ball)(radius + 0.1, *([DISTANCE] if hasattr(ball, "metric") else []))
        assert (larger.worst_case(p, v)[0] <= value + 1e-9).all()


def test_the_whole_simplex_gives_the_minimum():
    rng = np.random.default_rng(6)
    p, v = rng.dirichlet(np.ones(4)), rng.standard_normal(4)
    assert TVBall(1.0).worst_case(p, v)[0] == pytest.approx(v.min())


def test_kl_against_a_search_over_the_dual():
    rng = np.random.default_rng(7)
    p, v, radius = rng.dirichlet(np.ones(4)), rng.standard_normal(4), 0.2
    lam = np.exp(np.linspace(-8, 8, 200_001))[:, None]
    dual = -lam[:, 0] * np.log((p * np.exp(-(v - v.min()) / lam)).sum(axis=1))
    best = (dual - lam[:, 0] * radius).max() + v.min()
    assert KLBall(radius).worst_case(p, v)[0] == pytest.approx(best, abs=1e-6)


def test_kl_with_states_of_probability_zero():
    p, v = np.array([0.0, 0.5, 0.5]), np.array([-100.0, 0.0, 1.0])
    value, q = KLBall(5.0).worst_case(p, v)
    assert value == pytest.approx(0.0, abs=1e-9)
    assert q[0] == 0


def test_wasserstein_against_the_transport_program():
    from scipy.optimize import linprog

    rng = np.random.default_rng(8)
    p, v = rng.dirichlet(np.ones(4)), rng.standard_normal(4)
    for radius in (0.0, 0.1, 0.5, 2.0):
        mass = np.repeat(np.eye(4), 4, axis=1)
        found = linprog(
            np.tile(v, 4), A_ub=DISTANCE.ravel()[None], b_ub=[radius], A_eq=mass, b_eq=p
        )
        value = WassersteinBall(radius, DISTANCE).worst_case(p, v)[0]
        assert value == pytest.approx(found.fun, abs=1e-9)
