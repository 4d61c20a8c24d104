"""The functions of the loss gradient whose size Adam's finite steps change."""

from collections.abc import Iterable

import torch
from torch import Tensor

from retable.adambias.checks import check_nonnegative


def _tensors(v: Tensor | Iterable[Tensor], eps: float) -> list[Tensor]:
    check_nonnegative("eps", eps)
    tensors = [v] if isinstance(v, Tensor) else list(v)
    if not tensors:
        raise ValueError("v is empty, allowed: a tensor or at least one tensor")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"v holds a {type(tensor).__name__}, allowed: tensors")
    if eps == 0.0 and torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        raise ValueError("eps is 0.0, allowed: eps > 0 where v needs a gradient (v may be 0)")
    return tensors


def perturbed_one_norm(v: Tensor | Iterable[Tensor], eps: float) -> Tensor:
    """‖v‖_{1,ε} = Σ_i sqrt(v_i² + ε), a scalar tensor (the norm of Adam with ε inside the root).

    `v` is a tensor of any shape or an iterable of tensors (one per parameter, say). Differentiable;
    eps >= 0 in the unit of v², eps = 0 only where no gradient is asked for. Even at v = 0 the value
    is p√ε for p entries: compare vectors of the same size only.
    """
    return sum(torch.sqrt(t.square() + eps).sum() for t in _tensors(v, eps))


def softened_one_norm(v: Tensor | Iterable[Tensor], eps: float) -> Tensor:
    """N(v) = Σ_i (|v_i| - ε log(1 + |v_i|/ε)), a scalar tensor (the same for ε outside the root).

    Its derivative is v_i / (|v_i| + ε). eps >= 0 in the unit of v; eps = 0 is the one-norm, only
    where no gradient is asked for.
    """
    sizes = [t.abs() for t in _tensors(v, eps)]
    if eps == 0.0:
        return sum(size.sum() for size in sizes)
    return sum((size - eps * torch.log1p(size / eps)).sum() for size in sizes)
