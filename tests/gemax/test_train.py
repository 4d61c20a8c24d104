"""Encoders and objectives: shapes, padding, seeds, what training changes, and restarts."""

import copy
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from retable.common.checkpoints import Checkpoints
from retable.common.errors import InputError
from retable.gemax.config import OBJECTIVES, TrainConfig
from retable.gemax.data import GraphSet, molecules_to_graphs, pad
from retable.gemax.model import GIN, GeMaxEncoder
from retable.gemax.objectives import (
    EntropyMaximization,
    PackingWeights,
    drop_vertices,
    graphcl,
    infograph,
    nt_xent,
    perturb_edges,
)
from retable.gemax.train import embed, fit

CONFIG = TrainConfig(hidden=8, layers=2, dim=6, epochs=3, batch=4)
SMILES = ["CCO", "c1ccccc1", "CC(=O)NC", "CCCCCC", "C1CC1N", "OCC(O)CO", "c1ccncc1C", "CC(C)(C)Cl"]


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    return molecules_to_graphs(SMILES, [0, 1, 0, 1, 0, 1, 0, 1], "m")


def test_shapes_and_unit_lengths(graphs):
    encoder = GeMaxEncoder(10, CONFIG)
    adj, x, mask = pad(graphs)
    layers, z, g = encoder(adj, x, mask)
    assert layers.shape == (8, 7, 16)
    assert z.shape == (8, 7, 6)
    assert g.shape == (8, 6)
    assert torch.allclose(g.norm(dim=-1), torch.ones(8))
    assert torch.allclose(z[mask].norm(dim=-1), torch.ones(int(mask.sum())))
    assert z[~mask].abs().sum() == 0
    last = GeMaxEncoder(10, CONFIG.model_copy(update={"vertex_vectors": "last", "conv": "gcn"}))
    layers, z, g = last(adj, x, mask)
    assert layers.shape == (8, 7, 14)
    assert g.shape == (8, 6)
    assert GIN(10, 5, 3)(adj, x, mask).shape == (8, 7, 15)


@pytest.mark.parametrize("conv", ["gin", "gcn"])
def test_padding_and_order_change_nothing(graphs, conv):
    torch.manual_seed(0)
    encoder = GeMaxEncoder(10, CONFIG.model_copy(update={"conv": conv})).train()
    adj, x, mask = pad(graphs)
    layers, z, g = encoder(adj, x, mask)
    wider = [torch.nn.functional.pad(adj, (0, 3, 0, 3)), torch.nn.functional.pad(x, (0, 0, 0, 3))]
    padded = encoder(*wider, torch.nn.functional.pad(mask, (0, 3)))
    assert torch.allclose(padded[0][:, :7], layers, atol=1e-5)
    assert torch.allclose(padded[2], g, atol=1e-5)
    order = torch.randperm(7)
    moved = encoder(adj[:, order][:, :, order], x[:, order], mask[:, order])
    assert torch.allclose(moved[1], z[:, order], atol=1e-5)
    assert torch.allclose(moved[2], g, atol=1e-5)


def test_a_gin_layer_by_hand(graphs):
    torch.manual_seed(1)
    encoder = GeMaxEncoder(10, CONFIG).eval()
    adj, x, mask = pad(graphs)
    conv, norm = encoder.gin.convs[0], encoder.gin.norms[0]
    with torch.no_grad():
        conv.eps.fill_(0.3)
        h = (1.3 * x + adj @ x)[mask]
        h = torch.relu(conv.second(torch.relu(conv.first(h))))
        expected = torch.relu(norm.norm(conv.norm.norm(h)))
        layers, _, _ = encoder(adj, x, mask)
    assert torch.allclose(layers[mask][:, :8], expected, atol=1e-6)


@pytest.mark.parametrize("objective", ["untrained", "gemax", "infograph", "graphcl"])
def test_fit_is_determined_by_the_seed(graphs, objective):
    runs = [fit(graphs, objective, CONFIG, seed) for seed in (0, 0, 1)]
    states = [run.encoder.state_dict() for run in runs]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(torch.equal(states[0][name], states[2][name]) for name in states[0])
    assert not runs[0].encoder.training
    assert len(runs[0].history) == (0 if objective == "untrained" else 3)
    for readout in ("sum", "mean"):
        assert embed(runs[0].encoder, graphs, readout).shape == (8, 16)
    ratio = embed(runs[0].encoder, graphs, "sum") / [[len(x)] for x in graphs.features]
    assert ratio == pytest.approx(embed(runs[0].encoder, graphs, "mean"), abs=1e-6)


def test_all_objectives_start_from_the_same_weights(graphs):
    frozen = CONFIG.model_copy(update={"lr": 1e-12, "epochs": 1})
    first = [fit(graphs, name, frozen, 5).encoder.vertex.weight for name in ("untrained", "gemax")]
    assert torch.allclose(*first, atol=1e-9)


def test_gemax_moves_weights_and_tells_its_parts(graphs):
    config = CONFIG.model_copy(update={"epochs": 40})
    found = fit(graphs, "gemax", config, 0)
    assert [len(a) for a in found.weights] == [len(x) for x in graphs.features]
    weights = np.concatenate(found.weights)
    assert weights.min() >= 1e-6
    assert weights.max() <= 1
    rows = found.history
    assert set(rows[0]) == {
        *("epoch", "loss", "entropy", "orthogonality"),
        *("packing", "least_weight", "largest_weight"),
    }
    for row in rows:
        parts = row["entropy"] - 0.1 * row["orthogonality"] - 0.5 * row["packing"]
        assert row["loss"] == pytest.approx(-parts, rel=1e-4)
    assert rows[-1]["orthogonality"] < rows[0]["orthogonality"]
    assert rows[-1]["entropy"] < rows[0]["entropy"]


def test_gemax_alternates_as_defined(graphs):
    """Graph by graph with an optimiser each: J1 moves the encoder, then J2 the batch's weights."""
    torch.manual_seed(3)
    encoder = GeMaxEncoder(10, CONFIG).double().train()
    twin = copy.deepcopy(encoder)
    adj, x, mask = (part.double() if part.is_floating_point() else part for part in pad(graphs))
    sizes = mask.sum(1)
    weights = [torch.full((n,), 1 / n, dtype=torch.float64).requires_grad_() for n in sizes]
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    optimizers = [torch.optim.Adam([a], lr=1e-2) for a in weights]

    def parts():
        _, z, g = encoder(adj, x, mask)
        for k, a in enumerate(weights):
            own = z[k, : len(a)]
            p = torch.softmax(-(own - g[k]).square().sum(1), 0)
            gram = own @ own.T
            kept = 1 - adj[k, : len(a), : len(a)]
            entropy = -(p * torch.log(a + 1e-8)).sum()
            orthogonality = (kept * (gram - torch.eye(len(a)))).square().sum()
            diagonal = torch.diag(a)
            packing = (diagonal @ gram @ diagonal - diagonal @ diagonal).square().sum()
            yield entropy, orthogonality, packing

    for _ in range(4):
        optimizer.zero_grad()
        losses = [-(h - 0.1 * orthogonality - 0.5 * svp) for h, orthogonality, svp in parts()]
        (sum(losses) / 8).backward()
        optimizer.step()
        for own in optimizers:
            own.zero_grad()
        sum(h + 0.5 * svp for h, _, svp in parts()).backward()
        for a, own in zip(weights, optimizers, strict=True):
            own.step()
            with torch.no_grad():
                a.clamp_(1e-6, 1)

    objective = EntropyMaximization(PackingWeights(sizes, 1e-2), 0.1, 0.5).double()
    objective.weights.table.copy_(mask / sizes[:, None] + ~mask)  # in full precision
    optimizer = torch.optim.Adam(twin.parameters(), lr=1e-2)
    for _ in range(4):
        optimizer.zero_grad()
        objective(twin, ((adj, x, mask),), torch.arange(8)).backward()
        optimizer.step()
        objective.weight_step()
    for a, expected in zip(objective.weights.rows(), weights, strict=True):
        assert a.tolist() == pytest.approx(expected.tolist(), abs=1e-7)
    assert torch.allclose(twin.vertex.weight, encoder.vertex.weight, atol=1e-7)


def test_gemax_goes_on_where_it_was(graphs, tmp_path: Path):
    expected = fit(graphs, "gemax", CONFIG, 0)
    shorter = CONFIG.model_copy(update={"epochs": 2})
    fit(graphs, "gemax", shorter, 0, checkpoints=Checkpoints(tmp_path, "same"), name="run")
    again = fit(graphs, "gemax", CONFIG, 0, checkpoints=Checkpoints(tmp_path, "same"), name="run")
    assert again.history == expected.history
    for a, b in zip(again.weights, expected.weights, strict=True):
        assert a.tolist() == b.tolist()
    states = again.encoder.state_dict(), expected.encoder.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_infograph_by_loops(graphs):
    torch.manual_seed(2)
    encoder = GeMaxEncoder(10, CONFIG).eval()
    batch = pad(graphs)
    with torch.no_grad():
        _, z, g = encoder(*batch)
        positive, negative = [], []
        for i, j in itertools.product(range(8), range(8)):
            for vertex in z[i][batch[2][i]]:
                score = 4 * vertex @ g[j]
                if i == j:
                    positive.append(torch.log1p(torch.exp(-score)))
                else:
                    negative.append(torch.log1p(torch.exp(score)))
        expected = torch.stack(positive).mean() + torch.stack(negative).mean()
        assert infograph(encoder, batch).item() == pytest.approx(expected.item(), abs=1e-5)


def test_nt_xent_by_loops():
    first, second = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    views = torch.nn.functional.normalize(torch.cat([first, second]), dim=-1)
    total = 0.0
    for i in range(6):
        scores = torch.exp(views[i] @ views.T / 0.2)
        total -= torch.log(scores[(i + 3) % 6] / (scores.sum() - scores[i]))
    assert nt_xent(first, second).item() == pytest.approx(total.item() / 6, rel=1e-5)


def test_views(graphs):
    torch.manual_seed(0)
    adj, _, mask = pad(graphs)
    kept = drop_vertices(mask)
    assert (kept & ~mask).sum() == 0
    sizes = mask.sum(1)
    assert kept.sum(1).tolist() == (sizes - (0.2 * sizes).round()).tolist()
    changed = perturb_edges(adj, mask)
    assert torch.equal(changed, changed.mT)
    assert changed.diagonal(dim1=1, dim2=2).sum() == 0
    assert (changed * ~(mask[:, :, None] & mask[:, None, :])).sum() == 0
    edges = adj.sum((1, 2)) / 2
    gone = ((adj == 1) & (changed == 0)).sum((1, 2)) / 2
    new = ((adj == 0) & (changed == 1)).sum((1, 2)) / 2
    others = sizes * (sizes - 1) / 2 - edges
    assert gone.tolist() == torch.minimum((0.2 * edges).round(), others).tolist()
    assert gone.tolist() == new.tolist()
    assert torch.isfinite(graphcl(GeMaxEncoder(10, CONFIG), pad(graphs)))


@pytest.mark.parametrize("density", [0.05, 0.6, 0.95, 1.0])
def test_edges_of_large_graphs_are_exchanged_alike(density):
    generator = torch.Generator().manual_seed(3)
    torch.manual_seed(4)
    n = 520  # above the size to which all pairs are sorted
    mask = torch.ones(2, n, dtype=torch.bool)
    mask[1, :170] = False
    upper = (torch.rand(2, n, n, generator=generator) < density).float().triu(1)
    adj = (upper + upper.mT) * (mask[:, :, None] & mask[:, None, :])
    before = adj.clone()
    changed = perturb_edges(adj, mask)
    assert torch.equal(adj, before)
    assert torch.equal(changed, changed.mT)
    assert set(changed.unique().tolist()) <= {0.0, 1.0}
    assert changed.diagonal(dim1=1, dim2=2).sum() == 0
    assert (changed * ~(mask[:, :, None] & mask[:, None, :])).sum() == 0
    edges, sizes = adj.sum((1, 2)) / 2, mask.sum(1)
    others = sizes * (sizes - 1) / 2 - edges
    expected = torch.minimum((0.2 * edges).round(), others).tolist()
    assert (((adj == 1) & (changed == 0)).sum((1, 2)) / 2).tolist() == expected
    assert (((adj == 0) & (changed == 1)).sum((1, 2)) / 2).tolist() == expected


def test_new_edges_of_large_graphs_are_uniform():
    torch.manual_seed(0)
    n = 514
    mask = torch.ones(1, n, dtype=torch.bool)
    adj = torch.zeros(1, n, n)
    start = torch.arange(n - 1)
    adj[0, start, start + 1] = adj[0, start + 1, start] = 1
    counts = sum((perturb_edges(adj, mask) - adj).clamp(min=0) for _ in range(400))[0]
    drawn = int(counts.sum()) // 2
    assert drawn == 400 * round(0.2 * (n - 1))
    # Each vertex is in a share 2 / n of the pairs, about 160 times, the spread about 12.6.
    assert (counts.sum(0) - 2 * drawn / n).abs().max() < 5 * (2 * drawn / n) ** 0.5
    # The first half of the vertices has a quarter of the pairs within it.
    assert counts[: n // 2, : n // 2].sum() / counts.sum() == pytest.approx(0.25, abs=0.01)


def test_a_last_batch_of_one_graph_is_joined(graphs):
    config = CONFIG.model_copy(update={"batch": 7})
    assert np.isfinite(fit(graphs, "infograph", config, 0).history[-1]["loss"])


def test_bad_input(graphs):
    with pytest.raises(ValueError, match="objective: 'dgi', must be one of untrained, gemax"):
        fit(graphs, "dgi", CONFIG, 0)
    with pytest.raises(ValueError, match="readout: 'max', must be sum or mean"):
        embed(GeMaxEncoder(10, CONFIG), graphs, "max")


@pytest.mark.parametrize("objective", ["gemax", "infograph"])
def test_a_loss_that_is_not_finite_stops(graphs, objective):
    # Finite features whose sums over a layer are not.
    large = [np.float32(1e38) * x for x in graphs.features]
    bad = GraphSet(graphs.adjacency, large, graphs.labels, "m")
    with pytest.raises(InputError, match="the loss is not finite in epoch 1, step 1"):
        fit(bad, objective, CONFIG, 0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_statistics_are_those_of_one_pass_for_every_objective(graphs, objective):
    encoder = fit(graphs, objective, CONFIG, 0).encoder
    first = encoder.gin.convs[0]
    means, variances = [], []
    with torch.no_grad():
        for rows in (range(4), range(4, 8)):
            adj, x, mask = pad(graphs.subset(rows))
            h = (1 + first.eps) * x + adj @ x
            h = torch.relu(first.second(torch.relu(first.first(h))))[mask]
            means.append(h.mean(0))
            variances.append(h.var(0))
    assert torch.allclose(first.norm.norm.running_mean, sum(means) / 2, atol=1e-6)
    assert torch.allclose(first.norm.norm.running_var, sum(variances) / 2, atol=1e-6)


def test_bad_graphs():
    one = molecules_to_graphs(["CCO"], [0], "m")
    for objective in ("infograph", "graphcl", "autogcl"):
        with pytest.raises(ValueError, match=f"graphs: 1, {objective} tells graphs apart"):
            fit(one, objective, CONFIG, 0)
    features = [np.full_like(one.features[0], np.nan)]
    with pytest.raises(ValueError, match="graph 0: features that are not finite"):
        GraphSet(one.adjacency, features, one.labels, "m")


def test_untrained_joins_a_last_batch_of_one_graph():
    methane = molecules_to_graphs(["C"] * 5, [0, 1, 0, 1, 0], "m")
    assert fit(methane, "untrained", CONFIG, 0).encoder.gin is not None
