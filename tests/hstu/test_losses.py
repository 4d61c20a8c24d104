import math

import pytest
import torch

from retable.hstu.losses import full_softmax, sampled_softmax


def units(n, d=6, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(x, dim=-1)


EYE = torch.eye(3)


def test_vectors():
    query, positive = EYE[:1], torch.tensor([0])
    other = torch.tensor([1, 2])
    loss = sampled_softmax(query, positive, EYE, 2, temperature=1.0, candidates=other)
    assert loss.item() == pytest.approx(0.551445, abs=1e-6)
    # Of many pairs of draws from two rows, the positive and another, half hold each once.
    pair = torch.tensor([0, 1])
    seen = {
        round(
            sampled_softmax(
                query,
                positive,
                EYE,
                2,
                temperature=1.0,
                candidates=pair,
                generator=torch.Generator().manual_seed(seed),
            ).item(),
            6,
        )
        for seed in range(40)
    }
    assert seen == {0.0, 0.313262, 0.551445}
    sharp = sampled_softmax(EYE[:1].double(), positive, EYE.double(), 2, candidates=other)
    assert sharp.item() == pytest.approx(4.1e-9, rel=0.02)


@pytest.mark.parametrize("n_items", [40, 400])
def test_dense_and_gathered_paths_are_the_definition(n_items):
    query, items = units(20), units(n_items, seed=1)
    positive = torch.randint(n_items, (20,), generator=torch.Generator().manual_seed(2))
    loss = sampled_softmax(
        query, positive, items, 5, 0.1, generator=torch.Generator().manual_seed(3)
    )
    negative = torch.randint(n_items, (20, 5), generator=torch.Generator().manual_seed(3))
    total = 0.0
    for t in range(20):
        true = float(query[t] @ items[positive[t]]) / 0.1
        false = [float(query[t] @ items[j]) / 0.1 for j in negative[t] if j != positive[t]]
        total += math.log(1 + sum(math.exp(x - true) for x in false))
    assert loss.item() == pytest.approx(total / 20, rel=1e-9)


@pytest.mark.parametrize("n_items", [10, 200])
def test_gradients(n_items):
    query, items = units(4).requires_grad_(), units(n_items, seed=1).requires_grad_()
    positive = torch.tensor([0, 3, 9, 5])

    def sampled(query, items):
        generator = torch.Generator().manual_seed(3)
        return sampled_softmax(query, positive, items, 3, 0.3, generator=generator)

    assert torch.autograd.gradcheck(sampled, (query, items))
    assert torch.autograd.gradcheck(
        lambda query, items: full_softmax(query, positive, items, 0.3), (query, items)
    )


def test_negatives_come_from_the_candidates_alone():
    items = torch.zeros(50, 2)
    items[:5, 0], items[5:, 0] = -1, 1
    query = torch.tensor([[1.0, 0]]).expand(30, 2)
    positive = torch.full((30,), 20)
    near = sampled_softmax(query, positive, items, 8, candidates=torch.arange(5))
    assert near.item() < 1e-6
    assert sampled_softmax(query, positive, items, 8).item() > 0.5


def test_full_softmax_is_the_limit_of_all_items():
    query, items = units(7), units(12, seed=1)
    positive = torch.arange(7)
    scores = (query @ items.T / 0.05).log_softmax(1)
    expected = -scores[torch.arange(7), positive].mean()
    torch.testing.assert_close(full_softmax(query, positive, items), expected)


def test_bad_input():
    query, items, positive = EYE[:2], EYE, torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"positive must lie in 0\.\.2, got 3"):
        sampled_softmax(query, torch.tensor([0, 3]), items, 2)
    with pytest.raises(ValueError, match=r"candidates must lie in 0\.\.2, got -1"):
        sampled_softmax(query, positive, items, 2, candidates=torch.tensor([-1]))
    with pytest.raises(ValueError, match="candidates is empty"):
        sampled_softmax(query, positive, items, 2, candidates=torch.tensor([], dtype=torch.long))
    with pytest.raises(ValueError, match="n_negatives must be at least 1, got 0"):
        sampled_softmax(query, positive, items, 0)
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        full_softmax(query, positive, items, 0.0)
    with pytest.raises(ValueError, match="equally long and not empty, got 2 and 1"):
        full_softmax(query, positive[:1], items)
