"""Losses: known values, what is counted, what the optimum is, errors on bad input."""

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from retable.evorank.alphabet import AMINO_ACIDS, encode
from retable.evorank.losses import evorank_loss, evorank_targets, soft_label_loss, wildtype_loss
from retable.evorank.msa import site_distribution

FOUR = np.stack([encode(row) for row in ("ACDEF", "ACDEF", "ACDEY", "GHIKL")])
P = torch.from_numpy(site_distribution(FOUR, np.full(20, 0.05))[0])
F, L, Y = (AMINO_ACIDS.index(letter) for letter in "FLY")


def random_p(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(2 * torch.randn(count, 20, generator=generator, dtype=torch.float64), 1)


def test_known_targets():
    last = evorank_targets(P[4:5], np.array([F]), "difference")[0]
    assert last[L].item() == pytest.approx(0.083333, abs=1e-6)
    assert last[Y].item() == pytest.approx(-0.083333, abs=1e-6)
    assert last[F].item() == 0
    ratio = evorank_targets(P[4:5], torch.tensor([F]), "log_ratio")[0]
    assert ratio[L].item() == pytest.approx(0.361013, abs=1e-6)


@pytest.mark.parametrize(("residual", "loss"), [(0.02, 0.08), (0.2, 3.5)])
def test_smooth_loss_over_beta(residual, loss):
    p = random_p(3)
    wildtype = torch.tensor([0, 5, 19])
    scores = evorank_targets(p, wildtype, "difference") + residual
    assert evorank_loss(scores, p, wildtype).item() == pytest.approx(loss)


def two_letters(first: float = 0.7, second: float = 0.3) -> torch.Tensor:
    p = torch.zeros(1, 20, dtype=torch.float64)
    p[0, 0], p[0, 1] = first, second
    return p


def test_sign_loss_of_one_pair():
    p = two_letters()
    scores = torch.zeros(1, 20, dtype=torch.float64)
    # The other letters have p = 0 and come after: they are counted too, with the wild type 0.
    assert evorank_loss(scores, p, [0], "sign").item() == pytest.approx(np.log(2))
    scores[0, 1:] = -2
    assert evorank_loss(scores, p, [0], "sign").item() == pytest.approx(0.126928, abs=1e-6)
    same = two_letters(0.5, 0.5)
    scores = torch.full((1, 20), -2.0, dtype=torch.float64)
    scores[0, 1] = 9
    # Equal probabilities have no order: the pair is left out.
    assert evorank_loss(scores, same, [0], "sign").item() == pytest.approx(0.126928, abs=1e-6)


def test_the_optimum_is_the_difference():
    p = two_letters()
    s = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([s], lr=0.005)
    rest = evorank_targets(p, [0], "difference").clone()
    for _ in range(300):
        scores = rest.clone()
        scores[0, 1] = s
        optimizer.zero_grad()
        evorank_loss(scores, p, [0]).backward()
        optimizer.step()
    assert s.item() == pytest.approx(-0.4, abs=1e-3)


def by_loops(scores, p, origins, label):
    values = []
    for i in range(len(p)):
        for row, a in enumerate(origins[i]):
            for b in range(20):
                t = (p[i, b] - p[i, a]).item()
                if label == "log_ratio":
                    t = (p[i, b].log() - p[i, a].log()).item()
                s = scores[i, row, b].item()
                if b == a or (label == "sign" and abs(p[i, b] - p[i, a]) <= 1e-3):
                    continue
                if label == "sign":
                    values.append(softplus(torch.tensor(-s * np.sign(t))).item())
                    continue
                beta = {"difference": 0.05, "log_ratio": 1.0}[label]
                x = abs(s - t)
                values.append((x * x / (2 * beta) if x < beta else x - beta / 2) / beta)
    return np.mean(values)


@pytest.mark.parametrize("label", ["difference", "log_ratio", "sign"])
def test_pairs_by_loops(label):
    p = random_p(4)
    generator = torch.Generator().manual_seed(1)
    wildtype = torch.tensor([3, 0, 19, 7])
    scores = torch.randn(4, 20, 20, generator=generator, dtype=torch.float64)
    everything = torch.arange(20).expand(4, 20)
    found = evorank_loss(scores, p, wildtype, label, "all")
    assert found.item() == pytest.approx(by_loops(scores, p, everything, label), rel=1e-5)
    drawn = torch.tensor([[1, 2], [0, 5], [19, 3], [7, 8]])
    part = scores[:, :2]
    found = evorank_loss(part, p, wildtype, label, "all", drawn)
    assert found.item() == pytest.approx(by_loops(part, p, drawn, label), rel=1e-5)
    found = evorank_loss(scores[:, 0], p, wildtype, label)
    expected = by_loops(scores[:, :1], p, wildtype[:, None], label)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_log_ratios_are_antisymmetric_and_transitive():
    p = random_p(2)
    table = torch.stack(
        [evorank_targets(p, torch.full((2,), a), "log_ratio") for a in range(20)], dim=1
    )
    assert torch.allclose(table, -table.mT)
    assert torch.allclose(table[:, 2, 5] + table[:, 5, 9], table[:, 2, 9])


def test_residue_losses():
    logits = torch.log(P)
    assert wildtype_loss(logits[:1], [0]).item() == pytest.approx(-np.log(0.275))
    entropy = -(P * P.log()).sum(1).mean().item()
    assert soft_label_loss(logits, P).item() == pytest.approx(entropy)
    assert soft_label_loss(logits + torch.randn(5, 20), P).item() > entropy


def test_gradients():
    p, wildtype = random_p(2), torch.tensor([1, 2])
    scores = torch.randn(2, 20, dtype=torch.float64, requires_grad=True)
    for label in ("difference", "log_ratio", "sign"):
        assert torch.autograd.gradcheck(
            lambda s, kind=label: evorank_loss(s, p, wildtype, kind), scores
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": P * 2}, r"p: row 0 sums to 2\.0"),
        ({"p": P[:, :19]}, r"p: shape \(5, 19\), must be \(B, 20\)"),
        ({"wildtype": [0, 1, 2, 3, 20]}, r"wildtype: from 0 to 20, must be within 0\.\.19"),
        ({"wildtype": [0.5] * 5}, "wildtype: torch.float32 of shape"),
        ({"wildtype": [True] * 5}, "wildtype: torch.bool of shape"),
        ({"p": torch.cat([-P[:, :1], P[:, 1:] + 2 * P[:, :1] / 19], 1)}, "p: smallest value -"),
        ({"p": torch.eye(20)[:5], "label": "log_ratio"}, r"p: smallest value 0\.0, must be > 0"),
        ({"p": torch.full((5, 20), 0.05), "label": "sign"}, "p: there is no pair of amino acids"),
        ({"wildtype": [0]}, r"wildtype: torch.int64 of shape \(1,\), must be 5 integers"),
        ({"scores": torch.zeros(5, 19)}, r"scores: shape \(5, 19\), must be \(5, 20\)"),
        ({"scores": torch.full((5, 20), np.nan)}, "scores: hold NaN"),
        ({"label": "ratio"}, "label: 'ratio', must be difference, log_ratio or sign"),
        ({"pairs": "some"}, "pairs: 'some', must be wildtype or all"),
        ({"pairs": "all"}, r"scores: shape \(5, 20\), must be \(5, 20, 20\)"),
    ],
)
def test_bad_input(change, message):
    arguments = {"scores": torch.zeros(5, 20), "p": P, "wildtype": [0, 1, 2, 3, 4]} | change
    with pytest.raises(ValueError, match=message):
        evorank_loss(**arguments)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (torch.zeros(5, 19), r"logits: shape \(5, 19\), must be \(B, 20\)"),
        (torch.full((5, 20), np.nan), "logits: hold NaN"),
    ],
)
def test_bad_logits(logits, message):
    with pytest.raises(ValueError, match=message):
        wildtype_loss(logits, [0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match=message):
        soft_label_loss(logits, P)
