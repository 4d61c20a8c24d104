"""The figure."""

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

_COLOR = {"global": COLORS[1], "local100": COLORS[0], "one_shot": COLORS[2]}
_NAME = {"global": "global updates", "local100": "local, I = 100", "one_shot": "one-shot"}
_LEARNED, _MISSED = 0.5, 0.1


def figure(rows: Path, filters: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw the data model's panels (a-c) and those of CIFAR-10 (d-f)."""
    import matplotlib.pyplot as plt

    frame = read_metrics(rows)
    kernels = load_arrays(filters)
    with figure_style():
        drawn = plt.figure(figsize=(10.5, 6.4))
        axes = drawn.subplots(2, 3)
        _projections(axes[0, 0], frame)
        _threshold(axes[0, 1], frame)
        _clients(axes[0, 2], frame)
        _local_steps(axes[1, 0], frame, "test_accuracy", "test accuracy")
        _local_steps(axes[1, 1], frame, "test_loss", "test loss")
        _filters(axes[1, 2], kernels, settings)
        label_panels(list(axes.flat))
        save_figure(drawn, png, pdf)


def _curve(frame: pd.DataFrame, experiment: str, method: str, metric: str) -> pd.DataFrame:
    """Mean, least and largest over seeds, by x."""
    own = frame[
        (frame["experiment"] == experiment)
        & (frame["method"] == method)
        & (frame["metric"] == metric)
    ]
    return own.groupby("x")["value"].agg(["mean", "min", "max"])


def _projections(ax: "Axes", frame: pd.DataFrame) -> None:
    """Growth of the projections on features, the least learnt of each kind of client."""
    for method in ("global", "local100"):
        for kind, line in (("major", LINES[1]), ("minor", LINES[0])):
            curve = _curve(frame, "s1", method, f"curve_{kind}_projection")
            # A logarithmic axis has no place for a feature that no filter points to.
            curve = curve.clip(lower=1e-2)
            color = _COLOR[method]
            ax.plot(curve.index, curve["mean"], line, color=color, label=f"{_NAME[method]}: {kind}")
            ax.fill_between(curve.index, curve["min"], curve["max"], color=color, alpha=0.15, lw=0)
    ax.axhline(_LEARNED, color="#777777", lw=0.8, ls=":")
    ax.text(
        1,
        _LEARNED * 1.08,
        "learnt",
        color="#555555",
        fontsize=8,
        ha="right",
        va="bottom",
        transform=ax.get_yaxis_transform(),
    )
    ax.axhline(_MISSED, color="#777777", lw=0.8, ls=":")
    ax.text(
        1,
        _MISSED * 1.08,
        "missed below",
        color="#555555",
        fontsize=8,
        ha="right",
        va="bottom",
        transform=ax.get_yaxis_transform(),
    )
    ax.set(yscale="log", xlabel="gradient steps", title="learning the clients' features")
    ax.set_ylabel(r"least of $\max_r\langle w_r, v_k\rangle$ over clients")
    ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.62))


def _threshold(ax: "Axes", frame: pd.DataFrame) -> None:
    """Minor features against the number of local steps relative to the theory's threshold."""
    points = frame[
        (frame["experiment"] == "s2")
        & (frame["metric"] == "minor_projection_by_relative_local_steps")
    ]
    if points.empty:  # the smoke scale has no such runs
        points = frame[frame["metric"] == "minor_projection_by_relative_local_steps"]
        points = points[points["method"].str.startswith("local")]
    methods = sorted(points["method"].unique(), key=lambda name: int(name.removeprefix("local")))
    for method, color, marker in zip(methods, COLORS * 2, MARKERS * 2, strict=False):
        own = points[points["method"] == method]
        ax.plot(
            own["x"],
            own["value"],
            marker,
            color=color,
            ls="none",
            label=f"I = {method.removeprefix('local')}",
        )
    ax.axvline(1, color="#333333", lw=1, ls="--")
    ax.text(1, 0.97, r" $I^*$", transform=ax.get_xaxis_transform(), va="top")
    ax.axhline(_LEARNED, color="#777777", lw=0.8, ls=":")
    ax.set(
        xscale="log",
        xlabel=r"local steps relative to theory, $I/I^*$",
        title="how many local steps it takes",
    )
    ax.set_ylabel(r"$\max_r\langle w_r, v_b\rangle$ of minor features")
    ax.legend(loc="upper left")


def _clients(ax: "Axes", frame: pd.DataFrame) -> None:
    """Test accuracy of every client."""
    methods = ("global", "local100")
    width = 0.8 / len(methods)
    for i, method in enumerate(methods):
        curve = _curve(frame, "s1", method, "client_accuracy")
        x = curve.index + 1 + (i - (len(methods) - 1) / 2) * width
        error = [curve["mean"] - curve["min"], curve["max"] - curve["mean"]]
        ax.bar(x, curve["mean"], width, color=_COLOR[method], label=_NAME[method])
        ax.errorbar(x, curve["mean"], error, fmt="none", ecolor="#333333", elinewidth=0.8)
    ax.axhline(0.5, color="#777777", lw=0.8, ls=":")
    ax.set(
        xlabel="client (minor clients last)",
        ylabel="test accuracy",
        ylim=(0, 1.32),
        title="generalising on every client",
    )
    ax.set_xticks(curve.index + 1)
    ax.set_yticks(np.arange(0, 1.01, 0.25))
    ax.legend(loc="upper center", ncols=2)


def _local_steps(ax: "Axes", frame: pd.DataFrame, metric: str, label: str) -> None:
    """A metric on images against the number of local steps, parallel SGD as a line."""
    images = frame[(frame["dataset"] != "feature_noise") & (frame["metric"] == metric)]
    experiments = list(dict.fromkeys(images["experiment"]))
    for experiment, color, marker in zip(experiments, COLORS * 2, MARKERS * 2, strict=False):
        own = images[images["experiment"] == experiment]
        value = own.groupby("method")["value"].agg(["mean", "min", "max"])
        local = value[value.index.str.startswith("local")]
        steps = local.index.str.removeprefix("local").astype(int).to_numpy()
        order = np.argsort(steps)
        local, steps = local.iloc[order], steps[order]
        error = [local["mean"] - local["min"], local["max"] - local["mean"]]
        ax.errorbar(
            steps,
            local["mean"],
            error,
            color=color,
            marker=marker,
            elinewidth=0.8,
            label=f"{_title(own, experiment)}, local",
        )
        ax.axhline(
            value.loc["parallel", "mean"],
            color=color,
            ls="--",
            lw=1.1,
            label=f"{_title(own, experiment)}, parallel",
        )
    ax.set(
        xscale="log",
        xlabel="local steps I between averages",
        ylabel=label,
        title=f"CIFAR-10: {label}",
    )
    ax.legend()


def _title(own: pd.DataFrame, experiment: str) -> str:
    _, h, rho = own["dataset"].iloc[0].split("_")
    return f"{experiment} (H={h.removeprefix('h')}, ρ={rho.removeprefix('rho')})"


def _filters(ax: "Axes", kernels: dict[str, np.ndarray], settings: FigureSettings) -> None:
    """First-layer filters of one seed, parallel SGD's beside local SGD's."""
    names = [f"{settings.main}.{method}" for method in ("parallel", settings.local)]
    seed = min(name.split(".")[-1] for name in kernels if name.startswith(names[0] + "."))
    grids = [_grid(kernels[f"{name}.{seed}"], settings.filter_gain) for name in names]
    gap = np.ones((grids[0].shape[0], grids[0].shape[1] // 8, 3))
    ax.imshow(np.concatenate([grids[0], gap, grids[1]], axis=1), interpolation="nearest")
    width = grids[0].shape[1]
    for text, centre in (
        ("parallel SGD", width / 2),
        (f"local SGD, I = {settings.local[5:]}", width * 1.5 + gap.shape[1]),
    ):
        ax.text(centre, grids[0].shape[0] * 1.03, text, ha="center", va="top", fontsize=8)
    ax.set_title("first-layer filters (one seed)")
    ax.axis("off")


def _grid(weight: np.ndarray, gain: float) -> np.ndarray:
    """Filters (out, 3, k, k) as one RGB image, sigmoid(gain · weight), white lines between."""
    out, _, k, _ = weight.shape
    columns = int(np.ceil(np.sqrt(out)))
    lines = -(-out // columns)
    shown = np.ones((lines * columns, k + 1, k + 1, 3))
    shown[:out, :k, :k] = 1 / (1 + np.exp(-gain * weight.transpose(0, 2, 3, 1)))
    shown = shown.reshape(lines, columns, k + 1, k + 1, 3).transpose(0, 2, 1, 3, 4)
    return shown.reshape(lines * (k + 1), columns * (k + 1), 3)[:-1, :-1]
