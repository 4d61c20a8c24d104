"""Tidy measurements: one row a value, in the form that evaluate steps write and tables read."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from retable.common.errors import InputError

COLUMNS = ("experiment", "dataset", "method", "seed", "metric", "x", "value")
MEASURE_COLUMNS = ("check", "seed", "value", "ci_low", "ci_high", "n", "note")
# Nine digits: more than any measurement carries, few enough to read.
FLOAT_FORMAT = "%.9g"


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table with fixed line ends and number format, so that equal data are equal bytes."""
    frame.to_csv(path, index=False, float_format=FLOAT_FORMAT, lineterminator="\n")


def write_metrics(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write tidy rows: experiment, dataset, method, seed, metric, value, and x for curves.

    `seed` is None for what has no seed. Rows keep the order given. ValueError for an unknown or
    missing key and for values that are no numbers.
    """
    _write(rows, path, COLUMNS, required=("experiment", "dataset", "method", "metric", "value"))


def write_measures(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write what the claims' checks need.

    A check with the interval `t` or the rule `every_seed` has one row a seed (check, seed,
    value). A check with an interval of its own (`bootstrap`) or of a deterministic measure
    (`exact`) has one row: check, value, n, and ci_low and ci_high (empty for `exact`).
    """
    _write(rows, path, MEASURE_COLUMNS, required=("check", "value"))


def _write(
    rows: Iterable[Mapping[str, Any]],
    path: Path,
    columns: Sequence[str],
    required: Sequence[str],
) -> None:
    rows = list(rows)
    for row in rows:
        unknown = set(row) - set(columns)
        missing = [name for name in required if row.get(name) is None]
        if unknown or missing:
            raise ValueError(
                f"row {dict(row)}: unknown {sorted(unknown)}, missing {missing}; "
                f"columns: {', '.join(columns)}"
            )
        float(row["value"])
    frame = pd.DataFrame(rows, columns=list(columns))
    for name in ("seed", "n"):
        if name in frame:
            frame[name] = frame[name].astype("Int64")
    write_csv(frame, path)


def read_metrics(paths: Path | Iterable[Path]) -> pd.DataFrame:
    """Read tidy rows from one file or several, in the order given."""
    return _read(paths, COLUMNS, text=("experiment", "dataset", "method", "metric"))


def read_measures(paths: Path | Iterable[Path]) -> pd.DataFrame:
    """Read the measures of claims' checks."""
    return _read(paths, MEASURE_COLUMNS, text=("check", "note"))


def _read(
    paths: Path | Iterable[Path], columns: Sequence[str], text: Sequence[str]
) -> pd.DataFrame:
    paths = [paths] if isinstance(paths, Path) else list(paths)
    kinds = dict.fromkeys(text, "str")
    # Only numbers may be missing: a method may be called None.
    missing = {name: [""] for name in columns if name not in text}
    frames = []
    for path in paths:
        try:
            frame = pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values=missing)
        except ValueError as error:
            raise InputError(f"{path}: not a readable table: {error}") from None
        if list(frame.columns) != list(columns):
            raise InputError(f"{path}: columns {list(frame.columns)}, must be {list(columns)}")
        if len(frame) and not pd.api.types.is_numeric_dtype(frame["value"]):
            bad = frame["value"][pd.to_numeric(frame["value"], errors="coerce").isna()].iloc[0]
            raise InputError(f"{path}: value: must be a number, got '{bad}'")
        frames.append(frame)
    return pd.concat([f for f in frames if len(f)] or frames[:1], ignore_index=True)
