"""Simplex equiangular tight frames (ETF), and a classifier frozen to one."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


def simplex_etf(
    num_classes: int, dim: int | None = None, generator: torch.Generator | None = None
) -> Float[Tensor, "K d"]:
    """Unit rows whose pairwise inner products are all -1/(K-1), the least that K vectors allow.

    `dim` is d, default K: then sqrt(K/(K-1)) P_K. For d > K zeros are appended; for d = K-1 the
    same rows are written in an orthonormal basis of the range of P_K. With a `generator` the rows
    are turned by a d x d rotation drawn uniformly with it. Rows sum to zero; float64.

    Raises ValueError when num_classes < 2 or dim < K-1.
    """
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, got {num_classes}")
    dim = num_classes if dim is None else dim
    if dim < num_classes - 1:
        raise ValueError(
            f"dim must be at least {num_classes - 1}, got {dim}: "
            f"a simplex ETF needs dim >= K-1 (K = {num_classes} classes)"
        )
    scale = math.sqrt(num_classes / (num_classes - 1))
    if dim == num_classes - 1:
        frame = scale * _helmert_basis(num_classes)
    else:
        centring = torch.eye(num_classes, dtype=torch.float64) - 1 / num_classes
        frame = nn.functional.pad(scale * centring, (0, dim - num_classes))
    if generator is None:
        return frame
    return frame @ _random_rotation(dim, generator)


def freeze_as_etf(linear: nn.Linear) -> nn.Linear:
    """Set the weight of a linear layer to the simplex ETF and freeze it; the bias stays trainable.

    Works in place and returns the layer. The frozen weight has requires_grad=False: pass only the
    trainable parameters to an optimiser, so that no weight decay touches it. Raises ValueError when
    in_features < out_features - 1.
    """
    with torch.no_grad():
        linear.weight.copy_(simplex_etf(linear.out_features, linear.in_features))
    linear.weight.requires_grad_(False)
    return linear


def _helmert_basis(num_classes: int) -> Tensor:
    """Orthonormal columns [K, K-1] that span the vectors of zero sum.

    Column j is (1, ..., 1, -(j+1), 0, ..., 0) with j+1 ones, over its norm.
    """
    j = torch.arange(1, num_classes, dtype=torch.float64)
    row = torch.arange(num_classes, dtype=torch.float64)[:, None]
    columns = torch.where(row < j, 1.0, torch.where(row == j, -j, 0.0))
    return columns / (j * (j + 1)).sqrt()


def _random_rotation(dim: int, generator: torch.Generator) -> Tensor:
    """A rotation from the uniform (Haar) distribution: QR of a Gaussian matrix, signs fixed."""
    gaussian = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
    q, r = torch.linalg.qr(gaussian)
    q = q * torch.sign(torch.diagonal(r))
    if torch.linalg.det(q) < 0:
        q[:, 0] = -q[:, 0]
    return q
