"""Key-value cache and M-FALCON: many candidates scored in one causal pass (section 3.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from retable.hstu.layers import HSTUStack
from retable.hstu.models import HSTU, NORM_FLOOR, GRRanker, check_tokens


@dataclass(frozen=True)
class KVCache:
    """Every layer's keys and values of the tokens seen so far, and the tokens' times."""

    keys: tuple[Float[Tensor, "B h n d_qk"], ...]
    values: tuple[Float[Tensor, "B h n d_v"], ...]
    timestamps: Int[Tensor, "B n"] | None

    def __len__(self) -> int:
        return self.keys[0].shape[2]


@dataclass(frozen=True)
class History:
    """One user's past for ranking: items, actions, times (n,), and the time of the request."""

    ids: Int[Tensor, "n"]
    actions: Int[Tensor, "n"]
    timestamps: Int[Tensor, "n"]
    request_time: int


@torch.no_grad()
def encode_with_cache(
    model: HSTU,
    ids: Int[Tensor, "B r"],
    timestamps: Int[Tensor, "B r"] | None = None,
    target_timestamps: Int[Tensor, "B r"] | None = None,
    cache: KVCache | None = None,
) -> tuple[Float[Tensor, "B r d"], KVCache]:
    """User states of r new events that follow the cached ones, and the cache that holds both.

    Equals `model.encode` on the whole sequences, at the cost of the new rows. No padding: the
    rows of a batch are equally long. ValueError when cached and new events exceed max_len, when
    time runs backwards, and for a model in training mode (dropout would differ between calls).
    """
    _check_eval(model)
    past = 0 if cache is None else len(cache)
    if past + ids.shape[-1] > model.max_len:
        raise ValueError(
            f"ids: {past} cached + {ids.shape[-1]} new slots, more than max_len = {model.max_len}"
        )
    check_tokens(ids, timestamps, target_timestamps, model.n_items, model.max_len)
    if not ids.all():
        raise ValueError("ids holds padding (0): a cache needs rows of equal length")
    if (
        cache is not None
        and timestamps is not None
        and cache.timestamps is not None
        and (timestamps[:, 0] < cache.timestamps[:, -1]).any()
    ):
        raise ValueError("timestamps of the new events must not precede the cached ones")
    x = model.embed(ids, first_position=past)
    positions = torch.arange(past, past + ids.shape[1], device=ids.device)
    y, cache = _extend(model.stack, x, positions, timestamps, target_timestamps, "causal", cache)
    return F.normalize(y, dim=-1, eps=NORM_FLOOR), cache


@torch.no_grad()
def m_falcon(
    model: GRRanker, history: History, candidates: Int[Tensor, "m"], microbatch: int
) -> Float[Tensor, "m"]:
    """Logits of m candidates after one history, microbatch candidates per pass.

    The history is encoded once and its keys and values are kept; every pass then adds rows for
    its candidates alone: each takes the position after the history, the request time, sees the
    history and itself and no other candidate. O(b d^2 + b n d) a pass. Equals m separate
    `model` calls on history + candidate.
    """
    _check_eval(model)
    n = len(history.ids)
    if candidates.ndim != 1 or len(candidates) == 0:
        raise ValueError(
            f"candidates must be a non-empty 1-d tensor, got {tuple(candidates.shape)}"
        )
    if microbatch < 1:
        raise ValueError(f"microbatch must be at least 1, got {microbatch}")
    if not 1 <= n <= model.max_events:
        raise ValueError(f"history must hold 1..max_events = {model.max_events} events, got {n}")
    if history.request_time < int(history.timestamps[-1]):
        raise ValueError(
            f"request_time must not precede the last event at {int(history.timestamps[-1])}, got "
            f"{history.request_time}"
        )
    check_tokens(candidates.unsqueeze(0), None, None, model.n_items, len(candidates))
    if not candidates.all():
        raise ValueError("candidates must lie in 1..n_items, got 0")
    ids, actions = history.ids.unsqueeze(0), history.actions.unsqueeze(0)
    times = history.timestamps.unsqueeze(0)
    check_tokens(ids, times, None, model.n_items, model.max_events)
    if not ids.all() or not actions.all():
        raise ValueError("history holds padding or an unknown action (0)")
    model.check_actions(actions)

    device = ids.device
    request = torch.full((1, 1), history.request_time, device=device)
    own = times.repeat_interleave(2, dim=1)
    after = torch.cat([own[:, 1:], request], dim=1)
    slots = torch.arange(2 * n, device=device)
    _, cache = _extend(model.stack, model.embed(ids, actions), slots, own, after, "causal", None)

    logits = []
    for part in candidates.split(microbatch):
        size = len(part)
        # Alone at its slot, a candidate is an item token without history before it in the batch.
        x = model.embed_item(part.unsqueeze(0), position=2 * n)
        seen = torch.ones(size, 2 * n, dtype=torch.bool, device=device)
        mask = torch.cat([seen, torch.eye(size, dtype=torch.bool, device=device)], dim=1)
        y, _ = _extend(
            model.stack,
            x,
            torch.full((size,), 2 * n, device=device),
            request.expand(1, size),
            request.expand(1, size),
            mask,
            cache,
        )
        logits.append(model.head(y[0]))
    return torch.cat(logits)


def _extend(
    stack: HSTUStack,
    x: Float[Tensor, "B r d"],
    positions: Int[Tensor, "r"],
    timestamps: Int[Tensor, "B r"] | None,
    target_timestamps: Int[Tensor, "B r"] | None,
    mask: Tensor | str,
    cache: KVCache | None,
) -> tuple[Float[Tensor, "B r d"], KVCache]:
    """Run the stack on new rows that attend to the cached keys and to their own."""
    past = 0 if cache is None else len(cache)
    key_positions = torch.cat([torch.arange(past, device=x.device), positions])
    if cache is not None and timestamps is not None:
        timestamps = torch.cat([cache.timestamps.expand(len(timestamps), -1), timestamps], dim=1)
    rows = stack.bias_rows(positions, key_positions, timestamps, target_timestamps)
    keys, values = [], []
    for i, (layer, bias) in enumerate(zip(stack.layers, rows, strict=True)):
        u, v, q, k = layer.project(x)
        if cache is not None:
            k = torch.cat([cache.keys[i], k], dim=2)
            v = torch.cat([cache.values[i], v], dim=2)
        x = layer.combine(x, layer.attend(q, k, v, mask, bias), u)
        keys.append(k)
        values.append(v)
    return x, KVCache(tuple(keys), tuple(values), timestamps)


def _check_eval(model: torch.nn.Module) -> None:
    if model.training:
        raise ValueError("model is in training mode: call model.eval() first")
