"""The figure of the paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.performative.datasets import OPTIMAL_TOY_RISK, dimension

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "reparam": "reparametrised",
    "reparam_exact_inner": "reparametrised, exact models",
    "direct": "direct, two points",
    "direct/c1": "direct, two points",
    "direct/c4": "direct, two points, steps × 4",
    "direct_one_point": "direct, one point",
    "rgd": "repeated gradient",
    "known_map": "known map (reference, no bandit)",
}
_STYLE = {
    "reparam": (COLORS[0], LINES[0], MARKERS[0]),
    "reparam_exact_inner": (COLORS[5], LINES[1], MARKERS[4]),
    "direct": (COLORS[1], LINES[0], MARKERS[1]),
    "direct/c1": (COLORS[1], LINES[0], MARKERS[1]),
    "direct/c4": (COLORS[4], LINES[1], MARKERS[5]),
    "direct_one_point": (COLORS[2], LINES[2], MARKERS[2]),
    "rgd": (COLORS[3], LINES[1], MARKERS[3]),
    "known_map": (COLORS[6], LINES[3], MARKERS[6]),
}
# Below this an excess risk is drawn on the panel's floor.
_FLOOR = 1e-6


def figure(rows: Path, curves: Path, png: Path, pdf: Path) -> None:
    """Draw the two risks, the toy, excess risk, regret, LearnModel's error, and prices."""
    import matplotlib.pyplot as plt

    values, paths = read_metrics(rows), read_metrics(curves)
    with figure_style():
        canvas, axes = plt.subplots(3, 3, figsize=(12.6, 10.6))
        _risks(axes[0, 0])
        _toy(axes[0, 1], paths, "toy_matched", "Toy, the paper's starts", direct_too="toy_paper")
        _toy(axes[0, 2], paths, "toy_nonconvex", "Toy, starts where PR is not convex")
        _excess(axes[1, 0], paths, "bernoulli_d1", "excess_by_iteration")
        axes[1, 0].set(title="One bit, by outer iterations", xlabel="outer iterations")
        _excess(axes[1, 1], paths, "bernoulli_d1", "excess_by_samples")
        axes[1, 1].set(title="One bit, by samples: all are counted", xlabel="samples")
        _regret_by_samples(axes[1, 2], values)
        _regret_by_dimension(axes[2, 0], values)
        _inner_error(axes[2, 1], values)
        _prices(axes[2, 2], values, paths)
        label_panels(list(axes.flat))
        # One legend serves all panels: a method has the same colour and line everywhere.
        shared = {
            label: handle
            for ax in (axes[0, 1], axes[1, 0], axes[2, 2])
            for handle, label in zip(*_handles(ax), strict=True)
        }
        canvas.legend(shared.values(), shared, loc="outside lower center", ncols=4, fontsize=9)
        save_figure(canvas, png, pdf)


def _risks(ax: "Axes") -> None:
    x = np.linspace(0, 1, 201)
    ax.axvspan(0, 1 / 3, color="#DDDDDD", label="PR not convex (θ < 1/3)")
    ax.plot(x, 2 * x**3 - 2 * x**2, color=COLORS[1], label="PR(θ), of the model")
    ax.plot(x, 2 * x**1.5 - 2 * x, color=COLORS[0], ls="--", label="PR†(φ), of φ = θ²")
    ax.plot(
        [2 / 3, 4 / 9], [OPTIMAL_TOY_RISK] * 2, "o", color=COLORS[6], label="optimum, θ* and φ*"
    )
    ax.set(title="Two views of one risk", xlabel="θ or φ", ylabel="performative risk")
    ax.set(xlim=(0, 1), ylim=(-0.31, 0.12), yticks=[-0.3, -0.2, -0.1, 0])
    ax.legend(loc="upper right")


def _toy(
    ax: "Axes", paths: pd.DataFrame, dataset: str, title: str, direct_too: str | None = None
) -> None:
    for method in ("reparam", "reparam_exact_inner", "direct"):
        line = _mean(paths, dataset, method, "risk")
        color, style, _ = _STYLE[method]
        ax.plot(line.index, line - OPTIMAL_TOY_RISK, color=color, ls=style, label=LABELS[method])
    if direct_too is not None:
        line = _mean(paths, direct_too, "direct", "risk")
        ax.plot(
            line.index,
            line - OPTIMAL_TOY_RISK,
            color=_STYLE["direct"][0],
            ls=":",
            label="direct from θ = φ² (notebook)",
        )
    ax.set(title=title, xlabel="outer iterations", ylabel="excess risk, mean of starts")
    ax.set_yscale("log")


def _excess(ax: "Axes", paths: pd.DataFrame, dataset: str, metric: str) -> None:
    """Mean over seeds; shaded from the smallest to the largest seed."""
    chosen = paths[(paths["dataset"] == dataset) & (paths["metric"] == metric)]
    for method, group in _methods(chosen):
        by_x = group.groupby("x")["value"].agg(["mean", "min", "max"]).clip(lower=_FLOOR)
        color, style, _ = _STYLE[method]
        ax.plot(by_x.index, by_x["mean"], color=color, ls=style, label=LABELS[method])
        ax.fill_between(by_x.index, by_x["min"], by_x["max"], color=color, alpha=0.12, lw=0)
    ax.set(xscale="log", yscale="log", ylabel="excess risk", ylim=(_FLOOR * 0.7, 1))


def _regret_by_samples(ax: "Axes", values: pd.DataFrame) -> None:
    parts = values["metric"].str.extract(r"^regret@(\d+)$")[0]
    chosen = values[parts.notna() & (values["dataset"] == "bernoulli_d1")].assign(
        x=parts.astype(float)
    )
    for method, group in _methods(chosen):
        _points(ax, group, method)
    ours = chosen[chosen["method"] == "reparam"].groupby("x")["value"].mean()
    ends = ours.index[[0, -1]].to_numpy()
    for slope, style, label in ((1, ":", "slope 1"), (5 / 6, "-.", "slope 5/6 (bound)")):
        ax.plot(
            ends,
            1.6 * ours.iloc[0] * (ends / ends[0]) ** slope,
            color="#777777",
            ls=style,
            lw=1,
            label=label,
        )
    ax.set(title="One bit, regret", xlabel="samples N", ylabel="regret R(N)")
    ax.set(xscale="log", yscale="log")
    slopes = [item for item in zip(*_handles(ax), strict=True) if item[1].startswith("slope")]
    ax.legend(*zip(*slopes, strict=True), loc="upper left")


def _regret_by_dimension(ax: "Axes", values: pd.DataFrame) -> None:
    found = values["metric"].str.extract(r"^dim_exponent@(\d+)$")[0].dropna()
    budget = int(found.iloc[0])
    chosen = values[values["metric"] == f"regret@{budget}"]
    chosen = chosen.assign(x=chosen["dataset"].map(dimension)).dropna(subset=["x"])
    for method, group in _methods(chosen):
        _points(ax, group, method)
    dims = np.sort(chosen["x"].unique())
    first = chosen[(chosen["method"] == "reparam") & (chosen["x"] == dims[0])]["value"].mean()
    ax.plot(dims, first * dims / dims[0], color="#777777", ls=":", lw=1, label="slope 1 (bound)")
    ax.set(title=f"Regret at N = {budget:,}", xlabel="dimension d (bits)", ylabel="regret R(N)")
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(dims, [f"{d:.0f}" for d in dims])
    ax.minorticks_off()
    slopes = [item for item in zip(*_handles(ax), strict=True) if item[1].startswith("slope")]
    ax.legend(*zip(*slopes, strict=True), loc="center left", bbox_to_anchor=(0, 0.35))


def _inner_error(ax: "Axes", values: pd.DataFrame) -> None:
    parts = values["metric"].str.extract(r"^inner_error@(\d+)$")[0]
    chosen = values[parts.notna()].assign(x=parts.astype(float))
    for k, (dataset, group) in enumerate(chosen.groupby("dataset", sort=False)):
        by_x = group.groupby("x")["value"].agg(["mean", "min", "max"])
        label = f"d = {dimension(dataset)}"
        ax.errorbar(
            by_x.index,
            by_x["mean"],
            yerr=[by_x["mean"] - by_x["min"], by_x["max"] - by_x["mean"]],
            color=COLORS[k],
            marker=MARKERS[k],
            capsize=2,
            label=label,
        )
    first = chosen[chosen["x"] == chosen["x"].min()].groupby("dataset", sort=False)["value"].mean()
    ends = np.sort(chosen["x"].unique())[[0, -1]]
    ax.plot(
        ends,
        0.7 * first.iloc[0] * (ends / ends[0]) ** -0.5,
        color="#777777",
        ls=":",
        lw=1,
        label="slope -1/2",
    )
    ax.set(title="LearnModel", xlabel="inner steps S", ylabel="rms error of the induced φ")
    ax.set(xscale="log", yscale="log")
    ax.legend(loc="upper right")


def _prices(ax: "Axes", values: pd.DataFrame, paths: pd.DataFrame) -> None:
    own = values[(values["dataset"] == "movielens") & (values["method"] == "reparam")]
    last = own[own["metric"].str.startswith("revenue@")]["metric"].iloc[-1].split("@")[1]
    at = own.set_index(["metric", "seed"])["value"]
    best = float((at[f"revenue@{last}"] + at[f"excess_final@{last}"]).iloc[0])
    relative = paths[paths["dataset"] == "movielens"]
    _excess(ax, relative.assign(value=relative["value"] / best), "movielens", "excess_by_samples")
    ax.set(
        title=f"MovieLens prices (best revenue: {best:.3f} a customer)",
        xlabel="samples",
        ylabel="lost share of the best revenue",
        ylim=(1e-4, 1.5),
    )


def _points(ax: "Axes", group: pd.DataFrame, method: str) -> None:
    by_x = group.groupby("x")["value"].agg(["mean", "min", "max"])
    color, style, marker = _STYLE[method]
    ax.errorbar(
        by_x.index,
        by_x["mean"],
        yerr=[by_x["mean"] - by_x["min"], by_x["max"] - by_x["mean"]],
        color=color,
        ls=style,
        marker=marker,
        capsize=2,
        label=LABELS[method],
    )


def _mean(paths: pd.DataFrame, dataset: str, method: str, metric: str) -> pd.Series:
    chosen = paths[
        (paths["dataset"] == dataset) & (paths["method"] == method) & (paths["metric"] == metric)
    ]
    return chosen.groupby("x")["value"].mean()


def _methods(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The methods that the frame has, in the order of the legend."""
    for method in LABELS:
        group = frame[frame["method"] == method]
        if len(group):
            yield method, group


def _handles(ax: "Axes") -> tuple[list, list]:
    return ax.get_legend_handles_labels()
