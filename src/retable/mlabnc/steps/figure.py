"""The figure: free optimisation, collapse in training, decoders, and the geometry of the means."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.data.arrays import load_arrays
from retable.common.figures import (
    COLORS,
    DIVERGING,
    LINES,
    MARKERS,
    figure_style,
    save_figure,
)
from retable.common.metrics import read_metrics
from retable.mlabnc.config import FigureSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DATASETS = {"mnist": "MLab-MNIST", "cifar10": "MLab-CIFAR10", "svhn": "MLab-SVHN"}
_METHODS = {"pal": "PAL", "pal_etf": "PAL, fixed ETF", "bce": "BCE"}
_CURVES = {
    "nc1_m1": "NC1: variability within",
    "nc2_h": "NC2: means to ETF",
    "nc3": "NC3: classifier to means",
    "angle_ratio": "tag-wise average: angle ratio",
}
_DECODERS = {
    "threshold": "tuned threshold",
    "onn": "nearest mean, cosine",
    "onn-euclidean": "nearest mean, Euclidean",
    "onn-tagwise": "nearest tag-wise sum, cosine",
}


def figure(
    path: Path,
    histories: list[Path],
    evaluations: list[Path],
    cosines: Path,
    png: Path,
    pdf: Path,
    *,
    settings: FigureSettings,
) -> None:
    """Draw four groups of panels; bands and whiskers span the seeds."""
    import matplotlib.pyplot as plt

    history, evaluated = read_metrics(histories), read_metrics(evaluations)
    with figure_style():
        drawn = plt.figure(figsize=(11, 10.2))
        top, middle, bottom = drawn.subfigures(3, 1, height_ratios=(1, 1.02, 1.5))
        _free_optimisation(top, load_arrays(path))
        _curves(middle, history, settings)
        left, right = bottom.subfigures(1, 2, width_ratios=(1.02, 1))
        _decoders(left, evaluated, settings)
        _heat_map(right, load_arrays(cosines), settings.heat_map)
        save_figure(drawn, png, pdf)


def _free_optimisation(place: "Figure", path: dict[str, np.ndarray]) -> None:
    """Features in the plane at three points of the optimisation, with the mean of each set."""
    place.suptitle(
        "(a) Unconstrained feature model, K = 3, d = 2: features (dots) and their means (arrows)",
        fontsize=10.5,
    )
    *panels, legend = place.subplots(1, 4, width_ratios=(1, 1, 1, 0.45))
    sets = np.unique(path["targets"], axis=0)
    sets = sorted(sets.tolist(), key=lambda row: (sum(row), [-value for value in row]))
    legend.axis("off")
    for panel, features in zip(panels, path["features"], strict=True):
        reach = 1.12 * np.abs(features).max()
        for number, labels in enumerate(sets):
            points = features[(path["targets"] == labels).all(axis=1)]
            mean = points.mean(axis=0)
            color, marker = COLORS[number], MARKERS[number]
            name = "{" + ", ".join(str(k + 1) for k, used in enumerate(labels) if used) + "}"
            panel.plot(*points.T, marker, color=color, alpha=0.55, markeredgewidth=0, label=name)
            panel.annotate(
                "",
                xy=tuple(mean),
                xytext=(0, 0),
                arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.8, "shrinkA": 0,
                            "shrinkB": 0},
            )  # fmt: skip
        panel.set(
            xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal",
            xlabel="feature 1", ylabel="feature 2",
        )  # fmt: skip
    titles = ("start", f"after {path['iterations'][1]} iterations of L-BFGS", "optimum")
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title)
    handles, names = panels[0].get_legend_handles_labels()
    legend.legend(handles, names, title="label set", loc="center", markerscale=1.3)


def _curves(place: "Figure", history: pd.DataFrame, settings: FigureSettings) -> None:
    place.suptitle(
        "(b) Collapse of the training features: mean over seeds, band from smallest to largest",
        fontsize=10.5,
    )
    panels = place.subplots(1, len(_CURVES))
    for panel, (metric, title) in zip(panels, _CURVES.items(), strict=True):
        for line, dataset in zip(LINES, settings.datasets, strict=False):
            for number, method in enumerate(settings.curves):
                own = history[
                    (history["dataset"] == dataset)
                    & (history["method"] == method)
                    & (history["metric"] == metric)
                ]
                if own.empty:
                    continue
                band = own.groupby("x")["value"].agg(["mean", "min", "max"])
                style = {"color": COLORS[number], "linestyle": line, "marker": MARKERS[number]}
                name = f"{_DATASETS[dataset]}, {_METHODS.get(method, method)}"
                panel.plot(band.index, band["mean"], label=name, **style)
                panel.fill_between(
                    band.index, band["min"], band["max"], color=COLORS[number], alpha=0.2, lw=0
                )
        panel.set(title=title, xlabel="epoch", yscale="log")
    panels[0].set_ylabel("metric (0 = collapsed)")
    handles, names = panels[0].get_legend_handles_labels()
    # Long enough to tell dashed lines from full ones.
    place.legend(handles, names, loc="outside lower center", ncols=4, handlelength=4)


def _decoders(place: "Figure", evaluated: pd.DataFrame, settings: FigureSettings) -> None:
    panel: Axes = place.subplots()
    exact = evaluated[evaluated["metric"] == "exact_match"]
    groups = [
        (dataset, method)
        for dataset in settings.datasets
        for method in settings.bars
        if not exact[
            (exact["dataset"] == dataset) & (exact["method"] == f"{method}/threshold")
        ].empty
    ]
    width = 0.8 / len(_DECODERS)
    for number, (decoder, title) in enumerate(_DECODERS.items()):
        values = [
            exact[(exact["dataset"] == dataset) & (exact["method"] == f"{method}/{decoder}")][
                "value"
            ]
            for dataset, method in groups
        ]
        means = np.array([value.mean() for value in values])
        spread = np.array([[m - v.min(), v.max() - m] for m, v in zip(means, values, strict=True)])
        place_of = np.arange(len(groups)) + (number - (len(_DECODERS) - 1) / 2) * width
        panel.bar(
            place_of, means, width, yerr=spread.T, color=COLORS[number], label=title,
            error_kw={"elinewidth": 0.9, "capsize": 2},
        )  # fmt: skip
    names = [
        f"{_METHODS.get(method, method)}\n{_DATASETS[dataset]}".replace(", ", ",\n")
        for dataset, method in groups
    ]
    panel.set_xticks(range(len(groups)), names, fontsize=8)
    panel.set(
        ylabel="exact match on the test split (share of samples)",
        ylim=(0, 1.0),
        title="(c) Decoders: mean over seeds, whiskers from smallest to largest",
    )
    panel.grid(False, axis="x")
    panel.legend(loc="upper right", ncols=2)


def _heat_map(place: "Figure", pictures: dict[str, np.ndarray], method: str) -> None:
    panel: Axes = place.subplots()
    values, sets = pictures[f"{method}_cosines"], pictures[f"{method}_sets"]
    shown = panel.imshow(values, cmap=DIVERGING, vmin=-1, vmax=1, interpolation="nearest")
    place.colorbar(shown, ax=panel, label="cosine between centred means", shrink=0.85)
    sizes = sets.sum(axis=1)
    # Pairs are named by their first label, at the first pair that has it.
    named = [
        row
        for row in range(len(sets))
        if sizes[row] == 1 or row == 0 or _first_label(sets, row) != _first_label(sets, row - 1)
        or sizes[row] != sizes[row - 1]
    ]  # fmt: skip
    single = [row for row in named if sizes[row] == 1]
    ticks = single[:: max(1, len(single) // 2)] + [row for row in named if sizes[row] == 2][::2]
    names = ["{" + ",".join(map(str, np.flatnonzero(sets[row]))) + "}" for row in ticks]
    panel.set_xticks(ticks, names, rotation=90, fontsize=7)
    panel.set_yticks(ticks, names, fontsize=7)
    panel.grid(False)
    for border in np.flatnonzero(np.diff(sizes)) + 0.5:
        panel.axhline(border, color="black", lw=0.8)
        panel.axvline(border, color="black", lw=0.8)
    panel.set_title(
        f"(d) Means of all label sets, {_DATASETS['mnist']}, {_METHODS.get(method, method)}"
    )
    panel.set(xlabel="label set", ylabel="label set")


def _first_label(sets: np.ndarray, row: int) -> int:
    return int(np.flatnonzero(sets[row])[0])
