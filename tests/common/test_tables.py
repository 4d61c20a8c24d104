"""Tables: aggregation over seeds, and the paper's numbers beside ours."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from retable.common.metrics import read_metrics, write_metrics
from retable.common.seedfile import SeedFile
from retable.common.tables import COLUMNS, add_reported, aggregate, write_table


def row(method: str, seed: int | None, value: float, **more: object) -> dict:
    return {
        "experiment": "e",
        "dataset": "d",
        "method": method,
        "seed": seed,
        "metric": "acc",
        "value": value,
    } | more


def frame(rows: list[dict], folder: Path) -> pd.DataFrame:
    write_metrics(rows, folder / "rows.csv")
    return read_metrics(folder / "rows.csv")


def seed_file(*reported: tuple[str, float]) -> SeedFile:
    check = {"id": "p-1a", "measure": "m", "threshold": ">= 1", "rule": "interval"}
    return SeedFile.model_validate(
        {
            "paper": "p",
            "title": "t",
            "authors": ["a"],
            "venue": "v",
            "basis": "b",
            "claims": [{"id": "p-1", "statement": "s", "checks": [check]}],
            "reported": [
                {
                    "experiment": "e",
                    "dataset": "d",
                    "method": method,
                    "metric": "acc",
                    "value": value,
                    "source": "Table 1",
                }
                for method, value in reported
            ],
        }
    )


def test_mean_spread_and_interval(tmp_path: Path) -> None:
    values = [0.5, 0.7, 0.9]
    table = aggregate(frame([row("m", seed, v) for seed, v in enumerate(values)], tmp_path))
    (found,) = table.to_dict("records")
    low, high = stats.t.interval(0.95, 2, 0.7, stats.sem(values))
    assert found["mean"] == pytest.approx(0.7)
    assert found["std"] == pytest.approx(0.2)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high))
    assert found["n_seeds"] == 3
    assert list(table.columns) == list(COLUMNS[:-2])


def test_one_seed_and_no_seed_have_no_interval(tmp_path: Path) -> None:
    table = aggregate(frame([row("one", 4, 0.5), row("none", None, 0.6)], tmp_path))
    assert table["mean"].tolist() == [0.5, 0.6]
    assert table["n_seeds"].tolist() == [1, 1]
    assert table[["std", "ci_low", "ci_high"]].isna().all(axis=None)


def test_order_is_that_of_the_rows(tmp_path: Path) -> None:
    rows = [row(method, seed, 0.5) for seed in (0, 1) for method in ("z", "a", "m")]
    assert aggregate(frame(rows, tmp_path))["method"].tolist() == ["z", "a", "m"]


def test_equal_values_have_no_spread(tmp_path: Path) -> None:
    table = aggregate(frame([row("m", seed, 0.1) for seed in range(3)], tmp_path))
    assert table[["mean", "std", "ci_low", "ci_high"]].to_numpy().tolist() == [[0.1, 0, 0.1, 0.1]]


@pytest.mark.parametrize("seeds", [[0, 1, 1], [None, None]])
def test_seed_that_stands_twice(tmp_path: Path, seeds: list) -> None:
    with pytest.raises(ValueError, match="a seed stands there twice"):
        aggregate(frame([row("m", seed, 0.5) for seed in seeds], tmp_path))


def test_value_that_is_not_finite(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        aggregate(frame([row("m", 0, 0.5), row("m", 1, np.nan)], tmp_path))


def test_extra_keys(tmp_path: Path) -> None:
    rows = [row("m", seed, seed + x, x=x) for x in (10, 20) for seed in (0, 1)]
    table = aggregate(frame(rows, tmp_path), extra_keys=["x"])
    assert table["x"].tolist() == [10, 20]
    assert table["mean"].tolist() == [10.5, 20.5]
    with pytest.raises(ValueError, match="twice"):
        aggregate(frame(rows, tmp_path))
    # Rows without an x are a quantity of their own.
    mixed = frame([*rows, row("m", 0, 7.0)], tmp_path)
    assert aggregate(mixed, extra_keys=["x"])["mean"].tolist() == [10.5, 20.5, 7.0]


def test_reported_numbers_stand_beside_ours(tmp_path: Path) -> None:
    table = aggregate(frame([row("ours", 0, 0.5), row("theirs", 0, 0.4)], tmp_path))
    found = add_reported(table, seed_file(("theirs", 0.41), ("never run", 0.3)))
    assert list(found.columns) == list(COLUMNS)
    assert found["method"].tolist() == ["ours", "theirs", "never run"]
    assert found["reported"].tolist()[1:] == [0.41, 0.3]
    assert np.isnan(found["reported"].tolist()[0])
    assert np.isnan(found["mean"].tolist()[2])
    assert found["source"].tolist()[1:] == ["Table 1", "Table 1"]
    beside = add_reported(table, seed_file(("theirs", 0.41), ("never run", 0.3)), append=False)
    assert beside["method"].tolist() == ["ours", "theirs"]


def test_nothing_reported(tmp_path: Path) -> None:
    table = aggregate(frame([row("ours", 0, 0.5)], tmp_path))
    found = add_reported(table, seed_file())
    assert list(found.columns) == list(COLUMNS)
    assert found["reported"].isna().all()


def test_everything_reported_and_nothing_measured(tmp_path: Path) -> None:
    table = aggregate(frame([], tmp_path))
    found = add_reported(table, seed_file(("a", 0.1), ("b", 0.2)))
    assert found["reported"].tolist() == [0.1, 0.2]
    assert list(found.columns) == list(COLUMNS)


def test_with_extra_keys_each_row_gets_the_number(tmp_path: Path) -> None:
    rows = [row("m", 0, 1.0, x=x) for x in (1, 2)]
    found = add_reported(aggregate(frame(rows, tmp_path), extra_keys=["x"]), seed_file(("m", 0.3)))
    assert found["reported"].tolist() == [0.3, 0.3]
    write_table(found, tmp_path / "t.csv")
    assert pd.read_csv(tmp_path / "t.csv").columns.tolist() == [*COLUMNS, "x"]


def test_written_table(tmp_path: Path) -> None:
    table = aggregate(frame([row("m", 0, 0.25), row("m", 1, 0.75), row("k", 0, 1)], tmp_path))
    write_table(add_reported(table, seed_file(("q", 2))), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "experiment,dataset,method,metric,mean,std,ci_low,ci_high,n_seeds,reported,source",
        "e,d,m,acc,0.5,0.353553391,-2.67655118,3.67655118,2,,",
        "e,d,k,acc,1,,,,1,,",
        "e,d,q,acc,,,,,,2,Table 1",
    ]
