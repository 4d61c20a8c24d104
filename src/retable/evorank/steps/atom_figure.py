"""Four panels: means, wild type against EvoRank by assay, accuracy against ranking, one assay."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.data.arrays import load_arrays
from retable.common.figures import COLORS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.common.statistics import t_interval
from retable.evorank.steps.figure import NAMES, STYLES, draw_heat_maps, draw_misalignment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DATASETS = {"mean": "ProteinGym, mean", "t2837": "T2837, -ddG"}
_NO_ASSAYS = (*_DATASETS, "held_out")


def atom_figure(rows: Path, map: Path, png: Path, pdf: Path) -> None:
    """Draw the figure; intervals and marks are over seeds."""
    import matplotlib.pyplot as plt

    frame, shown = read_metrics(rows), load_arrays(map)
    with figure_style():
        fig = plt.figure(figsize=(10.5, 8.2))
        top, bottom = fig.subfigures(2, 1, height_ratios=[1, 1])
        left, middle, right = top.subplots(1, 3, width_ratios=[1.3, 1, 1])
        _draw_means(left, frame)
        _draw_assays(middle, frame)
        draw_misalignment(right, frame)
        right.set_xlabel("masked wild-type accuracy, held out")
        below = draw_heat_maps(bottom, shown)
        label_panels([left, middle, right, below])
        save_figure(fig, png, pdf)


def _draw_means(ax: "Axes", frame: pd.DataFrame) -> None:
    shown = frame[frame["metric"] == "spearman"]
    methods = [name for name in NAMES if name in set(shown["method"])]
    for row, dataset in enumerate(_DATASETS):
        own = shown[shown["dataset"] == dataset]
        published = own[own["method"].str.startswith("published/")]["value"]
        if len(published):
            ax.plot(
                published,
                np.full(len(published), row - 0.42),
                linestyle="none",
                marker="|",
                color="gray",
                label="published models",
            )
        for number, method in enumerate(methods):
            values = own[own["method"] == method]["value"].to_numpy()
            if not len(values):
                continue
            found = t_interval(values)
            errors = np.nan_to_num([[found.value - found.low], [found.high - found.value]])
            ax.errorbar(
                found.value,
                row + (number - (len(methods) - 1) / 2) * 0.09,
                xerr=errors if len(values) > 2 else None,
                linestyle="none",
                elinewidth=0.9,
                markersize=4,
                label=NAMES[method] if row == 0 else None,
                **STYLES[method],
            )
    ax.axvline(0, color="black", linewidth=0.7)
    ax.set_yticks(range(len(_DATASETS)), list(_DATASETS.values()), rotation=90, va="center")
    ax.set_ylim(len(_DATASETS) - 0.45, -0.55)
    ax.set_xlabel("Spearman correlation")
    ax.set_title("Prediction of mutational effects")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=2)


def _draw_assays(ax: "Axes", frame: pd.DataFrame) -> None:
    shown = frame[(frame["metric"] == "spearman") & ~frame["dataset"].isin(_NO_ASSAYS)]
    means = shown.groupby(["dataset", "method"])["value"].mean().unstack()
    ax.plot(
        means["wildtype"],
        means["evorank"],
        linestyle="none",
        marker="o",
        markersize=3,
        color=COLORS[0],
        alpha=0.6,
    )
    both = means[["wildtype", "evorank"]].to_numpy()
    ends = [both.min(), both.max()]
    ax.plot(ends, ends, color="black", linewidth=0.7)
    ax.set_xlabel("wild type")
    ax.set_ylabel("EvoRank")
    ax.set_title(f"Spearman, {len(means)} assays")
