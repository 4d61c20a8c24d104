"""Full-corpus ranking metrics and the normalised entropy of rankers (sections 4.1, 4.3)."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


def target_rank(
    scores: Float[Tensor, "B V"],
    target: Int[Tensor, "B"],
    exclude: Bool[Tensor, "B V"] | None = None,
) -> Int[Tensor, "B"]:
    """1-based rank of each target column among all columns that are not excluded.

    Ties count against the target: rank = 1 + #{others with score >= the target's}. Counting
    instead of sorting costs O(V) a row. ValueError for NaN scores, a target out of range or one
    that is excluded.
    """
    if scores.isnan().any():
        row = int(scores.isnan().any(1).nonzero()[0])
        raise ValueError(f"scores holds NaN, first in row {row}")
    low, high = (int(x) for x in target.aminmax())
    if low < 0 or high >= scores.shape[1]:
        wrong = low if low < 0 else high
        raise ValueError(f"target must lie in 0..{scores.shape[1] - 1}, got {wrong}")
    column = target.unsqueeze(1)
    ahead = scores >= scores.gather(1, column)
    if exclude is not None:
        barred = exclude.gather(1, column).squeeze(1)
        if barred.any():
            row = int(barred.nonzero()[0])
            raise ValueError(f"target {int(target[row])} of row {row} is inside exclude")
        ahead &= ~exclude
    # The target's own comparison supplies the 1.
    return ahead.sum(1)


def hit_rate(ranks: Int[Tensor, "..."], k: int) -> float:
    """HR@k: share of targets ranked k or better, in [0, 1]."""
    _check(ranks, k)
    return (ranks <= k).double().mean().item()


def ndcg(ranks: Int[Tensor, "..."], k: int) -> float:
    """NDCG@k with one relevant item: mean of `ndcg_gains`, in [0, 1]."""
    return ndcg_gains(ranks, k).mean().item()


def ndcg_gains(ranks: Int[Tensor, "..."], k: int) -> Float[Tensor, "..."]:
    """Per target: 1 / log2(rank + 1) when rank <= k, else 0 (float64)."""
    _check(ranks, k)
    return torch.where(ranks <= k, 1 / torch.log2(ranks.double() + 1), 0.0)


def mrr(ranks: Int[Tensor, "..."]) -> float:
    """Mean reciprocal rank, in (0, 1]."""
    _check(ranks, 1)
    return (1 / ranks.double()).mean().item()


def normalized_entropy(
    logits: Float[Tensor, "n"], labels: Float[Tensor, "n"], base_rate: float
) -> float:
    """NE: mean log loss over the entropy (nats) of always predicting the training base rate.

    labels in {0, 1}, base_rate in (0, 1). Below 1 means better than the base rate's own entropy.
    """
    if not 0 < base_rate < 1:
        raise ValueError(f"base_rate must lie in (0, 1), got {base_rate}")
    if logits.isnan().any():
        raise ValueError(f"logits holds {int(logits.isnan().sum())} NaN")
    loss = F.binary_cross_entropy_with_logits(logits.double(), labels.double()).item()
    return loss / -(base_rate * math.log(base_rate) + (1 - base_rate) * math.log1p(-base_rate))


def _check(ranks: Tensor, k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if ranks.numel() == 0:
        raise ValueError("ranks is empty")
    if ranks.min() < 1:
        raise ValueError(f"ranks must be at least 1, got {int(ranks.min())}")
