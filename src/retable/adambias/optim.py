"""Adam and RMSProp as the paper defines them: ε inside the root by default.

    m(n+1) = β m(n) + (1-β) g(n)          v(n+1) = ρ v(n) + (1-ρ) g(n)²
    inside:   θ(n+1) = θ(n) - h m̂ / sqrt(v̂ + ε)
    outside:  θ(n+1) = θ(n) - h m̂ / (sqrt(v̂) + ε)

with m̂ = m/(1-β^{n+1}), v̂ = v/(1-ρ^{n+1}) under bias correction, else m̂ = m, v̂ = v.
There is no weight decay: the theory has none.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from retable.adambias.checks import check_decay, check_nonnegative, check_placement


class Adam(torch.optim.Optimizer):
    """Adam with ε inside (default) or outside the square root, with or without bias correction.

    Parameters
    ----------
    params : tensors or parameter groups, floating point.
    lr : step size h >= 0.
    betas : (β, ρ), each in [0, 1).
    eps : ε >= 0. Inside the root it has the unit of a squared gradient, outside that of a gradient.
    bias_correction : divide the moments by 1 - β^{n+1} and 1 - ρ^{n+1}.
    eps_placement : "inside" or "outside". "outside" with bias correction is `torch.optim.Adam`.

    Raises ValueError for a number out of range, TypeError for a parameter that is not real floating
    point, and RuntimeError at `step` for a sparse gradient. Tensors are updated one by one, without
    fused kernels, so that a run's bytes do not depend on how tensors are grouped.
    """

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        bias_correction: bool = True,
        eps_placement: str = "inside",
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "bias_correction": bias_correction,
            "eps_placement": eps_placement,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict) -> None:
        """Add a group; settings and types of tensors are checked as in the constructor."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        if len(group["betas"]) != 2:
            raise ValueError(f"betas is {group['betas']}, allowed: a pair (beta, rho)")
        check_nonnegative("lr", float(group["lr"]))
        check_decay("beta", group["betas"][0])
        check_decay("rho", group["betas"][1])
        check_nonnegative("eps", group["eps"])
        check_placement(group["eps_placement"])
        for parameter in group["params"]:
            if not parameter.is_floating_point():
                raise TypeError(f"params hold a tensor of {parameter.dtype}, allowed: real float")

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:
        """Take one step. `closure`, if given, computes loss and gradients; its loss is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: Tensor, group: dict) -> None:
        gradient = parameter.grad
        if gradient.is_sparse:
            raise RuntimeError("Adam needs dense gradients, found a sparse one")
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["m"] = torch.zeros_like(parameter)
            state["v"] = torch.zeros_like(parameter)
        state["step"] += 1
        beta, rho = group["betas"]
        m = state["m"].mul_(beta).add_(gradient, alpha=1.0 - beta)
        v = state["v"].mul_(rho).addcmul_(gradient, gradient, value=1.0 - rho)
        if group["bias_correction"]:
            m = m / (1.0 - beta ** state["step"])
            v = v / (1.0 - rho ** state["step"])
        eps = group["eps"]
        root = (v + eps).sqrt_() if group["eps_placement"] == "inside" else v.sqrt().add_(eps)
        parameter.addcdiv_(m, root, value=-group["lr"])


def rmsprop(
    params: Iterable, lr: float, rho: float, eps: float, eps_placement: str = "inside"
) -> Adam:
    """RMSProp: Adam with β = 0 and no bias correction; arguments as there."""
    return Adam(params, lr, (0.0, rho), eps, bias_correction=False, eps_placement=eps_placement)
