"""Orders, norms at equal loss, and the measures of the claims."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from retable.adambias.config import EvaluateSettings, method_name, parse_method
from retable.adambias.fits import observed_order, value_at_loss
from retable.common.metrics import read_metrics, write_measures, write_metrics
from retable.common.statistics import slope_interval

ORDERS = {"error_plain": "order_plain", "error_corrected": "order_corrected"}
NORMS = ("one_norm", "perturbed_one_norm")
KEYS = ["experiment", "dataset", "method", "seed"]
Rows = list[dict[str, Any]]


def evaluate(
    fits: list[Path],
    histories: list[Path],
    rows: Path,
    measures: Path,
    *,
    settings: EvaluateSettings,
) -> None:
    """Write tidy rows and the measures of the claims.

    `fits` are the rows of the orders and defects; `histories` lie at `<dataset>/<method>/`. A loss
    that a training does not reach gives a row without a value, and no measure.
    """
    found = read_metrics(fits)
    runs = [
        (path.parent.parent.name, path.parent.name, int(seed), history)
        for path in histories
        for seed, history in pd.read_csv(path).groupby("seed")
    ]
    fitted = pd.DataFrame(
        [
            *_orders(found),
            *(row for run in runs for row in _at_losses(*run, settings.levels.get(run[0], ()))),
        ]
    )
    everything = pd.concat([found, fitted], ignore_index=True)
    write_metrics(everything.astype(object).where(everything.notna(), None).pipe(_records), rows)
    write_measures(_measures(everything, runs, settings), measures)


def _records(frame: pd.DataFrame) -> Rows:
    """Rows as dictionaries; a value that is missing stays a NaN, a seed or x that is None."""
    records = frame.to_dict("records")
    for record in records:
        if record["value"] is None:
            record["value"] = np.nan
    return records


def _orders(found: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Slopes over the three smallest step sizes; where nothing is random, the interval of the fit
    over all of them."""
    errors = found[found["metric"].isin(ORDERS)]
    for key, group in errors.groupby([*KEYS, "metric"], sort=False, dropna=False):
        row = dict(zip([*KEYS, "metric"], key, strict=True))
        group = group.sort_values("x")
        order = observed_order(group["x"][:3], group["value"][:3])
        row["metric"] = ORDERS[row["metric"]]
        yield {**row, "value": order}
        if pd.isna(row["seed"]):
            interval = slope_interval(np.log(group["x"]), np.log(group["value"]))
            yield {**row, "metric": f"{row['metric']}_fit_low", "value": interval.low}
            yield {**row, "metric": f"{row['metric']}_fit_high", "value": interval.high}


def _at_losses(
    dataset: str, method: str, seed: int, history: pd.DataFrame, levels: Iterable[float]
) -> Iterator[dict[str, Any]]:
    """Norms and test accuracy at equal training loss, and what the whole training shows."""
    row = {"experiment": "sweep", "dataset": dataset, "method": method, "seed": seed}
    tested = history.dropna(subset="test_accuracy")
    for level in levels:
        for name in NORMS:
            value = value_at_loss(history["train_loss"], history[name], level)
            yield {**row, "metric": f"{name}@{level:g}", "value": value}
        value = value_at_loss(tested["train_loss"], tested["test_accuracy"], level)
        yield {**row, "metric": f"test_accuracy@{level:g}", "value": value}
    final = tested["test_accuracy"].iloc[-1]
    yield {**row, "metric": "test_accuracy_final", "value": final}
    yield {**row, "metric": "share_negative", "value": history["share_negative"].mean()}


def _measures(
    rows: pd.DataFrame,
    runs: list[tuple[str, str, int, pd.DataFrame]],
    settings: EvaluateSettings,
) -> Rows:
    """What the checks need; nothing for what this scale did not measure."""
    measures = [*_order_measures(rows), *_defect_measures(rows, settings)]
    measures += _stage_measures(runs, settings)
    sweep = rows[rows["experiment"] == "sweep"]
    for seed in sorted(sweep["seed"].unique()):
        measures += [
            {"check": check, "seed": int(seed), "value": value}
            for check, value in _sweep_measures(sweep[sweep["seed"] == seed], settings)
        ]
    return [measure for measure in measures if np.isfinite(measure["value"])]


def _order_measures(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    orders = rows[(rows["experiment"] == "order") & rows["metric"].isin(ORDERS.values())]
    toy = orders[orders["seed"].isna()]
    corrected = toy[toy["metric"] == "order_corrected"]
    yield {"check": "adambias-2a", "value": corrected["value"].min(), "n": 1}
    # With β = ρ (and small ε) there is no bias to correct: the plain flow is of second order.
    settings = toy["method"].map(lambda name: parse_method(name.split("_", 1)[1]))
    unequal = settings.map(lambda s: s[0] != s[1])
    plain = toy[unequal & (toy["metric"] == "order_plain")]
    yield {"check": "adambias-2b", "value": plain["value"].max(), "n": 1}
    for row in orders[orders["seed"].notna()].to_dict("records"):
        is_gd = row["method"] == "gd"
        if row["metric"] == "order_corrected":
            check = "adambias-1" if is_gd else "adambias-2c"
        elif is_gd:
            continue
        else:
            check = "adambias-2d"
        yield {"check": check, "seed": int(row["seed"]), "value": row["value"]}


def _defect_measures(rows: pd.DataFrame, settings: EvaluateSettings) -> Iterator[dict[str, Any]]:
    defects = rows[rows["experiment"] == "defect"]
    toy = defects[(defects["dataset"] == "bilinear") & (defects["metric"] == "kappa")]
    kappa = toy.set_index("method")["value"]
    penalising, impeding, late = (
        kappa.get(method_name(*case), np.nan)
        for case in (settings.penalising, settings.impeding, settings.late)
    )
    for check, value in (
        ("adambias-3a", penalising - impeding),
        ("adambias-3b", penalising),
        ("adambias-3c", impeding),
        ("adambias-4a", impeding),
        ("adambias-4b", late),
    ):
        yield {"check": check, "value": value, "n": 1}
    network = defects[defects["dataset"] == "mnist49"]
    for seed, fit in network.groupby("seed"):
        fit = fit.set_index("metric")["value"]
        for check, value in (
            ("adambias-5a", fit["r2_predicted"] - fit["r2_two_norm"]),
            ("adambias-5b", fit["r2_predicted"]),
            ("adambias-5c", abs(fit["scale"] - 1.0)),
        ):
            yield {"check": check, "seed": int(seed), "value": value}


def _stage_measures(
    runs: list[tuple[str, str, int, pd.DataFrame]], settings: EvaluateSettings
) -> Iterator[dict[str, Any]]:
    """Share of coordinates with κ < 0: first minus last tenth of a training, and its mean."""
    for dataset, method, seed, history in runs:
        share = history["share_negative"].to_numpy()
        if dataset == settings.sweep and method == method_name(*settings.stage):
            tenth = max(1, len(share) // 10)
            value = share[:tenth].mean() - share[-tenth:].mean()
            yield {"check": "adambias-4c", "seed": seed, "value": value}
        if dataset == settings.sweep and method == method_name(*settings.usual):
            yield {"check": "adambias-6a", "seed": seed, "value": share.mean()}


def _sweep_measures(rows: pd.DataFrame, settings: EvaluateSettings) -> Iterator[tuple[str, float]]:
    """Kendall's τ and log ratios of the norms, slope of the accuracies; rows of one seed."""
    own = rows[rows["dataset"] == settings.sweep]
    norm = own[own["metric"] == f"one_norm@{settings.sweep_level:g}"]
    points = [(*parse_method(row.method), row.value) for row in norm.itertuples()]
    sweeps = {
        "adambias-7": [
            (rho, value)
            for beta, rho, eps, value in points
            if beta == settings.beta and eps is None
        ],
        "adambias-8": [
            (beta, value) for beta, rho, eps, value in points if rho == settings.rho and eps is None
        ],
    }
    for claim, sweep in sweeps.items():
        swept, values = np.array(sorted(sweep)).reshape(-1, 2).T
        if len(swept) < 2 or not np.isfinite(values).all():
            continue
        yield f"{claim}a", float(stats.kendalltau(swept, values).statistic)
        ratio = float(np.log(values[-1] / values[0]))
        yield f"{claim}b", ratio if claim == "adambias-7" else -ratio
    slopes = [
        _accuracy_slope(rows[rows["dataset"] == dataset], level)
        for dataset, level in settings.accuracy_levels.items()
    ]
    if slopes:
        yield "adambias-9a", float(np.mean(slopes))
    large = [rows[rows["dataset"] == dataset] for dataset in settings.large]
    large = [own for own in large if len(own)]
    if large:
        usual = method_name(*settings.usual)
        shares = [
            own[(own["method"] == usual) & (own["metric"] == "share_negative")]["value"].mean()
            for own in large
        ]
        yield "adambias-6b", float(np.min(shares))
        yield (
            "adambias-9b",
            float(np.mean([_accuracy_slope(own, settings.large_level) for own in large])),
        )


def _accuracy_slope(rows: pd.DataFrame, level: float) -> float:
    """Slope of test accuracy on the log of the one-norm over methods, at one training loss.

    Trainings with an ε of their own stay out. NaN when fewer than three reach the loss.
    """
    swept = rows[rows["method"].map(lambda name: parse_method(name)[2] is None).astype(bool)]
    wide = swept.pivot(index="method", columns="metric", values="value")
    names = [f"one_norm@{level:g}", f"test_accuracy@{level:g}"]
    if not set(names) <= set(wide.columns):
        return np.nan
    points = wide[names].dropna()
    if len(points) < 3:
        return np.nan
    return float(stats.linregress(np.log(points[names[0]]), points[names[1]]).slope)
