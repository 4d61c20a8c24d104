"""Tidy rows survive writing and reading; wrong ones are refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from retable.common.errors import InputError
from retable.common.metrics import (
    COLUMNS,
    MEASURE_COLUMNS,
    read_measures,
    read_metrics,
    write_csv,
    write_measures,
    write_metrics,
)

ROW = {"experiment": "e", "dataset": "d", "method": "m", "seed": 0, "metric": "acc", "value": 0.5}


def test_round_trip(tmp_path: Path) -> None:
    rows = [
        ROW,
        ROW | {"seed": None, "metric": "loss", "value": -1e-7, "x": 3},
        ROW | {"method": "pal/onn, deep", "dataset": 'a "b"', "value": np.float32(0.25)},
    ]
    write_metrics(rows, tmp_path / "a.csv")
    frame = read_metrics(tmp_path / "a.csv")
    assert list(frame.columns) == list(COLUMNS)
    assert frame["value"].tolist() == [0.5, -1e-7, 0.25]
    assert frame["seed"].isna().tolist() == [False, True, False]
    assert frame["x"].tolist()[1] == 3
    assert frame["method"].tolist() == ["m", "m", "pal/onn, deep"]
    assert frame["dataset"].tolist()[2] == 'a "b"'


@pytest.mark.parametrize("word", ["None", "none", "NA", "null", "nan", "N/A", "1", "1e3", "True"])
def test_names_that_look_like_something_else(tmp_path: Path, word: str) -> None:
    """A method may be called None: no defence at all."""
    names = dict.fromkeys(("experiment", "dataset", "method", "metric"), word)
    write_metrics([ROW | names], tmp_path / "a.csv")
    assert read_metrics(tmp_path / "a.csv")["method"].tolist() == [word]
    write_measures([{"check": word, "value": 1, "note": word}], tmp_path / "b.csv")
    frame = read_measures(tmp_path / "b.csv")
    assert (frame["check"].tolist(), frame["note"].tolist()) == ([word], [word])


def test_bytes(tmp_path: Path) -> None:
    write_metrics([ROW | {"value": 1 / 3}, ROW | {"seed": None, "value": 2}], tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == (
        b"experiment,dataset,method,seed,metric,x,value\ne,d,m,0,acc,,0.333333333\ne,d,m,,acc,,2\n"
    )


def test_several_files_in_the_order_given(tmp_path: Path) -> None:
    for name, seeds in {"a": [1], "b": [0, 2], "empty": []}.items():
        write_metrics([ROW | {"seed": seed} for seed in seeds], tmp_path / f"{name}.csv")
    order = [tmp_path / f"{name}.csv" for name in ("b", "empty", "a")]
    assert read_metrics(order)["seed"].tolist() == [0, 2, 1]
    assert len(read_metrics(tmp_path / "empty.csv")) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, r"unknown \['colour'\]"),
        ({"value": None}, r"missing \['value'\]"),
        ({"dataset": None}, r"missing \['dataset'\]"),
        ({"value": "high"}, "high"),
        ({"seed": 1.5}, "."),
    ],
)
def test_wrong_row(tmp_path: Path, change: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        write_metrics([ROW, ROW | change], tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()


def test_measures(tmp_path: Path) -> None:
    rows = [
        {"check": "p-1", "seed": 0, "value": 1.5},
        {"check": "p-2", "value": 2.0, "ci_low": 1.0, "ci_high": 3.0, "n": 10, "note": "users"},
    ]
    write_measures(rows, tmp_path / "m.csv")
    frame = read_measures(tmp_path / "m.csv")
    assert list(frame.columns) == list(MEASURE_COLUMNS)
    assert frame["n"].tolist()[1] == 10
    assert frame["ci_low"].isna().tolist() == [True, False]
    with pytest.raises(ValueError, match=r"missing \['check'\]"):
        write_measures([{"value": 1.0}], tmp_path / "n.csv")


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "experiment,dataset\n", "\0\1"])
def test_wrong_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=r"a\.csv: "):
        read_metrics(tmp_path / "a.csv")


def test_numbers_that_are_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("experiment,dataset,method,seed,metric,x,value\ne,d,m,0,a,,b\n")
    with pytest.raises(InputError, match=r"a\.csv: .*'b'"):
        read_metrics(tmp_path / "a.csv")


def test_line_ends_and_digits(tmp_path: Path) -> None:
    write_csv(pd.DataFrame({"a": [1.23456789012, 1e-20], "b": ["x", None]}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == b"a,b\n1.23456789,x\n1e-20,\n"
