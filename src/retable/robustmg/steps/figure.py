"""The figure: equivalence, robustness, scaling and the zero-sum shortcut."""

from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.figures import COLORS, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.common.statistics import t_interval

FLOOR = 1e-16
SETS = {
    "box": "box",
    "entrywise-1": r"entrywise $L_1$",
    "entrywise-inf": r"entrywise $L_\infty$",
    "operator-1-1": r"operator $1\to1$",
    "operator-inf-inf": r"operator $\infty\to\infty$",
    "operator-1-2": r"operator $1\to2$",
    "additive-1": r"additive $L_1$",
}
METHODS = {
    "robust": "robust equilibrium",
    "nominal": "nominal equilibrium",
    "entropy": "entropy-regularised",
    "uniform": "uniform",
}


def figure(metrics: Path, png: Path, pdf: Path) -> None:
    """Draw the four panels."""
    import matplotlib.pyplot as plt

    frame = read_metrics(metrics)
    with figure_style():
        drawn, axes = plt.subplots(2, 2, figsize=(9.5, 7.2))
        _equivalence(axes[0, 0], _select(frame, "equivalence", "robust_value"))
        _robustness(axes[0, 1], _select(frame, "robustness", "nash_gap"))
        _scaling(axes[1, 0], frame)
        _shortcut(axes[1, 1], _select(frame, "shortcut", "nash_gap"))
        label_panels(list(axes.flat))
        save_figure(drawn, png, pdf)


def _select(frame: pd.DataFrame, experiment: str, metric: str) -> pd.DataFrame:
    return frame[(frame["experiment"] == experiment) & (frame["metric"] == metric)]


def _curve(ax, rows: pd.DataFrame, label: str, number: int, *, floor: float = 0.0, **style) -> None:
    """Mean over seeds, with the smallest and largest seed as a band."""
    grouped = rows.assign(value=rows["value"].clip(lower=floor)).groupby("x")["value"]
    mean, low, high = grouped.mean(), grouped.min(), grouped.max()
    color = COLORS[number]
    ax.plot(mean.index, mean, marker=MARKERS[number], color=color, label=label, **style)
    ax.fill_between(mean.index, low, high, color=color, alpha=0.15, linewidth=0)


def _equivalence(ax, rows: pd.DataFrame) -> None:
    for number, (name, label) in enumerate(SETS.items()):
        own = rows[rows["dataset"] == name]
        marker = MARKERS[number]
        ax.plot(own["x"], own["value"], marker, color=COLORS[number], label=label, alpha=0.75)
    ends = [rows["x"].min(), rows["x"].max()]
    ax.plot(ends, ends, "-", color="0.4", linewidth=0.9, zorder=0, label="1:1")
    ax.set_xlabel("value of the regularised game (closed form)")
    ax.set_ylabel("robust value (program over the set)")
    ax.set_title("A robust game is a regularised game")
    ax.legend(fontsize=7)


def _robustness(ax, rows: pd.DataFrame) -> None:
    for number, (method, label) in enumerate(METHODS.items()):
        _curve(ax, rows[rows["method"] == method], label, number, floor=FLOOR)
    ax.axhline(FLOOR, color="0.4", linewidth=0.8, linestyle=":")
    ax.set_yscale("log")
    ax.set_xscale("symlog", linthresh=0.1, linscale=0.5)
    ax.set_ylim(bottom=FLOOR / 10)
    ax.annotate(
        "floor: rounding", (0, FLOOR), (0, -4), textcoords="offset points", fontsize=7, va="top"
    )
    radii = sorted(rows["x"].unique())
    ax.set_xticks(radii, [f"{radius:g}" for radius in radii])
    ax.set_xticks([], minor=True)
    ax.set_xlim(-0.015, 1.2 * radii[-1])
    ax.set_xlabel("radius of the uncertainty set (units of payoff)")
    ax.set_ylabel("robust Nash gap (units of payoff)")
    ax.set_title("Who is robust")
    ax.legend(loc="center", bbox_to_anchor=(0.56, 0.5), fontsize=7)


def _scaling(ax, frame: pd.DataFrame) -> None:
    iterations = _select(frame, "scaling", "iterations")
    _curve(ax, iterations, "simplex iterations, decomposable game", 0, linestyle="none")
    slopes = [
        np.polyfit(np.log(group["x"]), np.log(group["value"]), 1)
        for _, group in iterations.groupby("seed")
    ]
    slope = t_interval([fit[0] for fit in slopes])
    n = np.array(sorted(iterations["x"].unique()))
    ax.plot(
        n,
        np.exp(np.mean([fit[1] for fit in slopes])) * n**slope.value,
        "--",
        color=COLORS[0],
        label=f"fit: slope {slope.value:.2f}",
    )
    equilibria = _select(frame, "hardness", "equilibria")
    _curve(ax, equilibria, "equilibria of a general-sum game", 1)
    visited = _select(frame, "hardness", "vertices")
    _curve(ax, visited, "vertices that enumeration visits", 2)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("actions of each player $n$")
    ax.set_ylabel("count")
    ax.set_title("Linear programs against enumeration")
    ax.legend(loc="upper left", fontsize=7)


def _shortcut(ax, rows: pd.DataFrame) -> None:
    lines = {
        ("shortcut", "state-dependent"): "zero-sum recursion, state-dependent radii",
        ("shortcut", "single-controller"): "the same, one player moves the state",
        ("shortcut", "equal"): "zero-sum recursion, equal radii",
        ("robust", "state-dependent"): "plan, state-dependent radii",
    }
    # The last two lines lie on each other at 0: the wider markers go below.
    sizes = (5, 5, 7, 3)
    for number, ((method, dataset), label) in enumerate(lines.items(), start=1):
        own = rows[(rows["method"] == method) & (rows["dataset"] == dataset)]
        _curve(ax, own, label, number, markersize=sizes[number - 1])
    ax.set_xlabel("scale of the radii (units of payoff)")
    ax.set_ylabel("robust Nash gap (units of payoff)")
    ax.set_title("Where stages are not zero-sum")
    ax.legend(loc="upper left", fontsize=7)
