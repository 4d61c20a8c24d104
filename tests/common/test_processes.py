"""Several processes for one job: they share the batches, stop together, and go on together."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from retable.common.processes import count_processes

SCRIPT = """
import os, sys, time
from pathlib import Path
import torch
from safetensors.torch import save_file
from torch import nn
from retable.common.checkpoints import Checkpoints
from retable.common.errors import InputError
from retable.common.jobs import Job, run, run_share
from retable.common.training import minibatches, train as run_training

folder, processes, pause = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])


def train(data: Path, model: Path, *, checkpoints: Checkpoints):
    rank = os.environ.get("RANK", "0")
    (folder / f"process{rank}").write_text(str(model))
    if data.read_text() == "bad":
        raise InputError("data: 'bad' is not allowed")
    x = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] * x[:, 1] > 0).long()
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))

    def after_step(step):
        (folder / "begun").touch()
        time.sleep(pause)

    run_training(
        net, torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9),
        lambda net, i: nn.functional.cross_entropy(net(x[i]), y[i]),
        minibatches(64, 16, seed=2), epochs=20, after_step=after_step, checkpoints=checkpoints,
    )
    save_file(net.state_dict(), model)


if len(sys.argv) > 4:
    sys.exit(run_share(Path(sys.argv[4]), lambda: train))
(folder / "log").mkdir(exist_ok=True)
job = Job(
    inputs={"data": folder / "data"},
    outputs={"model": folder / "out" / "model.safetensors"},
    wildcards={}, settings="{}", code="code",
    log=folder / "logs" / "train.log", step="retable.p.steps.train", processes=processes,
)
sys.exit(run(job, lambda: train, [__file__, *sys.argv[1:4]]))
"""


def start(folder: Path, processes: int, pause: float = 0.0, data: str = "good") -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    (folder / "data").write_text(data)
    (folder / "script.py").write_text(SCRIPT)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",
        "HF_HOME": str(folder),
        "RETABLE_RUN": "run",
    }
    arguments = [str(folder), str(processes), str(pause)]
    return subprocess.Popen(
        [sys.executable, str(folder / "script.py"), *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def status(folder: Path) -> str:
    rows = (folder / "costs" / "train.jsonl").read_text().splitlines()
    return json.loads(rows[-1])["status"]


@pytest.mark.slow
def test_two_processes_do_the_job_of_one(tmp_path: Path) -> None:
    models = {}
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        assert start(folder, processes).wait(120) == 0
        models[processes] = load_file(folder / "out" / "model.safetensors")
        assert len(list(folder.glob("process?"))) == processes
        assert [path.name for path in (folder / "out").iterdir()] == ["model.safetensors"]
        assert not (folder / "checkpoints" / "train").exists()
        assert status(folder) == "done"
    assert "2 processes" in (tmp_path / "2" / "logs" / "train.log").read_text()
    for name, tensor in models[1].items():
        assert torch.allclose(tensor, models[2][name], rtol=1e-4, atol=1e-5), name

    # Asked to stop, they stop at the same step; the next attempt ends with the same bytes.
    folder = tmp_path / "stopped"
    process = start(folder, 2, pause=0.1)
    until = time.monotonic() + 60
    while not (folder / "begun").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert status(folder) == "stopped"
    assert not (folder / "out" / "model.safetensors").exists()
    assert len(list((folder / "checkpoints" / "train").glob("*.pt"))) == 2
    assert start(folder, 2).wait(120) == 0
    assert "going on from the checkpoint" in (folder / "logs" / "train.log").read_text()
    for name, tensor in load_file(folder / "out" / "model.safetensors").items():
        assert torch.equal(tensor, models[2][name]), name


def test_bad_input_is_told_once_and_not_tried_again(tmp_path: Path) -> None:
    process = start(tmp_path, 2, data="bad")
    assert process.wait(120) == 1
    log = (tmp_path / "logs" / "train.log").read_text()
    assert "data: 'bad' is not allowed" in log
    assert not list((tmp_path / "out").iterdir())
    # The second attempt of the same run ends at once: no process is started for it.
    for file in tmp_path.glob("process?"):
        file.unlink()
    assert start(tmp_path, 2, data="bad").wait(120) == 1
    assert not list(tmp_path.glob("process?"))


def test_not_more_processes_than_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    assert [count_processes(wanted) for wanted in (0, 1)] == [1, 1]
    assert count_processes(64) == max(1, min(64, torch.cuda.device_count()))
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert count_processes(64) == 64
