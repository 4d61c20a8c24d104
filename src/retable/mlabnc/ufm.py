r"""The unconstrained feature model and its global optimum (section 3 of the paper).

Features are free variables, as if the network in front of the classifier could produce any:

    f(W, H, b) = (1/N) sum_i L(W h_i + b, S_i) + lam_w ||W||_F^2 + lam_h ||H||_F^2 + lam_b ||b||^2

with L the pick-all-label loss (sum over labels). `ufm_optimum` gives the global minimum in closed
form up to a scalar equation, `solve_ufm` minimises f from a random start, and the two must agree.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root
from torch import Tensor

from retable.mlabnc.label_sets import all_label_sets
from retable.mlabnc.losses import check_target_tensor, pick_all_label_loss


@dataclass(frozen=True)
class UFMResult:
    """A stationary point of f found by `solve_ufm`.

    `grad_norm` is the Euclidean norm of the gradient over W, H and b; `converged` says that it is
    at most 1e-6 in double precision (1e-3 in single).
    """

    W: Tensor
    H: Tensor
    b: Tensor
    objective: float
    grad_norm: float
    converged: bool


@dataclass(frozen=True)
class UFMOptimum:
    """The global minimum of f over balanced label sets: W = tau Z, h_i = c_m sum_{k in S_i} Z_k.

    The rows of Z (K x d) have Gram matrix P_K, up to a rotation. `coef` holds c_m and `kappa` the
    scales kappa_m = c_m / c_1 of the tag-wise average mu_S = kappa_m sum_{k in S} mu_k.
    `degenerate` tells that the regularisation is so strong that everything collapses to zero
    (tau = c_m = 0, no ETF); kappa is then undefined and NaN, as it is without multiplicity 1.
    """

    objective: float
    tau: float
    coef: dict[int, float]
    kappa: dict[int, float]
    degenerate: bool


def ufm_objective(
    W: Float[Tensor, "K d"],
    H: Float[Tensor, "N d"],
    b: Float[Tensor, " K"],
    Y: Shaped[Tensor, "N K"],
    lam_w: float,
    lam_h: float,
    lam_b: float = 0.0,
) -> Tensor:
    """The objective f(W, H, b) of the unconstrained feature model, differentiable.

    Raises ValueError as `pick_all_label_loss` does, for a negative weight, and for a row of Y with
    all K labels (its loss has no gradient that separates classes).
    """
    for name, weight in (("lam_w", lam_w), ("lam_h", lam_h), ("lam_b", lam_b)):
        _check_not_negative(name, weight)
    logits = H @ W.T + b
    _check_not_full(check_target_tensor(logits, Y))
    return (
        pick_all_label_loss(logits, Y)
        + lam_w * W.square().sum()
        + lam_h * H.square().sum()
        + lam_b * b.square().sum()
    )


def balanced_label_sets(num_classes: int, counts: Mapping[int, int]) -> Float[Tensor, "N K"]:
    """Targets with every label set of multiplicity m exactly counts[m] = n_m times (float64).

    Rows run over the multiplicities in ascending order, within one over the sets in lexicographic
    order, copies side by side: N = sum_m n_m C(K, m). Raises ValueError for a multiplicity outside
    1..K-1 or a count below 1.
    """
    counts = _check_counts(num_classes, counts)
    blocks = [np.repeat(all_label_sets(num_classes, m), n, axis=0) for m, n in counts.items()]
    return torch.from_numpy(np.concatenate(blocks).astype(np.float64))


def solve_ufm(
    Y: Shaped[Tensor, "N K"],
    dim: int,
    lam_w: float,
    lam_h: float,
    lam_b: float,
    seed: int = 0,
    max_iter: int = 3000,
    dtype: torch.dtype = torch.float64,
) -> UFMResult:
    """Minimise f from a random start: L-BFGS with strong Wolfe line search, all of W, H, b free.

    The start is W, H ~ 0.5 N(0, 1) from a generator seeded with `seed`, b = 0. `max_iter=0` returns
    the start itself, and a smaller max_iter a point earlier on the same path. `dim` is d >= 1; the
    theory wants d >= K-1. Raises ValueError as `ufm_objective` does, and unless lam_w and lam_h are
    positive (f has no minimum otherwise).
    """
    _check_positive("lam_w", lam_w)
    _check_positive("lam_h", lam_h)
    _check_not_negative("lam_b", lam_b)
    if dim < 1 or max_iter < 0:
        raise ValueError(f"dim must be >= 1 and max_iter >= 0, got dim={dim}, max_iter={max_iter}")
    samples, classes = Y.shape
    generator = torch.Generator().manual_seed(seed)
    W = 0.5 * torch.randn(classes, dim, dtype=dtype, generator=generator)
    H = 0.5 * torch.randn(samples, dim, dtype=dtype, generator=generator)
    variables = [v.requires_grad_() for v in (W, H, torch.zeros(classes, dtype=dtype))]
    targets = Y.to(dtype)

    def gradient() -> Tensor:
        for variable in variables:
            variable.grad = None
        objective = ufm_objective(*variables, targets, lam_w, lam_h, lam_b)
        objective.backward()
        return objective

    if max_iter > 0:
        torch.optim.LBFGS(
            variables,
            max_iter=max_iter,
            max_eval=4 * max_iter,
            history_size=30,
            tolerance_grad=1e-12,
            tolerance_change=1e-16,
            line_search_fn="strong_wolfe",
        ).step(gradient)
    objective = gradient().item()
    grad_norm = math.sqrt(sum(v.grad.square().sum().item() for v in variables))
    W, H, b = (v.detach() for v in variables)
    tolerance = 1e-6 if dtype == torch.float64 else 1e-3
    return UFMResult(W, H, b, objective, grad_norm, grad_norm <= tolerance)


def ufm_optimum(
    num_classes: int, counts: Mapping[int, int], lam_w: float, lam_h: float
) -> UFMOptimum:
    r"""The global minimum of f when every label set of multiplicity m has counts[m] = n_m samples.

    At W = tau Z, h_i = c_m sum_{k in S_i} Z_k, b = 0 with Z Z^T = P_K, a label in S has a logit
    that is tau c_m above every label outside S; ||W||^2 = tau^2 (K-1) and
    ||h_i||^2 = c_m^2 m (K-m) / K. With N_m = n_m C(K, m) and N = sum_m N_m, f is

        phi(tau, c) = sum_m (N_m/N) m log(m + (K-m) e^{-tau c_m})
                      + lam_w tau^2 (K-1) + lam_h sum_m N_m c_m^2 m (K-m) / K

    and the theorem says that its minimum over the scalars is that of f (for d >= K-1, any
    lam_b > 0). Given tau, phi is strictly convex in each c_m; what is left is a function of tau
    alone on a bounded interval, whose stationary points are bracketed on a grid and refined.

    Raises ValueError for bad counts (see `balanced_label_sets`) or weights that are not positive.
    """
    counts = _check_counts(num_classes, counts)
    _check_positive("lam_w", lam_w)
    _check_positive("lam_h", lam_h)
    k = num_classes
    m = np.array(list(counts), dtype=np.float64)
    sizes = np.array([n * math.comb(k, m) for m, n in counts.items()], dtype=np.float64)
    total = sizes.sum()

    def coefficients(tau: np.ndarray) -> np.ndarray:
        """argmin over c of phi for each tau [T]: [T, M].

        d phi / d c_m = 0 reads x = a p(x) for x = tau c_m, where p = (K-m) / (m e^x + K - m) falls
        from (K-m)/K to 0 and a = tau^2 K / (2 lam_h N (K-m)): one root, in [0, a (K-m)/K].
        """
        a = tau[:, None] ** 2 * k / (2 * lam_h * total * (k - m))
        upper = a * (k - m) / k
        root = find_root(
            lambda x, a, m: x - a * (k - m) / (m * np.exp(np.minimum(x, 700.0)) + k - m),
            (np.zeros_like(upper), upper),
            args=(a, np.broadcast_to(m, a.shape)),
            tolerances={"xatol": 0, "xrtol": 4 * np.finfo(np.float64).eps},
        )
        return root.x / tau[:, None]

    def value(tau: np.ndarray) -> np.ndarray:
        c = coefficients(tau)
        loss = (sizes / total * m * np.log(m + (k - m) * np.exp(-tau[:, None] * c))).sum(axis=1)
        norms = lam_h * (sizes * c**2 * m * (k - m) / k).sum(axis=1)
        return loss + lam_w * tau**2 * (k - 1) + norms

    def slope(tau: np.ndarray) -> np.ndarray:
        """Derivative of `value`: by the envelope theorem the explicit one in tau, c held."""
        c = coefficients(tau)
        outside = (k - m) / (m * np.exp(np.minimum(tau[:, None] * c, 700.0)) + k - m)
        return 2 * lam_w * tau * (k - 1) - (sizes / total * m * c * outside).sum(axis=1)

    collapsed = float((sizes / total * m).sum() * math.log(k))
    # Beyond this tau the penalty on W alone exceeds the value at zero.
    largest = math.sqrt(collapsed / (lam_w * (k - 1)))
    grid = np.geomspace(1e-6 * largest, 1.001 * largest, 400)
    slopes = slope(grid)
    minima = np.flatnonzero((slopes[:-1] < 0) & (slopes[1:] >= 0))
    taus = np.array(
        [brentq(lambda t: slope(np.array([t]))[0], *grid[i : i + 2], xtol=1e-15) for i in minima]
    )
    values = value(taus) if len(taus) else np.array([np.inf])
    best = int(values.argmin())
    if values[best] >= collapsed:
        undefined = dict.fromkeys(counts, math.nan)
        return UFMOptimum(collapsed, 0.0, dict.fromkeys(counts, 0.0), undefined, True)
    coef = dict(zip(counts, coefficients(taus[best : best + 1])[0].tolist(), strict=True))
    first = coef.get(1, math.nan)
    kappa = {multiplicity: c / first for multiplicity, c in coef.items()}
    return UFMOptimum(float(values[best]), float(taus[best]), coef, kappa, False)


def _check_counts(num_classes: int, counts: Mapping[int, int]) -> dict[int, int]:
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, got {num_classes}")
    if not counts:
        raise ValueError("counts must name at least one multiplicity, got none")
    for m, n in counts.items():
        if m == num_classes:
            raise ValueError(
                f"counts has multiplicity {m}, a row with all {m} labels: it carries no signal, "
                f"multiplicities must be in 1..{num_classes - 1}"
            )
        if not 1 <= m < num_classes:
            raise ValueError(
                f"counts must have multiplicities in 1..{num_classes - 1}, got multiplicity {m}"
            )
        if n < 1:
            raise ValueError(f"counts[{m}] must be at least 1 sample per label set, got {n}")
    return dict(sorted(counts.items()))


def _check_not_full(picked: Tensor) -> None:
    full = picked.all(dim=1)
    if full.any():
        row = full.nonzero()[0].item()
        raise ValueError(
            f"Y must leave out at least one label in every row, "
            f"row {row} has all {picked.shape[1]} labels"
        )


def _check_not_negative(name: str, weight: float) -> None:
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"{name} must be finite and at least 0, got {weight}")


def _check_positive(name: str, weight: float) -> None:
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"{name} must be finite and above 0, got {weight}")
