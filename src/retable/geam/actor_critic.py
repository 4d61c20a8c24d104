"""The networks of the assembly policy: graph embedding, the three factors of the policy, critics.

Shapes: B molecules, S fragments, P = 40 places for attachment points, m the width. A molecule's
action has three factors: pi1 chooses one of its attachment points, pi2 a fragment, pi3 one of the
fragment's attachment points (section 3.2 of the paper). pi3 depends on the fragment alone.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

ATOM_FEATURES = 28
FINGERPRINT_BITS = 1024
MAX_POINTS = 40
_PROBABILITY_FLOOR = 1e-8
_TINY = 1e-30  # keeps the gradient of the logarithm finite where a probability is 0
_OFFICIAL_NOISE = 1e-3
_OFFICIAL_TEMPERATURE = 0.1


@dataclass(frozen=True)
class GraphBatch:
    """Molecules side by side.

    Attributes:
        x: (N, 28) float32 atom features of all molecules.
        edge_index: (2, E) int64, both directions of each bond.
        graph: (N,) int64, the molecule of each atom.
        points: (B, 40) int64, the dummy atoms in the order of their indices; 0 on padding.
        mask: (B, 40) bool, False on padding.
    """

    x: Tensor
    edge_index: Tensor
    graph: Tensor
    points: Tensor
    mask: Tensor

    def __len__(self) -> int:
        """The number of molecules."""
        return len(self.mask)


@dataclass(frozen=True)
class FragmentBatch:
    """The fragments of a vocabulary.

    Attributes:
        graphs: their graphs with dummy atoms.
        bits: (total,) int64, the set bits of all fingerprints, one fragment after the other.
        offsets: (S,) int64, where each fragment's bits begin.
    """

    graphs: GraphBatch
    bits: Tensor
    offsets: Tensor

    def __len__(self) -> int:
        """The number of fragments."""
        return len(self.offsets)


class GraphEmbedding(nn.Module):
    """Three graph convolutions over sums of neighbours; all critics and the policy share it.

    `forward(batch)` gives the embeddings of atoms (N, 2m) and of molecules (B, 2m), the latter the
    sum over atoms. With `normalise` both go through a layer norm without parameters: sums over
    atoms grow with the molecule and would otherwise make the first policy nearly deterministic.
    """

    def __init__(self, width: int, normalise: bool):
        super().__init__()
        size = 2 * width
        self.normalise = normalise
        self.atoms = nn.Linear(ATOM_FEATURES, 8, bias=False)
        self.layers = nn.ModuleList(
            nn.Linear(inputs, size, bias=False) for inputs in (8, size, size)
        )

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        h = self.atoms(batch.x)
        source, target = batch.edge_index
        for number, layer in enumerate(self.layers):
            # W sum_j h_j = sum_j W h_j: the narrower side is summed in the first layer.
            neighbours = h.new_zeros(h.shape).index_add_(0, target, h[source])
            message = torch.relu(layer(neighbours))
            h = message if number == 0 else h + message
        whole = h.new_zeros(len(batch), h.shape[1]).index_add_(0, batch.graph, h)
        if self.normalise:
            h = functional.layer_norm(h, h.shape[1:])
            whole = functional.layer_norm(whole, whole.shape[1:])
        return h, whole


class Interaction(nn.Module):
    """Multiplicative interaction f(u, v) = Bilinear(u, v) + Linear(u) + Linear(v)."""

    def __init__(self, first: int, second: int, outputs: int):
        super().__init__()
        self.bilinear = nn.Bilinear(first, second, outputs)
        self.first = nn.Linear(first, outputs, bias=False)
        self.second = nn.Linear(second, outputs, bias=False)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """f(u, v) for pairs: (..., first) and (..., second) give (..., outputs)."""
        return self.bilinear(u, v) + self.first(u) + self.second(v)

    def over_rows(self, u: Tensor, v: Tensor) -> Tensor:
        """f(u[b, p], v[b]): u (B, P, first), v (B, second) give (B, P, outputs).

        W v is made once a row b, not once a pair.
        """
        contracted = torch.einsum("oij,bj->bio", self.bilinear.weight, v)
        rest = self.second(v) + self.bilinear.bias
        return torch.bmm(u, contracted) + self.first(u) + rest[:, None]

    def bag(self, bits: Tensor, offsets: Tensor) -> Tensor:
        """u W for binary u given by their set bits: (S, outputs, second + 1).

        The last column is Linear(u). What `over_bags` needs of the fragments, made once a state of
        the parameters: a fingerprint has few bits, so that it is a sum of few rows of W.
        """
        outputs, first, second = self.bilinear.weight.shape
        rows = torch.cat([self.bilinear.weight, self.first.weight[:, :, None]], dim=2)
        table = rows.permute(1, 0, 2).reshape(first, outputs * (second + 1))
        summed = functional.embedding_bag(bits, table, offsets, mode="sum")
        return summed.view(-1, outputs, second + 1)

    def over_bags(self, bag: Tensor, v: Tensor) -> Tensor:
        """f(u_s, v_b) for all pairs: `bag` of S vectors, v (B, second) give (B, S, outputs)."""
        size, outputs, columns = bag.shape
        extended = functional.pad(v, (0, 1), value=1.0)
        product = extended @ bag.reshape(size * outputs, columns).T
        return product.view(-1, size, outputs) + (self.second(v) + self.bilinear.bias)[:, None]


def _head(*widths: int, zero_last: bool) -> nn.Sequential:
    """A perceptron with ReLU between its layers, the first of them without bias, to one output."""
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(zip(widths, (*widths[1:], 1), strict=True)):
        layers += [nn.Linear(inputs, outputs, bias=number > 0), nn.ReLU()]
    if zero_last:
        nn.init.zeros_(layers[-2].weight)
        nn.init.zeros_(layers[-2].bias)
    return nn.Sequential(*layers[:-1])


def masked_probabilities(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last dimension, plus 1e-8, exactly 0 where `mask` is False."""
    if mask is None:
        return torch.softmax(logits, dim=-1) + _PROBABILITY_FLOOR
    probabilities = torch.softmax(logits.masked_fill(~mask, -torch.inf), dim=-1)
    return (probabilities + _PROBABILITY_FLOOR) * mask


def entropy(probabilities: Tensor) -> Tensor:
    """-sum p log p over the last dimension, in nats; places with p = 0 count as 0."""
    return -(probabilities * torch.log(probabilities.clamp_min(_TINY))).sum(-1)


def draw(
    probabilities: Tensor,
    generator: torch.Generator,
    sampling: Literal["categorical", "official"] = "categorical",
) -> Tensor:
    """One-hot draws over the last dimension with straight-through gradients.

    `categorical` draws from the policy (Gumbel-max, temperature 1 in the backward pass).
    `official` repeats the official code: Gumbel noise times 1e-3 added to the *probabilities*, at
    temperature 0.1, which is nearly their argmax. Places with probability 0 are never drawn.
    """
    uniform = torch.rand(probabilities.shape, generator=generator)
    noise = -torch.log(-torch.log(uniform.clamp(1e-20, 1 - 1e-7)))
    if sampling == "categorical":
        perturbed = torch.log(probabilities.clamp_min(_TINY)) + noise
    else:
        perturbed = (probabilities + _OFFICIAL_NOISE * noise) / _OFFICIAL_TEMPERATURE
    soft = torch.softmax(perturbed.masked_fill(probabilities == 0, -torch.inf), dim=-1)
    hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)
    return hard + soft - soft.detach()


def _over_points(
    interaction: Interaction, head: nn.Module, batch: GraphBatch, atoms: Tensor, whole: Tensor
) -> tuple[Tensor, Tensor]:
    """Probabilities (B, 40) of attachment points and their states (B, 40, m), 0 on padding."""
    # Points stand first in their row: nothing is computed for columns that are all padding.
    used = int(batch.mask.sum(1).max())
    padding = MAX_POINTS - used
    states = interaction.over_rows(atoms[batch.points[:, :used]], whole)
    probabilities = masked_probabilities(head(states).squeeze(-1), batch.mask[:, :used])
    return functional.pad(probabilities, (0, padding)), functional.pad(states, (0, 0, 0, padding))


class Policy(nn.Module):
    """pi(a1, a2, a3 | s) = pi1(a1 | s) pi2(a2 | s, a1) pi3(a3 | a2)."""

    def __init__(self, width: int, uniform_start: bool):
        super().__init__()
        half = width // 2
        self.f1 = Interaction(2 * width, 2 * width, width)
        self.head1 = _head(width, half, zero_last=uniform_start)
        self.f2 = Interaction(FINGERPRINT_BITS, width, width)
        self.head2 = _head(width, width, width, zero_last=uniform_start)
        self.f3 = Interaction(2 * width, 2 * width, width)
        self.head3 = _head(width, half, zero_last=uniform_start)

    def points(self, batch: GraphBatch, atoms: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
        """pi1 (B, 40) and the state of each attachment point z1 (B, 40, m)."""
        return _over_points(self.f1, self.head1, batch, atoms, whole)

    def bag(self, fragments: FragmentBatch) -> Tensor:
        """What pi2 needs of the fragments, made once a state of the parameters."""
        return self.f2.bag(fragments.bits, fragments.offsets)

    def fragments(self, bag: Tensor, z1: Tensor) -> Tensor:
        """pi2 (B, S) given the states of the chosen attachment points z1 (B, m)."""
        return masked_probabilities(self.head2(self.f2.over_bags(bag, z1)).squeeze(-1))

    def fragment_points(self, batch: GraphBatch, atoms: Tensor, whole: Tensor) -> Tensor:
        """pi3 (S, 40) of the fragments in `batch`."""
        return _over_points(self.f3, self.head3, batch, atoms, whole)[0]


class Critic(nn.Module):
    """Q(s, a) from [graph 2m, pi1 (40), fragment m, pi3 (40)]; one hidden layer, half as wide."""

    def __init__(self, width: int):
        super().__init__()
        self.fragment = nn.Linear(FINGERPRINT_BITS, width)
        inputs = 3 * width + 2 * MAX_POINTS
        self.hidden = nn.Linear(inputs, inputs // 2, bias=False)
        self.out = nn.Linear(inputs // 2, 1)
        self._parts = (2 * width, MAX_POINTS, width, MAX_POINTS)

    def _embed(self, bits: Tensor, offsets: Tensor) -> Tensor:
        rows = functional.embedding_bag(bits, self.fragment.weight.T, offsets, mode="sum")
        return rows + self.fragment.bias

    def forward(
        self, whole: Tensor, pi1: Tensor, bits: Tensor, offsets: Tensor, pi3: Tensor
    ) -> Tensor:
        """Q (B,) of one fragment a molecule: `bits` and `offsets` of B, pi3 (B, 40)."""
        inputs = torch.cat([whole, pi1, self._embed(bits, offsets), pi3], dim=1)
        return self.out(torch.relu(self.hidden(inputs))).squeeze(-1)

    def all_fragments(
        self, whole: Tensor, pi1: Tensor, fragments: FragmentBatch, pi3: Tensor
    ) -> Tensor:
        """Q (B, S) of every fragment: pi3 (S, 40).

        The hidden layer is linear in its parts, so that those of the molecule and those of the
        fragment are made apart and added for each pair.
        """
        graph, first, fragment, last = self.hidden.weight.split(self._parts, dim=1)
        state = whole @ graph.T + pi1 @ first.T
        action = self._embed(fragments.bits, fragments.offsets) @ fragment.T + pi3 @ last.T
        hidden = torch.relu_(state[:, None] + action[None])
        return self.out(hidden).squeeze(-1)


class Critics(nn.Module):
    """The embedding and the two critics: what is trained together and followed by the target."""

    def __init__(self, width: int, normalise: bool):
        super().__init__()
        self.embedding = GraphEmbedding(width, normalise)
        self.q1 = Critic(width)
        self.q2 = Critic(width)

    def smaller(self, whole: Tensor, pi1: Tensor, fragments: FragmentBatch, pi3: Tensor) -> Tensor:
        """min(Q1, Q2) (B, S) of every fragment."""
        arguments = (whole, pi1, fragments, pi3)
        return torch.minimum(self.q1.all_fragments(*arguments), self.q2.all_fragments(*arguments))
