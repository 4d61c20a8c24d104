"""Configuration: a mistake is one line with the file, the key, the value and what is allowed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from retable.common.configuration import (
    canonical_json,
    known_papers,
    load_paper,
    load_project,
    merge,
    read_yaml,
    selected_papers,
)
from retable.common.errors import InputError
from retable.common.project import Project

MODEL = """
from typing import Literal
from pydantic import Field
from retable.common.settings import PaperConfig, Settings, StepSettings


class TrainSettings(StepSettings):
    epochs: int = Field(ge=1, le=1000)
    lr: float = Field(0.1, gt=0)
    kind: Literal["sgd", "adam"] = "sgd"


class Config(PaperConfig):
    datasets: tuple[str, ...]
    train: dict[str, TrainSettings]
"""
GOOD = {
    "base": {
        "seeds": [0, 1, 2],
        "datasets": ["iris", "wine"],
        "train": {"iris": {"epochs": 3, "lr": 0.5}, "wine": {"epochs": 4, "seeds_per_job": 2}},
        "resources": {"train": {"mem_mb": 4000}},
    },
    "smoke": {"seeds": [0], "train": {"iris": {"epochs": 1}}},
    "laptop": {},
    "paper": {"train": {"wine": {"epochs": 400}}, "resources": {"train": {"gpu": 1}}},
}
PAPER = "made_configuration_test"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with one paper, whose models are found beside the real ones."""
    import retable

    room = tmp_path / "src" / "retable" / PAPER
    room.mkdir(parents=True)
    (room / "__init__.py").write_text("")
    (room / "config.py").write_text(MODEL)
    for folder in ("config", "rules"):
        (tmp_path / folder).mkdir()
    (tmp_path / "rules" / f"{PAPER}.smk").write_text("")
    (tmp_path / "config" / "config.yaml").write_text("scale: laptop\n")
    (tmp_path / "config" / "without_rules.yaml").write_text("")
    write(tmp_path, GOOD)
    monkeypatch.setattr(retable, "__path__", [*retable.__path__, str(room.parent)])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(f"retable.{PAPER}")]:
        del sys.modules[name]


def write(root: Path, content: object) -> None:
    (root / "config" / f"{PAPER}.yaml").write_text(yaml.safe_dump(content))


def changed(path: str, value: object) -> dict:
    """GOOD with one value replaced; `path` as in `base.train.iris.epochs`."""
    content = yaml.safe_load(yaml.safe_dump(GOOD))
    *parents, last = path.split(".")
    part = content
    for key in parents:
        part = part.setdefault(key, {})
    part[last] = value
    return content


def test_scales_are_merged_over_base(root: Path) -> None:
    smoke, laptop, paper = (
        load_paper(PAPER, scale, root) for scale in ("smoke", "laptop", "paper")
    )
    assert smoke.seeds == (0,)
    assert laptop.seeds == (0, 1, 2)
    assert (smoke.train["iris"].epochs, smoke.train["iris"].lr) == (1, 0.5)
    assert (laptop.train["wine"].epochs, paper.train["wine"].epochs) == (4, 400)
    assert (paper.resources["train"].mem_mb, paper.resources["train"].gpu) == (4000, 1)


def test_lists_are_replaced_not_joined() -> None:
    assert merge({"a": [1, 2], "b": {"c": 1}}, {"a": [3], "b": {"d": 2}}) == {
        "a": [3],
        "b": {"c": 1, "d": 2},
    }


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        (
            "base.learning",
            1,
            ["learning: unknown key", "allowed: seeds, resources, datasets, train"],
        ),
        (
            "base.train.iris.epoch",
            3,
            ["train.iris.epoch: unknown key", "allowed: seeds_per_job, epochs, lr, kind"],
        ),
        ("base.resources.train.memory", 3, ["unknown key", "allowed: mem_mb, runtime, gpu"]),
        (
            "base.train.iris.epochs",
            0,
            ["train.iris.epochs: ", "greater than or equal to 1", "got 0"],
        ),
        ("base.train.iris.epochs", 1001, ["less than or equal to 1000", "got 1001"]),
        ("base.train.iris.epochs", 2.5, ["valid integer", "got 2.5"]),
        ("base.train.iris.epochs", "many", ["valid integer", "got 'many'"]),
        ("base.train.iris.lr", -1, ["train.iris.lr: ", "greater than 0", "got -1"]),
        ("base.train.iris.lr", float("nan"), ["train.iris.lr: ", "finite number", "got nan"]),
        ("base.train.iris.kind", "sgdd", ["train.iris.kind: ", "'sgd' or 'adam'", "got 'sgdd'"]),
        ("base.train.iris", 3, ["train.iris: ", "got 3"]),
        ("base.datasets", "iris", ["datasets: ", "got 'iris'"]),
        ("base.seeds", [], ["seeds: ", "at least 1 item", "got"]),
        ("base.seeds", [0, -1], ["seeds.1: ", "greater than or equal to 0", "got -1"]),
        ("base.resources.train.runtime", 0, ["resources.train.runtime: ", "got 0"]),
        ("base.train.iris.seeds_per_job", 0, ["seeds_per_job: ", "got 0"]),
    ],
)
def test_mistake_is_named(root: Path, path: str, value: object, parts: list[str]) -> None:
    write(root, changed(path, value))
    with pytest.raises(InputError) as caught:
        load_paper(PAPER, "laptop", root)
    message = str(caught.value)
    assert message.startswith(f"config/{PAPER}.yaml, laptop: ")
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_every_mistake_gets_its_line(root: Path) -> None:
    content = changed("base.train.iris.lr", -1)
    content["base"]["extra"] = 1
    write(root, content)
    with pytest.raises(InputError) as caught:
        load_paper(PAPER, "laptop", root)
    assert len(str(caught.value).splitlines()) == 2


def test_missing_key(root: Path) -> None:
    content = changed("base.datasets", [])
    del content["base"]["datasets"]
    write(root, content)
    with pytest.raises(InputError, match="laptop: datasets: is missing"):
        load_paper(PAPER, "laptop", root)


def test_mistake_in_one_scale_alone(root: Path) -> None:
    write(root, changed("paper.train.wine.epochs", -5))
    load_paper(PAPER, "laptop", root)
    with pytest.raises(InputError, match=rf"{PAPER}\.yaml, paper: train\.wine\.epochs: .*got -5"):
        load_paper(PAPER, "paper", root)
    # All scales are checked before any job starts.
    with pytest.raises(InputError, match=r"paper: train\.wine\.epochs"):
        Project(root, {})


def test_unknown_and_missing_sections(root: Path) -> None:
    write(root, GOOD | {"latop": {}})
    with pytest.raises(InputError, match="latop: unknown section; allowed: base, smoke, laptop, p"):
        load_paper(PAPER, "laptop", root)
    write(root, {key: value for key, value in GOOD.items() if key != "paper"})
    with pytest.raises(InputError, match=r"\.yaml: the section 'paper' is missing"):
        load_paper(PAPER, "paper", root)


@pytest.mark.parametrize("content", [None, [1, 2], "text"])
def test_not_a_mapping(root: Path, content: object) -> None:
    write(root, content)
    with pytest.raises(InputError, match=rf"config/{PAPER}\.yaml: must be a mapping with base"):
        load_paper(PAPER, "laptop", root)


@pytest.mark.parametrize("section", ["base", "laptop"])
@pytest.mark.parametrize("content", [[1, 2], "text", 3])
def test_section_that_is_no_mapping(root: Path, section: str, content: object) -> None:
    write(root, GOOD | {section: content})
    with pytest.raises(InputError, match=rf"config/{PAPER}\.yaml: {section}: must be a mapping"):
        load_paper(PAPER, "laptop", root)


def test_broken_yaml(root: Path) -> None:
    path = root / "config" / f"{PAPER}.yaml"
    path.write_text("base:\n  seeds: [0, 1\nlaptop: {}\n")
    with pytest.raises(InputError, match=rf"{PAPER}\.yaml, line 3: not valid YAML: "):
        load_paper(PAPER, "laptop", root)
    path.write_bytes(b"base:\n  name: \xff\xfe\n")
    with pytest.raises(InputError, match=rf"{PAPER}\.yaml.*: not valid YAML"):
        load_paper(PAPER, "laptop", root)


def test_key_that_stands_twice(tmp_path: Path) -> None:
    """YAML would take the last one without a word."""
    (tmp_path / "a.yaml").write_text("base:\n  lr: 1\n  epochs: 3\n  lr: 2\n")
    with pytest.raises(InputError, match=r"a\.yaml, line 4: .*'lr' stands there twice"):
        read_yaml(tmp_path / "a.yaml")


def test_missing_file(root: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: there is no such file"):
        load_paper("none", "laptop", root)


def test_project(root: Path) -> None:
    assert load_project({}).scale == "laptop"
    assert known_papers(root) == [PAPER]
    assert selected_papers(load_project({}), root) == [PAPER]
    assert Project(root, {"papers": [PAPER]}).papers == [PAPER]


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"scale": "latop"}, ["scale: ", "'smoke', 'laptop' or 'paper'", "got 'latop'"]),
        ({"scales": "laptop"}, ["scales: unknown key; allowed: scale, papers, cache, data"]),
        ({"checkpoint_seconds": 0}, ["checkpoint_seconds: ", "greater than 0", "got 0"]),
        (
            {"papers": ["none"]},
            ["papers: there is no paper 'none'; known: made_configuration_test"],
        ),
        ({"data": {"minst": "/x"}}, ["data: there is no data set 'minst'; known: mnist, "]),
        ({"data": {"mnist": "/no/such"}}, ["data: mnist: /no/such: no such file"]),
    ],
)
def test_mistake_in_the_project(root: Path, values: dict, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Project(root, values)
    for part in ["config/config.yaml: ", *parts]:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("results/latop/claims.csv", "there is no scale 'latop'; allowed: smoke, laptop, paper"),
        ("results/table_none.csv", "there is no paper 'none'"),
        ("results/laptop/figure_none.png", "there is no paper 'none'"),
    ],
)
def test_mistaken_target(root: Path, target: str, message: str) -> None:
    with pytest.raises(InputError, match=f"target {target}: {message}"):
        Project(root, {}, [target])
    Project(root, {}, ["results/claims.csv", "results/data/mnist.npz", "--cores", "2"])


def test_canonical_json_ignores_order() -> None:
    assert canonical_json({"b": 1, "a": {"d": 2, "c": [1, 2]}}) == '{"a":{"c":[1,2],"d":2},"b":1}'
    assert canonical_json({"lr": 1, "wd": 2}) != canonical_json({"lr": 2, "wd": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"lr": float("nan")})


class Wildcards(dict):
    """As Snakemake's: attributes and items."""

    def __getattr__(self, name: str) -> str:
        return self[name]


def step_of(root: Path, code: str = "def train():\n    pass\n") -> None:
    steps = root / "src" / "retable" / PAPER / "steps"
    steps.mkdir()
    (root / "src" / "retable" / "__init__.py").write_text("")
    (steps / "__init__.py").write_text("")
    (steps / "train.py").write_text(code)
    script = root / "workflow" / "scripts" / "step.py"
    script.parent.mkdir(parents=True)
    script.write_text("")


def test_step_sees_its_own_part_of_the_settings(root: Path) -> None:
    step_of(root)
    project = Project(root, {})
    params = project.step(PAPER, "train", part="{dataset}", threads=1)
    assert params["runs"] == f"retable.{PAPER}.steps.train:train"
    assert params["threads"] == 1
    # Seeds in a job, and how many of them, change no result and stand in no settings.
    wine = params["settings"](Wildcards(scale="paper", dataset="wine"))
    assert wine == '{"epochs":400,"kind":"sgd","lr":0.1}'
    with pytest.raises(InputError, match="paper: train: no settings for 'beer'; there are: iris, "):
        params["settings"](Wildcards(scale="paper", dataset="beer"))
    assert project.step(PAPER, "train:other")["runs"] == f"retable.{PAPER}.steps.train:other"


def test_resources_and_seed_groups(root: Path) -> None:
    project = Project(root, {})
    compute = project.compute(PAPER, "train")
    assert [compute[name](Wildcards(scale="paper")) for name in ("mem_mb", "gpu")] == [4000, 1]
    other = project.compute(PAPER, "table")
    assert [other[name](Wildcards(scale="paper")) for name in ("mem_mb", "gpu")] == [2000, 0]
    assert project.seed_groups(PAPER, "laptop", "train", "wine") == ["0-1", "2"]
    assert project.seed_groups(PAPER, "laptop", "train", "iris") == ["0", "1", "2"]
