"""AutoGCL (Yin, Wang, Huang, Xiong, Zhang, AAAI 2022): views that are learnt, then contrasted.

A generator reads a graph and chooses for each vertex whether to drop it, keep it, or keep it
without its attributes. Two generators are trained together with the encoder: the contrast of their
views is minimised, and so is the likeness of their choices, which keeps the views apart.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, gumbel_softmax

from retable.gemax.model import GIN
from retable.gemax.objectives import Batch, nt_xent

_DROP, _KEEP, _MASK = range(3)


class ViewGenerator(nn.Module):
    """Chooses one of drop, keep, mask for each vertex from a GIN over the graph.

    `forward(batch)` gives the view (adj (B, N, N), x (B, N, f), mask (B, N) bool of the vertices
    that stay) and the choices (B, N, 3), one-hot with the gradient of their probabilities. A graph
    whose vertices are all dropped keeps the one whose logit to stay is largest.
    """

    def __init__(self, in_features: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.gin = GIN(in_features, hidden, layers)
        self.choice = nn.Linear(sum(self.gin.widths), 3)

    def forward(self, batch: Batch) -> tuple[Batch, Tensor]:
        adj, x, mask = batch
        logits = self.choice(self.gin(adj, x, mask))
        choices = _never_all_dropped(gumbel_softmax(logits, hard=True), logits, mask)
        stays = 1 - choices[..., _DROP]
        view = (
            adj * stays[:, :, None] * stays[:, None, :],
            x * choices[..., _KEEP, None],
            mask & (stays > 0.5),
        )
        return view, choices * mask[..., None]


def _never_all_dropped(choices: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """The choices, with one vertex kept in graphs that would lose all of them."""
    lost = ((choices[..., _DROP] > 0.5) | ~mask).all(1)
    best = logits[..., _KEEP].masked_fill(~mask, -torch.inf).argmax(1)
    saved = torch.zeros_like(mask)
    saved[lost, best[lost]] = True
    kept = torch.zeros_like(choices)
    kept[..., _KEEP] = 1
    return torch.where(saved[..., None], kept, choices)


class LearnedViews(nn.Module):
    """Two view generators; `forward(batch)` gives both views and the likeness of their choices.

    The likeness is the mean over graphs of the cosine between the two generators' choices.
    """

    def __init__(self, in_features: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.first = ViewGenerator(in_features, hidden, layers)
        self.second = ViewGenerator(in_features, hidden, layers)

    def forward(self, batch: Batch) -> tuple[tuple[Batch, Batch], Tensor]:
        first, left = self.first(batch)
        second, right = self.second(batch)
        likeness = cosine_similarity(left.flatten(1), right.flatten(1), dim=1).mean()
        return (first, second), likeness


def autogcl(encoder: nn.Module, views: LearnedViews, batch: Batch) -> Tensor:
    """NT-Xent of the two learnt views' graph vectors plus the likeness of their choices."""
    (first, second), likeness = views(batch)
    (_, _, left), (_, _, right) = encoder(*first), encoder(*second)
    return nt_xent(left, right) + likeness
