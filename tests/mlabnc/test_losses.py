"""The pick-all-label loss: hand-worked values, torch's cross entropy, and gradients."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from retable.mlabnc import pick_all_label_loss


def random_problem(seed: int, samples: int = 6, classes: int = 5):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(samples, classes, dtype=torch.float64, generator=generator)
    targets = torch.rand(samples, classes, generator=generator) < 0.4
    targets[torch.arange(samples), torch.randint(classes, (samples,), generator=generator)] = True
    return logits, targets


def test_hand_worked_value():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]], dtype=torch.float64)
    targets = torch.tensor([[1, 1, 0, 0]])
    assert pick_all_label_loss(logits, targets).item() == pytest.approx(1.8803793971, abs=1e-10)
    mean = pick_all_label_loss(logits, targets, per_label="mean").item()
    assert mean == pytest.approx(0.9401896986, abs=1e-10)


def test_single_labels_are_cross_entropy():
    logits, _ = random_problem(0)
    labels = torch.tensor([0, 1, 2, 3, 4, 0])
    targets = F.one_hot(labels, 5)
    for reduction in ("mean", "sum", "none"):
        expected = F.cross_entropy(logits, labels, reduction=reduction)
        for per_label in ("sum", "mean"):
            loss = pick_all_label_loss(logits, targets, per_label, reduction)
            torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)


def test_mean_over_labels_is_cross_entropy_with_soft_targets():
    logits, targets = random_problem(1)
    soft = targets.double() / targets.sum(dim=1, keepdim=True)
    torch.testing.assert_close(
        pick_all_label_loss(logits, targets, per_label="mean"),
        F.cross_entropy(logits, soft),
        rtol=1e-12,
        atol=0,
    )


@given(seed=st.integers(0, 2**31))
def test_sum_is_additive_in_the_label_set(seed):
    logits, targets = random_problem(seed)
    parts = torch.zeros(len(logits), dtype=torch.float64)
    for k in range(logits.shape[1]):
        alone = F.one_hot(torch.full((len(logits),), k), logits.shape[1])
        parts += pick_all_label_loss(logits, alone, reduction="none") * targets[:, k]
    whole = pick_all_label_loss(logits, targets, reduction="none")
    torch.testing.assert_close(whole, parts, rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 2**31), shift=st.floats(-50, 50))
def test_a_constant_on_all_logits_changes_nothing(seed, shift):
    logits, targets = random_problem(seed)
    torch.testing.assert_close(
        pick_all_label_loss(logits + shift, targets),
        pick_all_label_loss(logits, targets),
        rtol=1e-10,
        atol=1e-10,
    )


@pytest.mark.parametrize("per_label", ["sum", "mean"])
def test_gradient_against_finite_differences(per_label):
    logits, targets = random_problem(2)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: pick_all_label_loss(z, targets, per_label), logits)


def test_an_impossible_other_label_gives_no_nan():
    logits = torch.tensor([[0.0, 0.0, -torch.inf]], requires_grad=True)
    loss = pick_all_label_loss(logits, torch.tensor([[1, 1, 0]]))
    loss.backward()
    assert loss.item() == pytest.approx(2 * torch.log(torch.tensor(2.0)).item())
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.tensor([[1, 0, 0], [0, 0, 0]]), "at least one label in every row, row 1 has none"),
        (torch.tensor([[1, 0, 0], [0, 2, 0]]), "only 0 and 1, got 2 in row 1, column 1"),
        (torch.tensor([[1, 0, 0]]), r"shape of logits \(2, 3\), got \(1, 3\)"),
    ],
)
def test_bad_targets(targets, message):
    with pytest.raises(ValueError, match=message):
        pick_all_label_loss(torch.zeros(2, 3), targets)


def test_bad_options_and_shapes():
    targets = torch.ones(2, 3)
    with pytest.raises(ValueError, match=r'per_label must be "sum" or "mean", got \'all\''):
        pick_all_label_loss(torch.zeros(2, 3), targets, per_label="all")
    with pytest.raises(ValueError, match=r"reduction must be .* got 'max'"):
        pick_all_label_loss(torch.zeros(2, 3), targets, reduction="max")
    with pytest.raises(ValueError, match="at least 2 classes"):
        pick_all_label_loss(torch.zeros(2, 1), torch.ones(2, 1))
    with pytest.raises(ValueError, match=r"non-empty \[N, K\] matrix"):
        pick_all_label_loss(torch.zeros(0, 3), torch.ones(0, 3))
