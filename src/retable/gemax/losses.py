"""The learned approximation of the graph entropy, for batches of padded graphs.

Shapes: z (B, N, d) vertex vectors, g (B, d) graph vectors, p and a (B, N) distribution and packing
weights, adj (B, N, N) 0/1 without self-loops, mask (B, N) bool, True for real vertices. Every
function gives one value a graph, (B,), in nats for entropies; padding counts nowhere.
"""

import torch
from torch import Tensor

LEAST_WEIGHT = 1e-6
_GUARD = 1e-8
_DENSE_VERTICES = 512


def vertex_distribution(z: Tensor, g: Tensor, mask: Tensor) -> Tensor:
    """P_i = softmax_i(-||z_i - g||^2): (B, N), 0 on padding."""
    _check_shapes(z, mask)
    if g.shape != (z.shape[0], z.shape[2]):
        raise ValueError(f"g: shape {tuple(g.shape)}, must be {(z.shape[0], z.shape[2])}")
    distances = (z - g[:, None]).square().sum(-1)
    return torch.softmax((-distances).masked_fill(~mask, float("-inf")), dim=-1)


def packing_entropy(p: Tensor, a: Tensor, mask: Tensor) -> Tensor:
    """H_k = -sum_i P_i log(a_i + 1e-8).

    It is no bound of the graph entropy: the weights a are tied to the vertex-packing polytope by a
    penalty alone. ValueError for weights outside [0, 1], and for p that is no distribution.
    """
    _check_weights(a, mask)
    _check_distribution(p, mask)
    return -(p * torch.log(a + _GUARD)).masked_fill(~mask, 0).sum(-1)


def orthogonality_loss(
    z: Tensor,
    adj: Tensor,
    mask: Tensor,
    self_loops: bool = False,
    factored: bool | None = None,
) -> Tensor:
    """L_orth = ||M o (Z Z^T - I)||_F^2 with M = 11^T - A.

    It penalises pairs that are not adjacent and not orthogonal and, since A has no self-loops,
    norms that differ from 1.

    Args:
        adj: entries above 0 are edges; its shape and its diagonal are all that is checked.
        self_loops: take self-loops into A, as the authors' code does: norms are free then.
        factored: without the N x N Gram matrix, by
            ||ZZ^T - I||^2 = ||Z^T Z||^2 - 2||Z||^2 + n less the adjacent pairs. In float32 it
            cancels where the loss is small. None: above 512 vertices.
    """
    _check_shapes(z, mask)
    if adj.shape != (*mask.shape, mask.shape[1]):
        raise ValueError(f"adj: shape {tuple(adj.shape)}, must be {(*mask.shape, mask.shape[1])}")
    if adj.diagonal(dim1=-2, dim2=-1).any():
        raise ValueError("adj: has self-loops; say self_loops=True instead")
    z = z.masked_fill(~mask[..., None], 0)
    if _dense(z, factored):
        real = mask[:, :, None] & mask[:, None, :]
        identity = torch.eye(z.shape[1], dtype=torch.bool, device=z.device)
        counted = real & ~(adj > 0)
        if self_loops:
            counted = counted & ~identity
        errors = z @ z.mT - identity.to(z.dtype)
        return errors.square().masked_fill(~counted, 0).sum((-2, -1))
    norms = z.square().sum(-1)
    loss = (z.mT @ z).square().sum((-2, -1)) - 2 * norms.sum(-1) + mask.sum(-1)
    batch, left, right = (adj > 0).nonzero(as_tuple=True)
    adjacent = (z[batch, left] * z[batch, right]).sum(-1).square()
    loss = loss - torch.zeros_like(loss).index_add(0, batch, adjacent)
    if self_loops:
        loss = loss - (norms - 1).square().masked_fill(~mask, 0).sum(-1)
    return loss


def packing_loss(z: Tensor, a: Tensor, mask: Tensor, factored: bool | None = None) -> Tensor:
    """L_svp = ||D Z Z^T D - D^2||_F^2 with D = diag(a): a soft stable set.

    Where two vertices both carry weight their vectors must be orthogonal. `factored` as in
    `orthogonality_loss`.
    """
    _check_shapes(z, mask)
    _check_weights(a, mask)
    a = a.masked_fill(~mask, 0)
    scaled = z.masked_fill(~mask[..., None], 0) * a[..., None]
    if _dense(z, factored):
        return (scaled @ scaled.mT - torch.diag_embed(a.square())).square().sum((-2, -1))
    squares = a.square()
    crossed = (squares * scaled.square().sum(-1)).sum(-1)
    return (scaled.mT @ scaled).square().sum((-2, -1)) - 2 * crossed + squares.square().sum(-1)


def _dense(z: Tensor, factored: bool | None) -> bool:
    return z.shape[1] <= _DENSE_VERTICES if factored is None else not factored


def _check_shapes(z: Tensor, mask: Tensor) -> None:
    if z.ndim != 3 or z.shape[2] < 1:
        raise ValueError(f"z: shape {tuple(z.shape)}, must be (B, N, d) with d >= 1")
    if mask.shape != z.shape[:2] or mask.dtype != torch.bool:
        raise ValueError(
            f"mask: {mask.dtype} {tuple(mask.shape)}, must be bool {tuple(z.shape[:2])}"
        )
    if not mask.any(-1).all():
        raise ValueError(f"mask: graph {int((~mask.any(-1)).nonzero()[0, 0])} has no vertices")


def _check_distribution(p: Tensor, mask: Tensor) -> None:
    if p.shape != mask.shape:
        raise ValueError(f"p: shape {tuple(p.shape)}, must be {tuple(mask.shape)}")
    real = p.detach().masked_fill(~mask, 0)
    totals = real.sum(-1)
    # A loss that became NaN is told by the training, which knows where it was.
    if (real < 0).any() or ((totals - 1).abs() > 1e-3).any():
        raise ValueError(
            f"p: entries from {real.min().item()}, sums from {totals.min().item()} to "
            f"{totals.max().item()}; must be >= 0 and sum to 1"
        )


def _check_weights(a: Tensor, mask: Tensor) -> None:
    if a.shape != mask.shape:
        raise ValueError(f"a: shape {tuple(a.shape)}, must be {tuple(mask.shape)}")
    real = a[mask]
    if not ((real >= 0) & (real <= 1)).all():
        raise ValueError(
            f"a: values from {real.min().item()} to {real.max().item()}, must be within [0, 1]"
        )
