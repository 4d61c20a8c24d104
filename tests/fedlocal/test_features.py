import numpy as np
import pytest
import torch

from retable.fedlocal.features import filter_concentration, learned, missed


def test_learned_and_missed_look_at_the_best_filter():
    projections = np.array([[0.6, 0.05, -2.0, 0.3], [0.1, 0.09, 0.0, 0.2]])
    np.testing.assert_array_equal(learned(projections, 0.5), [True, False, False, False])
    np.testing.assert_array_equal(missed(projections, 0.1), [False, True, True, False])
    np.testing.assert_array_equal(learned(torch.tensor(projections), 0.6), [True] + [False] * 3)


@pytest.mark.parametrize("k", [3, 4, 7, 8])
def test_a_grating_has_all_its_power_in_one_frequency(k):
    i, j = np.mgrid[:k, :k]
    waves = [
        np.cos(2 * np.pi * (u * i + v * j) / k + phase) * colour
        for u, v, phase, colour in [(1, 0, 0.3, 1.0), (0, 1, 1.0, -2.0), (1, 1, 0.2, 0.01)]
    ]
    weight = np.stack([np.stack([w, 3 * w, -w]) for w in waves]) + 5.0
    np.testing.assert_allclose(filter_concentration(torch.tensor(weight)), 1, atol=1e-9)


def test_the_checkerboard_counts_once():
    board = torch.tensor([[1.0, -1.0] * 2, [-1.0, 1.0] * 2] * 2)[None, None]
    torch.testing.assert_close(filter_concentration(board).float(), torch.ones(1))


def test_noise_is_spread_over_frequencies():
    weight = torch.randn(4000, 3, 7, 7, generator=torch.Generator().manual_seed(0))
    value = filter_concentration(weight).mean().item()
    assert 2 / 49 < value < 6 / 49


def test_scale_and_mean_do_not_matter():
    weight = torch.randn(6, 3, 5, 5, generator=torch.Generator().manual_seed(1)).double()
    value = filter_concentration(weight)
    torch.testing.assert_close(filter_concentration(1e-3 * weight + 0.2), value)
    assert ((value > 0) & (value <= 1)).all()


def test_the_sum_over_frequency_pairs_is_the_whole_power():
    # With one frequency pair carrying 3/4 of the power the value is 3/4: Parseval by hand.
    i = torch.arange(5, dtype=torch.float64)
    strong = torch.cos(2 * torch.pi * i / 5).expand(5, 5) * 3**0.5
    weak = torch.cos(4 * torch.pi * i / 5).expand(5, 5).T
    torch.testing.assert_close(
        filter_concentration((strong + weak)[None, None]), torch.tensor([0.75]).double()
    )


def test_a_filter_without_variation_has_no_frequency():
    assert filter_concentration(torch.full((1, 3, 3, 3), 0.7)).item() == 0
    assert filter_concentration(torch.zeros(1, 3, 7, 7)).item() == 0


def test_bad_input():
    with pytest.raises(ValueError, match=r"weight has shape \(2, 3, 3, 4\)"):
        filter_concentration(torch.zeros(2, 3, 3, 4))
    with pytest.raises(ValueError, match="not finite"):
        filter_concentration(torch.full((1, 1, 3, 3), torch.nan))
    with pytest.raises(ValueError, match=r"projections has shape \(3,\)"):
        learned(np.zeros(3), 0.5)
    with pytest.raises(ValueError, match="not finite"):
        missed(np.array([[np.inf]]), 0.5)
