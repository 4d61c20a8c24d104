"""Training of a small network on composed images, and what is recorded of it."""

import numpy as np
import pytest
import torch

from retable.mlabnc import compose, convnet
from retable.mlabnc.config import TrainConfig
from retable.mlabnc.train import fit


def bright_corners(per_class=20):
    """Images whose class is the corner that is bright."""
    rng = np.random.default_rng(0)
    labels = np.arange(4 * per_class) % 4
    images = rng.integers(0, 60, size=(len(labels), 8, 8), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = 4 * (label // 2), 4 * (label % 2)
        image[row : row + 4, column : column + 4] += 180
    return images, labels


def trained(**changes):
    data = compose(*bright_corners(), {1: 10, 2: 5}, "mnist", seed=0)
    settings = {"epochs": 6, "batch_size": 16, "nc_every": (3,)} | changes
    network = convnet(1, 4, 8, image_size=16, generator=torch.Generator().manual_seed(0))
    return network, fit(network, data, TrainConfig(**settings))


def test_history_has_loss_iou_and_collapse_where_they_are_asked_for():
    _, every = trained()
    assert [row["epoch"] for row in every.rows] == [1, 2, 3, 4, 5, 6]
    assert every.curve("soft_iou")[0] == [1, 2, 3, 4, 5, 6]
    assert every.curve("nc3")[0] == every.curve("nc3_raw")[0] == [1, 3, 6]
    epochs, losses = every.curve("loss")
    assert epochs == [1, 2, 3, 4, 5, 6]
    assert losses[-1] < 0.7 * losses[0]
    assert every.rows[-1]["soft_iou"] > every.rows[0]["soft_iou"]


def test_measuring_seldom_changes_no_weight_and_no_measured_value():
    network, every = trained()
    again, seldom = trained(iou_every=4)
    assert seldom.curve("soft_iou")[0] == [1, 3, 4, 6]
    for row, full in zip(seldom.rows, every.rows, strict=True):
        assert row == {key: full[key] for key in row}
    for name, value in network.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_bce_is_trained_on_the_sum_over_labels():
    _, history = trained(loss="bce", lam_h=0.0, epochs=1, lr=1e-9)
    # Untouched weights of this size give probabilities near a half: four times log 2 at most.
    assert history.rows[0]["loss"] == pytest.approx(4 * np.log(2), rel=0.3)
