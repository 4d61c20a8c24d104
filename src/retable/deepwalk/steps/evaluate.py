"""From the experiments' rows to one file of rows and to the measures of the claims."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from retable.common.metrics import read_metrics, write_measures, write_metrics
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import EvaluateSettings
from retable.deepwalk.experiments import row

MAIN_WINDOW = 3


def evaluate(
    rows: list[Path],
    speed: list[Path],
    metrics: Path,
    measures: Path,
    *,
    settings: EvaluateSettings,
) -> None:
    """Join the rows of all experiments, add paired differences, and write each claim's measures.

    Times (`speed`) enter the measures alone.
    """
    frame = read_metrics(rows)
    differences = [*_differences(frame, "phase"), *_differences(frame, "sparse")]
    differences += _mirror(frame, "phase")
    differences += _mirror(frame, "dims")
    frame = pd.concat([frame, pd.DataFrame(differences)], ignore_index=True)
    write_metrics(
        ({k: None if pd.isna(v) else v for k, v in r.items()} for r in frame.to_dict("records")),
        metrics,
    )
    found = [*_measures(frame, settings), *_scaling(read_metrics(speed))]
    write_measures(found, measures)


def _select(frame: pd.DataFrame, experiment: str, method: str, metric: str) -> pd.DataFrame:
    """The rows of one quantity, with a column for each part of the graph's name."""
    chosen = frame[
        (frame["experiment"] == experiment)
        & (frame["method"] == method)
        & (frame["metric"] == metric)
    ]
    return chosen.assign(seed=chosen["seed"].astype("Int64"))


def _growth(frame: pd.DataFrame, metric: str, a: float, b: float) -> pd.DataFrame:
    """DeepWalk's rows of the growing graphs at one (a, b), with the column n, ordered by n."""
    chosen = _select(frame, "growth", "deepwalk", metric)
    blocks = [BlockModel.parse(name) for name in chosen["dataset"]]
    chosen = chosen.assign(n=[block.n for block in blocks])
    here = [(block.a, block.b) == (a, b) for block in blocks]
    return chosen[here].sort_values(["n", "seed"], kind="stable")


def _accuracies(frame: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Accuracy of each method (columns) on each graph (rows: dataset and seed)."""
    chosen = frame[(frame["experiment"] == experiment) & (frame["metric"] == "accuracy")]
    return chosen.pivot(index=["dataset", "seed"], columns="method", values="value")


def _differences(frame: pd.DataFrame, experiment: str) -> Iterator[dict[str, Any]]:
    """Accuracy of DeepWalk minus that of each other method, graph by graph."""
    table = _accuracies(frame, experiment)
    own = "deepwalk" if experiment == "phase" else f"deepwalk/w{MAIN_WINDOW}"
    for other in table.columns:
        if other.startswith("deepwalk"):
            continue
        for (dataset, seed), value in (table[own] - table[other]).items():
            yield row(experiment, dataset, f"{own} - {other}", seed, "accuracy_difference", value)


def _mirror(frame: pd.DataFrame, experiment: str) -> list[dict[str, Any]]:
    """Mean and largest distance of DeepWalk's accuracy from the normalised Laplacian's, a seed.

    In the plane of (a, b) over the points where the Laplacian works: mean accuracy above 0.8.
    """
    table = _accuracies(frame, experiment)
    spectral = table["spectral/normalized"]
    if experiment == "phase":
        works = spectral.groupby("dataset").transform("mean") > 0.8
        table, spectral = table[works], spectral[works]
    distance = (table["deepwalk"] - spectral).abs().groupby("seed")
    name = "deepwalk - spectral/normalized"
    return [
        row(experiment, "all", name, seed, metric, value)
        for metric, values in (
            ("mean_distance", distance.mean()),
            ("largest_distance", distance.max()),
        )
        for seed, value in values.items()
    ]


def _slopes(chosen: pd.DataFrame, values: np.ndarray) -> Iterator[tuple[int, float]]:
    """The slope of `values` on ln n for each seed that has three sizes or all of them."""
    sizes = chosen["n"].nunique()
    for seed in chosen["seed"].unique():
        here = (chosen["seed"] == seed).to_numpy()
        if here.sum() >= min(3, sizes):
            slope = np.polyfit(np.log(chosen["n"].to_numpy()[here]), values[here], 1)[0]
            yield int(seed), float(slope)


def _measures(frame: pd.DataFrame, settings: EvaluateSettings) -> Iterator[dict[str, Any]]:
    def by_seed(check: str, chosen: pd.DataFrame, values: Any) -> Iterator[dict[str, Any]]:
        for seed, value in zip(chosen["seed"], values, strict=True):
            yield {"check": check, "seed": int(seed), "value": float(value)}

    def by_graph(check: str, values: Any) -> Iterator[dict[str, Any]]:
        # A seed draws one graph of each size, and these are independent: the unit is a graph.
        for value in values:
            yield {"check": check, "value": float(value), "note": "n counts graphs"}

    exact = _growth(frame, "exact", 8, 1)
    exact = exact[exact["n"] >= settings.recovery_n]
    yield from by_graph("deepwalk-1a", exact["value"])
    errors = _growth(frame, "accuracy", 6, 1)
    errors = errors[errors["n"] >= settings.recovery_n]
    yield from by_graph("deepwalk-1b", 1 - errors["value"])
    hard = _growth(frame, "accuracy", 3, 1)
    hard = hard[hard["n"] <= settings.slope_n]
    # Only seeds that have the largest graph too: each slope spans the same range.
    largest = hard[hard["n"] == hard["n"].max()]["seed"]
    hard = hard[hard["seed"].isin(largest)]
    # No error at all counts as half a node.
    error = np.maximum(1 - hard["value"], 1 / (2 * hard["n"])).to_numpy()
    for seed, slope in _slopes(hard, np.log(error)):
        yield {"check": "deepwalk-1c", "seed": seed, "value": slope}

    for check, metric in (("deepwalk-2a", "gradient"), ("deepwalk-2c", "largest_rise")):
        runs = pd.concat([_growth(frame, metric, a, b) for a, b in ((8, 1), (6, 1))])
        for seed, worst in runs.groupby("seed")["value"].max().items():
            yield {"check": check, "seed": int(seed), "value": float(worst)}
    steps = _growth(frame, "steps_to_alignment", 6, 1)
    for seed, slope in _slopes(steps, steps["value"].to_numpy()):
        yield {"check": "deepwalk-2b", "seed": seed, "value": slope}

    for check, experiment, method, metric in (
        ("deepwalk-3", "phase", "deepwalk - spectral/normalized", "mean_distance"),
        ("deepwalk-4", "dynamics", "deepwalk", "smallest_cosine"),
        ("deepwalk-6", "starts", "deepwalk", "spread"),
        ("deepwalk-8b", "dynamics", "deepwalk", "fixed_point_gap"),
        ("deepwalk-10", "dims", "deepwalk - spectral/normalized", "mean_distance"),
    ):
        chosen = _select(frame, experiment, method, metric)
        yield from by_seed(check, chosen, chosen["value"])

    sparse = frame[(frame["experiment"] == "sparse") & (frame["metric"] == "accuracy_difference")]
    smallest = min(sparse["dataset"], key=lambda name: BlockModel.parse(name).n)
    for check, other in (("deepwalk-5a", "adjacency"), ("deepwalk-5b", "normalized")):
        chosen = sparse[
            (sparse["dataset"] == smallest)
            & (sparse["method"] == f"deepwalk/w{MAIN_WINDOW} - spectral/{other}")
        ]
        yield from by_seed(check, chosen, chosen["value"])

    walked = _accuracies(frame, "walks")
    sampled = [name for name in walked if name.startswith("deepwalk/") and "earlier" not in name]
    # The most walks that are sampled.
    most = max(sampled, key=lambda name: int(name.removeprefix("deepwalk/").split("x")[0]))
    for (_, seed), value in (walked[most] - walked["deepwalk"]).items():
        yield {"check": "deepwalk-7", "seed": int(seed), "value": float(value)}

    product = _growth(frame, "product", 6, 1)
    product = product[product["n"] == settings.fixed_point_n]
    theory = _select(frame, "growth", "theory", "product").set_index("dataset")["value"]
    predicted = theory[product["dataset"]].to_numpy()
    yield from by_seed("deepwalk-8a", product, np.abs(product["value"] / predicted - 1))


def _scaling(speed: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for check, metric in (("deepwalk-9a", "time_slope"), ("deepwalk-9b", "memory_slope")):
        for r in speed[speed["metric"] == metric].to_dict("records"):
            yield {"check": check, "seed": int(r["seed"]), "value": r["value"]}
