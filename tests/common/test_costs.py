"""The sum of costs from the notes that jobs leave."""

import json
from pathlib import Path

import pytest

from retable.common.costs import COLUMNS, sum_costs


def note(folder: Path, job: str, step: str, cpu: float, **more: object) -> None:
    folder.mkdir(exist_ok=True)
    row = {
        "step": f"retable.p.steps.{step}",
        "job": job,
        "status": "done",
        "cpu_s": cpu,
        "wall_s": 2 * cpu,
        "peak_mib": 100.0,
        "reserved_cores": 1,
    } | more
    with (folder / f"{job}.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def test_attempts_are_added_and_peaks_are_not(tmp_path: Path) -> None:
    note(tmp_path / "a", "train_x", "train", 2.0, status="stopped", peak_mib=300.0)
    note(tmp_path / "a", "train_x", "train", 3.0)
    note(tmp_path / "a", "train_y", "train", 5.0, reserved_cores=4)
    note(tmp_path / "a", "table", "table", 1.0)
    note(tmp_path / "b", "table", "table", 7.0)
    found = sum_costs({"a": tmp_path / "a", "b": tmp_path / "b"})
    assert list(found.columns) == list(COLUMNS)
    rows = {(row["paper"], row["step"]): row for row in found.to_dict("records")}
    train = rows["a", "train"]
    assert (train["jobs"], train["attempts"], train["cpu_s"], train["wall_s"]) == (2, 3, 10, 20)
    assert (train["peak_mib"], train["reserved_cores"]) == (300.0, 4)
    assert rows["a", "table"]["cpu_s"] == pytest.approx(1)
    assert rows["b", "table"]["cpu_s"] == pytest.approx(7)


def test_nothing_ran(tmp_path: Path) -> None:
    found = sum_costs({"a": tmp_path / "none"})
    assert list(found.columns) == list(COLUMNS)
    assert len(found) == 0


def test_half_a_line_of_a_killed_job_is_passed_over(tmp_path: Path) -> None:
    note(tmp_path / "a", "train", "train", 2.0)
    with (tmp_path / "a" / "train.jsonl").open("a") as file:
        file.write('{"step": "retable.p.st')
    note(tmp_path / "a", "table", "table", 1.0)
    assert sum_costs({"a": tmp_path / "a"})["cpu_s"].tolist() == [1.0, 2.0]
