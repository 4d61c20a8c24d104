"""Four panels: accuracies, learned against exact entropy, training curves, one graph's packing."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.common.data.arrays import load_arrays
from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.common.statistics import t_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {
    "untrained": "untrained",
    "gemax": "GeMax",
    "gemax_gcn": "GeMax, GCN",
    "infograph": "InfoGraph",
    "graphcl": "GraphCL",
    "graphcl_gemax": "GraphCL, GeMax loss",
    "autogcl": "AutoGCL",
    "autogcl_gemax": "AutoGCL, GeMax loss",
    "wl": "WL kernel",
    "graphlet": "graphlet kernel",
    "histogram": "counts",
}
_TITLES = {"mutag": "MUTAG", "b3db": "B3DB", "cuneiform": "Cuneiform", "solubility": "solubility"}
_CURVES = {
    "entropy": "$H_k$ (nats)",
    "orthogonality": r"$L_\mathrm{orth}$",
    "packing": r"$L_\mathrm{svp}$",
}


def figure(rows: Path, graphs: Path, values: Path, png: Path, pdf: Path) -> None:
    """Draw the figure; the entropies are those of the first seed."""
    import matplotlib.pyplot as plt

    frame, entropies, structure = read_metrics(rows), load_arrays(values), load_arrays(graphs)
    seed = min(int(name.split(".")[1]) for name in entropies)
    dataset = frame.loc[frame["experiment"] == "entropy", "dataset"].iloc[0]
    with figure_style():
        fig, axes = plt.subplot_mosaic(
            [
                ["accuracies", "accuracies", "scatter", "scatter"],
                ["curves", "curves", "a", "exact"],
            ],
            figsize=(10.4, 7.6),
        )
        accuracies, scatter, curves = (axes[name] for name in ("accuracies", "scatter", "curves"))
        packings = [axes["a"], axes["exact"]]
        _draw_accuracies(accuracies, frame)
        _draw_entropies(scatter, entropies, seed, _TITLES.get(dataset, dataset))
        _draw_curves(curves, frame[frame["dataset"] == dataset], _TITLES.get(dataset, dataset))
        _draw_packing(fig, packings, structure, entropies, seed)
        label_panels([accuracies, scatter, curves, packings[0]])
        save_figure(fig, png, pdf)


def _draw_accuracies(ax: "Axes", frame: pd.DataFrame) -> None:
    shown = frame[(frame["experiment"] == "unsupervised") & (frame["metric"] == "accuracy")]
    datasets = list(dict.fromkeys(shown["dataset"]))
    methods = [name for name in _NAMES if name in set(shown["method"])]
    step = min(0.11, 0.88 / len(methods))
    for number, method in enumerate(methods):
        place = (number - (len(methods) - 1) / 2) * step
        color = COLORS[number % len(COLORS)]
        # Where colours begin anew, they go with other markers.
        marker = MARKERS[(number + number // len(COLORS)) % len(MARKERS)]
        for row, dataset in enumerate(datasets):
            scores = shown[(shown["dataset"] == dataset) & (shown["method"] == method)]["value"]
            if not len(scores):
                continue
            found = t_interval(scores.to_numpy())
            errors = np.nan_to_num([[found.value - found.low], [found.high - found.value]])
            ax.errorbar(
                found.value,
                row + place,
                xerr=errors,
                fmt=marker,
                color=color,
                elinewidth=1,
                label=_NAMES[method] if row == 0 else None,
            )
    ax.set_yticks(range(len(datasets)), [_TITLES.get(name, name) for name in datasets])
    ax.set_ylim(len(datasets) - 0.45, -0.55)
    # The intervals of two seeds may be wider than what an accuracy can be.
    low, high = ax.get_xlim()
    ax.set_xlim(max(low, 0), min(high, 1))
    ax.set_xlabel("cross-validated accuracy")
    ax.set_title("Classification without labels in training")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_entropies(ax: "Axes", entropies: dict, seed: int, name: str) -> None:
    exact, learned = entropies[f"gemax.{seed}.exact"], entropies[f"gemax.{seed}.learned"]
    bound = np.maximum(entropies[f"gemax.{seed}.bound"], 0)
    ax.plot(exact, learned, "o", color=COLORS[0], alpha=0.5, label="$H_k$, learned")
    ax.plot(exact, bound, "^", color=COLORS[2], alpha=0.5, label="lower bound")
    top = 1.05 * max(exact.max(), learned.max())
    ax.plot([0, top], [0, top], "-", color="black", linewidth=0.8, label="identity")
    ax.axvline(np.log(2), color=COLORS[1], linestyle="--", linewidth=1, label="log 2 (bipartite)")
    ax.set_xlim(min(exact.min(), np.log(2)) - 0.1, max(exact.max(), np.log(2)) + 0.1)
    ax.set_ylim(0, 1.3 * top)  # room for the legend
    ax.set_xlabel("exact graph entropy $H(G, P)$ (nats)")
    ax.set_ylabel("approximation (nats)")
    ax.set_title(f"Learned and exact entropy, {name}")
    ax.legend(loc="upper center", ncols=2, frameon=True, framealpha=1, edgecolor="none")


def _draw_curves(ax: "Axes", frame: pd.DataFrame, name: str) -> None:
    shown = frame[(frame["experiment"] == "training") & (frame["method"] == "gemax")]
    for number, (metric, label) in enumerate(_CURVES.items()):
        curve = shown[shown["metric"] == metric].groupby("x")["value"]
        mean = curve.mean()
        ax.plot(mean.index, mean, LINES[number], color=COLORS[number], label=label)
        ax.fill_between(mean.index, curve.min(), curve.max(), color=COLORS[number], alpha=0.2)
    ax.set_yscale("log")
    ax.set_xlabel("epoch")
    ax.set_ylabel("mean over graphs")
    ax.set_title(f"Training, {name}")
    ax.legend(loc="best")


def _draw_packing(
    fig: "Figure", axes: list["Axes"], structure: dict, entropies: dict, seed: int
) -> None:
    """The graph of median entropy twice: colour P; area the learned weights, the exact packing."""
    import networkx as nx

    exact = entropies[f"gemax.{seed}.exact"]
    chosen = int(np.argsort(exact, kind="stable")[len(exact) // 2])
    vertices = np.flatnonzero(structure["node_graph"] == chosen)
    left, right = structure["edge_index"]
    inside = structure["node_graph"][left] == chosen
    graph = nx.Graph()
    graph.add_nodes_from(vertices.tolist())
    graph.add_edges_from(zip(left[inside].tolist(), right[inside].tolist(), strict=True))
    places = nx.kamada_kawai_layout(graph)
    xy = np.array([places[vertex] for vertex in vertices])
    p = entropies[f"gemax.{seed}.p"][vertices]
    for ax, key, title in zip(axes, ("a", "packing"), ("learned", "exact"), strict=True):
        a = entropies[f"gemax.{seed}.{key}"][vertices]
        for i, j in graph.edges:
            ax.plot(*np.array([places[i], places[j]]).T, color="#888888", linewidth=1, zorder=1)
        marks = ax.scatter(
            *xy.T, s=178 * a, c=p, cmap="cividis", edgecolors="black", linewidths=0.6, zorder=2
        )
        ax.set_aspect("equal")
        ax.margins(0.12)
        ax.set_axis_off()
        nats = entropies[f"gemax.{seed}.{'learned' if key == 'a' else 'exact'}"][chosen]
        ax.set_title(f"{title}: {nats:.2f} nats\n$a_i$ (area) {a.min():.2f} to {a.max():.2f}")
    fig.colorbar(marks, ax=axes, label="learned probability $P_i$", shrink=0.85)
