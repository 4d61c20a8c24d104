import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from retable.hstu.metrics import (
    hit_rate,
    mrr,
    ndcg,
    ndcg_gains,
    normalized_entropy,
    target_rank,
)


def test_vectors():
    scores = torch.tensor([[0.9, 0.8, 0.7, 0.6]])
    exclude = torch.tensor([[True, False, False, False]])
    ranks = target_rank(scores, torch.tensor([2]), exclude)
    assert ranks.tolist() == [2]
    assert ndcg(ranks, 10) == pytest.approx(0.630930, abs=1e-6)
    assert hit_rate(ranks, 1) == 0
    assert target_rank(torch.ones(1, 4), torch.tensor([1])).tolist() == [4]


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=1, max_size=5),
    st.integers(0, 5),
    st.integers(0, 63),
)
def test_rank_by_counting(rows, target, barred):
    scores = torch.tensor(rows, dtype=torch.float32)
    exclude = torch.tensor([[bool(barred >> j & 1) and j != target for j in range(6)]] * len(rows))
    ranks = target_rank(scores, torch.full((len(rows),), target), exclude)
    for row, rank in zip(rows, ranks.tolist(), strict=True):
        ahead = [j for j in range(6) if j != target and not exclude[0, j] and row[j] >= row[target]]
        assert rank == 1 + len(ahead)


def test_means():
    ranks = torch.tensor([1, 2, 11, 3])
    assert hit_rate(ranks, 10) == 0.75
    assert mrr(ranks) == pytest.approx((1 + 1 / 2 + 1 / 11 + 1 / 3) / 4)
    assert ndcg(ranks, 10) == pytest.approx((1 + 1 / math.log2(3) + 1 / 2) / 4)
    assert ndcg_gains(ranks, 10).tolist()[2] == 0
    assert ndcg_gains(ranks.view(2, 2), 10).shape == (2, 2)


def test_normalized_entropy():
    rng = np.random.default_rng(0)
    logits = torch.tensor(rng.normal(size=50))
    labels = torch.tensor(rng.integers(0, 2, 50))
    entropy = -(0.3 * math.log(0.3) + 0.7 * math.log(0.7))
    expected = log_loss(labels.numpy(), logits.sigmoid().numpy()) / entropy
    assert normalized_entropy(logits, labels, 0.3) == pytest.approx(expected)
    base = torch.full((10,), math.log(0.3 / 0.7), dtype=torch.float64)
    share = torch.tensor([1.0] * 3 + [0] * 7)
    assert normalized_entropy(base, share, 0.3) == pytest.approx(1)


def test_bad_input():
    scores = torch.tensor([[0.1, 0.2], [0.3, float("nan")]])
    with pytest.raises(ValueError, match="scores holds NaN, first in row 1"):
        target_rank(scores, torch.tensor([0, 0]))
    with pytest.raises(ValueError, match=r"target must lie in 0\.\.1, got 2"):
        target_rank(scores[:1], torch.tensor([2]))
    with pytest.raises(ValueError, match="target 1 of row 0 is inside exclude"):
        target_rank(scores[:1], torch.tensor([1]), torch.tensor([[False, True]]))
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        hit_rate(torch.tensor([1]), 0)
    with pytest.raises(ValueError, match="ranks must be at least 1, got 0"):
        mrr(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="ranks is empty"):
        ndcg(torch.tensor([], dtype=torch.long), 5)
    with pytest.raises(ValueError, match=r"base_rate must lie in \(0, 1\), got 1"):
        normalized_entropy(scores[0], torch.tensor([0.0, 1]), 1)
    with pytest.raises(ValueError, match="logits holds 1 NaN"):
        normalized_entropy(scores[1], torch.tensor([0.0, 1]), 0.5)
