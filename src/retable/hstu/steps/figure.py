"""The figure: learning curves, the synthetic stream, arithmetic against length, scaling."""

from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.hstu.config import FigureSettings
from retable.hstu.cost import layer_flops
from retable.hstu.lengths import expected_cost

NAMES = {
    "hstu": "HSTU",
    "hstu-large": "HSTU-large",
    "hstu-softmax": "HSTU, softmax",
    "sasrec": "SASRec",
    "gru4rec": "GRU4Rec",
    "transformer": "Transformer",
}
COLOR = dict(zip(("hstu", "sasrec", "hstu-large", "gru4rec", "hstu-softmax"), COLORS, strict=False))
COLOR["transformer"] = COLOR["sasrec"]


def figure(all_rows: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw four panels: (a) learning curves, (b) stream, (c) operations, (d) scaling."""
    import matplotlib.pyplot as plt

    rows = read_metrics(all_rows)
    with figure_style():
        drawn, axes = plt.subplots(2, 2, figsize=(9, 6.8))
        _curves(axes[0, 0], rows)
        _stream(axes[0, 1], rows)
        _operations(axes[1, 0], settings)
        _scaling(axes[1, 1], rows)
        label_panels(list(axes.flat))
        save_figure(drawn, png, pdf)


def _curves(ax, rows: pd.DataFrame) -> None:
    part = rows[(rows["experiment"] == "public") & (rows["metric"] == "validation NDCG@10")]
    dataset = part["dataset"].iloc[0]
    part = part[part["dataset"] == dataset]
    for method, line, marker in zip(
        [m for m in NAMES if m in set(part["method"])], LINES, MARKERS, strict=False
    ):
        over = part[part["method"] == method].groupby("x")["value"]
        x, mean = over.mean().index.to_numpy(), over.mean().to_numpy()
        ax.plot(x, mean, line, marker=marker, color=COLOR[method], label=NAMES[method])
        ax.fill_between(x, over.min(), over.max(), color=COLOR[method], alpha=0.15, lw=0)
    ax.set(
        title=f"Learning curves on {dataset} (band: range over seeds)",
        xlabel="epoch",
        ylabel="validation NDCG@10",
    )
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(loc="lower right")


def _stream(ax, rows: pd.DataFrame) -> None:
    part = rows[(rows["experiment"] == "stream") & rows["x"].isna()]
    methods = ["transformer", "hstu-softmax", "hstu"]
    oracle = part[part["method"] == "oracle"]
    width = 0.26
    metrics = ["HR@10", "HR@50"]
    for k, method in enumerate(methods):
        over = part[part["method"] == method].groupby("metric")["value"]
        mean, spread = over.mean()[metrics], over.std()[metrics].fillna(0)
        ax.bar(
            np.arange(2) + (k - 1) * width,
            mean,
            width,
            yerr=spread,
            color=COLOR[method],
            label=NAMES[method],
            error_kw={"lw": 1},
            hatch=("", "///", "...")[k],
            edgecolor="white",
        )
    for k, metric in enumerate(metrics):
        ax.hlines(
            oracle[oracle["metric"] == metric]["value"].mean(),
            k - 0.45,
            k + 0.45,
            color="black",
            ls="--",
            label="Bayes-optimal" if k == 0 else None,
        )
    ax.set_xticks(range(2), metrics)
    ax.set(
        title="Synthetic stream, one pass (error bars: std over seeds)",
        ylabel="hit rate, all items compete",
    )
    ax.legend(loc="upper left")


def _operations(ax, settings: FigureSettings) -> None:
    """Forward operations of a Transformer layer over those of an HSTU layer, as counted."""
    d, h = settings.d_model, settings.n_heads

    def flops(kind: str, n: int) -> float:
        return layer_flops(kind, n, d, h)

    lengths = 2 ** np.arange(8, 15)
    ax.axhline(1, color="#666666", lw=1)
    for alpha, line, marker, color in zip(
        (2.0, 1.8, 1.6), LINES, MARKERS, (COLORS[6], COLORS[4], COLORS[0]), strict=False
    ):
        ratio = [
            flops("transformer", n)
            / expected_cost(int(n), alpha, lambda length: flops("hstu", length))
            for n in lengths
        ]
        label = "no Stochastic Length" if alpha == 2 else rf"Stochastic Length, $\alpha$ = {alpha}"
        ax.plot(lengths, ratio, line, marker=marker, color=color, label=label)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set(
        title=f"Operations of one layer (d = {d}, {h} heads)",
        xlabel="events of a user, n",
        ylabel="Transformer / HSTU, operations",
    )
    ax.legend(loc="upper left")


def _scaling(ax, rows: pd.DataFrame) -> None:
    part = rows[rows["experiment"] == "scaling"]
    points = part[part["metric"] == "excess loss"]
    fixed = part[part["method"] == "oracle"].groupby("metric")["value"].mean()
    order = points.groupby("method")["x"].max().sort_values().index
    for method, marker, color in zip(order, MARKERS, COLORS, strict=False):
        over = points[points["method"] == method].groupby("x")["value"]
        mean = over.mean()
        ax.plot(
            mean.index,
            mean,
            "-",
            marker=marker,
            color=color,
            label=f"HSTU, {method.replace('x', ' wide, ').replace('hstu-', '')} deep",
        )
        ax.fill_between(mean.index, over.min(), over.max(), color=color, alpha=0.15, lw=0)
    ax.axhline(fixed["guess"] - fixed["loss"], color="#666666", ls=":", label="guessing (ln V)")
    fit = part[part["method"] == "envelope"].groupby("metric")["value"].mean()
    if len(fit):
        span = points["x"].max() / np.array([10 ** fit["span of the fit (decades)"], 1])
        ax.plot(
            span,
            10 ** (fit["intercept of the fit"] + fit["slope of the fit"] * np.log10(span)),
            "k--",
            lw=1,
            label=f"fit, slope {fit['slope of the fit']:.2f}",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set(
        title="Scaling on the stream (band: range over seeds)",
        xlabel="training operations",
        ylabel="test loss above the oracle's (nats)",
    )
    ax.legend(loc="lower left")


def speed(times: Path, png: Path, pdf: Path) -> None:
    """Draw the measured ratios of times against length, every repeat and the median."""
    import matplotlib.pyplot as plt

    rows = read_metrics(times)
    rows = rows[(rows["metric"] == "cpu time ratio") & rows["method"].str.startswith("transf")]
    with figure_style():
        drawn, ax = plt.subplots(figsize=(5, 3.6))
        ax.axhline(1, color="#666666", lw=1)
        for (method, part), line, marker, color in zip(
            rows.groupby("method", sort=False), LINES, MARKERS, COLORS, strict=False
        ):
            n = part["dataset"].str.removeprefix("n=").astype(int)
            median = part["value"].groupby(n).median()
            label = method.replace("transformer", "Transformer").replace("hstu", "HSTU")
            ax.plot(median.index, median, line, marker=marker, color=color, label=label)
            ax.plot(n, part["value"], ".", color=color, alpha=0.4, ms=3)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:.0f}")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set(
            title="One layer, forward and backward, one thread",
            xlabel="events of a user, n",
            ylabel="ratio of processor times",
        )
        ax.legend()
        save_figure(drawn, png, pdf)
