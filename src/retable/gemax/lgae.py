"""Linear graph autoencoder (Salha, Hennequin, Vazirgiannis, ECML-PKDD 2020), for node vectors."""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from retable.gemax.objectives import Batch


class LinearGraphEncoder(nn.Module):
    """Z = D^-1/2 (A + I) D^-1/2 X W: one linear step over the neighbours.

    `forward(adj (B, N, N), x (B, N, f), mask (B, N))` gives (z, z, mean of z over the vertices), in
    the places of `GeMaxEncoder`; z (B, N, dim) is 0 on padding.
    """

    def __init__(self, in_features: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, dim, bias=False)

    def forward(self, adj: Tensor, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale = (adj.sum(-1, keepdim=True) + 1).rsqrt()
        h = self.linear(x)
        z = scale * (adj @ (scale * h) + scale * h)
        z = z.masked_fill(~mask[..., None], 0)
        return z, z, z.sum(1) / mask.sum(1, keepdim=True)


def reconstruction_loss(encoder: nn.Module, batch: Batch) -> Tensor:
    """Cross-entropy of sigmoid(z_i . z_j) with the edges, over the vertex pairs of the batch.

    Edges are weighted by the number of other pairs over that of edges, so that both count alike.
    """
    adj, x, mask = batch
    _, z, _ = encoder(adj, x, mask)
    n = adj.shape[1]
    upper = torch.ones(n, n, dtype=torch.bool, device=adj.device).triu(1)
    pairs = mask[:, :, None] & mask[:, None, :] & upper
    edges = adj[pairs]
    count = edges.sum()
    weight = (len(edges) - count) / count.clamp(min=1)
    return binary_cross_entropy_with_logits((z @ z.mT)[pairs], edges, pos_weight=weight)
