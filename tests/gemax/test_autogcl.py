"""Learnt views: what a generator may do to a graph, gradients, and training with them."""

import pytest
import torch

from retable.gemax.autogcl import LearnedViews, ViewGenerator, autogcl
from retable.gemax.config import TrainConfig
from retable.gemax.data import GraphSet, molecules_to_graphs, pad
from retable.gemax.model import GeMaxEncoder
from retable.gemax.objectives import (
    EntropyMaximization,
    PackingWeights,
    nt_xent,
    random_views,
)
from retable.gemax.train import fit

CONFIG = TrainConfig(hidden=8, layers=2, dim=6, epochs=3, batch=4)
SMILES = ["CCO", "c1ccccc1", "CC(=O)NC", "CCCCCC", "C1CC1N", "OCC(O)CO", "c1ccncc1C", "CC(C)(C)Cl"]


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    return molecules_to_graphs(SMILES, [0, 1, 0, 1, 0, 1, 0, 1], "m")


def generator(bias: tuple[float, float, float]) -> ViewGenerator:
    """One that prefers drop, keep, mask by these logits."""
    found = ViewGenerator(10, 8, 2)
    with torch.no_grad():
        found.choice.weight.zero_()
        found.choice.bias.copy_(torch.tensor(bias))
    return found


def test_a_view_drops_keeps_and_masks_as_chosen(graphs):
    torch.manual_seed(0)
    batch = adj, x, mask = pad(graphs)
    (view_adj, view_x, view_mask), choices = generator((0.0, 0.0, 0.0))(batch)
    drop, keep, hide = choices.detach().round().bool().unbind(-1)
    assert (drop.int() + keep.int() + hide.int())[mask].eq(1).all()
    assert not choices[~mask].any()
    assert all(chosen.any() for chosen in (drop, keep, hide))
    stays = keep | hide
    assert torch.equal(view_mask, stays)
    assert torch.allclose(view_adj, adj * stays[:, :, None] * stays[:, None, :])
    assert torch.allclose(view_x, x * keep[..., None])


@pytest.mark.parametrize("bias", [(0, 50, 0), (0, 0, 50)])
def test_certain_choices(graphs, bias):
    batch = adj, x, mask = pad(graphs)
    (view_adj, view_x, view_mask), _ = generator(bias)(batch)
    assert torch.equal(view_mask, mask)
    assert torch.allclose(view_adj, adj)
    assert torch.allclose(view_x, x if bias[1] else torch.zeros_like(x))


def test_a_graph_keeps_one_vertex_at_least(graphs):
    batch = pad(graphs)
    (view_adj, _, view_mask), _ = generator((50, 0, 0))(batch)
    assert view_mask.sum(1).tolist() == [1] * len(graphs)
    assert (view_mask & ~batch[2]).sum() == 0
    assert not view_adj.any()


def test_the_objective_is_contrast_plus_likeness(graphs):
    encoder, views, batch = GeMaxEncoder(10, CONFIG).eval(), LearnedViews(10, 8, 2), pad(graphs)
    torch.manual_seed(1)
    found = autogcl(encoder, views, batch)
    torch.manual_seed(1)
    first, left = views.first(batch)
    second, right = views.second(batch)
    cosines = [
        (a.flatten() @ b.flatten() / a.norm() / b.norm()).item()
        for a, b in zip(left.detach(), right.detach(), strict=True)
    ]
    contrast = nt_xent(encoder(*first)[2], encoder(*second)[2])
    assert found.item() == pytest.approx(contrast.item() + sum(cosines) / 8, abs=1e-5)
    found.backward()
    for part in (views.first, views.second):
        assert part.choice.weight.grad.abs().sum() > 0
    # The same generator twice makes the same choices, as alike as can be.
    same = generator((0, 50, 0))
    views.first = views.second = same
    assert views(batch)[1].item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("objective", ["autogcl", "autogcl_gemax", "graphcl_gemax"])
def test_training_with_views(graphs, objective):
    runs = [fit(graphs, objective, CONFIG, seed) for seed in (0, 0, 1)]
    states = [run.encoder.state_dict() for run in runs]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(torch.equal(states[0][name], states[2][name]) for name in states[0])
    assert [len(a) for a in runs[0].weights] == (
        [len(x) for x in graphs.features] if "gemax" in objective else []
    )
    assert ("entropy" in runs[0].history[0]) == ("gemax" in objective)


def test_entropy_over_views_is_the_mean_over_them(graphs):
    torch.manual_seed(0)
    batch, index = pad(graphs), torch.arange(8)
    encoder = GeMaxEncoder(10, CONFIG).eval()
    views = random_views(batch)

    def objective():
        return EntropyMaximization(PackingWeights(batch[2].sum(1), 1e-2), 0.1, 0.5)

    single = [objective()(encoder, (view,), index).item() for view in views]
    both = objective()
    assert both(encoder, views, index).item() == pytest.approx(sum(single) / 2, abs=1e-6)
    twice = objective()
    twice(encoder, (batch, batch), index)
    once = objective()
    once(encoder, (batch,), index)
    twice.weight_step()
    once.weight_step()
    assert torch.allclose(twice.weights.table, once.weights.table)
    assert twice.epoch() == pytest.approx(once.epoch())
