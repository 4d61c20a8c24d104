"""The steps that the claims rest on, against direct calls of the public functions."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.metrics import read_metrics
from retable.common.seeds import Seeds
from retable.gemax.config import (
    AccuracySettings,
    EdgesSettings,
    EntropySettings,
    SpeedSettings,
    TrainConfig,
)
from retable.gemax.data import GraphSet, molecules_to_graphs
from retable.gemax.entropy import graph_entropy
from retable.gemax.evaluate import cross_validated_accuracy, edge_auc
from retable.gemax.losses import packing_entropy, vertex_distribution
from retable.gemax.steps.accuracy import accuracy
from retable.gemax.steps.edges import edges
from retable.gemax.steps.entropy import entropy
from retable.gemax.steps.speed import speed
from retable.gemax.steps.train import load_encoder, train
from retable.gemax.train import converge_weights, fit, vertex_vectors

TRAIN = TrainConfig(hidden=8, layers=2, dim=6, epochs=3, batch=4)
SMILES = ["CCO", "c1ccccc1", "CC(=O)NC", "CCCCCC", "C1CC1N", "OCC(O)CO", "c1ccncc1C", "CC(C)(C)Cl"]
SEEDS = Seeds.parse("0-1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Prepared graphs, and two methods trained with two seeds."""
    path = tmp_path_factory.mktemp("gemax")
    graphs = molecules_to_graphs(SMILES, [0, 1, 0, 1, 0, 1, 0, 1], "m")
    save_arrays(path / "graphs.npz", graphs.arrays())
    (path / "untrained+gemax").mkdir()
    train(
        path / "graphs.npz",
        path / "untrained+gemax" / "model.safetensors",
        path / "embeddings.npz",
        path / "history.csv",
        dataset="m",
        methods="untrained+gemax",
        seeds=SEEDS,
        settings=TRAIN,
        checkpoints=Checkpoints(path / "checkpoints", "test"),
    )
    return path


def graphs_of(folder):
    return GraphSet.of_arrays(load_arrays(folder / "graphs.npz"))


def values(path):
    frame = read_metrics([path])
    return frame.set_index(["method", "metric", "seed"])["value"]


def test_entropy_is_that_of_the_learned_distribution(folder):
    models = [folder / "untrained+gemax" / "model.safetensors"]
    settings = EntropySettings(tolerance=1e-6, weight_steps=30)
    entropy(
        folder / "graphs.npz",
        models,
        [folder / "embeddings.npz"],
        folder / "entropy.csv",
        folder / "entropy.npz",
        dataset="m",
        seeds=SEEDS,
        settings=settings,
    )
    found, graphs = values(folder / "entropy.csv"), graphs_of(folder)
    for seed in SEEDS:
        exact = {}
        for method in ("untrained", "gemax"):
            encoder = load_encoder(models, method, seed)
            ((z, g, adj, mask),) = vertex_vectors(encoder, graphs)
            p = vertex_distribution(z, g, mask)
            exact[method] = [
                graph_entropy(
                    adj[k, :n, :n].numpy(),
                    p[k, :n].double().numpy() / p[k].double().sum().item(),
                    1e-6,
                )
                for k, n in enumerate(mask.sum(1).tolist())
            ]
            mean = np.mean([part.value for part in exact[method]])
            assert found[method, "entropy_exact", seed] == pytest.approx(mean, abs=1e-4)
        weights = load_arrays(folder / "embeddings.npz")[f"gemax.{seed}.weights"]
        a = torch.ones_like(p)
        a[mask] = torch.from_numpy(weights).float()
        a = converge_weights(
            z, p, a, mask, settings.gamma, settings.weight_steps, settings.lr_weights
        )
        learned = packing_entropy(p, a, mask)
        assert found["gemax", "entropy_learned", seed] == pytest.approx(
            learned.mean().item(), abs=1e-4
        )
        order = spearmanr(learned.numpy(), [part.value for part in exact["gemax"]]).statistic
        assert found["gemax", "entropy_spearman", seed] == pytest.approx(order, abs=1e-6)


def test_edges_are_scored_on_graphs_that_were_not_trained_on(folder):
    settings = EdgesSettings(methods=("gemax",), share=0.5, train=TRAIN)
    edges(
        folder / "graphs.npz",
        folder / "edges.csv",
        dataset="m",
        seeds=SEEDS,
        settings=settings,
        checkpoints=Checkpoints(folder / "edges", "test"),
    )
    graphs = graphs_of(folder)
    for seed in SEEDS:
        order = np.random.default_rng([seed, 80]).permutation(8)
        encoder = fit(graphs.subset(order[:4]), "gemax", TRAIN, seed).encoder
        ((z, _, adj, mask),) = vertex_vectors(encoder, graphs.subset(order[4:]))
        expected = edge_auc(z, adj, mask)
        assert values(folder / "edges.csv")["gemax", "edge_auc", seed] == pytest.approx(expected)


@pytest.mark.parametrize("readout", ["sum", "mean"])
def test_accuracy_is_that_of_the_readout(folder, readout):
    save_arrays(folder / "kernels.npz", {})
    settings = AccuracySettings(readout=readout, folds=2, c=(1, 10), inner_folds=2)
    accuracy(
        folder / "graphs.npz",
        [folder / "embeddings.npz"],
        folder / "kernels.npz",
        folder / "accuracy.csv",
        dataset="m",
        seeds=SEEDS,
        settings=settings,
    )
    found, arrays = values(folder / "accuracy.csv"), load_arrays(folder / "embeddings.npz")
    for method in ("untrained", "gemax"):
        for seed in SEEDS:
            expected = cross_validated_accuracy(
                arrays[f"{method}.{seed}.{readout}"],
                graphs_of(folder).labels,
                seed,
                folds=2,
                candidates=(1, 10),
                inner_folds=2,
            )
            assert found[method, "accuracy", seed] == expected


def test_speed_has_a_time_for_each_and_ratios_to_one(folder):
    speed(
        folder / "graphs.npz",
        folder / "speed.csv",
        methods=["gemax", "infograph", "autogcl"],
        train=TRAIN.model_dump(mode="json"),
        settings=SpeedSettings(dataset="m", rounds=3, epochs=6),
    )
    rows = read_metrics([folder / "speed.csv"])
    assert list(rows["method"]) == [
        *("gemax", "infograph", "autogcl"),
        *("gemax/infograph", "autogcl/infograph"),
    ]
    assert (rows["value"] > 0).all()
