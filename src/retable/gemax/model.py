"""The encoder: a graph isomorphism network, vertex vectors and a graph vector from its layers."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from retable.gemax.config import TrainConfig


class _VertexNorm(nn.Module):
    """Batch normalisation over the real vertices of a batch; padding stays zero."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(features)

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        out = torch.zeros_like(h)
        out[mask] = self.norm(h[mask])
        return out


class _GINLayer(nn.Module):
    """h' = MLP((1 + eps) h + sum over neighbours h), eps learned."""

    def __init__(self, in_features: int, width: int) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(()))
        self.first, self.second = nn.Linear(in_features, width), nn.Linear(width, width)
        self.norm = _VertexNorm(width)

    def forward(self, adj: Tensor, h: Tensor, mask: Tensor) -> Tensor:
        h = (1 + self.eps) * h + adj @ h
        return self.norm(torch.relu(self.second(torch.relu(self.first(h)))), mask)


class _GCNLayer(nn.Module):
    """h' = D^-1/2 (A + I) D^-1/2 h W: the variant with graph convolutions."""

    def __init__(self, in_features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, width)

    def forward(self, adj: Tensor, h: Tensor, mask: Tensor) -> Tensor:
        scale = (adj.sum(-1, keepdim=True) + 1).rsqrt()
        return self.linear(scale * (adj @ (scale * h) + scale * h))


class GIN(nn.Module):
    """Layers of a graph isomorphism network, each followed by BatchNorm, ReLU and dropout.

    `forward(adj (B, N, N), x (B, N, f), mask (B, N))` gives the layers side by side:
    (B, N, hidden * layers), 0 on padding. `last` is the width of the last layer if it is another.
    """

    def __init__(
        self,
        in_features: int,
        hidden: int,
        layers: int,
        dropout: float = 0.0,
        conv: str = "gin",
        last: int | None = None,
    ) -> None:
        super().__init__()
        widths = [hidden] * (layers - 1) + [last or hidden]
        kind = _GINLayer if conv == "gin" else _GCNLayer
        inputs = [in_features, *widths[:-1]]
        self.widths = tuple(widths)
        self.convs = nn.ModuleList(kind(*pair) for pair in zip(inputs, widths, strict=True))
        self.norms = nn.ModuleList(_VertexNorm(width) for width in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, adj: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        h, outputs = x, []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = self.dropout(torch.relu(norm(conv(adj, h, mask), mask)))
            outputs.append(h)
        return torch.cat(outputs, dim=-1)


class GeMaxEncoder(nn.Module):
    """Vertex vectors and a graph vector.

    `forward(adj, x, mask)` gives (layers (B, N, sum of widths), z (B, N, dim), g (B, dim)).
    With `vertex_vectors: concat` z is linear in the concatenated layers and g an MLP of their mean
    over the vertices; with `last` (the authors' code) z is the last layer itself and g an MLP of
    its mean. `normalize` gives z and g unit length.
    """

    def __init__(self, in_features: int, config: TrainConfig) -> None:
        super().__init__()
        concat = config.vertex_vectors == "concat"
        self.config = config
        self.gin = GIN(
            in_features,
            config.hidden,
            config.layers,
            config.dropout,
            config.conv,
            None if concat else config.dim,
        )
        width = sum(self.gin.widths) if concat else config.dim
        self.vertex = nn.Linear(width, config.dim) if concat else nn.Identity()
        self.graph = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, config.dim))

    def forward(self, adj: Tensor, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        layers = self.gin(adj, x, mask)
        concat = self.config.vertex_vectors == "concat"
        used = layers if concat else layers[..., -self.config.dim :]
        z = self.vertex(used)
        mean = used.masked_fill(~mask[..., None], 0).sum(1) / mask.sum(1, keepdim=True)
        g = self.graph(mean)
        if self.config.normalize:
            z, g = normalize(z, dim=-1), normalize(g, dim=-1)
        return layers, z.masked_fill(~mask[..., None], 0), g
