"""Users' events as models take them: padded batches; and all that leads there (section 4.1.2)."""

from collections.abc import Sequence as List
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from retable.hstu.events import (
    Interactions,
    Sequence,
    Split,
    build_sequences,
    keep_core,
    leave_last,
    load_amazon_books,
    load_movielens,
    pack_sequences,
    relabel_items,
    unpack_sequences,
)

__all__ = [
    "Batch",
    "Interactions",
    "Sequence",
    "Split",
    "build_sequences",
    "collate",
    "keep_core",
    "leave_last",
    "load_amazon_books",
    "load_movielens",
    "pack_sequences",
    "relabel_items",
    "unpack_sequences",
]


@dataclass(frozen=True)
class Batch:
    """Left-aligned, zero-padded sequences with the event to be predicted at every slot.

    ids, timestamps: event i in slot i. target_ids, target_timestamps: event i + 1, or, in the
    last slot at inference, id 0 and the request time. lengths: valid slots of each row.
    """

    ids: Int[Tensor, "B N"]
    timestamps: Int[Tensor, "B N"]
    target_ids: Int[Tensor, "B N"]
    target_timestamps: Int[Tensor, "B N"]
    lengths: Int[Tensor, "B"]

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on another device."""
        return Batch(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))

    def trimmed(self) -> "Batch":
        """Without the slots that no row uses: what Stochastic Length saves is not computed."""
        n = int(self.lengths.max())
        parts = (self.ids, self.timestamps, self.target_ids, self.target_timestamps)
        return Batch(*(part[:, :n] for part in parts), self.lengths)


def collate(seqs: List[Sequence], max_len: int) -> Batch:
    """Batch of each sequence's last max_len + 1 events: max_len inputs and their next events.

    Sequences need at least two events. For evaluation pass sequences that end with the target:
    the last valid slot then predicts it from the max_len events before.
    """
    if max_len < 1:
        raise ValueError(f"max_len must be at least 1, got {max_len}")
    if not seqs:
        raise ValueError("seqs is empty, a batch needs at least one sequence")
    lengths = np.array([min(len(seq) - 1, max_len) for seq in seqs])
    if lengths.min() < 1:
        short = seqs[int(lengths.argmin())]
        raise ValueError(f"user {short.user} has {len(short)} events, a sequence needs at least 2")
    valid = np.arange(max_len) < lengths[:, None]

    def padded(name: str, shift: int) -> Tensor:
        out = np.zeros(valid.shape, np.int64)
        out[valid] = np.concatenate(
            [
                getattr(seq, name)[len(seq) - n - 1 + shift : len(seq) - 1 + shift]
                for seq, n in zip(seqs, lengths, strict=True)
            ]
        )
        return torch.from_numpy(out)

    return Batch(
        ids=padded("items", 0),
        timestamps=padded("timestamps", 0),
        target_ids=padded("items", 1),
        target_timestamps=padded("timestamps", 1),
        lengths=torch.from_numpy(lengths),
    )
