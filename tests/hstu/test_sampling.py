import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from retable.hstu.lengths import expected_cost, keep_probability, short_length, sparsity
from retable.hstu.sampling import stochastic_length


def test_vectors():
    assert keep_probability(4096, 4096, 1.6) == pytest.approx(0.035897, abs=1e-6)
    assert keep_probability(1000, 4096, 1.6) == pytest.approx(0.60225, abs=1e-5)
    assert keep_probability(700, 4096, 1.6) == 1
    assert short_length(4096, 1.6) == 776


@given(st.integers(1, 5000))
def test_alpha_2_keeps_everything(n_max):
    assert short_length(n_max, 2.0) == n_max
    assert keep_probability(n_max, n_max, 2.0) == 1


@given(
    st.integers(1, 60),
    st.integers(0, 40),
    st.floats(1.01, 2),
    st.sampled_from(["greedy", "random", "weighted"]),
    st.integers(0, 1000),
)
def test_a_kept_subsequence_is_sorted_and_of_the_promised_length(n, extra, alpha, strategy, seed):
    generator = torch.Generator().manual_seed(seed)
    times = torch.randint(0, 50, (n,), generator=generator).sort().values
    kept = stochastic_length(times, n + extra, alpha, strategy, generator=generator)
    assert len(kept) in {n, min(n, short_length(n + extra, alpha))}
    assert (kept.diff() > 0).all()
    assert kept[0] >= 0
    assert kept[-1] < n
    if keep_probability(n, n + extra, alpha) == 1:
        assert len(kept) == n


def test_greedy_keeps_the_last():
    times = torch.arange(100)
    for seed in range(20):
        kept = stochastic_length(
            times, 100, 1.2, "greedy", generator=torch.Generator().manual_seed(seed)
        )
        assert kept.tolist() in (list(range(100)), list(range(85, 100)))


def test_weights_of_the_weighted_strategy():
    # Ages 30, 20, 10, 0: weights 1/2, 2/3, 5/6, 1. L = 2 of 4 with n_max = 4, alpha = 1.01.
    times = torch.tensor([0, 10, 20, 30])
    weights = np.array([1 / 2, 2 / 3, 5 / 6, 1])
    p = weights / weights.sum()
    # Chance that i is one of two successive draws without replacement.
    expected = p + np.array([sum(p[j] * p[i] / (1 - p[j]) for j in range(4) if j != i)
                             for i in range(4)])  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    counts, short = np.zeros(4), 0
    for _ in range(6000):
        kept = stochastic_length(times, 4, 1.01, "weighted", generator=generator)
        if len(kept) == 2:
            counts[kept.numpy()] += 1
            short += 1
    assert short / 6000 == pytest.approx(1 - keep_probability(4, 4, 1.01), abs=0.025)
    # Four standard errors of a share near 1/2.
    np.testing.assert_allclose(counts / short, expected, atol=4 * 0.5 / short**0.5)


def test_equal_ages_mean_equal_weights():
    generator = torch.Generator().manual_seed(0)
    counts = np.zeros(4)
    for _ in range(4000):
        kept = stochastic_length(torch.full((4,), 9), 4, 1.01, generator=generator)
        if len(kept) == 2:
            counts[kept.numpy()] += 1
    np.testing.assert_allclose(counts / counts.sum(), 0.25, atol=0.02)


def test_sparsity_is_the_mean_of_draws():
    lengths = np.array([5, 40, 90, 200, 200, 150, 30])
    expected = sparsity(lengths, 1.5)
    generator = torch.Generator().manual_seed(0)
    kept = np.array(
        [
            [
                len(stochastic_length(torch.arange(n), 200, 1.5, "greedy", generator=generator))
                for n in lengths.tolist()
            ]
            for _ in range(2000)
        ]
    )
    assert expected["token"] == pytest.approx(1 - kept.sum(1).mean() / lengths.sum(), abs=0.01)
    attention = 1 - (kept**2).sum(1).mean() / (lengths**2).sum()
    assert expected["attention"] == pytest.approx(attention, abs=0.02)


def test_sparsity_ends():
    lengths = np.array([10, 100, 50])
    assert sparsity(lengths, 2.0) == {"token": 0, "attention": 0}
    assert sparsity(lengths, 1.2)["attention"] > sparsity(lengths, 1.6)["attention"] > 0
    assert sparsity(lengths, 1.6, n_max=1000) == {"token": 0, "attention": 0}


def test_bad_input():
    generator = torch.Generator()
    for alpha in (1.0, 2.1):
        with pytest.raises(ValueError, match=rf"alpha must lie in \(1, 2\], got {alpha}"):
            keep_probability(5, 10, alpha)
    with pytest.raises(ValueError, match=r"n must lie in 1\.\.n_max = 10, got 11"):
        stochastic_length(torch.arange(11), 10, 1.5, generator=generator)
    with pytest.raises(ValueError, match=r"strategy must be one of .*'weighted'.* got 'first'"):
        stochastic_length(torch.arange(5), 10, 1.5, "first", generator=generator)
    with pytest.raises(ValueError, match="n_max must be at least 1, got 0"):
        short_length(0, 1.5)
    with pytest.raises(ValueError, match="lengths must be a non-empty array"):
        sparsity(np.array([]), 1.5)
    with pytest.raises(ValueError, match="lengths go up to 9, more than n_max = 8"):
        sparsity(np.array([9]), 1.5, 8)


def test_expected_cost_is_the_mixture():
    # 100 events at alpha 1.5: L = floor(100^0.75) = 31, p = 1000 / 10000.
    assert expected_cost(100, 1.5, lambda n: n) == pytest.approx(0.1 * 100 + 0.9 * 31)
    assert expected_cost(100, 2.0, lambda n: n**2) == 10_000
