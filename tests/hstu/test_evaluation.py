import numpy as np
import pytest
import torch

from retable.hstu.data import Sequence, collate
from retable.hstu.evaluation import held_out_ranks, seen_before
from retable.hstu.metrics import target_rank
from retable.hstu.models import Popularity, PopularityConfig

from .conftest import MAX_LEN, N_ITEMS


def test_seen_before_grows_with_the_targets():
    seq = Sequence(1, np.array([3, 1, 3, 2]), np.zeros(4), np.arange(4))
    seen = seen_before([seq], 2, 4)
    assert seen[0].tolist() == [[True, False, True, False], [True, False, True, False]]
    seen = seen_before([seq], 3, 4)
    assert seen[0].tolist() == [
        [False, False, True, False],
        [True, False, True, False],
        [True, False, True, False],
    ]


def test_ranks_equal_one_forward_per_target(model, sequences):
    ranks = held_out_ranks(model, sequences, 3, MAX_LEN, batch_size=2)
    for row, seq in enumerate(sequences):
        window = collate([seq], MAX_LEN)
        n = int(window.lengths)
        for t in range(3):
            length = n - 2 + t
            keep = torch.arange(MAX_LEN) < length
            state = model.encode(
                window.ids * keep, window.timestamps * keep, window.target_timestamps * keep
            )[:, length - 1]
            target = int(seq.items[len(seq) - 3 + t]) - 1
            exclude = torch.zeros(1, N_ITEMS, dtype=torch.bool)
            exclude[0, seq.items[: len(seq) - 3 + t] - 1] = True
            exclude[0, target] = False
            rank = target_rank(state @ model.item_vectors().T, torch.tensor([target]), exclude)
            assert ranks[row, t] == int(rank)


def test_popularity_ranks():
    counts = torch.tensor([1] * 5 + [2] * 4 + [3] * 3 + [4] * 2 + [5])
    model = Popularity(PopularityConfig(5)).fit(counts)
    seq = Sequence(1, np.array([1, 4, 3, 5]), np.zeros(4), np.arange(4))
    # Target 3: items 1 and 4 are out, 2 is ahead. Target 5: item 2 is ahead.
    assert held_out_ranks(model, [seq], 2, 4).tolist() == [[2, 2]]


def test_a_recurring_target_is_ranked():
    model = Popularity(PopularityConfig(3)).fit(torch.tensor([1, 1, 2, 3, 3]))
    seq = Sequence(1, np.array([2, 1, 2]), np.zeros(3), np.arange(3))
    assert held_out_ranks(model, [seq], 1, 4).tolist() == [[2]]


def test_training_mode_is_restored(model, sequences):
    model.train()
    first = held_out_ranks(model, sequences, 2, MAX_LEN)
    assert model.training
    assert (held_out_ranks(model, sequences, 2, MAX_LEN) == first).all()


def test_bad_input(model, sequences):
    with pytest.raises(ValueError, match=r"n_targets must lie in 1\.\.max_len = 12, got 13"):
        held_out_ranks(model, sequences, 13, MAX_LEN)
    with pytest.raises(ValueError, match="user 1 has 8 events, no history before 8 targets"):
        held_out_ranks(model, sequences, 8, MAX_LEN)
