"""What a network has learnt: features of the data model, structure of convolution filters."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


def _largest(projections: np.ndarray | Tensor) -> np.ndarray:
    projections = np.asarray(projections)
    if projections.ndim != 2 or projections.shape[0] == 0:
        raise ValueError(f"projections has shape {projections.shape}; it must be (filters, K)")
    if not np.isfinite(projections).all():
        raise ValueError("projections has entries that are not finite")
    return projections.max(0)


def learned(projections: Float[np.ndarray, "filters k"], threshold: float) -> Bool[np.ndarray, "k"]:
    """Which features are learnt: max_r ⟨w_r, v_k⟩ ≥ threshold (½/α in the data model)."""
    return _largest(projections) >= threshold


def missed(projections: Float[np.ndarray, "filters k"], threshold: float) -> Bool[np.ndarray, "k"]:
    """Which features are missed: max_r ⟨w_r, v_k⟩ < threshold (0.1 in the data model)."""
    return _largest(projections) < threshold


def filter_concentration(
    weight: Float[Tensor, "out in k k"],
) -> Float[Tensor, "out"]:
    """The share of a convolution filter's power in its strongest spatial frequency.

    P(u) = Σ_channels |DFT₂ of the mean-free kernel|²(u); the value is (P(u*) + P(-u*))/Σ_u P for
    the strongest pair ±u* (u* = -u*, possible for even k, counts once). Near 1 for a grating, about
    2/k² to 6/k² for noise; 0 for a filter without variation. It does not depend on the filter's
    scale. Raises ValueError unless the kernels are square, at least 2×2 and finite.
    """
    weight = torch.as_tensor(weight).detach()
    if weight.ndim != 4 or weight.shape[2] != weight.shape[3] or weight.shape[2] < 2:
        raise ValueError(f"weight has shape {tuple(weight.shape)}; it must be (out, in, k, k), k≥2")
    if not torch.isfinite(weight).all():
        raise ValueError("weight has entries that are not finite")
    weight = weight.double()
    k = weight.shape[-1]
    spectrum = torch.fft.fft2(weight - weight.mean((2, 3), keepdim=True))
    power = spectrum.abs().square().sum(1)
    # The mean-free kernel has no constant part; what rounding leaves there is none either.
    power[:, 0, 0] = 0
    negative = -torch.arange(k) % k
    mirrored = power[:, negative][:, :, negative]
    self_paired = (torch.arange(k) == negative).double()
    once = torch.outer(self_paired, self_paired)
    pair = power + mirrored * (1 - once)
    total = power.sum((1, 2))
    scale = weight.square().sum((1, 2, 3)) * k**2
    flat = total <= torch.finfo(torch.float64).eps * scale
    return torch.where(flat, 0.0, pair.amax((1, 2)) / torch.where(flat, 1.0, total))
