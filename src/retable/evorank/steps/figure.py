"""Three panels: correlations by assay, one assay in full, accuracy against correlation."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.data.arrays import load_arrays
from retable.common.figures import COLORS, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.common.statistics import t_interval
from retable.evorank.alphabet import AMINO_ACIDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

NAMES = {
    "evorank": "EvoRank",
    "wildtype": "wild type",
    "soft": "soft labels",
    "evorank_logratio": "EvoRank, log ratio",
    "evorank_all": "EvoRank, all pairs",
    "evorank_noenv": "EvoRank, no environment",
    "finetuned": "fine-tuned on other proteins",
    "blosum62": "BLOSUM62",
    "msa_site": "own alignment",
}
STYLES = {
    name: {
        "color": COLORS[number % 7],
        "marker": MARKERS[number % 8],
        "markerfacecolor": "none" if number > 6 else COLORS[number % 7],
    }
    for number, name in enumerate(NAMES)
}


def figure(rows: Path, map: Path, png: Path, pdf: Path) -> None:
    """Draw the figure; intervals and marks are over seeds."""
    import matplotlib.pyplot as plt

    frame, shown = read_metrics(rows), load_arrays(map)
    with figure_style():
        fig = plt.figure(figsize=(9.6, 8.2))
        top, bottom = fig.subfigures(2, 1, height_ratios=[1.05, 1])
        left, right = top.subplots(1, 2, width_ratios=[1.7, 1])
        _draw_correlations(left, frame)
        draw_misalignment(right, frame)
        middle = draw_heat_maps(bottom, shown)
        label_panels([left, right, middle])
        save_figure(fig, png, pdf)


def _draw_correlations(ax: "Axes", frame: pd.DataFrame) -> None:
    shown = frame[frame["metric"] == "spearman"]
    datasets = [name for name in dict.fromkeys(shown["dataset"]) if name != "mean"] + ["mean"]
    methods = [name for name in NAMES if name in set(shown["method"])]
    for number, method in enumerate(methods):
        place = (number - (len(methods) - 1) / 2) * 0.085
        for row, dataset in enumerate(datasets):
            values = shown[(shown["dataset"] == dataset) & (shown["method"] == method)]["value"]
            if not len(values):
                continue
            found = t_interval(values.to_numpy())
            errors = np.nan_to_num([[found.value - found.low], [found.high - found.value]])
            ax.errorbar(
                found.value,
                row + place,
                xerr=errors if len(values) > 2 else None,
                linestyle="none",
                elinewidth=0.9,
                markersize=4,
                label=NAMES[method] if row == 0 else None,
                **STYLES[method],
            )
    ax.axvline(0, color="black", linewidth=0.7)
    ax.set_yticks(range(len(datasets)), datasets)
    ax.set_ylim(len(datasets) - 0.45, -0.55)
    ax.set_xlabel("Spearman correlation with the assay")
    ax.set_title("Zero-shot prediction of mutational effects")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.13), ncols=3)


def draw_misalignment(ax: "Axes", frame: pd.DataFrame) -> None:
    """Each training's masked accuracy against its mean correlation."""
    accuracy = frame[frame["metric"] == "masked_accuracy"]
    mean = frame[(frame["metric"] == "spearman") & (frame["dataset"] == "mean")]
    joined = accuracy.merge(mean, on=["method", "seed"], suffixes=("_accuracy", "_spearman"))
    for method in NAMES:
        own = joined[joined["method"] == method]
        if len(own):
            ax.plot(
                own["value_accuracy"], own["value_spearman"], linestyle="none", **STYLES[method]
            )
    ax.set_xlabel("masked wild-type accuracy, held-out families")
    ax.set_ylabel("mean zero-shot Spearman correlation")
    ax.set_title("Naming the wild type or ranking")


def draw_heat_maps(fig: "Figure | SubFigure", shown: dict[str, np.ndarray]) -> "Axes":
    """Measured effects and two predictions, below helices and strands where `coords` are there."""
    experiment, numbers = shown["experiment"], shown["numbers"]
    panels = {"measured": ranks(experiment)}
    for method in ("evorank", "wildtype"):
        scores = np.where(np.isnan(experiment), np.nan, shown[method])
        panels[NAMES[method]] = ranks(scores)
    axes = fig.subplots(1 + len(panels), 1, sharex=True, height_ratios=[0.12] + [1] * len(panels))
    if "coords" in shown:
        _draw_strip(axes[0], shown)
    else:
        axes[0].axis("off")
    axes[0].set_title(f"{shown['name']}: effects of substitutions, ranks from -1 (worst) to 1")
    for ax, (label, values) in zip(axes[1:], panels.items(), strict=True):
        image = ax.pcolormesh(
            np.arange(len(numbers) + 1) - 0.5,
            np.arange(21) - 0.5,
            values,
            cmap="RdBu",
            vmin=-1,
            vmax=1,
            rasterized=True,
        )
        ax.set_yticks(range(0, 20, 2), [AMINO_ACIDS[i] for i in range(0, 20, 2)], fontsize=6)
        ax.invert_yaxis()
        ax.set_ylabel(label)
        ax.grid(visible=False)
        ax.set_facecolor("#DDDDDD")
    ticks = np.flatnonzero(numbers % 20 == 0)
    axes[-1].set_xticks(ticks, numbers[ticks])
    axes[-1].set_xlabel("residue")
    fig.colorbar(image, ax=axes[1:], label="rank", aspect=40, pad=0.01)
    return axes[0]


def _draw_strip(ax: "Axes", shown: dict[str, np.ndarray]) -> None:
    """Helices and strands, told by the backbone's torsion angles."""
    kind = _secondary_structure(shown["coords"])[shown["positions"]]
    places = np.arange(len(kind))
    for code, color, label in ((1, COLORS[1], "helix"), (2, COLORS[5], "strand")):
        ax.bar(
            places, kind == code, width=1.0, color=color, label=label, align="center", linewidth=0
        )
    ax.set_ylim(0, 1)
    ax.set_yticks([])
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)


def _secondary_structure(coords: np.ndarray) -> np.ndarray:
    """1 where three residues in a row have a helix's torsions, 2 for a strand's, else 0: (L,)."""
    n, ca, c = coords[:, 0], coords[:, 1], coords[:, 2]
    phi, psi = np.full(len(coords), np.nan), np.full(len(coords), np.nan)
    phi[1:] = _torsion(c[:-1], n[1:], ca[1:], c[1:])
    psi[:-1] = _torsion(n[:-1], ca[:-1], c[:-1], n[1:])
    helix = (np.abs(phi + 63) < 35) & (np.abs(psi + 43) < 35)
    strand = (np.abs(phi + 115) < 50) & ((psi > 80) | (psi < -160))
    kind = np.zeros(len(coords), dtype=int)
    for code, found in ((1, helix), (2, strand)):
        triples = found[:-2] & found[1:-1] & found[2:]
        for shift in range(3):
            kind[shift : shift + len(triples)][triples] = code
    return kind


def _torsion(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Torsion angles in degrees of four points each (L, 3)."""
    first, axis, last = a - b, c - b, d - c
    axis = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    first = first - (first * axis).sum(1, keepdims=True) * axis
    last = last - (last * axis).sum(1, keepdims=True) * axis
    return np.degrees(np.arctan2((np.cross(axis, first) * last).sum(1), (first * last).sum(1)))


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks of the entries that are there, spread over [-1, 1]."""
    known = ~np.isnan(values)
    ranks = np.full(values.shape, np.nan)
    ranks[known] = 2 * np.argsort(np.argsort(values[known])) / max(1, known.sum() - 1) - 1
    return ranks
