import numpy as np
import pytest
import torch

from retable.hstu.data import Sequence
from retable.hstu.impressions import (
    FEATURES,
    impressions,
    last_slots,
    pad_windows,
    training_windows,
)


@pytest.fixture
def seqs():
    return [
        Sequence(
            9,
            np.array([3, 1, 4, 2, 5]),
            np.array([5, 2, 4, 4, 1]),
            np.array([10, 10, 50, 60, 1060]),
        ),
        Sequence(12, np.array([2, 5]), np.array([1, 5]), np.array([7, 8])),
    ]


def test_windows_hold_every_event_once(seqs):
    windows = training_windows(seqs, 2)
    assert [w.items.tolist() for w in windows] == [[3, 1], [4, 2], [5], [2, 5]]
    padded = pad_windows(windows)
    assert padded.ids.tolist() == [[3, 1], [4, 2], [5, 0], [2, 5]]
    assert padded.actions.tolist() == [[5, 2], [4, 4], [1, 0], [1, 5]]
    assert padded.timestamps.tolist() == [[10, 10], [50, 60], [1060, 0], [7, 8]]
    assert len(padded) == 4


def test_last_slots(seqs):
    marks = last_slots(pad_windows(seqs), 2)
    assert marks.tolist() == [[False, False, False, True, True], [True, True, False, False, False]]


def test_impressions_hold_the_past_alone(seqs):
    counts = np.array([1, 2, 3, 4, 5])
    cases = impressions(seqs, None, 2, 4, counts)
    assert cases.users.tolist() == [1, 1, 1, 1, 1, 2, 2]
    assert cases.items.tolist() == [3, 1, 4, 2, 5, 2, 5]
    assert cases.labels.tolist() == [1, 0, 1, 1, 0, 0, 1]
    # The two most recent liked items, oldest first, before each event.
    assert cases.liked.tolist() == [[0, 0], [0, 3], [0, 3], [3, 4], [4, 2], [0, 0], [0, 0]]
    assert cases.features.shape == (7, FEATURES)
    expected = [np.log1p(4) / 5, np.log1p(3) / 5, 3 / 4, np.log1p(5) / 5, np.log1p(1000) / 10]
    np.testing.assert_allclose(cases.features[4], expected, rtol=1e-6)
    last = impressions(seqs, 1, 2, 4, counts)
    assert last.items.tolist() == [5, 5]
    assert torch.equal(last.liked, cases.liked[[4, 6]])
    assert torch.equal(last.features, cases.features[[4, 6]])


def test_changing_the_future_changes_no_impression(seqs):
    counts = np.ones(5, int)
    before = impressions(seqs[:1], None, 3, 4, counts)
    changed = Sequence(
        9, np.array([3, 1, 4, 1, 2]), np.array([5, 2, 4, 1, 5]), np.array([10, 10, 50, 70, 71])
    )
    after = impressions([changed], None, 3, 4, counts)
    assert torch.equal(before.liked[:4], after.liked[:4])
    assert torch.equal(before.features[:3], after.features[:3])
