"""From tidy rows to a paper's table: mean, spread, interval, and the paper's number beside them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.metrics import write_csv
from retable.common.seedfile import SeedFile
from retable.common.statistics import t_interval

KEYS = ("experiment", "dataset", "method", "metric")
COLUMNS = (*KEYS, "mean", "std", "ci_low", "ci_high", "n_seeds", "reported", "source")


def aggregate(rows: pd.DataFrame, extra_keys: Sequence[str] = ()) -> pd.DataFrame:
    """Mean, standard deviation and 95 % Student t interval over seeds, one row a quantity.

    Args:
        rows: tidy rows (`retable.common.metrics`); those with the same experiment, dataset,
            method, metric and `extra_keys` (for example `x`) are the seeds of one quantity.
        extra_keys: further columns that tell quantities apart; they follow the metric.

    Returns:
        the shared columns in the order in which the quantities first stand in `rows`; std and the
        interval are empty for a single seed and for a method without seeds.

    Raises:
        ValueError: a seed stands twice in one quantity, or a value is not finite.
    """
    keys = [*KEYS, *extra_keys]
    out = []
    for key, group in rows.groupby(keys, sort=False, dropna=False):
        if group["seed"].duplicated().any():
            raise ValueError(f"{key}: a seed stands there twice: {group['seed'].tolist()}")
        interval = t_interval(group["value"].to_numpy())
        single = interval.n == 1
        spread = 0.0 if interval.low == interval.high else float(group["value"].std(ddof=1))
        out.append(
            dict(zip(keys, key, strict=True))
            | {
                "mean": interval.value,
                "std": np.nan if single else spread,
                "ci_low": interval.low,
                "ci_high": interval.high,
                "n_seeds": interval.n,
            }
        )
    return pd.DataFrame(out, columns=[*keys, *COLUMNS[len(KEYS) : -2]])


def add_reported(table: pd.DataFrame, seed_file: SeedFile, *, append: bool = True) -> pd.DataFrame:
    """Put the paper's numbers beside ours, where experiment, dataset, method and metric agree.

    With `append`, numbers that no row of ours stands beside follow at the end with empty means,
    so that the table shows all that the paper reports.
    """
    columns = [*KEYS, "reported", "source"]
    reported = pd.DataFrame(
        [
            (r.experiment, r.dataset, r.method, r.metric, r.value, r.source)
            for r in seed_file.reported
        ],
        columns=columns,
    ).astype({"reported": float})
    # What this scale did not run comes last, in the order of the seed file.
    joined = table.merge(reported, on=list(KEYS), how="left", validate="many_to_one")
    if append and len(reported):
        known = set(table[list(KEYS)].itertuples(index=False, name=None))
        rest = reported[[tuple(row[:4]) not in known for row in reported.to_numpy()]]
        if len(rest):
            joined = pd.concat([joined, rest], ignore_index=True)
            joined["n_seeds"] = joined["n_seeds"].astype("Int64")
    return joined


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table; further columns follow the shared ones."""
    rest = [name for name in table.columns if name not in COLUMNS]
    write_csv(table[[*(name for name in COLUMNS if name in table), *rest]], path)
