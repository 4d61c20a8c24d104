"""What the figure draws of the sweeps."""

import numpy as np
import pandas as pd
import pytest

from retable.adambias.config import FigureSettings, PathsSettings, method_name
from retable.adambias.steps.figure import (
    ACCURACY,
    NORM,
    _further_sweeps,
    _sweep,
    figure,
)
from retable.adambias.steps.paths import paths
from retable.common.figures import figure_style
from retable.common.metrics import read_metrics, write_metrics

MNIST = [(0.9, 0.8), (0.9, 0.99), (0.9, 0.999), (0.5, 0.99), (0.9, 0.99, 1e-6)]
VIT = [(0.9, 0.999), (0.95, 0.999)]
SETTINGS = PathsSettings(
    start=(2.8, 3.5),
    low=(0.0, 0.5),
    high=(3.2, 3.8),
    grid=10,
    cases=[{"beta": 0.9, "rho": rho, "eps": 0.01, "h": 0.02, "steps": 5} for rho in (0.5, 0.95)],
)


def _norm(beta, rho):
    return 1.0 + rho - beta


@pytest.fixture
def rows(tmp_path):
    found = [
        {"experiment": "defect", "dataset": "bilinear", "method": "b0.9_r0.5_e0.01"}
        | {"metric": metric, "value": 16.0}
        for metric in ("kappa", "kappa_theory")
    ]
    for dataset, settings in (("mnist14", MNIST), ("cifar10-vit", VIT)):
        for setting in settings:
            for seed in (0, 1):
                key = {"experiment": "sweep", "dataset": dataset, "seed": seed}
                key["method"] = method_name(*setting)
                norm = _norm(*setting[:2]) + 0.1 * seed
                found.append(key | {"metric": "one_norm@0.5", "value": norm})
                found.append(key | {"metric": "test_accuracy@0.5", "value": norm / 10})
    write_metrics(found, tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


def test_the_sweeps_of_further_data_sets_are_found(rows):
    assert list(_further_sweeps(read_metrics(rows))) == [("cifar10-vit", "beta", 0.999)]


@pytest.mark.parametrize(
    ("sweep", "settings", "title"),
    [
        (("mnist14", "rho", 0.9), MNIST[:3], "MNIST 14×14: {}, β=0.9"),
        (("mnist14", "beta", 0.99), [MNIST[3], MNIST[1]], "MNIST 14×14: {}, ρ=0.99"),
        (("cifar10-vit", "beta", 0.999), VIT, "CIFAR-10, ViT\n{}, ρ=0.999"),
    ],
)
def test_a_sweep_shows_means_over_seeds_at_equal_loss(rows, sweep, settings, title):
    import matplotlib.pyplot as plt

    means = np.array([_norm(*setting) + 0.05 for setting in settings])
    for quantity, expected, what in ((NORM, means, "one-norm"), (ACCURACY, 10 * means, "accuracy")):
        with figure_style():
            drawn, ax = plt.subplots()
            _sweep(ax, read_metrics(rows), sweep, quantity)
            (line,) = [container[0] for container in ax.containers]
            np.testing.assert_allclose(np.asarray(line.get_ydata(), float), expected)
            assert ax.get_title() == title.format(what)
            assert ax.get_xlabel() == ("ρ" if sweep[1] == "rho" else "β")
            plt.close(drawn)


def test_the_figure_repeats_to_the_byte_and_grows_with_the_sweeps(rows, tmp_path):
    import matplotlib.image

    paths(tmp_path / "paths.npz", settings=SETTINGS)
    frame = read_metrics(rows)
    few = frame[frame["dataset"] != "cifar10-vit"].astype(object)
    write_metrics(few.where(pd.notna(few), None).to_dict("records"), tmp_path / "few.csv")

    def draw(table, name):
        files = [tmp_path / f"{name}.{kind}" for kind in ("png", "pdf")]
        figure(table, tmp_path / "paths.npz", *files, settings=FigureSettings(width=6, height=6))
        return files

    first, second = draw(rows, "first"), draw(rows, "second")
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    heights = [
        matplotlib.image.imread(png).shape[0]
        for png, _ in (first, draw(tmp_path / "few.csv", "few"))
    ]
    assert heights[0] == pytest.approx(1.5 * heights[1], abs=2)
