"""The figure: orders, coefficients, trajectories, norms and accuracies."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.adambias.config import FigureSettings, parse_method
from retable.common.data.arrays import load_arrays
from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.common.tables import aggregate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, PINK = COLORS[:4]
FLOWS = {"error_plain": ("plain flow", ORANGE), "error_corrected": ("corrected flow", BLUE)}
STYLES = {"order": "-", "order_shown": ":"}
NAMES = {"mnist14": "MNIST 14×14", "cifar16": "CIFAR-10 16×16"}
# Parts of the names of the data sets at the paper's scale; others stand as they are.
PARTS = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "eurosat": "EuroSAT",
    "resnet50": "ResNet-50",
    "resnet101": "ResNet-101",
    "cnn": "CNN",
    "vit": "ViT",
    "uncorrected": "no bias correction",
    "outside": "ε outside",
    "squares": "squared error",
}
# What is drawn of a sweep: the metric's beginning, its name in the title, the axis, its factor.
NORM = ("one_norm@", "one-norm", "‖∇E‖₁ at equal training loss", 1.0)
ACCURACY = ("test_accuracy@", "accuracy", "test accuracy at equal loss (%)", 100.0)
Sweep = tuple[str, str, float]  # data set, which of rho and beta is swept, the other's value
ACCURACY_LEVELS = {"mnist14": "0.2", "cifar16": "1"}


def figure(rows: Path, paths: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw what `rows` and `paths` hold; a panel without data says so.

    Four rows of panels; where further data sets were trained, as at the paper's scale, two rows
    follow for every three of their sweeps.
    """
    import matplotlib.pyplot as plt

    frame = read_metrics(rows)
    arrays = load_arrays(paths)
    with figure_style():
        small: list[Sweep] = [
            ("mnist14", "rho", settings.beta),
            ("mnist14", "beta", settings.rho),
            ("cifar16", "beta", settings.rho_cifar),
        ]
        sweeps = small + list(_further_sweeps(frame))
        lines = 2 + 2 * -(-len(sweeps) // 3)
        size = settings.width, settings.height * lines / 4
        drawn, axes = plt.subplots(lines, 3, figsize=size)
        _orders(axes[0, 0], frame, ("bilinear", "batches"), "Toy problems: error of the flows")
        _orders(axes[0, 1], frame, ("mnist49",), "Network, MNIST 7×7: error of the flows")
        _coefficients(axes[0, 2], frame)
        for number, ax in enumerate(axes[1, :2]):
            _paths(ax, arrays, number)
        _accuracies(axes[1, 2], frame)
        for index, sweep in enumerate(sweeps):
            row, column = 2 + 2 * (index // 3), index % 3
            _sweep(axes[row, column], frame, sweep, NORM)
            _sweep(axes[row + 1, column], frame, sweep, ACCURACY)
        for ax in axes.flat:
            if not ax.get_title():  # the last sweeps leave panels over
                ax.set_axis_off()
        label_panels(list(axes[:4].flat))
        save_figure(drawn, png, pdf)


def _say_empty(ax: "Axes") -> None:
    ax.text(0.5, 0.5, "not run at this scale", transform=ax.transAxes, ha="center", va="center")
    ax.set_xticks([])
    ax.set_yticks([])


def _orders(ax: "Axes", frame: pd.DataFrame, datasets: tuple[str, ...], title: str) -> None:
    """Error against step size, one line a case (mean over seeds), and slopes 1 and 2 to compare."""
    ax.set_title(title)
    errors = frame[frame["dataset"].isin(datasets) & frame["metric"].isin(FLOWS)]
    if errors.empty:
        _say_empty(ax)
        return
    for (experiment, method, metric), group in errors.groupby(["experiment", "method", "metric"]):
        curve = group.groupby("x")["value"].mean()
        marker = "s" if method == "gd" else "o"
        color = FLOWS[str(metric)][1]
        ax.loglog(curve.index, curve, STYLES[str(experiment)], marker=marker, ms=3, lw=1, c=color)
    h = np.array([errors["x"].min(), errors["x"].max()])
    top, bottom = errors["value"].max() * 2.0, errors["value"].min() / 2.0
    for slope, anchor, at in ((1, top, -1), (2, bottom, 0)):
        guide = anchor * (h / h[at]) ** slope
        ax.loglog(h, guide, "--", color="#555555", lw=1)
        ax.annotate(
            f"slope {slope}",
            (h[at], anchor),
            xytext=(-4 if at else 4, 3 if at else -4),
            textcoords="offset points",
            ha="right" if at else "left",
            va="bottom" if at else "top",
            fontsize=7,
            color="#555555",
        )
    handles = [ax.plot([], [], color=color, marker="o", ms=3)[0] for _, color in FLOWS.values()]
    labels = [label for label, _ in FLOWS.values()]
    if (errors["method"] == "gd").any():
        handles.append(ax.plot([], [], "s", color="#555555", ms=3)[0])
        labels.append("gradient descent")
    if (errors["experiment"] == "order_shown").any():
        handles.append(ax.plot([], [], ":", color="#555555")[0])
        labels.append("not yet asymptotic")
    ax.margins(y=0.12)
    low, high = ax.get_ylim()
    ax.set_ylim(low / 100, high)  # room for the legend
    ax.legend(handles, labels, loc="lower right", ncols=2, fontsize=7)
    # Step sizes are halved from one to the next: these are the ticks.
    ticks = np.geomspace(h[0], h[1], 1 + round(np.log2(h[1] / h[0])))
    ax.set_xticks(ticks, [f"{tick * 1e3:.3g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("step size h (thousandths)")
    ax.set_ylabel("max distance to the iterates")


def _coefficients(ax: "Axes", frame: pd.DataFrame) -> None:
    """Measured coefficient κ against the theory's, on the bilinear problem."""
    ax.set_title("Bias coefficient of Adam")
    fits = frame[(frame["dataset"] == "bilinear") & (frame["experiment"] == "defect")]
    wide = fits.pivot(index="method", columns="metric", values="value")
    ends = wide["kappa_theory"].min() - 4, wide["kappa_theory"].max() + 4
    ax.plot(ends, ends, color="#555555", lw=1, label="measured = theory")
    for index, (method, fit) in enumerate(wide.iterrows()):
        beta, rho, eps = parse_method(str(method))
        ax.plot(
            fit["kappa_theory"],
            fit["kappa"],
            MARKERS[index],
            color=COLORS[index],
            ms=6,
            label=f"β={beta:g}, ρ={rho:g}, ε={eps:g}",
        )
    ax.axhline(0, color="#AAAAAA", lw=0.8)
    ax.axvline(0, color="#AAAAAA", lw=0.8)
    ax.set_xlabel("κ by the theory")
    ax.set_ylabel("κ measured from steps")
    ax.legend(loc="upper left", fontsize=7)


def _paths(ax: "Axes", arrays: Mapping[str, np.ndarray], number: int) -> None:
    """Iterates and flows, with marks every 20 steps, over the level sets of the one-norm."""
    beta, rho, eps, h = arrays[f"setting{number}"]
    ax.set_title(f"Bilinear: β={beta:g}, ρ={rho:g}, ε={eps:g}, h={h:g}")
    levels = np.geomspace(1.0, arrays["one_norm"].max(), 9)
    ax.contour(
        arrays["theta1"],
        arrays["theta2"],
        arrays["one_norm"],
        levels,
        colors="#BBBBBB",
        linewidths=0.7,
    )
    # Marks at equal times: along a path that hardly bends, the flows differ in speed.
    marks = {"marker": "o", "markevery": 20}
    adam, plain, corrected = (arrays[f"{n}{number}"].T for n in ("adam", "plain", "corrected"))
    ax.plot(*adam, "-", color="black", ms=7, lw=2.2, label="Adam", **marks)
    ax.plot(*plain, "--", color=ORANGE, ms=4.5, lw=1.2, label="plain flow", **marks)
    ax.plot(*corrected, "-", color=BLUE, ms=4, lw=1, label="corrected flow", **marks)
    ax.plot([], [], color="#BBBBBB", lw=0.7, label="levels of ‖∇E‖₁")
    path = np.concatenate([adam, plain, corrected], axis=1)
    low, high = path.min(1), path.max(1)
    pad = 0.06 * (high - low)
    ax.set_xlim(low[0] - pad[0], high[0] + pad[0])
    ax.set_ylim(low[1] - pad[1], high[1] + pad[1])
    ax.grid(False)
    ax.set_xlabel("θ₁")
    ax.set_ylabel("θ₂")
    ax.legend(loc="upper left", fontsize=7)


def _further_sweeps(frame: pd.DataFrame) -> Iterator[Sweep]:
    """Of each further data set: where one of β and ρ took several values and the other stood."""
    trained = frame[(frame["experiment"] == "sweep") & ~frame["dataset"].isin(NAMES)]
    for dataset, group in trained.groupby("dataset", sort=False):
        settings = [parse_method(name) for name in group["method"].unique()]
        pairs = pd.DataFrame(settings, columns=["beta", "rho", "eps"])
        pairs = pairs[pairs["eps"].isna()]
        for axis, other in (("rho", "beta"), ("beta", "rho")):
            for fixed, swept in pairs.groupby(other)[axis]:
                if len(swept) > 1:
                    yield str(dataset), axis, float(fixed)


def _name(dataset: str) -> str:
    parts = [part for part in dataset.split("-") if part not in ("rho", "beta")]
    return NAMES.get(dataset, ", ".join(PARTS.get(part, part) for part in parts))


def _sweep(
    ax: "Axes", frame: pd.DataFrame, sweep: Sweep, quantity: tuple[str, str, str, float]
) -> None:
    """A quantity at equal training loss against β or ρ, the other one fixed; 95 % intervals."""
    dataset, axis, fixed = sweep
    prefix, what, label, factor = quantity
    symbol, other = ("ρ", "β") if axis == "rho" else ("β", "ρ")
    separator = ": " if dataset in NAMES else "\n"
    ax.set_title(f"{_name(dataset)}{separator}{what}, {other}={fixed:g}")
    found = frame[
        (frame["dataset"] == dataset)
        & frame["metric"].str.startswith(prefix)
        & frame["value"].notna()
    ]
    points = []
    for row in aggregate(found).itertuples() if len(found) else ():
        beta, rho, eps = parse_method(row.method)
        swept, kept = (rho, beta) if axis == "rho" else (beta, rho)
        if kept == fixed and eps is None:
            level = float(row.metric.split("@")[1])
            points.append((level, swept, *(factor * np.array([row.mean, row.ci_low, row.ci_high]))))
    if not points:
        _say_empty(ax)
        return
    table = pd.DataFrame(points, columns=["level", "swept", "mean", "low", "high"])
    ticks = sorted(table["swept"].unique())
    for index, (level, group) in enumerate(table.groupby("level", sort=False)):
        group = group.sort_values("swept")
        spread = np.abs(group[["low", "high"]].to_numpy().T - group["mean"].to_numpy())
        ax.errorbar(
            [ticks.index(value) for value in group["swept"]],
            group["mean"],
            spread,
            fmt=LINES[index] + MARKERS[index],
            color=COLORS[index],
            capsize=2.5,
            ms=4,
            label=f"loss {level:g}",
        )
    ax.set_xticks(range(len(ticks)), [f"{value:g}" for value in ticks])
    if quantity is NORM:
        ax.set_yscale("log")
        _plain_ticks(ax)
    ax.set_xlabel(symbol)
    ax.set_ylabel(label)
    ax.margins(y=0.25)
    ax.legend(
        ncols=len(table["level"].unique()),
        loc="upper center",
        fontsize=7,
        columnspacing=1.0,
        handlelength=1.6,
        handletextpad=0.4,
    )


def _plain_ticks(ax: "Axes") -> None:
    """Numbers as they are spoken on a logarithmic axis that spans about one decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _accuracies(ax: "Axes", frame: pd.DataFrame) -> None:
    """Test accuracy against one-norm at equal loss, each seed's settings around their mean."""
    ax.set_title("Generalisation at equal training loss")
    for index, (dataset, level) in enumerate(ACCURACY_LEVELS.items()):
        names = [f"one_norm@{level}", f"test_accuracy@{level}"]
        own = frame[(frame["dataset"] == dataset) & frame["metric"].isin(names)]
        own = own[own["method"].map(lambda name: parse_method(name)[2] is None).astype(bool)]
        wide = own.pivot(index=["seed", "method"], columns="metric", values="value").dropna()
        if wide.empty:
            continue
        norm = np.log(wide[names[0]])
        norm = norm - norm.groupby("seed").transform("mean")
        accuracy = 100.0 * wide[names[1]]
        accuracy = accuracy - accuracy.groupby("seed").transform("mean")
        ax.plot(
            norm,
            accuracy,
            MARKERS[index],
            color=COLORS[index],
            alpha=0.75,
            label=f"{NAMES[dataset]}, loss {level}",
        )
        slope = float(norm @ accuracy / (norm @ norm))
        ends = np.array([norm.min(), norm.max()])
        ax.plot(ends, slope * ends, LINES[index], color=COLORS[index], lw=1)
    if not ax.lines:
        _say_empty(ax)
        return
    ax.set_xlabel("log ‖∇E‖₁, minus its mean over settings")
    ax.set_ylabel("test accuracy minus its mean (points)")
    ax.margins(y=0.2)
    ax.legend(loc="upper left", fontsize=7)
