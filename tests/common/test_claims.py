"""The ledger: every rule with every interval and every verdict."""

import math
from pathlib import Path

import pandas as pd
import pytest

from retable.common.claims import COLUMNS, by_claim, judge, ledger, write_ledger
from retable.common.errors import InputError
from retable.common.metrics import read_measures, write_measures
from retable.common.seedfile import Check, SeedFile
from retable.common.statistics import Interval, t_interval

NAN = math.nan


def check(threshold: str | None = ">= 10", **more: object) -> Check:
    rule = None if threshold is None else "interval"
    values = {"id": "p-1a", "measure": "m", "threshold": threshold, "rule": rule} | more
    return Check.model_validate(values)


def verdict(of: Check, values: list[float], scale: str = "laptop") -> str:
    return judge(of, values, t_interval(values), scale)[0]


@pytest.mark.parametrize(
    ("threshold", "values", "expected"),
    [
        (">= 10", [11.9, 12.0, 12.1], "reproduced"),
        (">= 10", [7.9, 8.0, 8.1], "contradicted"),
        (">= 10", [9.0, 12.0, 13.0], "inconclusive"),
        ("> 10", [11.9, 12.0, 12.1], "reproduced"),
        ("> 10", [7.9, 8.0, 8.1], "contradicted"),
        ("<= 10", [7.9, 8.0, 8.1], "reproduced"),
        ("<= 10", [11.9, 12.0, 12.1], "contradicted"),
        ("<= 10", [9.0, 12.0, 13.0], "inconclusive"),
        ("< 10", [7.9, 8.0, 8.1], "reproduced"),
        ("< 10", [11.9, 12.0, 12.1], "contradicted"),
        ("> -0.5", [-0.11, -0.1, -0.12], "reproduced"),
        # Zero spread is an interval of length 0, and the threshold itself belongs to >= and <=.
        (">= 10", [10.0, 10.0, 10.0], "reproduced"),
        ("<= 10", [10.0, 10.0, 10.0], "reproduced"),
        ("> 10", [10.0, 10.0, 10.0], "contradicted"),
        ("< 10", [10.0, 10.0, 10.0], "contradicted"),
        (">= 0.1", [0.1, 0.1, 0.1], "reproduced"),
        ("<= 0.7", [0.7] * 7, "reproduced"),
        # One seed has no interval.
        (">= 10", [12.0], "inconclusive"),
        (">= 10", [8.0], "inconclusive"),
    ],
)
def test_interval_over_seeds(threshold: str, values: list[float], expected: str) -> None:
    assert verdict(check(threshold), values) == expected


def test_one_seed_says_so() -> None:
    assert judge(check(), [12.0], t_interval([12.0]), "laptop")[1] == "one seed has no interval"


@pytest.mark.parametrize(
    ("threshold", "values", "expected"),
    [
        (">= 10", [10.0, 30.0, 11.0], "reproduced"),
        (">= 10", [9.99, 30.0, 11.0], "inconclusive"),
        (">= 10", [9.0, 3.0, 1.0], "contradicted"),
        ("> 10", [10.0, 30.0], "inconclusive"),
        ("> 10", [10.0, 3.0], "contradicted"),
        ("<= 10", [10.0, 3.0], "reproduced"),
        ("<= 10", [10.0, 11.0], "inconclusive"),
        ("< 10", [10.0, 9.0], "inconclusive"),
        ("< 10", [9.9, 9.0], "reproduced"),
        # One seed is every seed.
        (">= 10", [10.0], "reproduced"),
        (">= 10", [9.0], "contradicted"),
    ],
)
@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_every_seed(threshold: str, values: list[float], expected: str, interval: str) -> None:
    of = check(threshold, rule="every_seed", interval=interval)
    found, note = judge(of, values, t_interval(values), "laptop")
    assert found == expected
    assert note == "interval: smallest and largest seed"


@pytest.mark.parametrize(
    ("threshold", "low", "high", "expected"),
    [
        (">= 10", 10.0, 30.0, "reproduced"),
        (">= 10", 9.9, 30.0, "inconclusive"),
        (">= 10", 1.0, 9.9, "contradicted"),
        ("> 10", 1.0, 10.0, "contradicted"),
        ("< 10", 1.0, 10.0, "inconclusive"),
        ("<= 10", 1.0, 10.0, "reproduced"),
        ("<= 10", 10.1, 11.0, "contradicted"),
    ],
)
def test_bootstrap(threshold: str, low: float, high: float, expected: str) -> None:
    of = check(threshold, interval="bootstrap")
    found, note = judge(of, [(low + high) / 2], Interval((low + high) / 2, low, high, 50), "laptop")
    assert (found, note) == (expected, "interval: bootstrap")


@pytest.mark.parametrize(
    ("threshold", "value", "expected"),
    [
        (">= 10", 10.0, "reproduced"),
        (">= 10", 9.9, "contradicted"),
        ("> 10", 10.0, "contradicted"),
        ("<= 10", 10.0, "reproduced"),
        ("< 10", 9.0, "reproduced"),
    ],
)
def test_exact(threshold: str, value: float, expected: str) -> None:
    of = check(threshold, interval="exact")
    found, note = judge(of, [value], Interval(value, NAN, NAN, 1), "laptop")
    assert (found, note) == (expected, "deterministic: the value is the interval")


@pytest.mark.parametrize("interval", ["t", "bootstrap", "exact"])
@pytest.mark.parametrize("rule", ["interval", "every_seed"])
def test_needs_paper_scale(rule: str, interval: str) -> None:
    of = check(rule=rule, interval=interval, needs_paper_scale="too large")
    values, measured = [12.0, 12.1], Interval(12.05, 12.0, 12.1, 2)
    for scale in ("smoke", "laptop"):
        assert judge(of, values, measured, scale) == ("needs paper scale", "too large")
    assert judge(of, values, measured, "paper")[0] == "reproduced"
    without = check(None, needs_paper_scale="too large", interval=interval)
    assert judge(without, values, measured, "paper") == ("needs paper scale", "too large")


def seed_file(*claims: tuple[str, list[dict]], extension: bool = False) -> SeedFile:
    return SeedFile.model_validate(
        {
            "paper": "p",
            "title": "t",
            "authors": ["a"],
            "venue": "v",
            "basis": "abstract",
            "claims": [
                {
                    "id": claim,
                    "statement": f"statement of {claim}",
                    "extension": extension,
                    "checks": [
                        {"measure": "m", "threshold": ">= 10", "rule": "interval"} | one
                        for one in checks
                    ],
                }
                for claim, checks in claims
            ],
        }
    )


def measures(folder: Path, *rows: dict) -> pd.DataFrame:
    write_measures(rows, folder / "measures.csv")
    return read_measures(folder / "measures.csv")


def seeds(check_id: str, *values: float) -> list[dict]:
    return [{"check": check_id, "seed": n, "value": value} for n, value in enumerate(values)]


def test_ledger(tmp_path: Path) -> None:
    file = seed_file(
        (
            "p-1",
            [
                {"id": "p-1a"},
                {"id": "p-1b", "rule": "every_seed", "threshold": "< 5"},
                {"id": "p-1c", "interval": "bootstrap"},
                {"id": "p-1d", "interval": "exact"},
                {"id": "p-1e", "needs_paper_scale": "too large"},
            ],
        )
    )
    rows = measures(
        tmp_path,
        *seeds("p-1b", 1, 3, 2),
        *seeds("p-1a", 12, 12.2),
        {"check": "p-1c", "value": 9, "ci_low": 8, "ci_high": 11, "n": 40, "note": "over users"},
        {"check": "p-1d", "value": 3, "n": 1},
    )
    found = ledger(file, rows, "laptop")
    assert list(found.columns) == COLUMNS
    assert found["claim"].tolist() == ["p-1a", "p-1b", "p-1c", "p-1d", "p-1e"]
    assert found["verdict"].tolist() == [
        *("reproduced", "reproduced", "inconclusive", "contradicted", "needs paper scale"),
    ]
    assert found["value"].tolist()[:4] == pytest.approx([12.1, 2, 9, 3])
    assert math.isnan(found["value"].tolist()[4])
    assert found["ci_low"].tolist()[1:4] == [1, 8, 3]
    assert found["ci_high"].tolist()[1:4] == [3, 11, 3]
    assert found["n"].tolist() == [2, 3, 40, 1, 0]
    assert found["threshold"].tolist()[:2] == [">= 10", "< 5"]
    assert found["note"].tolist() == [
        "",
        "interval: smallest and largest seed",
        "interval: bootstrap; over users",
        "deterministic: the value is the interval",
        "too large",
    ]
    assert set(found["scale"]) == {"laptop"}
    assert set(found["basis"]) == {"abstract"}
    write_ledger(found, tmp_path / "checks.csv")
    lines = (tmp_path / "checks.csv").read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert lines[5] == (
        "p,p-1e,statement of p-1,m,,,,>= 10,0,needs paper scale,laptop,abstract,too large"
    )


def test_undecided_check_shows_its_measure(tmp_path: Path) -> None:
    file = seed_file(("p-1", [{"id": "p-1a", "needs_paper_scale": "too large"}]))
    rows = measures(tmp_path, *seeds("p-1a", 3, 4))
    found = ledger(file, rows, "laptop").iloc[0]
    assert (found["verdict"], found["value"], found["n"]) == ("needs paper scale", 3.5, 2)
    assert ledger(file, rows, "paper").iloc[0]["verdict"] in ("contradicted", "inconclusive")
    with pytest.raises(InputError, match="p-1a: the evaluation gives no measure"):
        ledger(file, measures(tmp_path), "paper")


def test_extension_is_said(tmp_path: Path) -> None:
    file = seed_file(("p-1", [{"id": "p-1a"}]), extension=True)
    found = ledger(file, measures(tmp_path, *seeds("p-1a", 12, 12.1)), "laptop")
    assert found["note"].tolist() == ["our own extension, not a claim of the paper"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "p-1a: the evaluation gives no measure for this check"),
        ([*seeds("p-1a", 1, 2), *seeds("p-9", 1)], "p: measure 'p-9' belongs to no check"),
        (seeds("p-1a", 1, math.inf), "p-1a: measures must be finite"),
        (seeds("p-1a", 1, math.nan), "p-1a: measures must be finite"),
        ([*seeds("p-1a", 1, 2), *seeds("p-1a", 3)], "p-1a: seed 0 stands twice in the measures"),
    ],
)
def test_wrong_measures(tmp_path: Path, rows: list[dict], message: str) -> None:
    file = seed_file(("p-1", [{"id": "p-1a"}]))
    with pytest.raises(InputError, match=message):
        ledger(file, measures(tmp_path, *rows), "laptop")


@pytest.mark.parametrize("interval", ["bootstrap", "exact"])
def test_interval_of_its_own_has_one_row(tmp_path: Path, interval: str) -> None:
    file = seed_file(("p-1", [{"id": "p-1a", "interval": interval}]))
    with pytest.raises(InputError, match=f"p-1a: an interval '{interval}' has one row, got 2"):
        ledger(file, measures(tmp_path, *seeds("p-1a", 1, 2)), "laptop")


@pytest.mark.parametrize("ends", [{}, {"ci_low": 1}, {"ci_high": 4}, {"ci_low": 4, "ci_high": 1}])
def test_bootstrap_without_a_proper_interval(tmp_path: Path, ends: dict) -> None:
    file = seed_file(("p-1", [{"id": "p-1a", "interval": "bootstrap"}]))
    rows = measures(tmp_path, {"check": "p-1a", "value": 2} | ends)
    with pytest.raises(InputError, match="p-1a: a bootstrap measure needs ci_low and ci_high"):
        ledger(file, rows, "laptop")


VERDICTS = {
    "contradicted": [1.0, 1.1],
    "inconclusive": [9.0, 12.0],
    "needs paper scale": None,
    "reproduced": [12.0, 12.1],
}


@pytest.mark.parametrize("first", VERDICTS)
@pytest.mark.parametrize("second", VERDICTS)
def test_a_claim_is_as_good_as_its_weakest_check(tmp_path: Path, first: str, second: str) -> None:
    checks, rows = [], []
    for name, wanted in (("p-1a", first), ("p-1b", second)):
        values = VERDICTS[wanted]
        checks.append({"id": name} | ({} if values else {"needs_paper_scale": "too large"}))
        rows += seeds(name, *values) if values else []
    file = seed_file(("p-1", checks))
    judged = ledger(file, measures(tmp_path, *rows), "laptop")
    assert judged["verdict"].tolist() == [first, second]
    (claim,) = by_claim(file, judged).to_dict("records")
    order = list(VERDICTS)
    weakest = min(first, second, key=order.index)
    assert claim["claim"] == "p-1"
    assert claim["verdict"] == weakest
    decisive = "p-1a" if first == weakest else "p-1b"
    count = [first, second].count(weakest)
    assert claim["note"].startswith(f"weakest of 2 checks: {decisive} ({count} {weakest})")


def test_one_check_needs_no_count(tmp_path: Path) -> None:
    file = seed_file(("p-1", [{"id": "p-1a"}]), ("p-2", [{"id": "p-2a"}]))
    rows = measures(tmp_path, *seeds("p-2a", 1, 1.1), *seeds("p-1a", 12, 12.1))
    claims = by_claim(file, ledger(file, rows, "laptop"))
    assert claims["claim"].tolist() == ["p-1", "p-2"]
    assert claims["verdict"].tolist() == ["reproduced", "contradicted"]
    assert claims["note"].tolist() == ["", ""]
