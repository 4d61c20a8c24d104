"""Set metrics against hand-worked values."""

import numpy as np
import pytest
import torch

from retable.mlabnc import exact_match, micro_f1, multiplicity_f1, set_iou, soft_iou

TARGETS = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0]])
PREDICTED = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]])


def test_uniform_logits_score_the_share_of_labels():
    logits = np.full((4, 4), 7.0)
    assert soft_iou(logits, TARGETS) == pytest.approx((1 + 2 + 2 + 1) / 4 / 4, abs=1e-15)
    assert soft_iou(torch.zeros(1, 10), torch.eye(10)[:1] + torch.eye(10)[1:2]) == 0.2


def test_soft_iou_of_sure_logits():
    assert soft_iou(100.0 * TARGETS, TARGETS) == pytest.approx(1, abs=1e-15)
    assert soft_iou(-100.0 * TARGETS, TARGETS) < 1e-15


def test_hand_worked_values():
    assert set_iou(PREDICTED, TARGETS) == pytest.approx((1 + 1 / 2 + 2 / 3 + 0) / 4)
    assert exact_match(PREDICTED, TARGETS) == 0.25
    assert micro_f1(PREDICTED, TARGETS) == pytest.approx(2 * 4 / (5 + 6))
    # Samples with several labels: 1 and 2 in truth, 2 as predicted.
    assert multiplicity_f1(PREDICTED, TARGETS) == pytest.approx(2 / 3)


def test_perfect_and_hopeless_predictions():
    for metric in (set_iou, exact_match, micro_f1, multiplicity_f1):
        assert metric(torch.tensor(TARGETS), TARGETS.astype(bool)) == 1
    for metric in (set_iou, exact_match, micro_f1):
        assert metric(1 - TARGETS, TARGETS) == 0
    assert multiplicity_f1(np.eye(4), np.eye(4)) == 1


def test_bad_input():
    with pytest.raises(ValueError, match=r"predicted must hold only 0 and 1"):
        exact_match(PREDICTED * 0.5, TARGETS)
    with pytest.raises(ValueError, match=r"same shape, got \(3, 4\) and \(4, 4\)"):
        set_iou(PREDICTED[1:], TARGETS)
    with pytest.raises(ValueError, match="row 2 has none"):
        micro_f1(TARGETS, TARGETS * [[1], [1], [0], [1]])
    with pytest.raises(ValueError, match="logits must be finite"):
        soft_iou(np.full((4, 4), np.inf), TARGETS)
    with pytest.raises(ValueError, match="logits and targets must have the same shape"):
        soft_iou(np.zeros((4, 3)), TARGETS)
