"""Training and test cases of the rankers: windows of tokens, and single impressions."""

from collections.abc import Sequence as List
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from retable.hstu.data import Sequence

# Dense features of an impression, in the order of `impressions`.
FEATURES = 5


@dataclass(frozen=True)
class Windows:
    """Padded runs of events for `GRRanker`: ids, actions and times (B, n), 0 at padding."""

    ids: Int[Tensor, "B n"]
    actions: Int[Tensor, "B n"]
    timestamps: Int[Tensor, "B n"]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Impressions:
    """One row an event for `DLRM`; labels are 1 for a positive action."""

    users: Int[Tensor, "B"]
    items: Int[Tensor, "B"]
    liked: Int[Tensor, "B L"]
    features: Float[Tensor, "B F"]
    labels: Float[Tensor, "B"]

    def __len__(self) -> int:
        return len(self.items)


def training_windows(seqs: List[Sequence], size: int) -> list[Sequence]:
    """Consecutive runs of at most `size` events, so that every event is a target once."""
    return [seq[start : start + size] for seq in seqs for start in range(0, len(seq), size)]


def pad_windows(windows: List[Sequence]) -> Windows:
    """Left-aligned tensors of sequences; actions are the ratings."""
    lengths = np.array([len(window) for window in windows])
    valid = np.arange(lengths.max()) < lengths[:, None]

    def padded(name: str) -> Tensor:
        out = np.zeros(valid.shape, np.int64)
        out[valid] = np.concatenate([getattr(window, name) for window in windows])
        return torch.from_numpy(out)

    return Windows(padded("items"), padded("ratings"), padded("timestamps"))


def last_slots(windows: Windows, n: int) -> Bool[Tensor, "B slots"]:
    """Marks the last n events of every window: the targets of a held-out pass."""
    lengths = (windows.ids != 0).sum(1, keepdim=True)
    slots = torch.arange(windows.ids.shape[1])
    return (slots < lengths) & (slots >= lengths - n)


def impressions(
    seqs: List[Sequence],
    targets: int | None,
    max_liked: int,
    positive_rating: float,
    item_counts: Int[np.ndarray, "V"],
) -> Impressions:
    """Every sequence's last `targets` events (None: all) with what preceded each of them.

    liked: the max_liked most recent positive items. Features: logarithms of the numbers of past
    events, of positive ones, of the item's training events and of the seconds since the last
    event, all about unit scale, and the share of positives. Users count from 1 in order.
    """
    parts = [
        _of_user(row + 1, seq, targets, max_liked, positive_rating, item_counts)
        for row, seq in enumerate(seqs)
    ]
    users, items, liked, features, labels = (
        torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True)
    )
    return Impressions(users, items, liked, features, labels)


def _of_user(user, seq, targets, max_liked, positive_rating, item_counts):
    positive = seq.ratings >= positive_rating
    before = positive.cumsum() - positive
    # Row t: the places before[t] - max_liked .. before[t] - 1 of the list of positive items.
    place = before[:, None] - max_liked + np.arange(max_liked)
    history = np.append(seq.items[positive], 0)
    liked = np.where(place >= 0, history[np.maximum(place, 0)], 0)
    past = np.arange(len(seq))
    gap = np.diff(seq.timestamps, prepend=seq.timestamps[0])
    features = np.stack(
        [
            np.log1p(past) / 5,
            np.log1p(before) / 5,
            before / np.maximum(past, 1),
            np.log1p(item_counts[seq.items - 1]) / 5,
            np.log1p(gap) / 10,
        ],
        axis=1,
    ).astype(np.float32)
    rows = slice(None) if targets is None else slice(len(seq) - targets, None)
    return (
        np.full(len(seq), user)[rows],
        seq.items[rows],
        liked[rows],
        features[rows],
        positive.astype(np.float32)[rows],
    )
