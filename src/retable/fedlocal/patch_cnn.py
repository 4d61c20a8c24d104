"""The network of the theory: one convolution, cubic activation, a second layer fixed to 1."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class PatchCNN(nn.Module):
    """f(W, x) = Σ_r Σ_p ⟨w_r, x_p⟩³.

    The odd power lets one filter serve both labels. `weight` (n_filters, dim) is drawn from
    N(0, init_std²) by torch's global generator.
    """

    def __init__(self, n_filters: int, dim: int, init_std: float) -> None:
        for name, value in (("n_filters", n_filters), ("dim", dim)):
            if value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        if not init_std > 0:
            raise ValueError(f"init_std is {init_std}; it must be positive")
        super().__init__()
        self.weight = nn.Parameter(init_std * torch.randn(n_filters, dim))

    def forward(self, x: Float[Tensor, "*batch patches dim"]) -> Float[Tensor, "*batch"]:
        """The network's output for each sample."""
        if x.shape[-1] != self.weight.shape[1]:
            raise ValueError(
                f"x has patches of {x.shape[-1]} entries; the filters have {self.weight.shape[1]}"
            )
        return (x @ self.weight.T).pow(3).sum((-2, -1))

    def projections(self, features: Float[Tensor, "k dim"]) -> Float[Tensor, "filters k"]:
        """⟨w_r, v_k⟩ for every filter and feature, without a gradient."""
        features = torch.as_tensor(features, dtype=self.weight.dtype, device=self.weight.device)
        return self.weight.detach() @ features.T
