"""The networks: an encoder of microenvironments, heads for residues and for mutations."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from retable.evorank.config import AtomConfig, EncoderConfig
from retable.evorank.structure import FEATURES, Environments

ELEMENTS = ("H", "C", "N", "O", "F", "S", "P", "halogen", "other")
_UNKNOWN = 20
_CONTACT = 8.0  # Angstrom
_CLASSES = torch.tensor([2.2, 4.5, 8.0])  # Angstrom: bonded, polar contact, near, else
_CENTRES = torch.linspace(0, 20, 4)
_RADIAL_WIDTH = 5.0


class EnvironmentEncoder(nn.Module):
    """Embeds microenvironments: called with `Environments` of N residues, gives e (N, width).

    Tokens are the global features and the neighbours, without positions: the neighbours are a set.
    A pre-norm Transformer encoder; e is the layer-normalised token of the global features, so the
    last layer computes that one alone.
    """

    def __init__(self, config: EncoderConfig = EncoderConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        width = config.width
        self.density, self.neighbour = nn.Linear(4, width), nn.Linear(FEATURES, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                config.heads,
                config.feedforward,
                config.dropout,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, environments: Environments) -> Tensor:
        tokens = self.tokens(environments)
        for layer in self.layers[:-1]:
            tokens = layer(tokens)
        return self.last(tokens)

    def tokens(self, environments: Environments) -> Tensor:
        """The tokens before the first layer: (N, 1 + K, width)."""
        first = self.density(environments.density)[:, None]
        return torch.cat([first, self.neighbour(environments.neighbours)], dim=1)

    def last(self, tokens: Tensor) -> Tensor:
        """The last layer and the norm, for the first token: (N, width)."""
        layer = self.layers[-1]
        x, normed = tokens[:, :1], layer.norm1(tokens)
        attended, _ = layer.self_attn(normed[:, :1], normed, normed, need_weights=False)
        x = x + layer.dropout1(attended)
        inner = layer.dropout(gelu(layer.linear1(layer.norm2(x))))
        x = x + layer.dropout2(layer.linear2(inner))
        return self.norm(x[:, 0])


class ResidueHead(nn.Module):
    """Logits of the twenty amino acids: e (N, width) -> (N, 20)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, 20)
        )

    def forward(self, e: Tensor) -> Tensor:
        return self.layers(e)


class MutationHead(nn.Module):
    """Scores of mutations from a letter to each of the twenty.

    `head(e (N, width), from_index (N,))` gives (N, 20), with from_index (N, F) it gives (N, F, 20).
    The letter that is mutated is told by an embedding: the environment does not hold it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.environment = nn.Linear(width, 2 * width)
        self.origin, self.target = nn.Embedding(20, 2 * width), nn.Embedding(20, 2 * width)
        self.layers = nn.Sequential(
            nn.GELU(), nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, 1)
        )

    def forward(self, e: Tensor, from_index: Any) -> Tensor:
        index = torch.as_tensor(from_index, device=e.device).long()
        if index.ndim not in (1, 2) or len(index) != len(e):
            raise ValueError(
                f"from_index: shape {tuple(index.shape)}, must be ({len(e)},) or ({len(e)}, F)"
            )
        _check_letters(index, "from_index")
        h = self.environment(e)
        if index.ndim == 2:
            h = h[:, None]
        h = (h + self.origin(index))[..., None, :] + self.target.weight
        return self.layers(h).squeeze(-1)


def _check_letters(index: Tensor, name: str) -> None:
    if index.numel() and not (int(index.min()) >= 0 and int(index.max()) <= 19):
        raise ValueError(
            f"{name}: from {int(index.min())} to {int(index.max())}, must be within 0..19"
        )


class MutationScorer(nn.Module):
    """An encoder and a head as one predictor of substitutions, higher = more tolerated."""

    def __init__(
        self,
        encoder: EnvironmentEncoder,
        head: ResidueHead | MutationHead,
        environment: bool = True,
    ) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head
        self.uses_environment = environment

    def embed(self, environments: Environments) -> Tensor:
        """e (N, width); with `environment=False` that of one constant, empty environment."""
        if self.uses_environment:
            return self.encoder(environments)
        empty = Environments(
            torch.zeros_like(environments.neighbours[:1]),
            torch.zeros_like(environments.density[:1]),
        )
        return self.encoder(empty).expand(len(environments), -1)

    def forward(self, environments: Environments, from_index: Any = None) -> Tensor:
        """What the head gives: logits (N, 20), or scores of the mutations from from_index."""
        e = self.embed(environments)
        return self.head(e) if from_index is None else self.head(e, from_index)

    def score_matrix(self, environments: Environments, wildtype: Any) -> Tensor:
        """Scores of all substitutions of each residue: (L, 20), 0 at the wild type (L,).

        Mutation heads: s_yb; residue heads: logit_b - logit_y. The sum over the positions of a
        multiple mutant scores it.
        """
        index = torch.as_tensor(wildtype).long()
        if index.shape != (len(environments),):
            raise ValueError(
                f"wildtype: shape {tuple(index.shape)}, must be ({len(environments)},)"
            )
        _check_letters(index, "wildtype")
        self.eval()
        with torch.no_grad():
            e = self.embed(environments)
            if isinstance(self.head, MutationHead):
                scores = self.head(e, index)
            else:
                logits = self.head(e)
                scores = logits - logits.gather(1, index[:, None])
        return scores.scatter(1, index[:, None], 0.0)


class _AtomBlock(nn.Module):
    """Attention among near atoms, attention among all, and an MLP; each normalised and scaled."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.scales = nn.ParameterList(torch.full((width,), 1e-3) for _ in range(3))
        self.attentions = nn.ModuleList(
            nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(2)
        )
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor, bias: Tensor, near_bias: Tensor) -> Tensor:
        for number, (attention, allowed) in enumerate(
            zip(self.attentions, (near_bias, bias), strict=True)
        ):
            h = self.norms[number](x)
            attended, _ = attention(h, h, h, attn_mask=allowed.flatten(0, 1), need_weights=False)
            x = x + self.scales[number] * attended
        return x + self.scales[2] * self.mlp(self.norms[2](x))


class AtomGraphTransformer(nn.Module):
    """The atom-level network: masked environments of atoms around a residue's CA.

    A mask token stands at the CA; attention is biased by the distances of atoms. `forward(element
    (B, A) of ELEMENTS, properties (B, A, 2) partial charge and solvent-accessible area, xyz (B, A,
    3) relative to the CA, mask (B, A) bool)` gives logits (B, 20) of the environment's embedding,
    the mean over the tokens within 8 Angstrom of the CA. With from_index and to_index (B,) (20 for
    an unknown residue) it gives the score (B,) of the mutation, with (B, F) and (B, T) those of all
    pairs, (B, F, T): the mask token is replaced by the embedding of either amino acid, the rows of
    the residue head's weight, two more blocks follow, and the difference of the two first tokens is
    read out.

    Raises:
        ValueError: more atoms than the configuration allows; only one of from_index and to_index,
            or of different numbers of axes.
    """

    def __init__(self, config: AtomConfig = AtomConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        width, heads = config.width, config.heads
        self.element = nn.Embedding(len(ELEMENTS), width)
        self.properties = nn.Linear(2, width)
        self.mask_token = nn.Parameter(torch.zeros(width))
        self.distance_class = nn.Embedding(len(_CLASSES) + 1, len(_CENTRES))
        self.bias = nn.Sequential(
            nn.LayerNorm(2 * len(_CENTRES)), nn.Linear(2 * len(_CENTRES), heads), nn.GELU()
        )
        self.blocks = nn.ModuleList(_AtomBlock(width, heads) for _ in range(config.depth))
        self.norm = nn.LayerNorm(width)
        self.residue = nn.Linear(width, _UNKNOWN + 1)
        self.mutation_blocks = nn.ModuleList(_AtomBlock(width, heads) for _ in range(2))
        self.first = nn.Linear(width, width // 2)
        self.batch_norm = nn.BatchNorm1d(width // 2)
        self.second = nn.Linear(width // 2, 1)

    def train_for(self, *, mutations: bool) -> None:
        """Let the parameters be trained that scores of mutations use, or those of the logits."""
        for parameter in self.parameters():
            parameter.requires_grad_(True)
        of_logits = [*self.norm.parameters(), self.residue.bias]
        parts = (self.mutation_blocks, self.first, self.batch_norm, self.second)
        of_scores = [parameter for part in parts for parameter in part.parameters()]
        for parameter in of_logits if mutations else of_scores:
            parameter.requires_grad_(False)

    def forward(
        self,
        element: Tensor,
        properties: Tensor,
        xyz: Tensor,
        mask: Tensor,
        from_index: Tensor | None = None,
        to_index: Tensor | None = None,
    ) -> Tensor:
        if (from_index is None) != (to_index is None):
            raise ValueError("from_index, to_index: give both or neither")
        x, bias, near_bias, close = self._encode(element, properties, xyz, mask)
        if from_index is None or to_index is None:
            return self.residue(self.norm(_mean(x, close)))[:, :_UNKNOWN]
        if from_index.ndim != to_index.ndim or from_index.ndim not in (1, 2):
            raise ValueError(
                f"from_index, to_index: shapes {tuple(from_index.shape)} and "
                f"{tuple(to_index.shape)}, must have one axis both, or two"
            )
        single = from_index.ndim == 1
        origin = from_index[:, None] if single else from_index
        target = to_index[:, None] if single else to_index
        first = self._mutated(x, origin, bias, near_bias)
        second = first if target is origin else self._mutated(x, target, bias, near_bias)
        h = self.first(second[:, None] - first[:, :, None])
        h = torch.nn.functional.silu(self.batch_norm(h.flatten(0, 2)).view_as(h))
        scores = 2 * self.second(h).squeeze(-1)
        return scores[:, 0, 0] if single else scores

    def embed(self, element: Tensor, properties: Tensor, xyz: Tensor, mask: Tensor) -> Tensor:
        """e (B, width), what the logits are read from."""
        x, _, _, close = self._encode(element, properties, xyz, mask)
        return _mean(x, close)

    def _encode(
        self, element: Tensor, properties: Tensor, xyz: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tokens (B, A + 1, width), the two biases of attention, tokens near the CA (B, A + 1)."""
        if element.shape[1] > self.config.atoms:
            raise ValueError(f"element: {element.shape[1]} atoms; at most {self.config.atoms}")
        atoms = self.element(element) + self.properties(properties)
        x = torch.cat([self.mask_token.expand(len(atoms), 1, -1), atoms], dim=1)
        places = torch.cat([xyz.new_zeros(len(xyz), 1, 3), xyz], dim=1)
        real = torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)
        distances = torch.cdist(places, places)
        closed = torch.finfo(x.dtype).min
        bias = self._bias(distances).masked_fill(~real[:, None, None], closed)
        near = (distances < _CONTACT) & real[:, None]
        near_bias = bias.masked_fill(~near[:, None], closed)
        for block in self.blocks:
            x = block(x, bias, near_bias)
        return x, bias, near_bias, near[:, 0] & real

    def _mutated(self, x: Tensor, letters: Tensor, bias: Tensor, near_bias: Tensor) -> Tensor:
        """The first tokens with each of some letters (B, F) in the mask token's place."""
        found = []
        for index in letters.unbind(1):
            y = torch.cat([self.residue.weight[index][:, None], x[:, 1:]], dim=1)
            for block in self.mutation_blocks:
                y = block(y, bias, near_bias)
            found.append(y[:, 0])
        return torch.stack(found, dim=1)

    def _bias(self, distances: Tensor) -> Tensor:
        """Of the attention, (B, heads, A + 1, A + 1)."""
        centres = _CENTRES.to(distances.device)
        radial = torch.exp(-(((distances[..., None] - centres) / _RADIAL_WIDTH) ** 2))
        kind = torch.bucketize(distances, _CLASSES.to(distances.device), right=True)
        return self.bias(torch.cat([radial, self.distance_class(kind)], dim=-1)).movedim(-1, 1)


def _mean(x: Tensor, counted: Tensor) -> Tensor:
    """Mean of the counted tokens (B, A) of x (B, A, width)."""
    return x.masked_fill(~counted[..., None], 0).sum(1) / counted.sum(1, keepdim=True)
