"""Simplex frames: the geometry that defines them, in every dimension, and freezing."""

import pytest
import torch
from torch import nn

from retable.mlabnc import freeze_as_etf, nc2, simplex_etf


@pytest.mark.parametrize("num_classes", [2, 3, 4, 10])
@pytest.mark.parametrize("extra", [-1, 0, 1, 7])
@pytest.mark.parametrize("rotated", [False, True])
def test_geometry(num_classes, extra, rotated):
    generator = torch.Generator().manual_seed(num_classes) if rotated else None
    frame = simplex_etf(num_classes, num_classes + extra, generator)
    assert frame.shape == (num_classes, num_classes + extra)
    assert frame.dtype == torch.float64
    ideal = torch.full((num_classes, num_classes), -1 / (num_classes - 1), dtype=torch.float64)
    ideal.fill_diagonal_(1.0)
    torch.testing.assert_close(frame @ frame.T, ideal, rtol=0, atol=1e-13)
    assert frame.sum(dim=0).abs().max() < 1e-13
    assert nc2(frame) < 1e-12


def test_three_classes_stand_at_120_degrees():
    frame = simplex_etf(3)
    assert frame.shape == (3, 3)
    assert (frame[0] @ frame[1]).item() == pytest.approx(-0.5, abs=1e-15)


def test_more_dimensions_append_zeros():
    torch.testing.assert_close(simplex_etf(4, 6)[:, :4], simplex_etf(4), rtol=0, atol=0)
    assert (simplex_etf(4, 6)[:, 4:] == 0).all()


def test_rotation_is_drawn_from_the_generator():
    draws = [simplex_etf(4, 5, torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.allclose(draws[0], draws[2])


def test_bad_sizes():
    with pytest.raises(ValueError, match=r"dim must be at least 4, got 3: .* needs dim >= K-1"):
        simplex_etf(5, 3)
    with pytest.raises(ValueError, match="num_classes must be at least 2, got 1"):
        simplex_etf(1)


def test_freezing_keeps_the_bias_trainable_and_survives_weight_decay():
    linear = freeze_as_etf(nn.Linear(6, 4))
    assert not linear.weight.requires_grad
    assert linear.bias.requires_grad
    torch.testing.assert_close(linear.weight, simplex_etf(4, 6).float(), rtol=0, atol=1e-7)
    before = linear.weight.clone(), linear.bias.detach().clone()
    optimiser = torch.optim.SGD(
        [p for p in linear.parameters() if p.requires_grad], lr=0.1, weight_decay=0.5
    )
    linear(torch.ones(3, 6)).square().sum().backward()
    optimiser.step()
    assert torch.equal(linear.weight, before[0])
    assert not torch.equal(linear.bias, before[1])


def test_freezing_needs_enough_features():
    with pytest.raises(ValueError, match="needs dim >= K-1"):
        freeze_as_etf(nn.Linear(2, 4))
