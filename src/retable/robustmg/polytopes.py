"""Robust values and best responses by programs over the set itself, without support functions.

A polytope of perturbations is {B z : G z <= h}. Its robust value is a linear program in z; its
robust best response is one in the policy and in the multipliers of the inner minimum. They share no
code with the closed forms that they are compared with.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, eye_array, hstack, vstack

from retable.robustmg.errors import SolverError
from retable.robustmg.uncertainty import (
    AdditiveBall,
    Box,
    EntrywiseBall,
    OperatorBall,
    UncertaintySet,
)

_HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Polytope:
    """All matrices of the given shape whose entries, row by row, are basis @ z, with g @ z <= h."""

    shape: tuple[int, int]
    basis: csr_array
    g: csr_array
    h: np.ndarray


def polytope(uncertainty: UncertaintySet) -> Polytope:
    """Write a set as a polytope.

    Box, EntrywiseBall(1 or inf), OperatorBall(1, 1), OperatorBall(inf, inf), AdditiveBall(1 or
    inf); ValueError for others, which are none or have no short description.
    """
    shape = m, n = uncertainty.shape
    size = m * n
    match uncertainty:
        case Box():
            g = vstack([eye_array(size), -eye_array(size)])
            h = np.concatenate([uncertainty.high.ravel(), -uncertainty.low.ravel()])
            return Polytope(shape, eye_array(size).tocsr(), g.tocsr(), h)
        case EntrywiseBall(p=p, radius=r) if p == np.inf:
            g = vstack([eye_array(size), -eye_array(size)])
            return Polytope(shape, eye_array(size).tocsr(), g.tocsr(), np.full(2 * size, r))
        case EntrywiseBall(p=1, radius=r):
            return _sums_of_sizes(shape, eye_array(size).tocsr(), np.ones((1, size)), [r])
        case OperatorBall(p=1, q=1, radius=r):
            columns = np.tile(np.eye(n), (1, m))
            return _sums_of_sizes(shape, eye_array(size).tocsr(), columns, np.full(n, r))
        case OperatorBall(p=p, q=q, radius=r) if p == q == np.inf:
            rows = np.repeat(np.eye(m), n, axis=1)
            return _sums_of_sizes(shape, eye_array(size).tocsr(), rows, np.full(m, r))
        case AdditiveBall(p=p) if p in (1, np.inf):
            # z = (u, w), R[a, b] = u[a] + w[b].
            spread = np.hstack([np.repeat(np.eye(m), n, axis=0), np.tile(np.eye(n), (m, 1))])
            radii = [uncertainty.row_radius, uncertainty.col_radius]
            if p == 1:
                parts = np.repeat(np.eye(2), [m, n], axis=1)
                return _sums_of_sizes(shape, csr_array(spread), parts, radii)
            bound = np.repeat(radii, [m, n])
            g = vstack([eye_array(m + n), -eye_array(m + n)]).tocsr()
            return Polytope(shape, csr_array(spread), g, np.concatenate([bound, bound]))
    raise ValueError(f"polytope: no linear description of {uncertainty!r}")


def _sums_of_sizes(shape, basis, groups, bounds) -> Polytope:
    """Groups of |z| with bounded sums: z = plus - minus, both >= 0."""
    size = basis.shape[1]
    signs = -eye_array(2 * size)
    sums = csr_array(np.hstack([groups, groups]))
    h = np.concatenate([np.zeros(2 * size), np.asarray(bounds, float)])
    return Polytope(shape, hstack([basis, -basis]).tocsr(), vstack([signs, sums]).tocsr(), h)


def robust_value(payoff: np.ndarray, ball: Polytope, x: np.ndarray, y: np.ndarray) -> float:
    """min over R in the polytope of x^T (payoff + R) y, by a linear program in R."""
    cost = ball.basis.T @ np.outer(x, y).ravel()
    result = linprog(cost, A_ub=ball.g, b_ub=ball.h, bounds=(None, None), options=_HIGHS)
    if result.status != 0:
        raise SolverError(f"HiGHS did not report optimal: {result.message}")
    return float(x @ payoff @ y + result.fun)


def robust_best_response(
    payoff: np.ndarray, ball: Polytope, player: int, opponent: np.ndarray
) -> float:
    """max over one player's policies of the robust value, the inner minimum dualised.

    min {cost . z : g z <= h} = max {-h . lam : g^T lam = -cost, lam >= 0}, and cost is linear in
    the policy.
    """
    m, n = ball.shape
    if player == 1:
        # vec(x y^T) = (I_m kron y) x
        lift = block_diag([csr_array(opponent[:, None])] * m)
        gain = payoff @ opponent
    else:
        lift = vstack([csr_array(np.eye(n) * weight) for weight in opponent])
        gain = opponent @ payoff
    own = gain.size
    cost = np.concatenate([-gain, ball.h])
    equalities = hstack([ball.basis.T @ lift, ball.g.T])
    total = csr_array(np.concatenate([np.ones(own), np.zeros(ball.h.size)])[None])
    result = linprog(
        cost,
        A_eq=vstack([equalities, total]).tocsr(),
        b_eq=np.concatenate([np.zeros(equalities.shape[0]), [1.0]]),
        bounds=(0, None),
        options=_HIGHS,
    )
    if result.status != 0:
        raise SolverError(f"HiGHS did not report optimal: {result.message}")
    return float(-result.fun)


def robust_best_response_cone(
    payoff: np.ndarray, ball: OperatorBall, player: int, opponent: np.ndarray
) -> float:
    """The same for OperatorBall(1, 2), whose columns lie in Euclidean balls, by a cone program."""
    import cvxpy as cp

    m, n = ball.shape
    if player == 1:
        policy = cp.Variable(m, nonneg=True)
        gain = payoff @ opponent
        # Column b of R costs at most radius * y_b * ||x||_2.
        costs = [cp.norm(weight * policy, 2) for weight in opponent]
    else:
        policy = cp.Variable(n, nonneg=True)
        gain = opponent @ payoff
        costs = [policy[b] * float(np.linalg.norm(opponent)) for b in range(n)]
    problem = cp.Problem(
        cp.Maximize(gain @ policy - ball.radius * cp.sum(costs)), [cp.sum(policy) == 1]
    )
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverError(f"Clarabel did not report optimal: {problem.status}")
    return float(problem.value)
