"""The figure: progress, novelty against score, the best fragments, the growing vocabulary."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.geam.config import FigureSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "geam": "GEAM",
    "geam_static": "GEAM-static",
    "geam_random_assembly": "GEAM, random assembly",
    "geam_wo_modification": "GEAM without modification",
    "geam_wo_assembly": "GEAM without assembly",
    "graph_ga": "Graph GA",
    "reinvent": "REINVENT",
    "random_library": "random library",
}
_STYLE = {
    method: (COLORS[k % len(COLORS)], LINES[k % len(LINES)], MARKERS[k])
    for k, method in enumerate(LABELS)
}
_SIZE = (520, 190)


def figure(rows: Path, fragments: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw best-100 mean against calls, novelty against score, fragments, and the vocabulary."""
    import matplotlib.pyplot as plt

    values = read_metrics(rows)
    best = pd.read_csv(fragments)
    tasks = list(dict.fromkeys(values.loc[values["experiment"] == "curves", "dataset"]))
    drawn = settings.task if settings.task in tasks else tasks[0]
    with figure_style():
        canvas = plt.figure(figsize=(4.2 * max(3, len(tasks)), 11.2), layout="constrained")
        grid = canvas.add_gridspec(3, max(3, len(tasks)), height_ratios=[1, 1, 0.8])
        panels = [canvas.add_subplot(grid[0, k]) for k in range(len(tasks))]
        for ax, task in zip(panels, tasks, strict=True):
            _curves(ax, values, task)
        scatter = canvas.add_subplot(grid[1, 0])
        _novelty(scatter, values, tasks)
        size = canvas.add_subplot(grid[1, 1])
        _vocabulary(size, values, tasks, "vocabulary")
        share = canvas.add_subplot(grid[1, 2])
        _vocabulary(share, values, tasks, "new_fragments")
        molecules = canvas.add_subplot(grid[2, :])
        _fragments(molecules, best[best["dataset"] == drawn], drawn)
        label_panels([*panels, scatter, size, share, molecules])
        handles, names = panels[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside lower center", ncols=4)
        save_figure(canvas, png, pdf)


def _by_seed(values: pd.DataFrame, task: str, method: str, metric: str) -> pd.DataFrame:
    chosen = values[
        (values["dataset"] == task) & (values["method"] == method) & (values["metric"] == metric)
    ]
    return chosen.pivot_table(index="x", columns="seed", values="value")


def _curves(ax: "Axes", values: pd.DataFrame, task: str) -> None:
    curves = values[values["experiment"] == "curves"]
    for method, label in LABELS.items():
        seeds = _by_seed(curves, task, method, "top100")
        if seeds.empty:
            continue
        color, line, marker = _STYLE[method]
        # The markers are those of the panel of novelty: one legend serves both.
        ax.plot(
            seeds.index,
            seeds.mean(axis=1),
            color=color,
            linestyle=line,
            marker=marker,
            markevery=(3, 6),
            label=label,
        )
        ax.fill_between(
            seeds.index, seeds.min(axis=1), seeds.max(axis=1), color=color, alpha=0.12, lw=0
        )
    ax.set(title=task, xlabel="oracle calls", ylabel="mean score of the 100 best", ylim=(0, None))


def _novelty(ax: "Axes", values: pd.DataFrame, tasks: list[str]) -> None:
    made = values[values["experiment"] == "generation"]
    means = made.groupby(["dataset", "method", "metric"])["value"].mean()
    fills = ("full", "none", "left", "right", "top", "bottom")
    for number, task in enumerate(tasks):
        for method in LABELS:
            if (task, method, "novelty") not in means:
                continue
            color, _, marker = _STYLE[method]
            ax.plot(
                means[task, method, "top100"], means[task, method, "novelty"], marker=marker,
                color=color, fillstyle=fills[number % len(fills)], markersize=7, linestyle="none",
            )  # fmt: skip
        ax.plot([], [], marker="o", color="#555555", fillstyle=fills[number % len(fills)],
                linestyle="none", label=task)  # fmt: skip
    ax.legend(title="marks", loc="lower right")
    ax.set(title="Novelty against score", xlabel="mean score of the 100 best",
           ylabel="share of novel molecules", ylim=(0, 1.03))  # fmt: skip


def _vocabulary(ax: "Axes", values: pd.DataFrame, tasks: list[str], metric: str) -> None:
    progress = values[values["experiment"] == "progress"]
    for number, task in enumerate(tasks):
        for method, line in (("geam", "-"), ("geam_random_assembly", "--")):
            chosen = progress[
                (progress["dataset"] == task)
                & (progress["method"] == method)
                & (progress["metric"] == metric)
            ]
            if chosen.empty:
                continue
            calls = np.arange(0, chosen["x"].max() + 1, 10)
            curves = [np.interp(calls, run["x"], run["value"]) for _, run in chosen.groupby("seed")]
            label = f"{task}, {'SAC' if method == 'geam' else 'random'} assembly"
            ax.plot(calls, np.mean(curves, axis=0), line, color=COLORS[number], label=label)
    title, unit = {
        "vocabulary": ("Size of the vocabulary", "fragments"),
        "new_fragments": ("New fragments in the vocabulary", "share of all its fragments"),
    }[metric]
    ax.set(title=title, xlabel="oracle calls", ylabel=unit, ylim=(0, None))
    if metric == "vocabulary":
        ax.legend(loc="lower right")


def _fragments(ax: "Axes", best: pd.DataFrame, task: str) -> None:
    """The best fragments, drawn by RDKit."""
    from matplotlib.image import imread
    from rdkit import Chem
    from rdkit.Chem.Draw import MolDraw2DCairo, rdMolDraw2D

    columns = 4
    count = max(1, -(-len(best) // columns))
    drawer = MolDraw2DCairo(_SIZE[0] * columns, _SIZE[1] * count * 2, _SIZE[0], _SIZE[1] * 2)
    drawer.drawOptions().legendFontSize = 34
    drawer.drawOptions().clearBackground = True
    mols, legends = [], []
    for fragment, score in zip(best["fragment"], best["fgib"], strict=True):
        mol = Chem.MolFromSmiles(fragment)
        for atom in mol.GetAtoms():
            atom.SetAtomMapNum(0)
        mols.append(rdMolDraw2D.PrepareMolForDrawing(mol))
        legends.append(f"{score:.3f}")
    drawer.DrawMolecules(mols, legends=legends)
    drawer.FinishDrawing()
    ax.imshow(
        imread(io.BytesIO(drawer.GetDrawingText()), format="png"), interpolation="antialiased"
    )
    ax.set(title=f"Best fragments for {task}, with score (* marks an attachment point)")
    ax.axis("off")
