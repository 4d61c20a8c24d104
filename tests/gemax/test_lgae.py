"""The linear graph autoencoder: its encoder and loss by hand, and that it learns edges."""

import numpy as np
import pytest
import torch

from retable.gemax.config import TrainConfig
from retable.gemax.data import GraphSet, molecules_to_graphs, pad
from retable.gemax.evaluate import edge_aucs
from retable.gemax.lgae import LinearGraphEncoder, reconstruction_loss
from retable.gemax.train import fit, vertex_vectors

SMILES = ["CCO", "c1ccccc1", "CC(=O)NC", "CCCCCC", "C1CC1N", "OCC(O)CO", "c1ccncc1C", "CC(C)(C)Cl"]


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    return molecules_to_graphs(SMILES, [0, 1, 0, 1, 0, 1, 0, 1], "m")


def test_encoder_and_loss_by_hand(graphs):
    torch.manual_seed(0)
    encoder = LinearGraphEncoder(10, 4)
    adj, x, mask = batch = pad(graphs)
    _, z, g = encoder(*batch)
    scores, edges = [], []
    with torch.no_grad():
        for k, size in enumerate(mask.sum(1).tolist()):
            with_loops = adj[k, :size, :size] + torch.eye(size)
            scale = torch.diag(with_loops.sum(1) ** -0.5)
            own = scale @ with_loops @ scale @ x[k, :size] @ encoder.linear.weight.T
            assert torch.allclose(z[k, :size], own, atol=1e-6)
            assert torch.allclose(g[k], own.mean(0), atol=1e-6)
            rows, columns = np.triu_indices(size, 1)
            scores += (own @ own.T)[rows, columns].tolist()
            edges += adj[k][rows, columns].tolist()
    assert not z[~mask].any()
    scores, edges = np.array(scores), np.array(edges)
    weight = (edges == 0).sum() / edges.sum()
    expected = np.where(
        edges > 0, weight * np.log1p(np.exp(-scores)), np.log1p(np.exp(scores))
    ).mean()
    assert reconstruction_loss(encoder, batch).item() == pytest.approx(expected, rel=1e-5)


def test_it_learns_to_tell_edges(graphs):
    config = TrainConfig(dim=16, epochs=150, batch=8, lr=1e-2)
    found = fit(graphs, "lgae", config, 0)
    assert found.history[-1]["loss"] < 0.95 * found.history[0]["loss"]
    scores = []
    for z, _, adj, mask in vertex_vectors(found.encoder, graphs):
        scores += edge_aucs(z, adj, mask, signed=True)
    assert np.mean(scores) > 0.7


def test_signed_scores_tell_opposite_vectors_from_equal_ones():
    z = torch.tensor([[[1.0], [1.0], [-2.0]]])
    adj = torch.tensor([[[0.0, 1, 0], [1, 0, 0], [0, 0, 0]]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert edge_aucs(z, adj, mask, signed=True) == [1.0]
    assert edge_aucs(z, adj, mask) == [0.0]
