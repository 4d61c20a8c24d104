"""Full-corpus ranks of held-out events, several per user from one causal pass (section 4.1.2)."""

from collections.abc import Sequence as List

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from retable.hstu.data import Sequence, collate
from retable.hstu.metrics import target_rank
from retable.hstu.models import Popularity, SequenceEncoder


@torch.no_grad()
def held_out_ranks(
    model: SequenceEncoder | Popularity,
    seqs: List[Sequence],
    n_targets: int,
    max_len: int,
    batch_size: int = 128,
    device: torch.device | str = "cpu",
) -> Int[np.ndarray, "users n_targets"]:
    """Rank (1-based, ties against) of each sequence's last n_targets events among all items.

    Each target is predicted from the true events before it: the slots before the targets of one
    causal pass over the last max_len events before the last target. All of the user's events
    before a target are excluded from its ranking, but for the target itself should it recur.
    The model is put in eval mode for the pass and left as it was. Needs n_targets <= max_len and
    sequences longer than n_targets.
    """
    if not 1 <= n_targets <= max_len:
        raise ValueError(f"n_targets must lie in 1..max_len = {max_len}, got {n_targets}")
    was_training = model.training
    model.eval()
    ranks = []
    for start in range(0, len(seqs), batch_size):
        part = seqs[start : start + batch_size]
        for seq in part:
            if len(seq) <= n_targets:
                raise ValueError(
                    f"user {seq.user} has {len(seq)} events, no history before {n_targets} targets"
                )
        batch = collate(part, max_len).to(device)
        rows = torch.arange(len(part), device=device).unsqueeze(1)
        slots = batch.lengths.unsqueeze(1) - n_targets + torch.arange(n_targets, device=device)
        target = batch.target_ids[rows, slots] - 1
        if isinstance(model, Popularity):
            scores = model.score(batch).unsqueeze(1).expand(-1, n_targets, -1)
        else:
            states = model.encode(batch.ids, batch.timestamps, batch.target_timestamps)
            scores = states[rows, slots] @ model.item_vectors().T
        exclude = seen_before(part, n_targets, scores.shape[-1]).to(device)
        exclude.scatter_(2, target.unsqueeze(-1), False)
        ranks.append(target_rank(scores.flatten(0, 1), target.flatten(), exclude.flatten(0, 1)))
    model.train(was_training)
    return torch.cat(ranks).view(len(seqs), n_targets).cpu().numpy()


def seen_before(
    seqs: List[Sequence], n_targets: int, n_items: int
) -> Bool[Tensor, "B n_targets V"]:
    """Items (columns, id - 1) that each user met before each of the last n_targets events."""
    seen = torch.zeros(len(seqs), n_targets, n_items, dtype=torch.bool)
    for row, seq in enumerate(seqs):
        columns = torch.from_numpy(seq.items) - 1
        first = len(seq) - n_targets
        # What precedes the first target precedes all; each target precedes the later ones.
        seen[row, :, columns[:first]] = True
        for target, column in enumerate(columns[first:-1].tolist(), start=1):
            seen[row, target:, column] = True
    return seen
