"""The figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.data.arrays import load_arrays
from retable.common.figures import (
    COLORS,
    LINES,
    MARKERS,
    figure_style,
    label_panels,
    save_figure,
)
from retable.common.metrics import read_metrics
from retable.fedlocal.config import FigureSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_COLOR = {"global": COLORS[1], "local100": COLORS[0]}
_NAME = {"global": "global", "local100": "local, I = 100"}
_LEARNED, _MISSED = 0.5, 0.1


def figure(rows: Path, filters: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw the data model's panels (a-c) and those of CIFAR-10 (d-f)."""
    import matplotlib.pyplot as plt

    frame = read_metrics(rows)
    with figure_style():
        drawn = plt.figure(figsize=(10.5, 7.0))
        grid = drawn.add_gridspec(2, 3)
        axes = [drawn.add_subplot(grid[i]) for i in range(5)]
        _projections(axes[0], frame)
        _threshold(axes[1], frame)
        _clients(axes[2], frame)
        _local_steps(axes[3], frame, "test_accuracy", "test accuracy")
        _local_steps(axes[4], frame, "test_loss", "test loss")
        stacked = grid[5].subgridspec(2, 1)
        shown = [drawn.add_subplot(stacked[i]) for i in range(2)]
        _filters(shown, load_arrays(filters), settings)
        label_panels([*axes, shown[0]])
        # Columns are filled from above: each holds the two entries of an experiment.
        entries = sorted(zip(*axes[3].get_legend_handles_labels()[::-1], strict=True))
        labels, handles = zip(*entries, strict=True)
        columns = min(4, len(labels) // 2)
        drawn.legend(handles, labels, loc="outside lower center", ncols=columns, title="(d), (e)")
        save_figure(drawn, png, pdf)


def _of(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    return frame[(frame[list(wanted)] == pd.Series(wanted)).all(axis=1)]


def _curve(frame: pd.DataFrame, method: str, metric: str) -> pd.DataFrame:
    """Mean, least and largest over the seeds of s1, by x."""
    own = _of(frame, experiment="s1", method=method, metric=metric)
    return own.groupby("x")["value"].agg(["mean", "min", "max"])


def _level(ax: "Axes", value: float, text: str, va: str) -> None:
    """A dotted line over the whole width, named at its right end."""
    ax.axhline(value, color="#777777", lw=0.8, ls=":")
    place = ax.get_yaxis_transform()
    ax.text(1, value, text, color="#555555", fontsize=8, ha="right", va=va, transform=place)


def _plain_ticks(axis: "Axis", ticks: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def _projections(ax: "Axes", frame: pd.DataFrame) -> None:
    """Growth of the projections on features, the least learnt of each kind of client."""
    for method in ("global", "local100"):
        for kind, line in (("major", LINES[1]), ("minor", LINES[0])):
            # A logarithmic axis has no place for a feature that no filter points to.
            curve = _curve(frame, method, f"curve_{kind}_projection").clip(lower=1e-2)
            color = _COLOR[method]
            label = f"{_NAME[method]}: {kind} clients"
            ax.plot(curve.index, curve["mean"], line, color=color, label=label)
            ax.fill_between(curve.index, curve["min"], curve["max"], color=color, alpha=0.15, lw=0)
    ax.set(yscale="log", ylim=(0.02, 30), xlabel="gradient steps", title="learning the features")
    ax.set_ylabel(r"least $\max_r\,\langle w_r, v_k\rangle$ over clients $k$")
    _level(ax, _LEARNED, "learnt", "bottom")
    _level(ax, _MISSED, "missed", "top")
    _plain_ticks(ax.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2])
    ax.legend(loc="upper right")


def _threshold(ax: "Axes", frame: pd.DataFrame) -> None:
    """Minor features against the number of local steps relative to the theory's threshold."""
    metric = "minor_projection_by_relative_local_steps"
    points = frame[(frame["metric"] == metric) & frame["method"].str.startswith("local")]
    # The smallest scale has no runs for this question alone.
    experiment = "s2" if "s2" in set(points["experiment"]) else "s1"
    points = points[points["experiment"] == experiment]
    methods = sorted(points["method"].unique(), key=lambda name: int(name.removeprefix("local")))
    for method, color, marker in zip(methods, COLORS * 2, MARKERS * 2, strict=False):
        own = points[points["method"] == method]
        label = f"I = {method.removeprefix('local')}"
        ax.plot(own["x"], own["value"], marker, color=color, ls="none", label=label)
    ax.axvline(1, color="#333333", lw=1, ls="--")
    ax.set(xscale="log", title="how many local steps it takes", ylim=(0, None))
    ax.set_xlabel(r"local steps relative to theory's threshold, $I/I^*$")
    ax.set_ylabel(r"$\max_r\,\langle w_r, v_b\rangle$, each minor client $b$")
    _level(ax, _LEARNED, "learnt", "bottom")
    low, high = np.log2([points["x"].min(), points["x"].max()])
    _plain_ticks(ax.xaxis, [2.0**i for i in range(int(np.ceil(low)), int(np.floor(high)) + 1)])
    ax.legend(loc="upper right")


def _clients(ax: "Axes", frame: pd.DataFrame) -> None:
    """Test accuracy of every client."""
    methods = ("global", "local100")
    width = 0.8 / len(methods)
    for i, method in enumerate(methods):
        curve = _curve(frame, method, "client_accuracy")
        x = curve.index + 1 + (i - (len(methods) - 1) / 2) * width
        error = [curve["mean"] - curve["min"], curve["max"] - curve["mean"]]
        ax.bar(x, curve["mean"], width, color=_COLOR[method], label=_NAME[method])
        ax.errorbar(x, curve["mean"], error, fmt="none", ecolor="#333333", elinewidth=0.8)
    ax.axhline(0.5, color="#333333", lw=0.8, ls=":", label="chance")
    ax.set(xlabel="client (minor clients last)", ylabel="test accuracy", ylim=(0, 1.25))
    ax.set_title("generalising on every client")
    ax.grid(visible=False, axis="x")
    ax.set_xticks(curve.index + 1)
    ax.set_yticks(np.arange(0, 1.01, 0.25))
    ax.legend(loc="upper center", ncols=3, columnspacing=1, handlelength=1.4)


def _local_steps(ax: "Axes", frame: pd.DataFrame, metric: str, label: str) -> None:
    """A metric on images against the number of local steps, parallel SGD as a line."""
    images = frame[frame["dataset"] != "feature_noise"]
    experiments = list(dict.fromkeys(images["experiment"]))
    ticks = set()
    for experiment, color, marker in zip(experiments, COLORS * 2, MARKERS * 2, strict=False):
        own = images[images["experiment"] == experiment]
        value = _of(own, metric=metric).groupby("method")["value"].agg(["mean", "min", "max"])
        total = int(own["x"].max())
        steps = {
            name: total if name == "one_shot" else int(name.removeprefix("local"))
            for name in value.index
            if not name.startswith("parallel")
        }
        local = value.loc[sorted(steps, key=steps.get)]
        x = sorted(steps.values())
        ticks |= set(x)
        error = [local["mean"] - local["min"], local["max"] - local["mean"]]
        title = _title(own, experiment)
        ax.errorbar(
            x,
            local["mean"],
            error,
            color=color,
            marker=marker,
            elinewidth=0.8,
            label=f"{title}: local SGD",
        )
        parallel = value.loc["parallel", "mean"]
        ax.axhline(parallel, color=color, ls="--", lw=1.1, label=f"{title}: parallel SGD")
    ax.set(xscale="log", ylabel=label, title=f"CIFAR-10: {label}")
    ax.set_xlabel("local steps I between averages")
    _plain_ticks(ax.xaxis, sorted(ticks))


def _title(own: pd.DataFrame, experiment: str) -> str:
    _, h, rho = own["dataset"].iloc[0].split("_")
    return f"{experiment} (H = {h.removeprefix('h')}, ρ = {rho.removeprefix('rho')})"


def _filters(axes: "list[Axes]", kernels: dict[str, np.ndarray], settings: FigureSettings) -> None:
    """First-layer filters of one seed, parallel SGD's above local SGD's."""
    names = [f"{settings.main}.{method}" for method in ("parallel", settings.local)]
    seed = min(int(name.split(".")[-1]) for name in kernels if name.startswith(names[0] + "."))
    titles = ("parallel SGD", f"local SGD, I = {settings.local.removeprefix('local')}")
    for ax, name, title in zip(axes, names, titles, strict=True):
        ax.imshow(_grid(kernels[f"{name}.{seed}"], settings.filter_gain), interpolation="nearest")
        ax.set_title(f"first-layer filters, {title}")
        ax.axis("off")


def _grid(weight: np.ndarray, gain: float) -> np.ndarray:
    """Filters (out, 3, k, k) as one RGB image, sigmoid(gain · weight), white lines between."""
    out, _, k, _ = weight.shape
    columns = int(np.ceil(np.sqrt(3 * out)))  # wider than high: two grids share a panel
    lines = -(-out // columns)
    shown = np.ones((lines * columns, k + 1, k + 1, 3))
    shown[:out, :k, :k] = 1 / (1 + np.exp(-gain * weight.transpose(0, 2, 3, 1)))
    shown = shown.reshape(lines, columns, k + 1, k + 1, 3).transpose(0, 2, 1, 3, 4)
    return shown.reshape(lines * (k + 1), columns * (k + 1), 3)[:-1, :-1]
