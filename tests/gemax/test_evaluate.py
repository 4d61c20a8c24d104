"""Evaluation: nested choice of C, few labels, edges, effective rank; errors on bad labels."""

import numpy as np
import pytest
import torch

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import save_arrays
from retable.common.errors import InputError
from retable.common.seeds import Seeds
from retable.gemax.config import Config, SemiSettings, TrainConfig
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
from retable.gemax.steps.semi import semi
from retable.gemax.steps.train import train

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


def by_hand(x: np.ndarray, y: np.ndarray, kernel: bool) -> float:
    """Nested cross-validation where each machine is given the training graphs and no others."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    def score(fitted: np.ndarray, tested: np.ndarray, c: float) -> float:
        if kernel:
            machine = SVC(kernel="precomputed", C=c).fit(x[np.ix_(fitted, fitted)], y[fitted])
            return np.mean(machine.predict(x[np.ix_(tested, fitted)]) == y[tested])
        mean, spread = x[fitted].mean(0), x[fitted].std(0)
        machine = SVC(kernel="rbf", C=c).fit((x[fitted] - mean) / spread, y[fitted])
        return np.mean(machine.predict((x[tested] - mean) / spread) == y[tested])

    inner, outer = (StratifiedKFold(k, shuffle=True, random_state=4) for k in (3, 5))
    found = []
    for fitted, tested in outer.split(x, y):
        means = [
            np.mean([score(fitted[a], fitted[b], c) for a, b in inner.split(fitted, y[fitted])])
            for c in (0.1, 1.0, 10.0)
        ]
        found.append(score(fitted, tested, (0.1, 1.0, 10.0)[int(np.argmax(means))]))
    return float(np.mean(found))


def test_test_folds_play_no_part_in_training():
    generator = np.random.default_rng(5)
    y = np.repeat([0, 1], 40)
    x = generator.normal(size=(80, 4)) * [1, 5, 100, 0.1] + 0.7 * y[:, None]
    x[::17] *= 30  # outliers: whose mean and spread are used shows
    choice = {"folds": 5, "candidates": (0.1, 1, 10), "inner_folds": 3}
    assert cross_validated_accuracy(x, y, 4, **choice) == pytest.approx(by_hand(x, y, False))
    kernel = np.tanh(x @ x.T / 50)
    assert kernel_accuracy(kernel, y, 4, **choice) == pytest.approx(by_hand(kernel, y, True))


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
    bare = cycles_and_paths(60)
    shifts = np.array([[2.0], [-2.0]])
    generator = np.random.default_rng(0)
    features = [
        generator.normal(size=(len(a), 3)) + shifts[y]
        for a, y in zip(bare.adjacency, bare.labels, strict=True)
    ]
    graphs = GraphSet(bare.adjacency, features, bare.labels)
    torch.manual_seed(0)
    encoder = GeMaxEncoder(3, TrainConfig(hidden=8, layers=2, dim=4))
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    score = semi_supervised_accuracy(
        encoder, graphs, 0, share=0.5, folds=3, epochs=60, lr=1e-2, batch=20
    )
    assert score > 0.9
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    with pytest.raises(ValueError, match="less than one of each class"):
        semi_supervised_accuracy(encoder, graphs, 0, share=0.02, folds=3)


def test_shares_of_labels_are_named(tmp_path):
    graphs = cycles_and_paths(24)
    config = TrainConfig(hidden=4, layers=2, dim=4, epochs=1, batch=12)
    save_arrays(tmp_path / "graphs.npz", graphs.arrays())
    model = tmp_path / "untrained+gemax" / "model.safetensors"
    model.parent.mkdir()
    seeds = Seeds((0,))
    train(
        tmp_path / "graphs.npz",
        model,
        tmp_path / "embeddings.npz",
        tmp_path / "history.csv",
        dataset="d",
        methods="untrained+gemax",
        seeds=seeds,
        settings=config,
        checkpoints=Checkpoints(tmp_path, "same"),
    )
    chosen = {"methods": ("untrained", "gemax"), "folds": 2, "epochs": 1}
    rows = tmp_path / "semi.csv"
    arguments = (tmp_path / "graphs.npz", [model], rows)
    settings = SemiSettings(shares=(0.25, 0.5), **chosen)
    semi(*arguments, dataset="d", seeds=seeds, settings=settings)
    names = [(row.split(",")[2], row.split(",")[4]) for row in rows.read_text().splitlines()[1:]]
    assert sorted(names) == [
        ("gemax", "accuracy_semi25"),
        ("gemax", "accuracy_semi50"),
        ("untrained", "accuracy_semi25"),
        ("untrained", "accuracy_semi50"),
    ]
    with pytest.raises(InputError, match=r"d: share: 0\.01 of 24 graphs is less than one of each"):
        semi(
            *arguments,
            dataset="d",
            seeds=seeds,
            settings=SemiSettings(shares=(0.01,), **chosen),
        )


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
        + "entropy,mutag,gemax,0,entropy_exact,,0.5\n"
        + "entropy,mutag,untrained,0,entropy_exact,,0.7\n"
        + "entropy,mutag,gemax,0,entropy_spearman,,-0.3\n"
        + "semi_supervised,mutag,gemax,0,accuracy_semi10,,0.8\n"
        + "semi_supervised,mutag,untrained,0,accuracy_semi10,,0.7\n"
        + "semi_supervised,mutag,infograph,0,accuracy_semi10,,0.75\n"
        + "semi_supervised,mutag,gemax,0,accuracy_semi1,,0.1\n"
        + "semi_supervised,mutag,untrained,0,accuracy_semi1,,0.9\n"
        + "edges,mutag,gemax,0,edge_auc,,0.6\n"
        + "edges,mutag,infograph,0,edge_auc,,0.9\n"
    )
    evaluate([tmp_path / "a.csv"], tmp_path / "rows.csv", tmp_path / "measures.csv")
    lines = (tmp_path / "measures.csv").read_text().splitlines()[1:]
    found = {}
    for line in lines:
        check, seed, value = line.split(",")[:3]
        found[check, int(seed)] = float(value)
    assert found == pytest.approx(
        {
            ("gemax-1", 0): -0.2,
            ("gemax-2a", 0): -0.3,
            ("gemax-3", 0): 1.5,
            ("gemax-4a", 0): (0.2 - 0.1) / 2,
            ("gemax-4a", 1): 0.05,
            ("gemax-4d", 0): 0.4,
            ("gemax-4d", 1): 0.3,
            ("gemax-5a", 0): 0.1,
            ("gemax-5b", 0): 0.05,
            ("gemax-6", 0): -0.3,
        }
    )


SECTIONS = {
    "seeds": [0],
    "methods": {"mutag": ["gemax", "infograph", "wl"]},
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
        ({"semi": {"mutag": {}}}, r"semi: mutag: \['untrained'\] are not in"),
        ({"speed": {"base": "graphcl"}}, "speed: 'graphcl' is no trained method of 'mutag'"),
        ({"speed": {"dataset": "dd"}}, "speed: 'infograph' is no trained method of 'dd'"),
        ({"edges": {"mutag": {"methods": ["wl"]}}}, "edges.mutag.methods.0"),
        ({"train": {"mutag": {"dim": 0}}}, "dim"),
        ({"train": {"mutag": {"dropout": 1.0}}}, "dropout"),
    ],
)
def test_bad_configuration(change, message):
    Config(**SECTIONS)
    with pytest.raises(ValueError, match=message):
        Config(**(SECTIONS | change))
