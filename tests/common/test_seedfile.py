"""Seed files: what is refused, with which words."""

import copy
from pathlib import Path

import pytest
import yaml

from retable.common.errors import InputError
from retable.common.seedfile import Check, read_seed_file

GOOD = {
    "paper": "made",
    "title": "A title",
    "authors": ["A. Author"],
    "venue": "ICML 2024",
    "links": {"paper": "https://example.org"},
    "basis": "the abstract",
    "claims": [
        {
            "id": "made-1",
            "statement": "It is better.",
            "checks": [
                {"id": "made-1a", "measure": "gain", "threshold": ">= 10", "rule": "interval"},
                {"id": "made-1b", "measure": "size", "needs_paper_scale": "too large"},
            ],
        },
        {
            "id": "made-2",
            "statement": "It is faster.",
            "extension": True,
            "checks": [
                {"id": "made-2a", "measure": "t", "threshold": "< -1.5e-3", "rule": "every_seed"}
            ],
        },
    ],
    "reported": [
        {
            "experiment": "e",
            "dataset": "d",
            "method": "m",
            "metric": "acc",
            "value": 0.5,
            "source": "Table 1",
        }
    ],
}


def write(folder: Path, content: object) -> Path:
    path = folder / "made.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_good_file(tmp_path: Path) -> None:
    found = read_seed_file(write(tmp_path, GOOD))
    assert [claim.id for claim in found.claims] == ["made-1", "made-2"]
    assert found.claims[0].checks[0].bound() == (">=", 10.0)
    assert found.claims[1].checks[0].bound() == ("<", -0.0015)
    assert found.claims[1].extension
    assert found.reported[0].value == 0.5


def set_to(path: str, value: object) -> dict:
    content = copy.deepcopy(GOOD)
    *parents, last = (int(key) if key.isdigit() else key for key in path.split("."))
    part = content
    for key in parents:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("title", None, "title: Field required"),
        ("colour", "red", "colour: Extra inputs are not permitted, got 'red'"),
        ("claims", [], "claims: .*at least 1 item"),
        ("claims.0.checks", [], r"claims\.0\.checks: .*at least 1 item"),
        ("claims.0.checks.0.threshold", "10", "must be one of >=, >, <=, < and a number.*got '10'"),
        ("claims.0.checks.0.threshold", "== 10", "must be one of >=, >, <=, <"),
        ("claims.0.checks.0.threshold", ">= ten", "must be one of >=, >, <=, <"),
        ("claims.0.checks.0.threshold", 10, r"checks\.0\.threshold: .*valid string.*got 10"),
        ("claims.0.checks.0.threshold", None, "threshold and rule go together"),
        ("claims.0.checks.0.rule", None, "threshold and rule go together"),
        ("claims.0.checks.0.rule", "mean", "'interval' or 'every_seed'.*got 'mean'"),
        ("claims.0.checks.0.interval", "z", "'t', 'bootstrap' or 'exact'.*got 'z'"),
        ("claims.0.checks.1.needs_paper_scale", None, "needs a threshold and a rule, or needs_pap"),
        ("claims.1.id", "made-1", "the claim made-1 stands there twice"),
        ("claims.1.checks.0.id", "made-1a", "the check made-1a stands there twice"),
        ("claims.1.id", "other-2", "'other-2' must begin with 'made-'"),
        ("claims.1.checks.0.id", "2a", "'2a' must begin with 'made-'"),
        ("reported.0.value", "high", r"reported\.0\.value: .*got 'high'"),
        ("reported.0.value", float("inf"), r"reported\.0\.value: .*finite"),
        ("reported", [GOOD["reported"][0]] * 2, "reported: .*e, d, m, acc.* stands there twice"),
    ],
)
def test_mistake_is_named(tmp_path: Path, path: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=rf"made\.yaml: .*{message}"):
        read_seed_file(write(tmp_path, set_to(path, value)))


@pytest.mark.parametrize("content", [None, [1], "text"])
def test_not_a_mapping(tmp_path: Path, content: object) -> None:
    with pytest.raises(InputError, match=r"made\.yaml: \(top level\): .*valid dictionary"):
        read_seed_file(write(tmp_path, content))


def test_broken_and_missing_file(tmp_path: Path) -> None:
    (tmp_path / "made.yaml").write_text("paper: [1\ntitle: x\n")
    with pytest.raises(InputError, match=r"made\.yaml, line 2: not valid YAML"):
        read_seed_file(tmp_path / "made.yaml")
    (tmp_path / "made.yaml").write_text("paper: a\npaper: b\n")
    with pytest.raises(InputError, match=r"line 2: .*'paper' stands there twice"):
        read_seed_file(tmp_path / "made.yaml")
    with pytest.raises(InputError, match=r"none\.yaml: there is no such file"):
        read_seed_file(tmp_path / "none.yaml")


def test_check_without_a_threshold_has_no_bound() -> None:
    check = Check(id="a", measure="m", needs_paper_scale="too large")
    with pytest.raises(ValueError, match="check a has no threshold"):
        check.bound()
