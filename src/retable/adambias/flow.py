"""The modified ODEs of Adam and RMSProp (and of gradient descent), and the iterates they follow.

On the time interval [nh, (n+1)h] the ODE is θ̇ = G1_n(θ) + h G2_n(θ). With the weights
b_k = β^{n-k}(1-β)/(1-β^{n+1}) and r_k = ρ^{n-k}(1-ρ)/(1-ρ^{n+1}) (without the denominators when
there is no bias correction), every loss taken at the same θ,

    M_j = Σ_k b_k ∂_jE_k      V_j = Σ_k r_k (∂_jE_k)²      R_j = sqrt(V_j + ε)      D(l) = M(l)/R(l)
    G1_j = -M_j / R_j
    G2_j = M_j (2P_j + P̄_j) / (2 R_j³) - (2L_j + L̄_j) / (2 R_j)
    2L_j + L̄_j = Σ_k b_k Σ_i ∂_ijE_k S_i(k)            S(k) = 2 Σ_{l=k}^{n-1} D(l) + D(n)
    2P_j + P̄_j = Σ_k r_k ∂_jE_k Σ_i ∂_ijE_k S_i(k)

Derivation: past iterates are θ(k) = θ(n) + h Σ_{l=k}^{n-1} D(l) + O(h²). Insert them into the
moments and expand the quotient, which gives h²(M P/R³ - L/R); then subtract the second-order term
(h²/2)(∇G1)G1 = (h²/2)(L̄/R - M P̄/R³) that the flow of G1 makes by itself. With ε outside the root,
R_j = sqrt(V_j) + ε, and the derivative of the root turns R_j³ into sqrt(V_j) R_j².

The solution stays within O(h²) of the iterates on a finite time horizon; with G1 alone, O(h).
With one loss (full batch) everything collapses to `modified_rhs`.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from retable.adambias.checks import (
    check_count,
    check_decay,
    check_nonnegative,
    check_order,
    check_placement,
    check_positive,
)
from retable.adambias.optim import Adam
from retable.adambias.problems import Loss


def gradient_graph(
    loss: Loss, theta: Float[Tensor, "p"]
) -> tuple[Float[Tensor, "p"], Float[Tensor, "p"]]:
    """A leaf copy of `theta` and ∇E there, with the graph that `hessian_vector` needs."""
    leaf = _vector(theta).requires_grad_()
    with torch.enable_grad():
        value = loss(leaf)
        if not isinstance(value, Tensor) or value.ndim or not value.requires_grad:
            kind = type(value).__name__
            if isinstance(value, Tensor):
                graph = "with" if value.requires_grad else "without"
                kind = f"tensor of shape {tuple(value.shape)} {graph} a graph"
            raise ValueError(f"loss gives a {kind}, allowed: a scalar that depends on theta")
        (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
    return leaf, gradient


def hessian_vector(
    gradient: Float[Tensor, "p"], theta: Float[Tensor, "p"], vector: Float[Tensor, "p"]
) -> Float[Tensor, "p"]:
    """∇²E · vector, from the pair that `gradient_graph` returns (in the order gradient, theta)."""
    if not gradient.requires_grad:  # a linear loss
        return torch.zeros_like(theta)
    (product,) = torch.autograd.grad(
        gradient, theta, vector, retain_graph=True, materialize_grads=True
    )
    return product


def integrate(
    rhs: Callable[[Tensor], Tensor], theta: Tensor, duration: float, substeps: int
) -> Tensor:
    """Follow θ̇ = rhs(θ) for `duration` with `substeps` classical Runge-Kutta (RK4) steps."""
    dt = duration / substeps
    for _ in range(substeps):
        k1 = rhs(theta)
        k2 = rhs(theta + 0.5 * dt * k1)
        k3 = rhs(theta + 0.5 * dt * k2)
        k4 = rhs(theta + dt * k3)
        theta = theta + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return theta


# Full batch ---------------------------------------------------------------------------------------


def memory_coefficient(beta: float, n: int | None = None) -> float:
    """c_n(β) = (1+β)/(1-β) - 2(n+1) β^{n+1}/(1-β^{n+1}), how far back a moving average looks.

    It is 1 + 2 Σ_k w_k (n-k) with the bias-corrected weights w_k of step n (n = 0 is the first).
    n = None gives the limit (1+β)/(1-β). β in [0, 1), n >= 0.
    """
    check_decay("beta", beta)
    limit = (1.0 + beta) / (1.0 - beta)
    if n is None:
        return limit
    check_count("n", n, 0)
    if beta == 0.0:
        return 1.0
    log_power = (n + 1) * math.log(beta)
    return limit - 2.0 * (n + 1) * math.exp(log_power) / -math.expm1(log_power)


def bias_coefficient(
    grad: Tensor,
    *,
    beta: float,
    rho: float,
    eps: float,
    n: int | None = None,
    eps_placement: str = "inside",
) -> Tensor:
    """κ_j, the sign and size of Adam's bias in each coordinate; shape of `grad` = ∇E.

    inside:  κ_j = c_n(β) - c_n(ρ) + c_n(ρ) ε / (g_j² + ε)
    outside: κ_j = c_n(β) - c_n(ρ) |g_j| / (|g_j| + ε)

    Positive: the perturbed one-norm of the gradient is penalised; negative: its reduction is
    impeded. ε > 0; n = None takes the limits of c_n.
    """
    check_decay("rho", rho)
    check_positive("eps", eps)
    check_placement(eps_placement)
    c_beta, c_rho = memory_coefficient(beta, n), memory_coefficient(rho, n)
    if eps_placement == "inside":
        return c_beta - c_rho + c_rho * eps / (grad.square() + eps)
    return c_beta - c_rho * grad.abs() / (grad.abs() + eps)


def modified_rhs(
    loss: Loss,
    theta: Float[Tensor, "p"],
    *,
    h: float,
    beta: float,
    rho: float,
    eps: float,
    n: int | None = None,
    order: int = 2,
    eps_placement: str = "inside",
) -> Float[Tensor, "p"]:
    """Right side of the ODE of full-batch Adam with bias correction, at `theta` (p,).

    inside:  θ̇_j = -(1/R_j) [∂_jE + (h/2) κ_j ∂_j‖∇E‖_{1,ε}],   R_j = sqrt((∂_jE)² + ε)
    outside: θ̇_j = -(1/D_j) [∂_jE + (h/2) κ_j ∂_jN(θ)],          D_j = |∂_jE| + ε

    with κ of `bias_coefficient` and N of `norms.softened_one_norm`. order = 1 leaves κ out. One
    gradient and one Hessian-vector product: ∂‖∇E‖_{1,ε} = ∇²E (∇E/R). n is the step to whose
    interval [nh, (n+1)h] the right side belongs; None takes the limit of large n.

    Raises ValueError for h < 0, eps <= 0 (R may vanish), β or ρ outside [0, 1), n < 0, order not 1
    or 2, an unknown placement, theta not 1-D.
    """
    _check_settings(h, beta, rho, eps, order, eps_placement)
    if n is not None:
        check_count("n", n, 0)
    leaf, graph = gradient_graph(loss, theta)
    gradient = graph.detach()
    inside = eps_placement == "inside"
    root = (gradient.square() + eps).sqrt() if inside else gradient.abs() + eps
    if order == 1:
        return -gradient / root
    kappa = bias_coefficient(
        gradient, beta=beta, rho=rho, eps=eps, n=n, eps_placement=eps_placement
    )
    norm_gradient = hessian_vector(graph, leaf, gradient / root)
    return -(gradient + 0.5 * h * kappa * norm_gradient) / root


def modified_flow(
    loss: Loss,
    theta0: Float[Tensor, "p"],
    *,
    h: float,
    steps: int,
    beta: float,
    rho: float,
    eps: float,
    order: int = 2,
    substeps: int = 2,
    eps_placement: str = "inside",
) -> Float[Tensor, "steps+1 p"]:
    """Solution of the ODE of full-batch Adam at the times 0, h, ..., steps·h, from `theta0`.

    The right side is that of `modified_rhs` with n constant on each interval; every interval takes
    `substeps` Runge-Kutta steps that end exactly at its end, where the right side jumps.
    """
    _check_settings(h, beta, rho, eps, order, eps_placement)

    def rhs_of_step(n: int) -> Callable[[Tensor], Tensor]:
        return lambda theta: modified_rhs(
            loss,
            theta,
            h=h,
            beta=beta,
            rho=rho,
            eps=eps,
            n=n,
            order=order,
            eps_placement=eps_placement,
        )

    return _piecewise_flow(rhs_of_step, theta0, h, steps, substeps)


def adam_trajectory(
    loss: Loss,
    theta0: Float[Tensor, "p"],
    *,
    h: float,
    steps: int,
    beta: float,
    rho: float,
    eps: float,
    bias_correction: bool = True,
    eps_placement: str = "inside",
) -> Float[Tensor, "steps+1 p"]:
    """Iterates of full-batch `optim.Adam`, θ(0) = theta0 first."""
    check_count("steps", steps, 1)
    return minibatch_trajectory(
        [loss],
        [0] * steps,
        theta0,
        h=h,
        steps=steps,
        beta=beta,
        rho=rho,
        eps=eps,
        bias_correction=bias_correction,
        eps_placement=eps_placement,
    )


# Mini-batches, and variants without bias correction -----------------------------------------------


def minibatch_rhs(
    losses: Sequence[Loss],
    schedule: Sequence[int],
    theta: Float[Tensor, "p"],
    n: int,
    *,
    h: float,
    beta: float,
    rho: float,
    eps: float,
    order: int = 2,
    bias_correction: bool = True,
    eps_placement: str = "inside",
) -> Float[Tensor, "p"]:
    """G1_n(θ) + h G2_n(θ), the right side on [nh, (n+1)h] when step k uses losses[schedule[k]].

    The equations at the top of this module, for k = 0..n. Takes one gradient and two
    Hessian-vector products for each distinct loss among those steps (the Hessian is linear, so the
    vectors of all steps with the same loss are summed first), and O(n p) memory. RMSProp is β = 0
    without bias correction.

    Raises ValueError as `modified_rhs` does, and for empty `losses`, a schedule entry outside
    0..len(losses)-1, or a schedule of no more than n entries.
    """
    _check_settings(h, beta, rho, eps, order, eps_placement)
    check_count("n", n, 0)
    steps = _check_schedule(losses, schedule, n + 1)[: n + 1]
    used, position = torch.unique(steps, return_inverse=True)
    graphs = [gradient_graph(losses[index], theta) for index in used.tolist()]
    gradients = torch.stack([graph.detach() for _, graph in graphs])

    is_used = torch.nn.functional.one_hot(position, len(used)).to(gradients.dtype)
    b_sums = _memory_weights(is_used, beta, bias_correction)
    r_sums = _memory_weights(is_used, rho, bias_correction)
    m, v = b_sums @ gradients, r_sums @ gradients.square()
    root = (v + eps).sqrt() if eps_placement == "inside" else v.sqrt() + eps
    drift = m / root
    if order == 1:
        return -drift[n]

    # S(k) = 2 Σ_{l=k}^{n-1} D(l) + D(n), from the sums up to and including each step.
    cumulative = drift.cumsum(0)
    memory = 2.0 * (cumulative[n] - cumulative + drift) - drift[n]
    age = torch.arange(n, -1, -1, dtype=gradients.dtype)
    b = is_used * _weights(age, beta, bias_correction)[:, None]
    r = is_used * _weights(age, rho, bias_correction)[:, None]
    l_term, p_term = torch.zeros_like(theta), torch.zeros_like(theta)
    for (leaf, graph), gradient, b_vector, r_vector in zip(
        graphs, gradients, b.T @ memory, r.T @ memory, strict=True
    ):
        l_term = l_term + hessian_vector(graph, leaf, b_vector)
        p_term = p_term + gradient * hessian_vector(graph, leaf, r_vector)
    if eps_placement == "inside":
        p_factor = m[n] / root[n] ** 3
    else:
        # A coordinate with V = 0 has all its gradients 0, so that M and P vanish with it.
        size = v[n].sqrt()
        p_factor = torch.where(size > 0, m[n] / (size * root[n] ** 2), 0.0)
    return -drift[n] + 0.5 * h * (p_factor * p_term - l_term / root[n])


def minibatch_flow(
    losses: Sequence[Loss],
    schedule: Sequence[int],
    theta0: Float[Tensor, "p"],
    *,
    h: float,
    steps: int,
    beta: float,
    rho: float,
    eps: float,
    order: int = 2,
    substeps: int = 2,
    bias_correction: bool = True,
    eps_placement: str = "inside",
) -> Float[Tensor, "steps+1 p"]:
    """Solution of the mini-batch ODE at the times 0, h, ..., steps·h (see `modified_flow`).

    Its cost grows with the square of `steps`, because the right side looks back at every step.
    """
    check_count("steps", steps, 1)
    _check_schedule(losses, schedule, steps)

    def rhs_of_step(n: int) -> Callable[[Tensor], Tensor]:
        return lambda theta: minibatch_rhs(
            losses,
            schedule,
            theta,
            n,
            h=h,
            beta=beta,
            rho=rho,
            eps=eps,
            order=order,
            bias_correction=bias_correction,
            eps_placement=eps_placement,
        )

    return _piecewise_flow(rhs_of_step, theta0, h, steps, substeps)


def minibatch_trajectory(
    losses: Sequence[Loss],
    schedule: Sequence[int],
    theta0: Float[Tensor, "p"],
    *,
    h: float,
    steps: int,
    beta: float,
    rho: float,
    eps: float,
    bias_correction: bool = True,
    eps_placement: str = "inside",
) -> Float[Tensor, "steps+1 p"]:
    """Iterates of `optim.Adam` when step k takes the gradient of losses[schedule[k]]."""
    check_positive("h", h)
    check_count("steps", steps, 1)
    order = _check_schedule(losses, schedule, steps)[:steps]
    theta = _vector(theta0).clone()
    optimizer = Adam(
        [theta],
        h,
        (beta, rho),
        eps,
        bias_correction=bias_correction,
        eps_placement=eps_placement,
    )
    trajectory = [theta.clone()]
    for index in order.tolist():
        theta.grad = gradient_graph(losses[index], theta)[1].detach()
        optimizer.step()
        trajectory.append(theta.clone())
    return torch.stack(trajectory)


# Gradient descent, for comparison -----------------------------------------------------------------


def gd_trajectory(
    loss: Loss, theta0: Float[Tensor, "p"], *, h: float, steps: int
) -> Float[Tensor, "steps+1 p"]:
    """Iterates of gradient descent, θ(n+1) = θ(n) - h ∇E(θ(n))."""
    check_positive("h", h)
    check_count("steps", steps, 1)
    trajectory = [_vector(theta0).clone()]
    for _ in range(steps):
        theta = trajectory[-1]
        trajectory.append(theta - h * gradient_graph(loss, theta)[1].detach())
    return torch.stack(trajectory)


def gd_modified_flow(
    loss: Loss,
    theta0: Float[Tensor, "p"],
    *,
    h: float,
    steps: int,
    order: int = 2,
    substeps: int = 2,
) -> Float[Tensor, "steps+1 p"]:
    """Flow of E + (h/4)‖∇E‖² at the times 0, h, ..., steps·h; order = 1 is that of E alone."""
    check_order(order)

    def rhs(theta: Tensor) -> Tensor:
        leaf, graph = gradient_graph(loss, theta)
        gradient = graph.detach()
        if order == 1:
            return -gradient
        return -gradient - 0.5 * h * hessian_vector(graph, leaf, gradient)

    return _piecewise_flow(lambda n: rhs, theta0, h, steps, substeps)


# Shared pieces ------------------------------------------------------------------------------------


def _check_settings(
    h: float, beta: float, rho: float, eps: float, order: int, eps_placement: str
) -> None:
    check_nonnegative("h", h)
    check_decay("beta", beta)
    check_decay("rho", rho)
    check_positive("eps", eps, " (the denominator may vanish)")
    check_order(order)
    check_placement(eps_placement)


def _vector(theta: Tensor) -> Tensor:
    """`theta` without its graph; errors where it is no real vector."""
    if not isinstance(theta, Tensor) or not theta.is_floating_point():
        kind = theta.dtype if isinstance(theta, Tensor) else type(theta).__name__
        raise TypeError(f"theta is of {kind}, allowed: a tensor of real float")
    if theta.ndim != 1:
        raise ValueError(f"theta has shape {tuple(theta.shape)}, allowed: 1-D")
    return theta.detach()


def _check_schedule(losses: Sequence[Loss], schedule: Sequence[int], needed: int) -> Tensor:
    if len(losses) == 0:
        raise ValueError("losses is empty, allowed: at least 1 loss")
    if len(schedule) < needed:
        raise ValueError(f"schedule has {len(schedule)} entries, allowed: at least {needed}")
    entries = torch.as_tensor(schedule)
    if entries.ndim != 1 or entries.is_floating_point() or entries.is_complex():
        raise ValueError(
            f"schedule holds {entries.dtype} in shape {tuple(entries.shape)}, allowed: whole "
            "numbers in one row"
        )
    outside = entries[(entries < 0) | (entries >= len(losses))]
    if outside.numel():
        raise ValueError(
            f"schedule holds {outside[0].item()}, allowed: 0 to {len(losses) - 1}, one per loss"
        )
    return entries


def _piecewise_flow(
    rhs_of_step: Callable[[int], Callable[[Tensor], Tensor]],
    theta0: Tensor,
    h: float,
    steps: int,
    substeps: int,
) -> Tensor:
    check_positive("h", h)
    check_count("steps", steps, 1)
    check_count("substeps", substeps, 1)
    trajectory = [_vector(theta0).clone()]
    for n in range(steps):
        trajectory.append(integrate(rhs_of_step(n), trajectory[-1], h, substeps))
    return torch.stack(trajectory)


def _weights(age: Tensor, decay: float, bias_correction: bool) -> Tensor:
    """Weights of gradients that are `age` steps old in a moving average; the oldest is first."""
    weights = (1.0 - decay) * decay**age
    return weights / (1.0 - decay ** (age[0] + 1)) if bias_correction else weights


def _memory_weights(is_used: Tensor, decay: float, bias_correction: bool) -> Tensor:
    """Row l: how much each loss weighs in the moving average after step l; (steps, losses).

    Sums Σ_{k≤l} decay^{l-k} is_used[k] of all l at once, by doubling their span: log₂(steps)
    vector operations.
    """
    sums, span = is_used, 1
    while span < len(sums):
        sums = torch.cat([sums[:span], sums[span:] + decay**span * sums[:-span]])
        span *= 2
    sums = (1.0 - decay) * sums
    if not bias_correction:
        return sums
    counts = torch.arange(1, len(sums) + 1, dtype=sums.dtype)
    return sums / (1.0 - decay**counts)[:, None]
