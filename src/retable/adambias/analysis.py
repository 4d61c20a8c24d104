"""Distances, orders, defects and norms at equal loss: what the experiments measure."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from retable.adambias.checks import check_count
from retable.adambias.fits import observed_order, value_at_loss
from retable.adambias.flow import (
    adam_trajectory,
    bias_coefficient,
    gradient_graph,
    hessian_vector,
    integrate,
    modified_rhs,
)
from retable.adambias.problems import Loss

__all__ = [
    "DefectFit",
    "defect_coefficient",
    "global_error",
    "observed_order",
    "value_at_loss",
]


def global_error(traj_a: Float[Tensor, "steps p"], traj_b: Float[Tensor, "steps p"]) -> float:
    """Largest distance between two trajectories: max over steps of the max-norm."""
    if traj_a.shape != traj_b.shape:
        raise ValueError(
            f"traj_b has shape {tuple(traj_b.shape)}, allowed: that of traj_a, "
            f"{tuple(traj_a.shape)}"
        )
    return (traj_a - traj_b).abs().max().item()


class DefectFit(NamedTuple):
    """Fit of the one-step defect on what the theory predicts (see `defect_coefficient`)."""

    kappa: float
    kappa_theory: float
    scale: float
    r2_predicted: float
    r2_two_norm: float


def _projection(target: Tensor, field: Tensor) -> tuple[float, float]:
    """Least-squares factor of `target` on `field`, and the centred R² of that fit."""
    factor = (target @ field) / (field @ field)
    residual = (target - factor * field).square().sum()
    return factor.item(), (1.0 - residual / (target - target.mean()).square().sum()).item()


def defect_coefficient(
    loss: Loss,
    theta0: Float[Tensor, "p"],
    *,
    h: float,
    steps: int,
    start: int,
    beta: float,
    rho: float,
    eps: float,
) -> DefectFit:
    """Measure the coefficient κ of the O(h) term from Adam's own steps (ε inside the root).

    The defect of step n against the plain flow Φ_h of G1 is
    Δ(n) = [θ(n+1) - Φ_h(θ(n))] / h² = κ_j(n) B_j + O(h) with B = -∂‖∇E‖_{1,ε} / (2R).
    Pooled over n = start..steps-1 and all coordinates:

    - `kappa`: (Δ·B)/(B·B), meaningful where κ_j is nearly the same for all coordinates, that is
      ε far below or far above all squared gradients;
    - `kappa_theory`: mean of κ_j(n);
    - `scale`, `r2_predicted`: least-squares factor and R² of Δ on κ_j B_j (theory: 1 and 1);
    - `r2_two_norm`: R² of Δ on -∂‖∇E‖²/(2R), the direction of a two-norm penalty, factor free.

    R² is 1 - Σ(Δ-fit)² / Σ(Δ-mean)². Use float64: Δ is a difference divided by h².
    Raises ValueError unless 0 <= start < steps, and as `modified_rhs` does.
    """
    check_count("steps", steps, 1)
    check_count("start", start, 0)
    if start >= steps:
        raise ValueError(f"start is {start}, allowed: 0 <= start < steps = {steps}")
    trajectory = adam_trajectory(loss, theta0, h=h, steps=steps, beta=beta, rho=rho, eps=eps)
    defects, fields, coefficients, two_norm_fields = [], [], [], []

    def plain(theta: Tensor) -> Tensor:
        return modified_rhs(loss, theta, h=h, beta=beta, rho=rho, eps=eps, order=1)

    for n in range(start, steps):
        flowed = integrate(plain, trajectory[n], h, substeps=4)
        defects.append((trajectory[n + 1] - flowed) / h**2)
        theta, gradient = gradient_graph(loss, trajectory[n])
        g = gradient.detach()
        root = (g.square() + eps).sqrt()
        fields.append(-hessian_vector(gradient, theta, g / root) / (2.0 * root))
        two_norm_fields.append(-hessian_vector(gradient, theta, 2.0 * g) / (2.0 * root))
        coefficients.append(bias_coefficient(g, beta=beta, rho=rho, eps=eps, n=n))
    defect, field, kappa, two_norm_field = (
        torch.cat(parts) for parts in (defects, fields, coefficients, two_norm_fields)
    )
    scale, r2_predicted = _projection(defect, kappa * field)
    return DefectFit(
        kappa=_projection(defect, field)[0],
        kappa_theory=kappa.mean().item(),
        scale=scale,
        r2_predicted=r2_predicted,
        r2_two_norm=_projection(defect, two_norm_field)[1],
    )
