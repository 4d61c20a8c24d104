"""The ledger: of every claim, whether it was reproduced, by which measure, how certainly."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.errors import InputError
from retable.common.metrics import write_csv
from retable.common.seedfile import Check, Claim, SeedFile
from retable.common.statistics import Interval, t_interval

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
INCONCLUSIVE = "inconclusive"
NEEDS_PAPER_SCALE = "needs paper scale"
# A claim's verdict is the weakest of its checks: the first of these that one of them has.
FROM_WEAKEST = (CONTRADICTED, INCONCLUSIVE, NEEDS_PAPER_SCALE, REPRODUCED)
COLUMNS = [
    *("paper", "claim", "statement", "measure", "value", "ci_low", "ci_high", "threshold"),
    *("n", "verdict", "scale", "basis", "note"),
]


def judge(check: Check, values: Sequence[float], interval: Interval, scale: str) -> tuple[str, str]:
    """The verdict of one check and a note that says how it was reached.

    `values` holds one value a seed for the rule `every_seed`; `interval` decides otherwise.
    """
    if check.needs_paper_scale is not None and (scale != "paper" or check.threshold is None):
        return NEEDS_PAPER_SCALE, check.needs_paper_scale
    comparison, bound = check.bound()
    if check.rule == "every_seed":
        ends = [min(values), max(values)]
        note = "interval: smallest and largest seed"
    elif check.interval == "exact":
        ends = [interval.value, interval.value]
        note = "deterministic: the value is the interval"
    else:
        ends = [interval.low, interval.high]
        note = "" if check.interval == "t" else "interval: bootstrap"
        if not np.isfinite(ends).all():
            return INCONCLUSIVE, "one seed has no interval"
    holds = [_beyond(end, comparison, bound) for end in ends]
    if all(holds):
        return REPRODUCED, note
    return (INCONCLUSIVE if any(holds) else CONTRADICTED), note


def _beyond(value: float, comparison: str, bound: float) -> bool:
    match comparison:
        case ">=":
            return value >= bound
        case ">":
            return value > bound
        case "<=":
            return value <= bound
        case _:
            return value < bound


def ledger(seed_file: SeedFile, measures: pd.DataFrame, scale: str) -> pd.DataFrame:
    """One row a check, in the order of the seed file, with the columns of `claims.csv`.

    Raises:
        InputError: a check that this scale must decide has no measure, or a measure belongs to no
            check, or is not finite.
    """
    known = {check.id for claim in seed_file.claims for check in claim.checks}
    unknown = sorted(set(measures["check"]) - known)
    if unknown:
        raise InputError(f"{seed_file.paper}: measure '{unknown[0]}' belongs to no check")
    rows = [
        _row(seed_file, claim, check, measures[measures["check"] == check.id], scale)
        for claim in seed_file.claims
        for check in claim.checks
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(
    seed_file: SeedFile, claim: Claim, check: Check, measured: pd.DataFrame, scale: str
) -> dict[str, object]:
    values = measured["value"].tolist()
    if not np.isfinite(values).all():
        raise InputError(f"{check.id}: measures must be finite, got {values}")
    seeds = measured["seed"].dropna()
    if seeds.duplicated().any():
        twice = int(seeds[seeds.duplicated()].iloc[0])
        raise InputError(f"{check.id}: seed {twice} stands twice in the measures")
    undecided = check.needs_paper_scale is not None and (
        scale != "paper" or check.threshold is None
    )
    if not values and not undecided and scale != "smoke":
        raise InputError(f"{check.id}: the evaluation gives no measure for this check")
    if not values:
        interval = Interval(np.nan, np.nan, np.nan, 0)
    elif check.interval == "t" or check.rule == "every_seed":
        interval = t_interval(values)
        if check.rule == "every_seed":
            interval = Interval(interval.value, min(values), max(values), interval.n)
    elif len(values) > 1:
        raise InputError(
            f"{check.id}: an interval '{check.interval}' has one row, got {len(values)}"
        )
    else:
        (row,) = measured.to_dict("records")
        n = 1 if pd.isna(row["n"]) else int(row["n"])
        low, high = row["ci_low"], row["ci_high"]
        if check.interval == "exact":
            low = high = row["value"]
        elif not undecided and not low <= high:
            raise InputError(
                f"{check.id}: a bootstrap measure needs ci_low and ci_high, got {low} and {high}"
            )
        interval = Interval(row["value"], low, high, n)
    if not values and not undecided:
        verdict, note = INCONCLUSIVE, "not measured at smoke scale"
    else:
        verdict, note = judge(check, values, interval, scale)
    notes = [note, *dict.fromkeys(measured["note"].dropna())]
    if claim.extension:
        notes.append("our own extension, not a claim of the paper")
    return {
        "paper": seed_file.paper,
        "claim": check.id,
        "statement": claim.statement,
        "measure": check.measure,
        "value": interval.value,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "threshold": check.threshold or "",
        "n": interval.n,
        "verdict": verdict,
        "scale": scale,
        "basis": seed_file.basis,
        "note": "; ".join(text for text in notes if text),
    }


def by_claim(seed_file: SeedFile, checks: pd.DataFrame) -> pd.DataFrame:
    """One row a claim: that of its weakest check, with a note that counts the checks."""
    rows = []
    for claim in seed_file.claims:
        own = checks[checks["claim"].isin([check.id for check in claim.checks])]
        verdict = min(own["verdict"], key=FROM_WEAKEST.index)
        row = own[own["verdict"] == verdict].iloc[0].to_dict()
        if len(own) > 1:
            agree = int((own["verdict"] == verdict).sum())
            text = f"weakest of {len(own)} checks: {row['claim']} ({agree} {verdict})"
            row["note"] = "; ".join(part for part in (text, row["note"]) if part)
        row["claim"] = claim.id
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def write_ledger(frame: pd.DataFrame, path: Path) -> None:
    """Write claims or checks with the shared columns."""
    frame = frame.astype({"n": "Int64"})
    write_csv(frame[COLUMNS], path)
