"""The figure: recovery against size, the plane of (a, b), the course of descent, and the peers."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.common.statistics import t_interval
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import FigureSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

METHODS = {
    "deepwalk": "DeepWalk, k = 1",
    "spectral/normalized": "normalised Laplacian",
    "spectral/adjacency": "adjacency",
    "spectral/regularized": "regularised Laplacian",
    "linear": "power iteration on M",
}
STYLE = {
    method: {"color": color, "marker": marker}
    for method, color, marker in zip(METHODS, COLORS, MARKERS, strict=False)
}


def figure(metrics: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw nine panels, in three rows that are laid out apart."""
    import matplotlib.pyplot as plt

    rows = read_metrics(metrics)
    with figure_style():
        drawn = plt.figure(figsize=(settings.width, settings.height))
        strips = drawn.subfigures(3, 1)
        grids = [
            strips[0].subplots(1, 3),
            strips[1].subplots(1, 3, width_ratios=(1, 1.12, 1)),
            strips[2].subplots(1, 3),
        ]
        axes = [ax for grid in grids for ax in grid]
        _errors(axes[0], rows)
        _exact(axes[1], rows)
        _windows(axes[2], rows)
        _plane(axes[3], rows, "deepwalk")
        image = _plane(axes[4], rows, "spectral/normalized")
        strips[1].colorbar(image, ax=axes[4], label="accuracy")
        _peers(axes[5], rows)
        _alignment(axes[6], rows)
        _lengths(axes[7], rows)
        _histogram(axes[8], rows)
        label_panels(axes)
        # Laid out once for both files.
        drawn.canvas.draw()
        drawn.set_layout_engine("none")
        save_figure(drawn, png, pdf)


def _of(rows: pd.DataFrame, experiment: str, **where: str) -> pd.DataFrame:
    chosen = rows[rows["experiment"] == experiment]
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return chosen


def _with_blocks(rows: pd.DataFrame) -> pd.DataFrame:
    blocks = [BlockModel.parse(name) for name in rows["dataset"]]
    return rows.assign(
        a=[block.a for block in blocks],
        b=[block.b for block in blocks],
        n=[block.n for block in blocks],
    )


def _errors(ax: "Axes", rows: pd.DataFrame) -> None:
    accuracy = _with_blocks(_of(rows, "growth", metric="accuracy"))
    points = sorted({(a, b) for a, b in zip(accuracy["a"], accuracy["b"], strict=True)})
    shown = ("deepwalk", "spectral/normalized", "spectral/adjacency")
    for line, (a, b) in zip(LINES, points, strict=False):
        here = accuracy[(accuracy["a"] == a) & (accuracy["b"] == b)]
        for method in shown:
            groups = here[here["method"] == method].groupby("n")["value"]
            n = groups.mean().index.to_numpy()
            # No error in any graph is drawn as half a node of all their nodes.
            error = np.maximum(1 - groups.mean().to_numpy(), 1 / (2 * n * groups.count()))
            # DeepWalk's marks are hollow and large: the others lie inside them.
            hollow = {"markerfacecolor": "none", "markersize": 7.5, "zorder": 3}
            extra = hollow if method == "deepwalk" else {}
            ax.plot(n, error, linestyle=line, **STYLE[method], **extra)
        ax.plot([], [], color="0.3", linestyle=line, label=f"a = {a:g}, b = {b:g}")
    for method in shown:
        fill = {"markerfacecolor": "none"} if method == "deepwalk" else {}
        ax.plot([], [], linestyle="none", label=METHODS[method], **STYLE[method], **fill)
    ax.set(xscale="log", yscale="log", xlabel="nodes n", ylabel="share of nodes misplaced")
    ax.set_title("Error (none: drawn as half a node)")
    _size_ticks(ax, accuracy["n"])
    ax.set_ylim(top=300)
    ax.set_yticks(10.0 ** np.arange(-6, 1))
    ax.legend(ncols=2, loc="upper center", fontsize=7, columnspacing=1, handlelength=2.8)


def _exact(ax: "Axes", rows: pd.DataFrame) -> None:
    exact = _with_blocks(_of(rows, "growth", metric="exact", method="deepwalk"))
    lost = _with_blocks(_of(rows, "growth", metric="expected_lost", method="theory"))
    points = sorted({(a, b) for a, b in zip(exact["a"], exact["b"], strict=True)}, reverse=True)
    for (a, b), color, marker in zip(points, COLORS, MARKERS, strict=False):
        here = exact[(exact["a"] == a) & (exact["b"] == b)].groupby("n")["value"].mean()
        ax.plot(here.index, here, color=color, marker=marker, label=f"a = {a:g}, b = {b:g}")
        best = lost[(lost["a"] == a) & (lost["b"] == b)].sort_values("n")
        ax.plot(best["n"], np.exp(-best["value"]), color=color, linestyle=":")
    ax.plot([], [], color="0.3", linestyle=":", label="no node lost to any method:\nexp(-expected)")
    ax.set(xscale="log", xlabel="nodes n", ylabel="share of graphs", ylim=(-0.05, 1.08))
    ax.set_title("Exact recovery by DeepWalk, k = 1")
    _size_ticks(ax, exact["n"])
    ax.legend(loc="center right", fontsize=7.5)


def _windows(ax: "Axes", rows: pd.DataFrame) -> None:
    accuracy = _with_blocks(_of(rows, "sparse", metric="accuracy"))
    sizes = sorted(accuracy["n"].unique())
    others = ("spectral/normalized", "spectral/adjacency", "spectral/regularized")
    for n, line, mark in zip(sizes, LINES, (".", "x", "+"), strict=False):
        here = accuracy[accuracy["n"] == n]
        own = here[here["method"].str.fullmatch(r"deepwalk/w\d+")]
        window = own["method"].str.removeprefix("deepwalk/w").astype(int)
        groups = own.groupby(window)["value"]
        ax.plot(groups.mean().index, groups.mean(), linestyle=line, **STYLE["deepwalk"])
        # Every graph: a mean would hide the few that descent leaves unaligned.
        style = {"linestyle": "none", "color": STYLE["deepwalk"]["color"], "alpha": 0.6}
        ax.plot(window, own["value"], marker=mark, markersize=4, **style)
        for method in others:
            mean = here[here["method"] == method]["value"].mean()
            ax.axhline(mean, linestyle=line, color=STYLE[method]["color"], linewidth=1.2)
    for method in ("deepwalk", *others):
        ax.plot([], [], color=STYLE[method]["color"], label=METHODS[method])
    for n, line in zip(sizes, LINES, strict=False):
        ax.plot([], [], color="0.3", linestyle=line, label=f"n = {n}")
    ax.set(xlabel="window w (steps)", ylabel="accuracy", ylim=(0.47, 1.15))
    ax.set_yticks(np.arange(0.5, 1.01, 0.1))
    ax.set_title("Sparse graphs, mean degree 4 to 5")
    ax.legend(ncols=2, loc="upper center", fontsize=7, columnspacing=1)


def _plane(ax: "Axes", rows: pd.DataFrame, method: str) -> "AxesImage":
    accuracy = _with_blocks(_of(rows, "phase", metric="accuracy", method=method))
    plane = accuracy.pivot_table(index="b", columns="a", values="value", aggfunc="mean")
    image = ax.imshow(plane, origin="lower", aspect="auto", vmin=0.5, vmax=1)
    ax.set_xticks(range(len(plane.columns)), [f"{a:g}" for a in plane.columns])
    ax.set_yticks(range(len(plane.index)), [f"{b:g}" for b in plane.index])
    for (i, j), value in np.ndenumerate(plane.to_numpy()):
        if np.isfinite(value):
            text = f"{value:.3f}".removeprefix("0") if value < 0.9995 else "1"
            color = "white" if value < 0.8 else "black"
            ax.text(j, i - 0.2, text, ha="center", va="center", color=color, fontsize=7)
    _threshold_curve(ax, plane)
    ax.set(xlabel="a   (p = a ln(n)/n inside)", ylabel="b   (q = b ln(n)/n between)")
    ax.set_title(f"Accuracy of {METHODS[method]}, n = {accuracy['n'].iloc[0]}")
    ax.grid(False)
    return image


def _threshold_curve(ax: "Axes", plane: pd.DataFrame) -> None:
    """sqrt(a) - sqrt(b) = sqrt(2), in the coordinates of the image's cells."""
    if len(plane.columns) < 2 or len(plane.index) < 2:
        return
    height = np.linspace(-0.5, len(plane.index) - 0.5, 100)
    # Between and beyond the rows, b goes on geometrically, as the rows are spaced.
    log_b = np.log(plane.index.to_numpy())
    b = np.exp(np.poly1d(np.polyfit(np.arange(len(log_b)), log_b, 1))(height))
    a = (np.sqrt(2) + np.sqrt(b)) ** 2
    x = (a - plane.columns[0]) / (plane.columns[1] - plane.columns[0])
    ax.plot(x, height, color=COLORS[1], linewidth=2)
    ax.annotate(
        "exact recovery\npossible", (np.interp(0.5, height, x) + 0.12, 0.5),
        color=COLORS[1], fontsize=7.5, va="center",
    )  # fmt: skip
    ax.set(xlim=(-0.5, len(plane.columns) - 0.5), ylim=(-0.5, len(plane.index) - 0.5))


def _peers(ax: "Axes", rows: pd.DataFrame) -> None:
    accuracy = _with_blocks(_of(rows, "peers", metric="accuracy"))
    accuracy = accuracy[accuracy["n"] == accuracy["n"].max()]
    names = {
        "deepwalk": "exact\nk = 1",
        "word2vec/hierarchical-k1": "hier.\nk = 1",
        "word2vec/hierarchical-k2": "hier.\nk = 2",
        "word2vec/negative-k1": "neg.\nk = 1",
        "word2vec/negative-k2": "neg.\nk = 2",
    }
    groups = sorted(set(accuracy["a"]), reverse=True)
    for number, (a, color, marker) in enumerate(zip(groups, COLORS, MARKERS, strict=False)):
        here = accuracy[accuracy["a"] == a]
        for place, name in enumerate(names):
            interval = t_interval(here[here["method"] == name]["value"].to_numpy())
            x = place + 0.2 * (number - (len(groups) - 1) / 2)
            ax.plot(x, interval.value, color=color, marker=marker)
            ax.plot([x, x], [interval.low, interval.high], color=color, linewidth=1.2)
        ax.plot([], [], color=color, marker=marker, linestyle="none", label=f"a = {a:g}, b = 1")
    ax.set_xticks(range(len(names)), names.values(), fontsize=7.5)
    ax.set(ylabel="accuracy (mean, 95 % interval)", ylim=(0.42, 1.05))
    ax.set_title(f"word2vec, same graphs, n = {accuracy['n'].iloc[0]}")
    ax.legend(loc="lower left", fontsize=7.5)


def _course(rows: pd.DataFrame, metric: str) -> list[pd.DataFrame]:
    chosen = _of(rows, "dynamics", metric=metric).dropna(subset=["x"])
    return [group.sort_values("x") for _, group in chosen.groupby("seed")]


def _alignment(ax: "Axes", rows: pd.DataFrame) -> None:
    for metric, text, color, line in (
        ("alignment", "with the communities", COLORS[0], "-"),
        ("cosine_to_linear", "with the linearised dynamics", COLORS[1], "--"),
    ):
        for number, curve in enumerate(_course(rows, metric)):
            label = text if number == 0 else None
            ax.plot(curve["x"], curve["value"], color=color, linestyle=line, label=label,
                    linewidth=1.1)  # fmt: skip
    predicted = _of(rows, "dynamics", metric="steps_predicted")["value"].mean()
    if np.isfinite(predicted):
        ax.axvline(predicted, color="0.3", linestyle=":", label="aligned, predicted")
    ax.set(xlabel="gradient steps", ylabel="|cosine| of x", ylim=(-0.03, 1.05))
    ax.set_title("The vector turns to the communities")
    ax.legend(loc="center right")


def _lengths(ax: "Axes", rows: pd.DataFrame) -> None:
    for metric, text, color, line in (
        ("length", "length of x (rms)", COLORS[0], "-"),
        ("loss_above_end", "loss above its end", COLORS[2], "-."),
    ):
        for number, curve in enumerate(_course(rows, metric)):
            shown = curve[curve["value"] > 1e-9]
            label = text if number == 0 else None
            ax.plot(shown["x"], shown["value"], color=color, linestyle=line, label=label,
                    linewidth=1.1)  # fmt: skip
    slope = _of(rows, "dynamics", metric="growth_predicted")["value"].mean()
    curves = _course(rows, "length")
    if curves and np.isfinite(slope):
        curve = curves[0]
        short = curve[curve["value"] < 0.1]
        anchor = short.iloc[len(short) // 2]
        steps = short["x"].to_numpy()
        growth = anchor["value"] * slope ** (steps - anchor["x"])
        ax.plot(steps, growth, color="black", linestyle=":", linewidth=2,
                label="predicted growth 1 + ηs")  # fmt: skip
    ax.axhline(0.1, color="0.5", linewidth=0.8)
    ax.annotate("end of the linear phase", (1, 0.1), (-2, 2), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", fontsize=7, color="0.3")  # fmt: skip
    ax.set(xlabel="gradient steps", ylabel="length, loss", yscale="log")
    ax.set_title("Growth, then rest")
    ax.legend(loc="upper right", fontsize=7)


def _histogram(ax: "Axes", rows: pd.DataFrame) -> None:
    chosen = rows[(rows["experiment"] == "dynamics") & rows["metric"].str.startswith("density_")]
    seed = chosen["seed"].min()
    chosen = chosen[chosen["seed"] == seed]
    for (metric, curve), color in zip(chosen.groupby("metric"), COLORS, strict=False):
        width = float(np.diff(curve["x"].to_numpy()[:2])[0])
        community = int(metric.removeprefix("density_")) + 1
        ax.bar(curve["x"], curve["value"], width, color=color, alpha=0.65,
               label=f"community {community}")  # fmt: skip
    s = _of(rows, "dynamics", metric="signal_predicted")["value"].iloc[0]
    place = np.sqrt(np.arctanh(s))
    for x in (-place, place):
        label = r"$\pm\sqrt{\mathrm{artanh}\ s}$" if x > 0 else None
        ax.axvline(x, color="black", linestyle="--", label=label)
    n = BlockModel.parse(chosen["dataset"].iloc[0]).n
    ax.set(xlabel="entry of x (balanced gauge)", ylabel="density of nodes")
    ax.set_title(f"Where descent rests, n = {n}")
    ax.set_ylim(top=1.3 * ax.get_ylim()[1])
    ax.legend(loc="upper center", fontsize=7, ncols=3, frameon=True, columnspacing=0.8,
              handlelength=1.5, handletextpad=0.4)  # fmt: skip


def _size_ticks(ax: "Axes", sizes: pd.Series) -> None:
    """Ticks at round powers of ten only: the sizes themselves would overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.xaxis.set_major_locator(LogLocator(10))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(0.8 * sizes.min(), 1.3 * sizes.max())
