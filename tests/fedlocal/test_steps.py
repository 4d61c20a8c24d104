"""The steps on small data, called as plain functions."""

import numpy as np
import pandas as pd
import pytest

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.errors import InputError
from retable.common.metrics import read_measures, read_metrics
from retable.common.seeds import Seeds
from retable.fedlocal.config import (
    EvaluateSettings,
    FigureSettings,
    PrepareSettings,
    SyntheticSettings,
    TrainSettings,
)
from retable.fedlocal.noise import add_feature_noise
from retable.fedlocal.steps.evaluate import evaluate
from retable.fedlocal.steps.figure import figure
from retable.fedlocal.steps.prepare import prepare
from retable.fedlocal.steps.synthetic import synthetic
from retable.fedlocal.steps.table import table
from retable.fedlocal.steps.train import train

SEEDS = Seeds((0, 1))
SYNTHETIC = SyntheticSettings(
    n_major=3,
    n_minor=1,
    gamma=0.8,
    kappa=0.2,
    n=4,
    dim=40,
    filters=6,
    init_std=0.1,
    lr=0.2,
    steps=40,
    test_samples=10,
    evaluations=4,
)
TRAIN = TrainSettings(batch=4, image=8, lr=0.1, steps=8, round_steps=4, evaluations=2)


@pytest.fixture(scope="module")
def cifar(tmp_path_factory):
    """A data set with the shape of CIFAR-10."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "cifar10.npz"
    arrays = {}
    for kind, n in (("train", 300), ("test", 120)):
        arrays[f"{kind}_images"] = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
        arrays[f"{kind}_labels"] = rng.integers(0, 10, n)
    save_arrays(path, arrays)
    return path


def prepared(cifar, folder, **change):
    settings = {"n_train": 200, "n_test": 100, "clients": 4, "h": 0.5} | change
    path = folder / "subset.npz"
    prepare(cifar, path, seeds=SEEDS, settings=PrepareSettings(**settings))
    return path


def test_prepared_clients_are_disjoint_parts_of_the_images(cifar, tmp_path):
    source, data = load_arrays(cifar), load_arrays(prepared(cifar, tmp_path))
    for seed in SEEDS:
        images = data[f"{seed}.train_images"]
        assert images.shape == (200, 32, 32, 3)
        values, offsets = data[f"{seed}.train_values"], data[f"{seed}.train_offsets"]
        assert len(np.unique(values)) == len(values) == offsets[-1]
        assert len(set(np.diff(offsets))) == 1
        binary = data[f"{seed}.train_binary"]
        np.testing.assert_array_equal(binary, data[f"{seed}.train_classes"] % 2)
        # Every test image is tested, as it is.
        np.testing.assert_array_equal(data[f"{seed}.test_images"], source["test_images"][:100])
        np.testing.assert_array_equal(data[f"{seed}.test_values"], np.arange(100))
        assert data[f"{seed}.noise_sources"].size == 0
        assert str(data[f"{seed}.dataset"]) == "cifar10_h0.5_rho0"
    assert not np.array_equal(data["0.train_images"], data["1.train_images"])


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_noise_is_another_clients_image(cifar, tmp_path, mode):
    plain = load_arrays(prepared(cifar, tmp_path))
    noised = load_arrays(prepared(cifar, tmp_path, rho=0.25, noise_mode=mode))
    for seed in SEEDS:
        values, offsets = noised[f"{seed}.train_values"], noised[f"{seed}.train_offsets"]
        np.testing.assert_array_equal(values, plain[f"{seed}.train_values"])
        before = plain[f"{seed}.train_images"]
        for client, source in enumerate(noised[f"{seed}.noise_sources"]):
            holder = np.searchsorted(offsets, np.flatnonzero(values == source)[0], "right") - 1
            assert holder != client
            for kind in ("train", "test"):
                edges = noised[f"{seed}.{kind}_offsets"]
                own = noised[f"{seed}.{kind}_values"][edges[client] : edges[client + 1]]
                expected = add_feature_noise(
                    plain[f"{seed}.{kind}_images"][own],
                    np.zeros(len(own), dtype=int),
                    before[[source]],
                    0.25,
                    mode,
                )
                np.testing.assert_array_equal(noised[f"{seed}.{kind}_images"][own], expected)


def test_prepare_names_bad_data(cifar, tmp_path):
    arrays = load_arrays(cifar)
    arrays["train_labels"] = arrays["train_labels"] + 1
    bad = tmp_path / "bad.npz"
    save_arrays(bad, arrays)
    with pytest.raises(InputError, match=r"bad.npz, seed 0: classes has values in 1\.\.10"):
        prepared(bad, tmp_path)


@pytest.fixture(scope="module")
def results(cifar, tmp_path_factory):
    """Histories, models and what follows from them, in folders as the rules lay them out."""
    root = tmp_path_factory.mktemp("results")
    histories = []
    for setting, methods, change in (
        ("s1", "global+local100", {"steps": 200}),
        ("s3", "one_shot", {}),
        ("poly", "local5+local10", {"init_std": {"local5": 0.2, "local10": 0.1}}),
    ):
        path = root / setting / methods / "seeds0-1.npz"
        path.parent.mkdir(parents=True)
        settings = SYNTHETIC.model_copy(update=change)
        synthetic(path, methods=methods, seeds=SEEDS, settings=settings)
        histories.append(path)
    trained = []
    for experiment, methods in (
        ("r1", "parallel+local8"),
        ("r1", "parallel_rounds+local4+one_shot"),
        ("r2", "parallel+local4"),
    ):
        folder = root / experiment / methods
        folder.mkdir(parents=True)
        subset = prepared(cifar, root, rho=0.25 if experiment == "r2" else 0.0)
        paths = folder / "seeds0-1.safetensors", folder / "seeds0-1.npz"
        train(
            subset,
            *paths,
            methods=methods,
            seeds=SEEDS,
            settings=TRAIN,
            checkpoints=Checkpoints(root / "checkpoints" / experiment / methods, identity="a"),
        )
        trained.append(paths)
    outputs = [root / name for name in ("rows.csv", "measures.csv", "filters.npz")]
    models, images = zip(*trained, strict=True)
    evaluate(histories, list(images), list(models), *outputs, settings=EvaluateSettings())
    return root


def test_histories_of_images_hold_the_rounds(results):
    first = load_arrays(results / "r1/parallel+local8/seeds0-1.npz")
    assert first["parallel.0.rounds"] == 8
    assert first["local8.1.rounds"] == 1
    second = load_arrays(results / "r1/parallel_rounds+local4+one_shot/seeds0-1.npz")
    assert second["parallel_rounds.0.rounds"] == 2
    np.testing.assert_array_equal(second["local4.0.step"], [4, 8])
    # One shot of 8 steps is local8.
    np.testing.assert_array_equal(second["one_shot.0.test_loss"], first["local8.0.test_loss"])


def test_rows_and_table(results, tmp_path):
    rows = read_metrics(results / "rows.csv")
    assert set(rows["experiment"]) == {"s1", "s3", "poly", "r1", "r2"}
    assert set(rows[rows["experiment"] == "r2"]["dataset"]) == {"cifar10_h0.5_rho0.25"}
    assert set(rows[rows["metric"] == "test_accuracy_worst"]["experiment"]) == {
        *("s1", "s3", "poly", "r2")
    }
    seed_file = tmp_path / "fedlocal.yaml"
    seed_file.write_text(
        "{paper: fedlocal, title: t, authors: [a], venue: v, basis: b, reported: [], claims: "
        "[{id: fedlocal-1, statement: s, checks: "
        "[{id: fedlocal-1, measure: m, threshold: '> 0', rule: interval}]}]}"
    )
    table(results / "rows.csv", seed_file, tmp_path / "table.csv")
    written = pd.read_csv(tmp_path / "table.csv")
    # The time to learn is over the seeds that learn.
    assert set(written[written["metric"] != "steps_to_learn"]["n_seeds"]) == {2}
    own = written[
        (written["experiment"] == "r1")
        & (written["method"] == "local8")
        & (written["metric"] == "test_accuracy")
    ]
    history = load_arrays(results / "r1/parallel+local8/seeds0-1.npz")
    expected = np.mean([history[f"local8.{seed}.test_accuracy"][-1].mean() for seed in SEEDS])
    assert own["mean"].item() == pytest.approx(expected, rel=1e-8)


def test_measures_are_differences_by_seed(results):
    measures = read_measures(results / "measures.csv")
    by_check = {check: own.set_index("seed")["value"] for check, own in measures.groupby("check")}
    # Everything but the runs that were not made: local64, and local16 in r2.
    expected = ["1", "2", "3", "4", "5a", "5b", "6a", "6b", "7a", "7b", "8"]
    assert [name.removeprefix("fedlocal-") for name in sorted(by_check)] == expected
    history = load_arrays(results / "r1/parallel+local8/seeds0-1.npz")
    for seed in SEEDS:
        gain = [
            history[f"{method}.{seed}.test_accuracy"][-1].mean()
            for method in ("local8", "parallel")
        ]
        assert by_check["fedlocal-8"][seed] == pytest.approx(gain[0] - gain[1], abs=1e-8)
        assert by_check["fedlocal-2"][seed] == pytest.approx(3 * 0.8**3, rel=1e-6)


def test_the_exponent_of_the_time_is_that_of_the_steps(results):
    measures = read_measures(results / "measures.csv").set_index(["check", "seed"])["value"]
    history = load_arrays(results / "poly/local5+local10/seeds0-1.npz")
    for seed in SEEDS:
        steps, missing = [], 0
        for method in ("local5", "local10"):
            is_learned = history[f"{method}.{seed}.projections"].max(1) >= 0.5
            missing += (~is_learned[-1]).sum()
            when = np.flatnonzero(is_learned.all(1))
            steps.append(history[f"{method}.{seed}.step"][when[0] if len(when) else -1])
        slope = np.log(steps[1] / steps[0]) / np.log(2)
        assert measures["fedlocal-5a", seed] == missing
        assert measures["fedlocal-5b", seed] == pytest.approx(slope, abs=1e-8)


def test_the_figure_is_the_same_twice(results, tmp_path):
    for name in ("a", "b"):
        figure(
            results / "rows.csv",
            results / "filters.npz",
            tmp_path / f"{name}.png",
            tmp_path / f"{name}.pdf",
            settings=FigureSettings(),
        )
    for ending in ("png", "pdf"):
        one, other = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("a", "b"))
        assert one == other


def test_augmented_training_runs_on_resnet(cifar, tmp_path):
    settings = TrainSettings(
        model="resnet18",
        num_outputs=10,
        image=32,
        augment=True,
        batch=2,
        lr=0.01,
        steps=4,
        average_buffers="local",
    )
    subset = prepared(cifar, tmp_path, n_train=32, n_test=16, h=0.0)
    paths = tmp_path / "model.safetensors", tmp_path / "history.npz"
    train(
        subset,
        *paths,
        methods="local2",
        seeds=Seeds((0,)),
        settings=settings,
        checkpoints=Checkpoints(tmp_path / "checkpoints", identity="a"),
    )
    history = load_arrays(paths[1])
    assert history["local2.0.test_loss"].shape == (1, 4)
    assert str(history["local2.0.average_buffers"]) == "local"
