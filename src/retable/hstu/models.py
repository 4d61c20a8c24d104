"""Sequence encoders for retrieval, the generative ranker, and their baselines (sections 2-4)."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from retable.hstu.data import Batch
from retable.hstu.layers import HSTUStack, SASRecLayer

# Norms below this are divided by this instead.
NORM_FLOOR = 1e-6


@dataclass(frozen=True)
class HSTUConfig:
    """Sizes of `HSTU`; bias: "position+time", "position" or None ("-rab")."""

    n_items: int
    max_len: int
    d_model: int
    n_blocks: int
    n_heads: int
    d_qk: int
    d_v: int
    dropout: float = 0.2
    attention: str = "silu"
    bias: str | None = "position+time"


@dataclass(frozen=True)
class SASRecConfig:
    """Sizes of `SASRec`; d_ff is the width of the feed-forward layer."""

    n_items: int
    max_len: int
    d_model: int
    n_blocks: int
    n_heads: int
    d_ff: int
    dropout: float = 0.2


@dataclass(frozen=True)
class GRU4RecConfig:
    """Sizes of `GRU4Rec`; the hidden state is as wide as the item embedding."""

    n_items: int
    max_len: int
    d_model: int
    n_blocks: int = 1
    dropout: float = 0.2


@dataclass(frozen=True)
class PopularityConfig:
    """Number of items of `Popularity`."""

    n_items: int


@dataclass(frozen=True)
class GRRankerConfig:
    """Sizes of `GRRanker`: max_events of history before the candidate, actions 1..n_actions."""

    n_items: int
    n_actions: int
    max_events: int
    d_model: int
    n_blocks: int
    n_heads: int
    d_qk: int
    d_v: int
    dropout: float = 0.2
    bias: str | None = "position+time"


@dataclass(frozen=True)
class DLRMConfig:
    """Sizes of `DLRM`: n_features dense features, MLP layers of the given hidden widths."""

    n_users: int
    n_items: int
    n_features: int
    d_embedding: int = 16
    hidden: tuple[int, ...] = (64, 32)
    dropout: float = 0.0


class SequenceEncoder(nn.Module):
    """Base of the retrieval models: item embeddings in and out, one user state per slot.

    Subclasses give `hidden`. E is (V + 1, d), truncated normal (std 0.02, cut at two), row 0 is
    padding and stays 0.
    """

    def __init__(self, n_items: int, max_len: int, d_model: int) -> None:
        super().__init__()
        self.n_items, self.max_len = n_items, max_len
        self.item_embedding = _embedding(n_items, d_model)

    def hidden(
        self,
        ids: Int[Tensor, "B n"],
        timestamps: Int[Tensor, "B n"] | None,
        target_timestamps: Int[Tensor, "B n"] | None,
    ) -> Float[Tensor, "B n d"]:
        """States before the normalisation; padded slots may hold anything."""
        raise NotImplementedError

    def encode(
        self,
        ids: Int[Tensor, "B n"],
        timestamps: Int[Tensor, "B n"] | None = None,
        target_timestamps: Int[Tensor, "B n"] | None = None,
    ) -> Float[Tensor, "B n d"]:
        """User state u_i (unit vector) after every slot, 0 at padding, from one causal pass.

        ids: items 1..V, left-aligned, padded with 0 at the end, n <= max_len. timestamps: seconds,
        not decreasing over valid slots. target_timestamps: when the next event takes place.
        ValueError for anything else; longer histories are never cut here.
        """
        check_tokens(ids, timestamps, target_timestamps, self.n_items, self.max_len)
        y = self.hidden(ids, timestamps, target_timestamps)
        return F.normalize(y * (ids != 0).unsqueeze(-1), dim=-1, eps=NORM_FLOOR)

    def forward(
        self,
        ids: Int[Tensor, "B n"],
        timestamps: Int[Tensor, "B n"] | None = None,
        target_timestamps: Int[Tensor, "B n"] | None = None,
    ) -> tuple[Float[Tensor, "B n d"], Float[Tensor, "V d"]]:
        """`encode` and `item_vectors`: what a loss needs, from one call of the module."""
        return self.encode(ids, timestamps, target_timestamps), self.item_vectors()

    def item_vectors(self) -> Float[Tensor, "V d"]:
        """Unit vectors of items 1..V (row i is item i + 1)."""
        return F.normalize(self.item_embedding.weight[1:], dim=-1, eps=NORM_FLOOR)

    def score(self, batch: Batch) -> Float[Tensor, "B V"]:
        """Cosine of every item with each user's state at the last valid slot."""
        states = self.encode(batch.ids, batch.timestamps, batch.target_timestamps)
        last = states[torch.arange(len(states), device=states.device), batch.lengths - 1]
        return last @ self.item_vectors().T


class HSTU(SequenceEncoder):
    """HSTU retrieval model: E sqrt(d) + P, dropout, a stack of HSTU layers, unit norm."""

    def __init__(self, config: HSTUConfig) -> None:
        super().__init__(config.n_items, config.max_len, config.d_model)
        self.position = nn.Parameter(torch.empty(config.max_len, config.d_model))
        nn.init.xavier_normal_(self.position)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = HSTUStack(
            config.n_blocks,
            config.d_model,
            config.n_heads,
            config.d_qk,
            config.d_v,
            config.dropout,
            config.max_len,
            config.attention,
            config.bias,
        )

    def embed(self, ids: Int[Tensor, "B n"], first_position: int = 0) -> Float[Tensor, "B n d"]:
        """x_i = dropout(E[id_i] sqrt(d) + P[i]), zero at padding."""
        return _embed(self.item_embedding, self.position, self.dropout, ids, first_position)

    def hidden(self, ids, timestamps, target_timestamps):
        """As in the base class."""
        return self.stack(self.embed(ids), timestamps, target_timestamps)


class SASRec(SequenceEncoder):
    """SASRec with the input, output and loss of `HSTU`; ignores time.

    With d_ff = 4 d and no dropout it is the Transformer of the synthetic experiment.
    """

    def __init__(self, config: SASRecConfig) -> None:
        super().__init__(config.n_items, config.max_len, config.d_model)
        std = math.sqrt(1 / config.d_model)
        self.position = nn.Parameter(torch.empty(config.max_len, config.d_model))
        nn.init.trunc_normal_(self.position, std=std, a=-2 * std, b=2 * std)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(
            SASRecLayer(config.d_model, config.n_heads, config.d_ff, config.dropout)
            for _ in range(config.n_blocks)
        )

    def hidden(self, ids, timestamps, target_timestamps):
        """As in the base class; padding is zeroed after every block."""
        valid = (ids != 0).unsqueeze(-1)
        x = _embed(self.item_embedding, self.position, self.dropout, ids, 0)
        for layer in self.layers:
            x = layer(x) * valid
        return x


class GRU4Rec(SequenceEncoder):
    """GRU over the item embeddings with the output and loss of `HSTU`; ignores time."""

    def __init__(self, config: GRU4RecConfig) -> None:
        super().__init__(config.n_items, config.max_len, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.gru = nn.GRU(
            config.d_model,
            config.d_model,
            config.n_blocks,
            batch_first=True,
            dropout=config.dropout if config.n_blocks > 1 else 0.0,
        )
        self.out = nn.Linear(config.d_model, config.d_model)

    def hidden(self, ids, timestamps, target_timestamps):
        """As in the base class."""
        x = self.item_embedding(ids) * math.sqrt(self.item_embedding.embedding_dim)
        states, _ = self.gru(self.dropout(x))
        return self.out(self.dropout(states))


class Popularity(nn.Module):
    """Scores every item by its number of training events, the same for all users."""

    def __init__(self, config: PopularityConfig) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(config.n_items, dtype=torch.int64))

    def fit(self, ids: Int[Tensor, "events"]) -> "Popularity":
        """Count training events; ids 1..V."""
        _check_ids(ids, len(self.counts), low=1)
        self.counts.copy_(torch.bincount(ids - 1, minlength=len(self.counts)))
        return self

    def score(self, batch: Batch) -> Float[Tensor, "B V"]:
        """The counts, once per row."""
        return self.counts.float().expand(len(batch.ids), -1)


class GRRanker(nn.Module):
    """Generative ranker: HSTU over item, action, item, action, ...; predicts a_i at item i's slot.

    Tokens: 2 max_events + 1, a full history and the candidate. Every token's target time is the
    time of the next token: an item's is its own action's, an action's is the next item's.
    """

    def __init__(self, config: GRRankerConfig) -> None:
        super().__init__()
        self.n_items, self.n_actions = config.n_items, config.n_actions
        self.max_events = config.max_events
        max_len = 2 * config.max_events + 1
        self.item_embedding = _embedding(config.n_items, config.d_model)
        self.action_embedding = _embedding(config.n_actions, config.d_model)
        self.position = nn.Parameter(torch.empty(max_len, config.d_model))
        nn.init.xavier_normal_(self.position)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = HSTUStack(
            config.n_blocks,
            config.d_model,
            config.n_heads,
            config.d_qk,
            config.d_v,
            config.dropout,
            max_len,
            bias=config.bias,
        )
        self.w_head = nn.Linear(config.d_model, config.d_model)
        self.w_logit = nn.Linear(config.d_model, 1)

    def forward(
        self,
        ids: Int[Tensor, "B n"],
        actions: Int[Tensor, "B n"],
        timestamps: Int[Tensor, "B n"],
    ) -> Float[Tensor, "B n"]:
        """Logit of a positive action for every item, from the events before it alone.

        ids 1..V padded with 0 at the end; actions 1..n_actions, 0 where unknown (the last event of
        a row, to be predicted) and at padding; n <= max_events + 1. The action of slot i is seen
        from slot i + 1 on, never at slot i.
        """
        check_tokens(ids, timestamps, timestamps, self.n_items, self.max_events + 1)
        self.check_actions(actions)
        # The last event's action predicts nothing: 2 n - 1 tokens.
        m = 2 * ids.shape[1] - 1
        own = timestamps.repeat_interleave(2, dim=1)
        y = self.stack(self.embed(ids, actions)[:, :m], own[:, :-1], own[:, 1:])
        return self.head(y[:, ::2])

    def embed(self, ids: Int[Tensor, "B n"], actions: Int[Tensor, "B n"]) -> Float[Tensor, "B m d"]:
        """Tokens item 0, action 0, item 1, ..., m = 2 n of them, zero at padding.

        With max_events + 1 events the last action has no position left: m = 2 n - 1.
        """
        pairs = torch.stack([self.item_embedding(ids), self.action_embedding(actions)], dim=2)
        valid = torch.stack([ids != 0, actions != 0], dim=2).flatten(1).unsqueeze(-1)
        m = min(2 * ids.shape[1], len(self.position))
        return self._input(pairs.flatten(1, 2)[:, :m], self.position[:m]) * valid[:, :m]

    def embed_item(self, ids: Int[Tensor, "B n"], position: int) -> Float[Tensor, "B n d"]:
        """Item tokens that all stand at one position, as M-FALCON's candidates do."""
        return self._input(self.item_embedding(ids), self.position[position])

    def _input(self, embedded: Tensor, position: Tensor) -> Tensor:
        return self.dropout(embedded * math.sqrt(self.position.shape[1]) + position)

    def head(self, y: Float[Tensor, "... d"]) -> Float[Tensor, "..."]:
        """Logit from the encoder's output at an item's slot."""
        z = F.layer_norm(y, y.shape[-1:])
        return self.w_logit(F.silu(self.w_head(z))).squeeze(-1)

    def check_actions(self, actions: Int[Tensor, "..."]) -> None:
        """ValueError for an action outside 0..n_actions."""
        low, high = (int(x) for x in actions.aminmax())
        if low < 0 or high > self.n_actions:
            wrong = low if low < 0 else high
            raise ValueError(f"actions must lie in 0..{self.n_actions}, got {wrong}")


class DLRM(nn.Module):
    """Impression-level ranker: user, item and mean liked-item embeddings, dense features, MLP.

    Interactions enter as the products user * item and liked * item, DLRM's dot products before
    their sum. The baseline that the generative ranker replaces.
    """

    def __init__(self, config: DLRMConfig) -> None:
        super().__init__()
        self.n_users, self.n_items = config.n_users, config.n_items
        d = config.d_embedding
        self.user_embedding = _embedding(config.n_users, d)
        self.item_embedding = _embedding(config.n_items, d)
        widths = (5 * d + config.n_features, *config.hidden)
        layers: list[nn.Module] = []
        for width_in, width_out in pairwise(widths):
            layers += [nn.Linear(width_in, width_out), nn.ReLU(), nn.Dropout(config.dropout)]
        self.mlp = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def forward(
        self,
        users: Int[Tensor, "B"],
        items: Int[Tensor, "B"],
        liked: Int[Tensor, "B L"],
        features: Float[Tensor, "B F"],
    ) -> Float[Tensor, "B"]:
        """Logit of a positive action for each impression.

        users 1..n_users, items 1..n_items; liked: items of positive past actions, padded with 0
        anywhere, an empty history counts as the zero vector; features: dense, roughly unit scale.
        """
        _check_ids(items, self.n_items, low=1)
        _check_ids(liked, self.n_items, low=0)
        _check_ids(users, self.n_users, low=1, name="users")
        user, item = self.user_embedding(users), self.item_embedding(items)
        taste = F.embedding_bag(liked, self.item_embedding.weight, mode="mean", padding_idx=0)
        return self.mlp(
            torch.cat([user, item, taste, user * item, taste * item, features], dim=1)
        ).squeeze(-1)


def check_tokens(
    ids: Int[Tensor, "B n"],
    timestamps: Int[Tensor, "B n"] | None,
    target_timestamps: Int[Tensor, "B n"] | None,
    n_items: int,
    max_len: int,
) -> None:
    """ValueError unless ids and times form left-aligned sequences of at most max_len events."""
    if ids.ndim != 2 or ids.shape[1] < 1 or ids.shape[0] < 1:
        raise ValueError(f"ids must have shape (B, n) with B, n >= 1, got {tuple(ids.shape)}")
    if ids.shape[1] > max_len:
        raise ValueError(f"ids hold {ids.shape[1]} slots, more than max_len = {max_len}")
    for name, times in (("timestamps", timestamps), ("target_timestamps", target_timestamps)):
        if times is not None and times.shape != ids.shape:
            raise ValueError(
                f"{name} must have the shape {tuple(ids.shape)} of ids, got {tuple(times.shape)}"
            )
    _check_ids(ids, n_items, low=0)
    valid = ids != 0
    gap = ~valid[:, :-1] & valid[:, 1:]
    if gap.any():
        row, slot = (int(x) for x in gap.nonzero()[0])
        raise ValueError(
            f"ids has padding inside row {row}: slot {slot} is 0, slot {slot + 1} is "
            f"{int(ids[row, slot + 1])}; sequences must be left-aligned"
        )
    if timestamps is not None:
        back = (timestamps[:, 1:] < timestamps[:, :-1]) & valid[:, 1:]
        if back.any():
            row, slot = (int(x) for x in back.nonzero()[0])
            raise ValueError(
                f"timestamps must not decrease, got {int(timestamps[row, slot])} then "
                f"{int(timestamps[row, slot + 1])} in row {row}, slot {slot + 1}"
            )


def _check_ids(ids: Tensor, n_items: int, low: int, name: str = "ids") -> None:
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} must be integers, got dtype {ids.dtype}")
    if ids.numel() == 0:
        raise ValueError(f"{name} is empty")
    least, most = (int(x) for x in ids.aminmax())
    if least < low or most > n_items:
        wrong = least if least < low else most
        raise ValueError(f"{name} must lie in {low}..{n_items}, got {wrong}")


def _embedding(n_rows: int, d: int) -> nn.Embedding:
    """Rows 1..n_rows truncated normal (std 0.02, cut at two std), row 0 zero."""
    table = nn.Embedding(n_rows + 1, d, padding_idx=0)
    nn.init.trunc_normal_(table.weight, std=0.02, a=-0.04, b=0.04)
    with torch.no_grad():
        table.weight[0] = 0
    return table


def _embed(
    table: nn.Embedding, position: Tensor, dropout: nn.Dropout, ids: Tensor, first_position: int
) -> Tensor:
    """x_i = dropout(E[id_i] sqrt(d) + P[i]), zero at padding."""
    x = table(ids) * math.sqrt(table.embedding_dim)
    x = x + position[first_position : first_position + ids.shape[1]]
    return dropout(x) * (ids != 0).unsqueeze(-1)
