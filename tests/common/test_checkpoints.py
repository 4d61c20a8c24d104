"""Checkpoints: only whole ones of the same job are used."""

import logging
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from retable.common.checkpoints import Checkpoints

STATE = {"weights": torch.arange(5.0), "epoch": 3, "history": [{"loss": 0.5}], "none": None}


def test_round_trip(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    checkpoints = Checkpoints(tmp_path / "job", "identity")
    assert checkpoints.load() is None
    assert not (tmp_path / "job").exists()
    checkpoints.save(STATE)
    found = Checkpoints(tmp_path / "job", "identity").load()
    assert found is not None
    assert torch.equal(found.pop("weights"), STATE["weights"])
    assert found == {key: STATE[key] for key in ("epoch", "history", "none")}
    assert "going on from the checkpoint" in caplog.text


def test_names_are_apart(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "identity")
    checkpoints.save({"x": 1}, "pal/onn-seed0".replace("/", "-"))
    checkpoints.save({"x": 2}, "b")
    assert checkpoints.load("pal-onn-seed0") == {"x": 1}
    assert checkpoints.load("b") == {"x": 2}
    assert checkpoints.load("c") is None


def test_due_counts_from_the_last_one(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "identity", seconds=0.2)
    assert not checkpoints.due()
    time.sleep(0.21)
    assert checkpoints.due()
    checkpoints.save({})
    assert not checkpoints.due()


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "short", "foreign"])
def test_damaged_one_is_discarded(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = Checkpoints(tmp_path, "identity")
    checkpoints.save(STATE)
    path = tmp_path / "state.pt"
    raw = bytearray(path.read_bytes())
    if damage == "flip":
        raw[len(raw) // 2] ^= 1
    content = {
        "cut": bytes(raw[:-7]),
        "flip": bytes(raw),
        "empty": b"",
        "short": b"x" * 20,
        "foreign": b"PK" + b"x" * 500,
    }
    path.write_bytes(content[damage])
    assert checkpoints.load() is None
    assert f"{path}: the checkpoint is damaged; starting anew" in caplog.text
    assert not path.exists()


def test_one_of_other_settings_is_discarded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Checkpoints(tmp_path, "old").save(STATE)
    assert Checkpoints(tmp_path, "new").load() is None
    assert "settings, code or data have changed; starting anew" in caplog.text
    assert not (tmp_path / "state.pt").exists()


def test_python_objects_are_not_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A state that only a pickle could hold is discarded, not run, and no attempt fails on it."""
    checkpoints = Checkpoints(tmp_path, "identity")
    checkpoints.save({"path": Path("x")})
    assert checkpoints.load() is None
    assert "the checkpoint cannot be read" in caplog.text
    assert not (tmp_path / "state.pt").exists()


def test_leftovers_of_a_killed_write_are_removed(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "identity")
    checkpoints.save(STATE)
    (tmp_path / ".state.part-1.pt").write_bytes(b"half")
    assert checkpoints.load() is not None
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]


def test_full_disk_keeps_the_old_one(tmp_path: Path) -> None:
    """Real: the system refuses to let a file grow beyond the limit."""
    checkpoints = Checkpoints(tmp_path, "identity")
    checkpoints.save(STATE)
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        status = 0
        try:
            checkpoints.save({"weights": torch.zeros(10_000)})
        except OSError as error:
            status = 7 if error.filename == str(tmp_path / "state.pt") else 8
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert checkpoints.load() is not None
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]


def test_importing_it_does_not_import_torch() -> None:
    code = "import sys, retable.common.checkpoints as c; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
