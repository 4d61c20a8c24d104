"""Put the experiments together and measure the claims."""

from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.metrics import read_metrics, write_csv, write_measures
from retable.common.statistics import slope_interval


def evaluate(rows: list[Path], metrics: Path, measures: Path) -> None:
    """Write all rows in one file, and what the claims' checks need, one value a seed."""
    frame = read_metrics(rows)
    write_csv(frame, metrics)
    checks = {
        "robustmg-1": _largest(frame, "equivalence", ["value_difference", "gap_difference"]),
        "robustmg-2": _largest(frame, "planning", ["nash_gap"]),
        "robustmg-3a": _of(frame, "robustness", "guarantee_slack").groupby("seed")["value"].min(),
        "robustmg-3b": _gap_ratio(frame),
        "robustmg-4a": _largest(frame, "hardness", ["roundtrip_error"]),
        "robustmg-4b": _largest(frame, "hardness", ["share_matched"]),
        "robustmg-4c": _largest(frame, "hardness", ["share_several_values"]),
        "robustmg-4d": _largest(frame, "hardness", ["share_refused"]),
        "robustmg-5a": _slopes(frame),
        "robustmg-5b": _largest(frame, "scaling", ["nash_gap"]),
        "robustmg-5c": _of(frame, "scaling", "extra_linear_programs")
        .groupby("seed")["value"]
        .agg(lambda extra: extra.abs().max()),
        "robustmg-6": _largest(
            frame[frame["method"] == "lp"], "readings", ["decomposition_residual"]
        ),
        "robustmg-7a": _shortcut(frame, "equal").groupby("seed")["value"].max(),
        "robustmg-7b": _shortcut(frame, "state-dependent").groupby("seed")["value"].max(),
        "robustmg-7c": _shortcut(frame, "single-controller").groupby("seed")["value"].max(),
    }
    write_measures(
        [
            {"check": check, "seed": int(seed), "value": value}
            for check, values in checks.items()
            for seed, value in values.items()
        ],
        measures,
    )


def _of(frame: pd.DataFrame, experiment: str, metric: str) -> pd.DataFrame:
    return frame[(frame["experiment"] == experiment) & (frame["metric"] == metric)]


def _largest(frame: pd.DataFrame, experiment: str, metrics: list[str]) -> pd.Series:
    """The largest value of these metrics in each seed."""
    chosen = frame[(frame["experiment"] == experiment) & frame["metric"].isin(metrics)]
    return chosen.groupby("seed")["value"].max()


def _gap_ratio(frame: pd.DataFrame) -> pd.Series:
    """Nash gap of the nominal equilibrium over that of the robust one, at radius 1."""
    gaps = _of(frame, "robustness", "nash_gap")
    gaps = gaps[gaps["x"] == 1].pivot(index="seed", columns="method", values="value")
    return gaps["nominal"] / gaps["robust"].clip(lower=1e-12)


def _slopes(frame: pd.DataFrame) -> pd.Series:
    """Slope of ln(simplex iterations) on ln(n) in each seed."""
    rows = _of(frame, "scaling", "iterations")
    return pd.Series(
        {
            seed: slope_interval(np.log(group["x"]), np.log(group["value"])).value
            for seed, group in rows.groupby("seed")
        }
    )


def _shortcut(frame: pd.DataFrame, radii: str) -> pd.DataFrame:
    rows = _of(frame, "shortcut", "nash_gap")
    return rows[(rows["method"] == "shortcut") & (rows["dataset"] == radii)]
