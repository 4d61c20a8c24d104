"""What the rules ask of the library."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from retable.common.errors import InputError
from retable.common.project import Project

ROOT = Path(__file__).resolve().parents[2]
TRIAL = ROOT / "tests" / "workflow" / "trial"


class Wildcards(SimpleNamespace):
    def items(self):
        return vars(self).items()


@pytest.fixture
def project(tmp_path, monkeypatch):
    import shutil
    import sys

    for source in (ROOT, TRIAL):
        for folder in ("src", "rules", "config", "workflow", "seeds"):
            if (source / folder).exists():
                shutil.copytree(source / folder, tmp_path / folder, dirs_exist_ok=True)
    # The trial paper's configuration is imported from the copy.
    monkeypatch.syspath_prepend(str(TRIAL / "src"))
    import retable

    monkeypatch.setattr(retable, "__path__", [*retable.__path__, str(TRIAL / "src" / "retable")])
    monkeypatch.chdir(tmp_path)
    yield Project(tmp_path, {"papers": ["trial"]})
    for name in [name for name in sys.modules if name.startswith("retable.trial")]:
        del sys.modules[name]


def test_settings_are_canonical_and_without_seeds(project):
    params = project.step("trial", "train")
    settings = params["settings"](Wildcards(scale="laptop"))
    assert settings == json.dumps(json.loads(settings), sort_keys=True, separators=(",", ":"))
    assert set(json.loads(settings)) == {"epochs", "lr", "pause"}
    assert params["runs"] == "retable.trial.steps.train:train"


def test_a_part_of_the_settings_that_is_not_there_is_named(project):
    params = project.step("trial", "train", part="{method}")
    with pytest.raises(
        InputError, match=r"laptop: train: no settings for 'odd'; there are: epochs"
    ):
        params["settings"](Wildcards(scale="laptop", method="odd"))


def test_resources_are_those_of_the_scale(project):
    compute = project.compute("trial", "train")
    assert compute["gpu"](Wildcards(scale="paper")) == 1
    assert compute["gpu"](Wildcards(scale="laptop")) == 0
    assert compute["runtime"](Wildcards(scale="paper")) == 5


def test_seed_groups(project):
    assert project.seed_groups("trial", "laptop", "train") == ["0", "1"]


def test_captions_and_categories(project):
    assert project.category("table_trial.csv") == "trial"
    assert project.category("table_trial_speed.csv") == "trial"
    assert project.category("claims.csv") == "summary"
    assert project.caption("table_trial.csv").startswith("A trial (nowhere).")
    assert "weakest check" in project.caption("claims.csv")
