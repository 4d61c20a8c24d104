"""Evaluation: nested choice of C, few labels, edges, effective rank; errors on bad labels."""

import numpy as np
import pytest
import torch

from retable.gemax.config import Config, TrainConfig
from retable.gemax.data import GraphSet
from retable.gemax.evaluate import (
    cross_validated_accuracy,
    edge_auc,
    effective_rank,
    kernel_accuracy,
    semi_supervised_accuracy,
)
from retable.gemax.model import GeMaxEncoder
from retable.gemax.steps.evaluate import evaluate

GENERATOR = np.random.default_rng(0)
Y = np.repeat([0, 1], 30)
X = GENERATOR.normal(size=(60, 3)) + 3 * Y[:, None]


def test_separable_classes_are_told_apart():
    assert cross_validated_accuracy(X, Y, 0, folds=5, candidates=(0.1, 1), inner_folds=2) > 0.95
    assert kernel_accuracy(X @ X.T, Y, 0, folds=5, candidates=(0.1, 1), inner_folds=2) > 0.9


def test_noise_is_not():
    noise = GENERATOR.normal(size=(200, 20))
    y = np.repeat([0, 1], 100)
    assert 0.35 < cross_validated_accuracy(noise, y, 0, candidates=(1, 10), inner_folds=3) < 0.65


def test_units_do_not_matter_and_folds_have_a_seed():
    scores = [
        cross_validated_accuracy(X[:, :1] * scale + 7, Y, seed, folds=5, inner_folds=2)
        for scale, seed in ((1, 0), (1000, 0), (1, 1))
    ]
    assert scores[0] == scores[1]
    assert scores[0] == cross_validated_accuracy(X[:, :1] + 7, Y, 0, folds=5, inner_folds=2)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, np.zeros(60), "y: 1 class, at least 2 are needed"),
        (X, np.arange(60) > 56, "y: class True has 3 graphs, 10 folds need as many"),
        (X[:5], Y, r"embeddings: shape \(5, 3\), must be finite \(60, d\)"),
        (X * np.inf, Y, "embeddings: shape"),
    ],
)
def test_bad_labels(x, y, message):
    with pytest.raises(ValueError, match=message):
        cross_validated_accuracy(x, y, 0)


def test_bad_kernel():
    with pytest.raises(ValueError, match=r"K: shape \(60, 3\), must be finite \(60, 60\)"):
        kernel_accuracy(X, Y, 0)


def cycles_and_paths(count: int) -> GraphSet:
    """Classes that the structure alone tells apart."""
    adjacency = []
    for number in range(count):
        n = 5 + number % 4
        matrix = np.zeros((n, n), dtype=int)
        for i in range(n - (number % 2)):
            matrix[i, (i + 1) % n] = matrix[(i + 1) % n, i] = 1
        adjacency.append(matrix)
    return GraphSet(adjacency, [np.ones((len(a), 1)) for a in adjacency], np.arange(count) % 2)


def test_few_labels_suffice_for_what_is_easy():
    graphs = cycles_and_paths(60)
    torch.manual_seed(0)
    encoder = GeMaxEncoder(1, TrainConfig(hidden=8, layers=2, dim=4))
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    score = semi_supervised_accuracy(
        encoder, graphs, 0, share=0.5, folds=3, epochs=60, lr=1e-2, batch=20
    )
    assert score > 0.9
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    with pytest.raises(ValueError, match="less than one of each class"):
        semi_supervised_accuracy(encoder, graphs, 0, share=0.02, folds=3)


def test_edge_auc():
    adj = torch.zeros(2, 3, 3)
    adj[0, 0, 1] = adj[0, 1, 0] = 1
    mask = torch.tensor([[True, True, True], [True, True, False]])
    z = torch.tensor([[[1.0, 0], [-0.9, 0.1], [0, 1]], [[1, 0], [1, 0], [9, 9]]])
    # The second graph has no edge and ranks nothing; the sign of a product does not count.
    assert edge_auc(z, adj, mask) == 1
    assert edge_auc(z[:, [0, 2, 1]], adj, mask) == 0
    with pytest.raises(ValueError, match="no graph has both edges and other pairs"):
        edge_auc(z[1:], adj[1:], mask[1:])


def test_effective_rank():
    x = np.linalg.qr(GENERATOR.normal(size=(50, 4)) - 0)[0]
    x = x - x.mean(0)
    rank = effective_rank(np.concatenate([x, np.ones((50, 2))], axis=1))
    assert 3.5 < rank <= 4 + 1e-9
    line = GENERATOR.normal(size=(50, 1))
    assert effective_rank(np.concatenate([line, 2 * line, -line], axis=1)) == pytest.approx(1)
    with pytest.raises(ValueError, match="every column is constant"):
        effective_rank(np.ones((5, 2)))


def test_measures(tmp_path):
    head = "experiment,dataset,method,seed,metric,x,value\n"
    scores = {
        ("a", "gemax"): (0.9, 0.8),
        ("a", "untrained"): (0.7, 0.7),
        ("a", "wl"): (0.5, 0.5),
        ("b", "gemax"): (0.6, 0.6),
        ("b", "untrained"): (0.7, 0.6),
    }
    (tmp_path / "a.csv").write_text(
        head
        + "".join(
            f"unsupervised,{dataset},{method},{seed},accuracy,,{value}\n"
            for (dataset, method), values in scores.items()
            for seed, value in enumerate(values)
        )
        + "unsupervised,mutag,gemax,0,effective_rank,,6\n"
        + "unsupervised,mutag,untrained,0,effective_rank,,4\n"
        + "training,a,gemax,0,loss,1,0.5\n"
    )
    evaluate([tmp_path / "a.csv"], tmp_path / "rows.csv", tmp_path / "measures.csv")
    lines = (tmp_path / "measures.csv").read_text().splitlines()[1:]
    found = {}
    for line in lines:
        check, seed, value = line.split(",")[:3]
        found[check, int(seed)] = float(value)
    assert found == pytest.approx(
        {
            ("gemax-3", 0): 1.5,
            ("gemax-4a", 0): (0.2 - 0.1) / 2,
            ("gemax-4a", 1): 0.05,
            ("gemax-4d", 0): 0.4,
            ("gemax-4d", 1): 0.3,
        }
    )


SECTIONS = {
    "seeds": [0],
    "methods": {"mutag": ["gemax", "wl"]},
    "prepare": {"mutag": {"source": "tu-mutag"}},
    "train": {"mutag": {}},
    "kernels": {"mutag": {}},
    "accuracy": {"mutag": {}},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": {"mutag": ["gemaxx"]}}, "methods: mutag: 'gemaxx': must be of"),
        ({"train": {}}, "train: has no settings for the data set 'mutag'"),
        ({"edges": {"dd": {}}}, "edges: 'dd' is no data set of `methods`"),
        ({"semi": {"mutag": {}}}, r"semi: mutag: \['infograph', 'untrained'\] are not in"),
        ({"train": {"mutag": {"dim": 0}}}, "dim"),
        ({"train": {"mutag": {"dropout": 1.0}}}, "dropout"),
    ],
)
def test_bad_configuration(change, message):
    Config(**SECTIONS)
    with pytest.raises(ValueError, match=message):
        Config(**(SECTIONS | change))
