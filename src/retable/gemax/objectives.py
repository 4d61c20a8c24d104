"""What an encoder is trained for without labels: graph entropy, and the objectives beside it.

Each takes a batch (adj (B, N, N), x (B, N, f), mask (B, N)) and gives a scalar to minimise.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from retable.gemax.losses import (
    LEAST_WEIGHT,
    orthogonality_loss,
    packing_entropy,
    packing_loss,
    vertex_distribution,
)
from retable.gemax.model import GeMaxEncoder

_BETAS, _EPSILON = (0.9, 0.999), 1e-8  # Adam's
_JSD_SCALE = 4.0
_CONTRAST_TEMPERATURE = 0.2
_VIEW_SHARE = 0.2
_DENSE_VERTICES = 512
Batch = tuple[Tensor, Tensor, Tensor]


class PackingWeights(nn.Module):
    """The free packing weights a_j of all graphs, 1/n_j at first, and the Adam that moves them.

    Each graph's weights are a variable of their own: a step moves those of the batch's graphs, with
    moments and corrections that count these graphs' own steps. (An optimiser of one table would
    count the steps of all batches, and so move faster the more batches an epoch has.) The moments
    are buffers, so that a checkpoint holds them.
    """

    def __init__(self, sizes: Tensor, lr: float) -> None:
        super().__init__()
        n = int(sizes.max())
        real = torch.arange(n) < sizes[:, None]
        self.lr = lr
        self.sizes = sizes.tolist()
        start = torch.where(real, 1 / sizes[:, None], 1.0).float()
        self.register_buffer("table", start)
        self.register_buffer("first", torch.zeros_like(start))
        self.register_buffer("second", torch.zeros_like(start))
        self.register_buffer("steps", torch.zeros(len(start), 1))

    def forward(self, index: Tensor, n: int) -> Tensor:
        """The weights of these graphs, (B, n)."""
        return self.table[index, :n]

    def step(self, index: Tensor, gradient: Tensor) -> None:
        """One step of Adam against `gradient` (B, n) of these graphs, then back into [1e-6, 1]."""
        n, (beta1, beta2) = gradient.shape[1], _BETAS
        first = beta1 * self.first[index, :n] + (1 - beta1) * gradient
        second = beta2 * self.second[index, :n] + (1 - beta2) * gradient.square()
        steps = self.steps[index] + 1
        self.first[index, :n], self.second[index, :n], self.steps[index] = first, second, steps
        scale = (second / (1 - beta2**steps)).sqrt() + _EPSILON
        moved = self.table[index, :n] - self.lr * first / (1 - beta1**steps) / scale
        self.table[index, :n] = moved.clamp(LEAST_WEIGHT, 1)

    def rows(self) -> list[Tensor]:
        """One tensor (n_j,) a graph, on the CPU."""
        return [row[:n].clone() for row, n in zip(self.table.cpu(), self.sizes, strict=True)]


class EntropyMaximization(nn.Module):
    """The alternating objective: an encoder step on J1, then a step of the batch's weights on J2.

    J1 = -(H_k - mu L_orth - gamma L_svp) over the encoder, a fixed; J2 = H_k + gamma L_svp over a,
    at the vectors of the encoder that has just moved. Means over the graphs of the batch in J1, so
    that mu and gamma do not depend on its size; in J2 each graph has its own variables. `sums` adds
    up H_k, L_orth, L_svp and the number of graphs.

    With several views of each graph (on the same vertices, some of them left out), J1 and J2 are
    means over the views; a vertex has one weight in all of them.
    """

    def __init__(
        self, weights: PackingWeights, mu: float, gamma: float, self_loops: bool = False
    ) -> None:
        super().__init__()
        self.weights, self.mu, self.gamma, self.self_loops = weights, mu, gamma, self_loops
        self.register_buffer("sums", torch.zeros(4, dtype=torch.float64))
        self._last: tuple[nn.Module, Sequence[Batch], Tensor] | None = None

    def forward(self, encoder: nn.Module, views: Sequence[Batch], index: Tensor) -> Tensor:
        total = 0
        for adj, x, mask in views:
            _, z, g = encoder(adj, x, mask)
            p = vertex_distribution(z, g, mask)
            a = self.weights(index, mask.shape[1])
            parts = (
                packing_entropy(p, a, mask),
                orthogonality_loss(z, adj, mask, self.self_loops),
                packing_loss(z, a, mask),
            )
            entropy, orthogonality, packing = parts
            self.sums[:3] += torch.stack([part.detach().sum() for part in parts])
            self.sums[3] += len(index)
            total = total - (entropy - self.mu * orthogonality - self.gamma * packing).mean()
        self._last = (encoder, [tuple(part.detach() for part in view) for view in views], index)
        return total / len(views)

    def weight_step(self) -> None:
        """Move the weights of the last batch's graphs, the encoder's parameters fixed."""
        encoder, views, index = self._last
        a = self.weights(index, views[0][2].shape[1]).requires_grad_()
        total = 0
        for adj, x, mask in views:
            with torch.no_grad():
                _, z, g = encoder(adj, x, mask)
                p = vertex_distribution(z, g, mask)
            objective = packing_entropy(p, a, mask) + self.gamma * packing_loss(z, a, mask)
            total = total + objective.sum()
        (gradient,) = torch.autograd.grad(total / len(views), a)
        self.weights.step(index, gradient)

    def epoch(self) -> dict[str, float]:
        """Means over the epoch's graphs of H_k, L_orth, L_svp; the smallest and largest weight."""
        entropy, orthogonality, packing, count = self.sums.tolist()
        self.sums.zero_()
        weights = torch.cat(self.weights.rows())
        return {
            "entropy": entropy / count,
            "orthogonality": orthogonality / count,
            "packing": packing / count,
            "least_weight": weights.min().item(),
            "largest_weight": weights.max().item(),
        }


def infograph(encoder: GeMaxEncoder, batch: Batch) -> Tensor:
    """Jensen-Shannon mutual information between vertices and their graph (InfoGraph).

    -(E_pos[-softplus(-T)] - E_neg[softplus(T)]) with T = 4 z.g; positive pairs are a graph's
    vertices with its own vector, negative ones those with the other graphs' vectors.
    """
    adj, x, mask = batch
    _, z, g = encoder(adj, x, mask)
    scores = _JSD_SCALE * z[mask] @ g.T
    owner = torch.repeat_interleave(torch.arange(len(mask), device=z.device), mask.sum(1))
    own = owner[:, None] == torch.arange(len(mask), device=z.device)
    return softplus(-scores[own]).mean() + softplus(scores[~own]).mean()


def graphcl(encoder: GeMaxEncoder, batch: Batch) -> Tensor:
    """Contrast of two views of each graph, NT-Xent at temperature 0.2 (GraphCL).

    One view drops 20 % of the vertices, the other one exchanges 20 % of the edges.
    """
    first, second = random_views(batch)
    (_, _, left), (_, _, right) = encoder(*first), encoder(*second)
    return nt_xent(left, right)


def random_views(batch: Batch) -> tuple[Batch, Batch]:
    """Two views of each graph: without 20 % of its vertices; with 20 % of its edges exchanged."""
    adj, x, mask = batch
    kept = drop_vertices(mask)
    paths = kept[:, :, None] & kept[:, None, :]
    dropped = (adj * paths, x.masked_fill(~kept[..., None], 0), kept)
    return dropped, (perturb_edges(adj, mask), x, mask)


def drop_vertices(mask: Tensor) -> Tensor:
    """The mask (B, N) without a random 20 % of each graph's vertices (rounded, one stays)."""
    order = torch.rand(mask.shape, device=mask.device).masked_fill(~mask, 2.0).argsort(1).argsort(1)
    sizes = mask.sum(1, keepdim=True)
    dropped = (sizes * _VIEW_SHARE).round().clamp(max=sizes - 1)
    return mask & (order >= dropped)


def perturb_edges(adj: Tensor, mask: Tensor) -> Tensor:
    """Take away a random 20 % of each graph's edges and add as many between other pairs.

    Where a graph has more than 512 vertices, pairs are drawn rather than all of them sorted: the
    distribution is the same, other random numbers are used.
    """
    if adj.shape[1] > _DENSE_VERTICES:
        return _perturb_edges_of_large(adj, mask)
    n = adj.shape[1]
    upper = torch.ones(n, n, dtype=torch.bool, device=adj.device).triu(1)
    pairs = mask[:, :, None] & mask[:, None, :] & upper
    edges, others = pairs & (adj > 0), pairs & (adj == 0)
    count = (edges.sum((1, 2)) * _VIEW_SHARE).round()
    count = torch.minimum(count, others.sum((1, 2)))[:, None]

    def chosen(among: Tensor) -> Tensor:
        order = torch.rand(adj.shape, device=adj.device).masked_fill(~among, 2.0).flatten(1)
        return (order.argsort(1).argsort(1) < count).view_as(adj)

    changed = (edges & ~chosen(edges)) | chosen(others)
    return (changed | changed.mT).to(adj.dtype)


def _perturb_edges_of_large(adj: Tensor, mask: Tensor) -> Tensor:
    """As `perturb_edges`, one graph after the other, in the memory of the result."""
    result = adj.clone()
    for matrix, real in zip(result, mask, strict=True):
        vertices = real.nonzero()[:, 0]
        left, right = matrix.nonzero(as_tuple=True)
        left, right = left[left < right], right[left < right]
        pairs = len(vertices) * (len(vertices) - 1) // 2
        count = min(round(_VIEW_SHARE * len(left)), pairs - len(left))
        # Drawing is slow where most pairs are taken.
        sparse = 2 * (len(left) + count) <= pairs
        added = (_drawn_pairs if sparse else _listed_pairs)(matrix, vertices, count)
        taken = torch.randperm(len(left), device=adj.device)[:count]
        for (i, j), value in (((left[taken], right[taken]), 0.0), (added, 1.0)):
            matrix[i, j] = value
            matrix[j, i] = value
    return result


def _listed_pairs(matrix: Tensor, vertices: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """A random choice of the pairs of vertices that are no edges."""
    free = (matrix[vertices][:, vertices] == 0).triu(1)
    i, j = free.nonzero(as_tuple=True)
    chosen = torch.randperm(len(i), device=matrix.device)[:count]
    return vertices[i[chosen]], vertices[j[chosen]]


def _drawn_pairs(matrix: Tensor, vertices: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """As `_listed_pairs`: pairs are drawn, edges and what was drawn before are rejected."""
    n, device = len(matrix), matrix.device
    found = torch.empty(0, dtype=torch.int64, device=device)
    while len(found) < count:
        i, j = vertices[torch.randint(len(vertices), (2, 2 * count + 16), device=device)]
        free = (i < j) & (matrix[i, j] == 0)
        drawn = torch.cat([found, (i * n + j)[free]])
        # The first of equal pairs counts: sorted stably, it stands before the others.
        values, order = drawn.sort(stable=True)
        new = torch.ones_like(values, dtype=torch.bool)
        new[1:] = values[1:] != values[:-1]
        found = drawn[order[new].sort().values]
    found = found[:count]
    return found // n, found % n


def nt_xent(first: Tensor, second: Tensor, temperature: float = _CONTRAST_TEMPERATURE) -> Tensor:
    """Normalised temperature-scaled cross-entropy of two views (B, d): each finds the other."""
    views = nn.functional.normalize(torch.cat([first, second]), dim=-1)
    scores = views @ views.T / temperature
    scores.fill_diagonal_(float("-inf"))
    count = len(first)
    partner = (torch.arange(2 * count, device=views.device) + count) % (2 * count)
    return cross_entropy(scores, partner)
