"""The measures that the claims are checked with, one a seed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from retable.common.metrics import read_metrics, write_measures
from retable.mlabnc.config import RoleSettings

# What must vanish at a global optimum; the angle in degrees is left to its ratio.
_VANISHING = r"(nc1_m\d|nc2_h|nc2_w|nc3|angle_ratio|residual|kappa_std)(_m\d)?"

Row = dict[str, Any]


def measures(
    histories: list[Path],
    evaluations: list[Path],
    ufm: Path,
    measures: Path,
    *,
    settings: RoleSettings,
) -> None:
    """Write the measures of every check whose data set ran at this scale."""
    history, evaluated = read_metrics(histories), read_metrics(evaluations)
    rows = [
        *_followed(history, settings),
        *_free_optimisation(read_metrics(ufm)),
        *_decoding(evaluated, settings),
        *_imbalance(evaluated, settings),
    ]
    write_measures(sorted(rows, key=lambda row: row["check"]), measures)


def _followed(history: pd.DataFrame, roles: RoleSettings) -> Iterator[Row]:
    """Claims 1 to 4: collapse at the end of training, and against the end of the first epoch."""
    own = history[history["method"] == roles.learned]
    last = _at(own, own["x"] == own.groupby("dataset")["x"].transform("max"))
    first = _at(own, own["x"] == 1)
    for check, metric in (("1", "nc1_m1"), ("2", "nc2_h"), ("3", "nc3")):
        yield from _rows(f"mlabnc-{check}a", last, "mnist", metric)
        yield from _rows(f"mlabnc-{check}b", last / first, "mnist", metric)
        yield from _rows(f"mlabnc-{check}c", last / first, "cifar10", metric)
    yield from _rows("mlabnc-4a", last, "mnist", "angle_ratio")
    spread = last.xs("kappa_std", level="metric") / last.xs("kappa_mean", level="metric")
    spread = pd.concat({"kappa_spread": spread}, names=["metric"]).reorder_levels(last.index.names)
    yield from _rows("mlabnc-4b", spread, "mnist", "kappa_spread")
    yield from _rows("mlabnc-4c", last / first, "cifar10", "angle_ratio")


def _free_optimisation(ufm: pd.DataFrame) -> Iterator[Row]:
    """Claims 5, 6 and 9: the worst of all problems, one row a random start."""
    multi = ufm[ufm["method"] == "multi"]
    both = set(multi["dataset"])
    alone = ufm[(ufm["method"] == "single") & ~ufm["dataset"].isin(both)]
    # A problem without sets of several labels has the variant of single labels only.
    whole = pd.concat([multi, alone])
    unequal = multi[multi["experiment"] == "ufm-unequal"]
    for check, rows in (("5", whole), ("9", unequal)):
        yield from _worst(f"mlabnc-{check}a", rows[rows["metric"] == "gap"])
        yield from _worst(f"mlabnc-{check}b", rows[rows["metric"].str.fullmatch(_VANISHING)])
    frames = ufm[ufm["metric"].isin(["nc2_h", "nc2_w"])]
    yield from _worst("mlabnc-6a", frames[frames["method"] == "multi"])
    single = frames[(frames["method"] == "single") & frames["dataset"].isin(both)]
    yield from _worst("mlabnc-6b", single)


def _decoding(evaluated: pd.DataFrame, roles: RoleSettings) -> Iterator[Row]:
    """Claims 7 and 8: exact match of decoders of one network, and of two networks; sizes."""
    matched = _at(evaluated, evaluated["metric"] == "exact_match", by="method")
    learned = f"{roles.learned}/onn"
    gain = _difference(matched, learned, f"{roles.learned}/threshold")
    yield from _rows("mlabnc-7a", gain, "mnist")
    yield from _rows("mlabnc-7b", gain, "cifar10")
    sizes = _at(evaluated, evaluated["metric"] == "trainable_parameters", by="method")
    fewer = _difference(sizes, roles.fixed, roles.learned)
    yield {"check": "mlabnc-8a", "value": fewer.xs("mnist", level="dataset").iloc[0]}
    kept = _difference(matched, f"{roles.fixed}/onn", learned)
    yield from _rows("mlabnc-8b", kept, "mnist")


def _imbalance(evaluated: pd.DataFrame, roles: RoleSettings) -> Iterator[Row]:
    """Claim 9: the angle ratio of the pairs with most samples."""
    own = evaluated[
        (evaluated["dataset"] == "mnist-imbalanced")
        & (evaluated["method"] == roles.learned)
        & evaluated["metric"].str.startswith("angle_ratio_of_")
    ]
    counts = own["metric"].str.removeprefix("angle_ratio_of_").astype(int)
    for row in own[counts == counts.max()].to_dict("records"):
        yield {"check": "mlabnc-9c", "seed": row["seed"], "value": row["value"]}


def _at(rows: pd.DataFrame, chosen: pd.Series, by: str = "metric") -> pd.Series:
    """Values by data set, `by` and seed."""
    return rows[chosen].set_index(["dataset", by, "seed"])["value"]


def _difference(values: pd.Series, of: str, to: str) -> pd.Series:
    """`of` minus `to` by data set and seed, where both are there."""
    difference = values.xs(of, level="method") - values.xs(to, level="method")
    return difference.dropna()


def _rows(check: str, values: pd.Series, dataset: str, metric: str | None = None) -> Iterator[Row]:
    """One row a seed; none where the data set did not run."""
    if metric is not None:
        values = values[values.index.get_level_values("metric") == metric]
    values = values[values.index.get_level_values("dataset") == dataset]
    for seed, value in zip(values.index.get_level_values("seed"), values, strict=True):
        yield {"check": check, "seed": seed, "value": value}


def _worst(check: str, rows: pd.DataFrame) -> Iterator[Row]:
    for seed, value in rows.groupby("seed")["value"].max().items():
        yield {"check": check, "seed": seed, "value": value}
