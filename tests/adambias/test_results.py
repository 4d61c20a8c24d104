import math

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import random_split

from retable.adambias.config import EvaluateSettings, method_name
from retable.adambias.sources import read_cifar100, read_eurosat
from retable.adambias.steps.evaluate import evaluate
from retable.adambias.steps.prepare import _split
from retable.adambias.steps.table import table
from retable.common.errors import InputError
from retable.common.metrics import read_measures, read_metrics, write_csv, write_metrics

SETTINGS = EvaluateSettings(
    levels={"mnist14": (0.5,), "cifar16": (0.5, 0.01)},
    sweep="mnist14",
    sweep_level=0.5,
    beta=0.9,
    rho=0.99,
    stage=(0.9, 0.99, 1e-6),
    usual=(0.9, 0.999),
    accuracy_levels={"mnist14": 0.5, "cifar16": 0.5},
    penalising=(0.9, 0.5, 0.01),
    impeding=(0.9, 0.95, 0.01),
    late=(0.9, 0.95, 1e6),
)
MNIST = [(0.9, 0.9), (0.9, 0.99), (0.9, 0.999), (0.0, 0.99), (0.5, 0.99), (0.9, 0.99, 1e-6)]
CIFAR = [(0.9, 0.9), (0.9, 0.99), (0.5, 0.99)]


def _norm(beta, rho):
    """Rises with ρ and falls with β, as the paper says."""
    return 10.0 + 100.0 * (rho - 0.9) - beta


def _history(path, beta, rho, seeds=(0, 1)):
    """Loss from 1 to 0.05 on 40 epochs; the norm at loss 0.5 is `_norm`, whatever the speed."""
    frames = []
    for seed in seeds:
        epoch = np.arange(1, 41)
        loss = np.linspace(1.0, 0.05, 40)
        norm = _norm(beta, rho) * (1.0 + loss - 0.5)
        accuracy = np.where(epoch % 10 == 1, 0.9 - 0.01 * np.log(_norm(beta, rho)), np.nan)
        frames.append(
            pd.DataFrame(
                {
                    "seed": seed,
                    "epoch": epoch,
                    "train_loss": loss,
                    "test_accuracy": accuracy,
                    "one_norm": norm,
                    "perturbed_one_norm": norm + 1.0,
                    "share_negative": np.linspace(0.9, 0.5, 40),
                }
            )
        )
    path.parent.mkdir(parents=True)
    write_csv(pd.concat(frames), path)
    return path


@pytest.fixture
def evaluated(tmp_path):
    fits = []

    def errors(method, plain, corrected, dataset="bilinear", seed=None, experiment="order"):
        for metric, order in (("error_plain", plain), ("error_corrected", corrected)):
            for h in (0.04, 0.02, 0.01, 0.005):
                # the largest step is off the line: slopes look at the three smallest
                value = h**order * (10.0 if h == 0.04 else 1.0)
                yield {
                    "experiment": experiment, "dataset": dataset, "method": method,
                    "seed": seed, "metric": metric, "x": h, "value": value,
                }  # fmt: skip

    fits += errors("adam_b0.9_r0.5_e0.01", 1.1, 2.0)
    fits += errors("adam_b0_r0.9_e1_outside", 0.9, 1.9)
    fits += errors("adam_b0.9_r0.9_e0.01", 1.95, 1.95)  # β = ρ does not count for the plain flow
    fits += errors("adam_b0.9_r0.99_e0.01", 1.6, 0.2, experiment="order_shown")
    for seed in (0, 1):
        fits += errors("adam_b0.5_r0.8_e0.1", 1.0, 2.0 + 0.1 * seed, "mnist49", seed)
        fits += errors("gd", 1.0, 2.2, "mnist49", seed)
        for metric, value in (("scale", 0.99), ("r2_predicted", 0.98), ("r2_two_norm", 0.1)):
            fits.append(
                {
                    "experiment": "defect", "dataset": "mnist49", "method": "b0.9_r0.95_e0.0001",
                    "seed": seed, "metric": metric, "value": value,
                }
            )  # fmt: skip
    for case, kappa in ((SETTINGS.penalising, 16), (SETTINGS.impeding, -20), (SETTINGS.late, 18)):
        fits.append(
            {
                "experiment": "defect", "dataset": "bilinear", "method": method_name(*case),
                "metric": "kappa", "value": kappa,
            }
        )  # fmt: skip
    write_metrics(fits, tmp_path / "fits.csv")
    histories = [
        _history(tmp_path / dataset / method_name(*setting) / "seeds0-1.csv", *setting[:2])
        for dataset, settings in (("mnist14", [*MNIST, (0.9, 0.999)][:6]), ("cifar16", CIFAR))
        for setting in settings
    ]
    rows, measures = tmp_path / "rows.csv", tmp_path / "measures.csv"
    evaluate([tmp_path / "fits.csv"], histories, rows, measures, settings=SETTINGS)
    return rows, measures


def test_measures(evaluated):
    found = read_measures(evaluated[1])
    assert not found.duplicated(["check", "seed"]).any()
    values = found.groupby("check")["value"].agg(list)

    def near(check, *expected):
        assert values[check] == pytest.approx(list(expected), abs=1e-7), check

    near("adambias-1", 2.2, 2.2)
    near("adambias-2a", 1.9)
    near("adambias-2b", 1.1)
    near("adambias-2c", 2.0, 2.1)
    near("adambias-2d", 1.0, 1.0)
    near("adambias-3a", 36.0)
    near("adambias-3b", 16.0)
    near("adambias-3c", -20.0)
    near("adambias-4a", -20.0)
    near("adambias-4b", 18.0)
    share = np.linspace(0.9, 0.5, 40)
    near("adambias-4c", *[share[:4].mean() - share[-4:].mean()] * 2)
    near("adambias-5a", 0.88, 0.88)
    near("adambias-5b", 0.98, 0.98)
    near("adambias-5c", 0.01, 0.01)
    near("adambias-6a", 0.7, 0.7)
    near("adambias-7a", 1.0, 1.0)
    near("adambias-7b", *[math.log(_norm(0.9, 0.999) / _norm(0.9, 0.9))] * 2)
    near("adambias-8a", -1.0, -1.0)
    near("adambias-8b", *[math.log(_norm(0.0, 0.99) / _norm(0.9, 0.99))] * 2)
    near("adambias-9a", -0.01, -0.01)
    assert "adambias-9b" not in values.index


def test_measures_of_large_networks(tmp_path):
    """At the paper's scale: the smaller share of both networks, the mean of both slopes."""
    large, settings = ("resnet", "vit"), [(0.9, 0.999), (0.95, 0.999), (0.97, 0.999)]
    histories = [
        _history(tmp_path / dataset / method_name(*setting) / "seeds0-1.csv", *setting)
        for dataset in large
        for setting in settings
    ]
    for path in histories[3:]:  # the second network: other shares and a steeper slope
        frame = pd.read_csv(path)
        frame["share_negative"] -= 0.3
        frame["test_accuracy"] = 1.0 + 3.0 * (frame["test_accuracy"] - 0.9)
        write_csv(frame, path)
    errors = [
        {"experiment": "order", "dataset": "bilinear", "method": "adam_b0.9_r0.5_e0.01"}
        | {"metric": metric, "x": h, "value": h}
        for metric in ("error_plain", "error_corrected")
        for h in (0.04, 0.02, 0.01)
    ]
    write_metrics(errors, tmp_path / "fits.csv")
    change = {"levels": dict.fromkeys(large, (0.5,)), "large": large, "large_level": 0.5}
    evaluate(
        [tmp_path / "fits.csv"],
        histories,
        tmp_path / "rows.csv",
        tmp_path / "measures.csv",
        settings=SETTINGS.model_copy(update=change),
    )
    values = read_measures(tmp_path / "measures.csv").groupby("check")["value"].agg(list)
    assert values["adambias-6b"] == pytest.approx([0.4, 0.4])
    assert values["adambias-9b"] == pytest.approx([-0.02, -0.02], abs=1e-7)
    # What was not run has no measure.
    assert set(values.index) == {f"adambias-{check}" for check in ("2a", "2b", "6b", "9b")}


def test_rows_hold_norms_at_equal_loss(evaluated):
    rows = read_metrics(evaluated[0])
    own = rows[(rows["method"] == "b0.9_r0.99") & (rows["dataset"] == "cifar16")]
    by_metric = own[own["seed"] == 0].set_index("metric")["value"]
    # the norm is linear in the loss here, so that the interpolation is exact
    assert by_metric["one_norm@0.5"] == pytest.approx(_norm(0.9, 0.99))
    assert by_metric["perturbed_one_norm@0.5"] == pytest.approx(_norm(0.9, 0.99) + 1.0)
    assert math.isnan(by_metric["one_norm@0.01"])


def test_a_loss_that_is_not_reached_leaves_an_empty_row(evaluated, tmp_path, request):
    seed_file = request.config.rootpath / "seeds/adambias.yaml"
    table(evaluated[0], seed_file, tmp_path / "table.csv")
    made = pd.read_csv(tmp_path / "table.csv")
    own = made[(made["method"] == "b0.9_r0.99") & (made["dataset"] == "cifar16")]
    own = own.set_index("metric")
    assert own.loc["one_norm@0.01", "n_seeds"] == 0
    assert math.isnan(own.loc["one_norm@0.01", "mean"])
    assert own.loc["one_norm@0.5", "n_seeds"] == 2
    order = made[(made["metric"] == "order_corrected") & (made["dataset"] == "bilinear")]
    assert order["mean"].tolist() == pytest.approx([2.0, 1.9, 1.95, 0.2])
    assert not made["metric"].str.startswith("error_").any()


def test_cifar100_reader(tmp_path):
    rng = np.random.default_rng(0)
    for split, count in (("train", 3), ("test", 2)):
        rng.integers(0, 20, (count, 3074), dtype=np.uint8).tofile(tmp_path / f"{split}.bin")
    arrays = read_cifar100(tmp_path)
    raw = np.fromfile(tmp_path / "train.bin", np.uint8).reshape(3, 3074)
    assert arrays["train_images"].shape == (3, 32, 32, 3)
    assert arrays["train_labels"].tolist() == raw[:, 1].tolist()
    assert arrays["train_images"][1, 0, 5, 2] == raw[1, 2 + 2 * 1024 + 5]
    (tmp_path / "test.bin").write_bytes(b"123")
    with pytest.raises(InputError, match=r"test\.bin: 3 bytes, must be a multiple of 3074"):
        read_cifar100(tmp_path)


def test_eurosat_reader_and_split(tmp_path):
    for label in range(10):
        (tmp_path / f"class{label}").mkdir()
        for number in range(3):
            image = Image.new("RGB", (64, 64), (20 * label, 10 * number, 0))
            image.save(tmp_path / f"class{label}" / f"{number}.jpg")
    arrays = read_eurosat(tmp_path)
    assert arrays["images"].shape == (30, 32, 32, 3)
    assert arrays["labels"].tolist() == [label for label in range(10) for _ in range(3)]
    assert abs(int(arrays["images"][29, 16, 16, 0]) - 180) < 5
    parts = _split(arrays)
    assert len(parts["train_labels"]) == 24
    together = np.concatenate([parts["train_labels"], parts["test_labels"]])
    assert sorted(together.tolist()) == arrays["labels"].tolist()
    # the authors' split: torch's own, with its seed 42
    official = random_split(range(30), [24, 6], torch.Generator().manual_seed(42))
    for split, name in zip(official, ("train", "test"), strict=True):
        np.testing.assert_array_equal(
            parts[f"{name}_images"], arrays["images"][list(split.indices)]
        )
    (tmp_path / "class9" / "0.jpg").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"0\.jpg: not a whole image"):
        read_eurosat(tmp_path)
    with pytest.raises(InputError, match="0 folders of JPEG images, must be 10"):
        read_eurosat(tmp_path / "class1" / "nothing")
