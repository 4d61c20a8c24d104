"""The training loop: what is killed goes on where it was, to the same bytes."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from retable.common import training
from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import save_arrays
from retable.common.errors import InputError
from retable.common.training import minibatches, train

JOB = '''
import json, os, random, signal, sys, threading, time
from pathlib import Path
import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.jobs import Job, run
from retable.common.seeds import Seeds
from retable.common.training import minibatches, train as run_training

folder = Path(sys.argv[1])
pause = float(sys.argv[2])
random_moment = random.Random()
# This attempt is killed at a random moment, and never gets further than so many steps.
steps_left = int(sys.argv[4])
EPOCHS = 12


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def batches_of(seed, x, y):
    """Each seed gets its batches in another of the ways that papers use."""
    indices = minibatches(len(x), 64, seed)
    if seed == 0:
        return lambda epoch: [(x[i], y[i]) for i in indices(epoch)]
    if seed == 1:
        def noisy(epoch):
            # The noise comes from torch's global generator, batch after batch.
            for i in indices(epoch):
                yield x[i] + 0.1 * torch.randn(len(i), x.shape[1]), y[i]
        return noisy
    return lambda epoch: DataLoader(
        TensorDataset(x, y), 64, shuffle=True, generator=torch.Generator().manual_seed(epoch)
    )


def train(data: Path, model: Path, history: Path, *, seeds: Seeds, checkpoints: Checkpoints):
    arrays = load_arrays(data)
    x, y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])
    weights, histories = {}, []
    for seed in seeds:
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 10))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)

        def loss(net, batch):
            global steps_left
            if not (folder / "started").exists():
                (folder / "started").touch()
                if steps_left:
                    threading.Timer(random_moment.uniform(0.02, 0.35), die).start()
            steps_left -= 1
            if steps_left == 0:
                die()
            time.sleep(pause)
            x, y = batch
            scale = 1 + 0.01 * random.random() + 0.01 * np.random.random()
            return scale * nn.functional.cross_entropy(net(x), y)

        def accuracy(epoch):
            net.eval()
            with torch.no_grad():
                return {"accuracy": np.mean((net(x).argmax(1) == y).numpy())}

        trained = run_training(
            net, optimizer, loss, batches_of(seed, x, y), epochs=EPOCHS,
            schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS),
            clip_norm=5.0, after_epoch=accuracy, best="accuracy",
            checkpoints=checkpoints, name=f"seed{seed}",
        )
        # Depends on the generators and on the mode that training has left behind.
        with torch.no_grad():
            weights[f"{seed}.after"] = net(x[:50]) + torch.randn(50, 10)
        weights |= {f"{seed}.last.{name}": value for name, value in net.state_dict().items()}
        weights |= {f"{seed}.best.{name}": value for name, value in trained.best_state.items()}
        histories.append([trained.best_epoch, trained.history])
    save_file(weights, model)
    history.write_text(json.dumps(histories))


out = folder / "out"
job = Job(
    inputs={"data": Path(sys.argv[3])},
    outputs={"model": out / "model.safetensors", "history": out / "history.json"},
    wildcards={"seeds": "0-2"},
    settings="{}",
    code="code",
    log=folder / "logs" / "train.log",
    step="retable.p.steps.train",
)
sys.exit(run(job, lambda: train))
'''
PAUSE = 0.003


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    save_arrays(path, {"x": (x[:700] / 16).astype(np.float32), "y": y[:700]})
    return path


def start(
    folder: Path, data: Path, *, pause: float = PAUSE, seconds: str = "0.05", die_within: int = 0
) -> Any:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RETABLE_CHECKPOINT_SECONDS": seconds,
        "RETABLE_RUN": "run",
        "OMP_NUM_THREADS": "1",
    }
    (folder / "started").unlink(missing_ok=True)
    arguments = [folder, str(pause), data, str(die_within)]
    return subprocess.Popen([sys.executable, "-c", JOB, *arguments], env=environment)


def wait_until_training(folder: Path, process: subprocess.Popen) -> None:
    until = time.monotonic() + 60
    while not (folder / "started").exists() and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.fixture(scope="module")
def uninterrupted(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert start(folder, digits, pause=0.0, seconds="1000").wait(120) == 0
    assert not (folder / "checkpoints" / "train").exists()
    return outputs(folder)


def test_it_learns(uninterrupted: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(uninterrupted["model.safetensors"])
    weights = load_file(tmp_path / "m")
    assert len(weights) == 27
    for best_epoch, history in json.loads(uninterrupted["history.json"]):
        assert [row["epoch"] for row in history] == list(range(1, 13))
        accuracies = [row["accuracy"] for row in history]
        assert accuracies[-1] > 0.9
        assert best_epoch == 1 + accuracies.index(max(accuracies))
        assert history[-1]["loss"] < history[0]["loss"]


def test_killed_ten_times(digits: Path, tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    for _ in range(10):
        # All ten together stay below the 396 steps of the three seeds.
        process = start(tmp_path, digits, die_within=38)
        assert process.wait(120) == -signal.SIGKILL
        assert not (tmp_path / "out" / "model.safetensors").exists()
    process = start(tmp_path, digits)
    assert process.wait(120) == 0
    assert outputs(tmp_path) == uninterrupted
    assert "going on from the checkpoint" in (tmp_path / "logs" / "train.log").read_text()
    assert not (tmp_path / "checkpoints" / "train").exists()


def test_sigterm(digits: Path, tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    """Once, and then again and again until the process has ended."""
    process = start(tmp_path, digits, pause=0.02, seconds="1000")
    wait_until_training(tmp_path, process)
    time.sleep(0.3)
    until = time.monotonic() + 30
    while process.poll() is None:
        assert time.monotonic() < until
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    assert process.returncode == 143
    assert not (tmp_path / "out" / "model.safetensors").exists()
    assert [path.name for path in (tmp_path / "checkpoints" / "train").iterdir()] == ["seed0.pt"]
    log = (tmp_path / "logs" / "train.log").read_text()
    assert re.search(r"asked to stop after step \d+; the next attempt goes on there", log)
    (cost,) = (tmp_path / "costs" / "train.jsonl").read_text().splitlines()
    assert json.loads(cost)["status"] == "stopped"
    # The next attempt of the same run goes on, to the same bytes.
    assert start(tmp_path, digits, pause=0.0).wait(120) == 0
    assert outputs(tmp_path) == uninterrupted


def model_and_optimizer(lr: float = 0.1) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=lr)


def data(count: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 3, generator=generator)
    return x, (x.sum(1) > 0).long()


def loss_on(x: torch.Tensor, y: torch.Tensor) -> training.Loss:
    return lambda model, index: cross_entropy(model(x[index]), y[index])


def test_against_a_loop_by_hand() -> None:
    x, y = data()
    batches = minibatches(12, 5, seed=3)
    model, optimizer = model_and_optimizer()
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    steps: list[int] = []
    trained = train(
        model,
        optimizer,
        loss_on(x, y),
        batches,
        epochs=4,
        schedule=schedule,
        schedule_per="step",
        clip_norm=0.3,
        after_step=steps.append,
    )
    expected, plain = model_and_optimizer()
    losses, count = [], 0
    for epoch in range(4):
        total = []
        for index in batches(epoch):
            plain.zero_grad()
            value = cross_entropy(expected(x[index]), y[index])
            value.backward()
            torch.nn.utils.clip_grad_norm_(expected.parameters(), 0.3)
            plain.step()
            count += 1
            plain.param_groups[0]["lr"] = 0.1 * 0.9**count
            total.append(value.item())
        losses.append(np.mean(total))
    assert steps == list(range(1, 13))
    for one, other in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-7)
    assert [row["loss"] for row in trained.history] == pytest.approx(losses)
    assert trained.best_state is None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_loss_that_is_not_finite(value: float, tmp_path: Path) -> None:
    x, y = data()
    model, optimizer = model_and_optimizer()
    checkpoints = Checkpoints(tmp_path, "identity", seconds=0)
    calls = 0

    def loss(model: nn.Module, index: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return cross_entropy(model(x[index]), y[index]) * (value if calls == 8 else 1)

    with pytest.raises(InputError, match="run7: the loss is not finite in epoch 3, step 2: lower"):
        train(
            model,
            optimizer,
            loss,
            minibatches(12, 4, 0),
            epochs=5,
            checkpoints=checkpoints,
            name="run7",
        )
    # What is broken is not in the checkpoint.
    state = Checkpoints(tmp_path, "identity").load("run7")
    assert state is not None
    assert state["steps"] == 7
    assert all(torch.isfinite(tensor).all() for tensor in state["model"].values())


def test_epoch_without_batches() -> None:
    with pytest.raises(InputError, match="state: epoch 1 has no batches"):
        train(*model_and_optimizer(), loss_on(*data()), lambda epoch: [], epochs=1)


def test_best_keeps_the_first_of_equals() -> None:
    model, optimizer = model_and_optimizer()
    values = [0.1, 0.5, 0.5, 0.2]
    seen = []

    def after_epoch(epoch: int) -> dict[str, float]:
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return {"score": values[epoch - 1]}

    trained = train(
        model,
        optimizer,
        loss_on(*data()),
        minibatches(12, 4, 0),
        epochs=4,
        after_epoch=after_epoch,
        best="score",
    )
    assert trained.best_epoch == 2
    assert trained.best_state is not None
    assert all(torch.equal(trained.best_state[name], seen[1][name]) for name in seen[1])
    assert not all(torch.equal(trained.best_state[name], seen[3][name]) for name in seen[3])
    assert [row["score"] for row in trained.history] == values


def test_best_metric_that_is_missing() -> None:
    with pytest.raises(ValueError, match="state: best: there is no 'score' among epoch, loss"):
        train(
            *model_and_optimizer(), loss_on(*data()), minibatches(12, 4, 0), epochs=1, best="score"
        )


def test_numbers_of_numpy_and_torch_survive_a_restart(tmp_path: Path) -> None:
    def go(epochs: int) -> list[dict]:
        return train(
            *model_and_optimizer(),
            loss_on(*data()),
            minibatches(12, 4, 0),
            epochs=epochs,
            after_epoch=lambda epoch: {
                "a": np.float64(0.5),
                "b": np.int64(3),
                "c": torch.tensor(0.25),
                "d": "text",
            },
            checkpoints=Checkpoints(tmp_path, "identity"),
        ).history

    go(1)
    second = go(2)
    assert [row["epoch"] for row in second] == [1, 2]
    for row in second:
        assert {key: type(row[key]) for key in "abcd"} == {
            "a": float,
            "b": int,
            "c": float,
            "d": str,
        }


def test_other_settings_start_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def go(identity: str) -> nn.Module:
        model, optimizer = model_and_optimizer()
        train(
            model,
            optimizer,
            loss_on(*data()),
            minibatches(12, 4, 0),
            epochs=2,
            checkpoints=Checkpoints(tmp_path, identity),
        )
        return model

    first = go("old")
    assert torch.equal(go("new").weight, first.weight)
    assert "settings, code or data have changed; starting anew" in caplog.text


def test_completed_training_is_not_repeated(tmp_path: Path) -> None:
    x, y = data()
    for attempt in range(2):
        model, optimizer = model_and_optimizer()
        calls = []
        train(
            model,
            optimizer,
            loss_on(x, y),
            minibatches(12, 4, 0),
            epochs=2,
            after_step=calls.append,
            checkpoints=Checkpoints(tmp_path, "identity"),
        )
        assert len(calls) == (6 if attempt == 0 else 0)


@pytest.mark.parametrize("sized", [True, False])
def test_progress_in_the_log(
    sized: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_SECONDS_BETWEEN_LINES", 0.0)
    caplog.set_level(logging.INFO, "retable")
    batches = minibatches(12, 4, 0)

    def unsized(epoch: int) -> Iterator[torch.Tensor]:
        yield from batches(epoch)

    train(
        *model_and_optimizer(),
        loss_on(*data()),
        batches if sized else unsized,
        epochs=2,
        name="m-seed0",
    )
    lines = [record.getMessage() for record in caplog.records]
    left = r"\d+ s" if sized else "unknown time"
    assert len(lines) == 6
    for number, line in enumerate(lines):
        assert re.fullmatch(
            rf"m-seed0: epoch {1 + number // 3} of 2, step {number + 1}, "
            rf"[\d.e+]+ steps/s, {left} left, mean loss [\d.]+",
            line,
        )


@settings(deadline=None, max_examples=60)
@given(
    count=st.integers(1, 60),
    size=st.integers(1, 20),
    seed=st.integers(0, 2**31),
    epoch=st.integers(0, 500),
    drop_last=st.booleans(),
)
def test_minibatches(count: int, size: int, seed: int, epoch: int, drop_last: bool) -> None:
    torch.manual_seed(5)
    parts = minibatches(count, size, seed, drop_last=drop_last)(epoch)
    torch.manual_seed(6)
    torch.rand(3)
    again = minibatches(count, size, seed, drop_last=drop_last)
    again(epoch + 1)
    assert all(torch.equal(a, b) for a, b in zip(parts, again(epoch), strict=True))
    seen = torch.cat(parts).tolist()
    assert len(set(seen)) == len(seen)
    assert set(seen) <= set(range(count))
    assert all(len(part) == size for part in parts[:-1])
    if drop_last and count >= size:
        assert len(seen) == count // size * size
    else:
        assert len(seen) == count


def test_minibatches_differ_by_seed_and_epoch() -> None:
    orders = {
        tuple(torch.cat(minibatches(50, 7, seed)(epoch)).tolist())
        for seed in range(4)
        for epoch in range(4)
    }
    assert len(orders) == 16
    with pytest.raises(ValueError, match="count and size must be >= 1, got 0 and 3"):
        minibatches(0, 3, 0)


def test_data_loader_goes_on_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    x, y = data(20)

    def go(stop_after: int | None, folder: Path) -> nn.Module:
        model, optimizer = model_and_optimizer()

        def after_step(step: int) -> None:
            if step == stop_after:
                raise KeyboardInterrupt

        train(
            model,
            optimizer,
            lambda model, batch: cross_entropy(model(batch[0]), batch[1]),
            lambda epoch: DataLoader(
                TensorDataset(x, y),
                4,
                shuffle=True,
                generator=torch.Generator().manual_seed(epoch),
            ),
            epochs=3,
            after_step=after_step,
            checkpoints=Checkpoints(folder, "identity", seconds=0),
        )
        return model

    expected = go(None, tmp_path / "a")
    with pytest.raises(KeyboardInterrupt):
        go(9, tmp_path / "b")
    assert torch.equal(go(None, tmp_path / "b").weight, expected.weight)


DISTRIBUTED = """
import os, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from torch import nn
from retable.common.checkpoints import Checkpoints
from retable.common.training import minibatches, train

out, crash_at = Path(sys.argv[1]), int(sys.argv[2])
x = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
y = (x[:, 0] * x[:, 1] > 0).long()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)


def after_step(step):
    if step == crash_at:
        os._exit(9)


trained = train(
    model, optimizer,
    lambda model, i: nn.functional.cross_entropy(model(x[i]), y[i]),
    minibatches(64, 16, seed=2), epochs=20,
    schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20),
    after_step=after_step,
    checkpoints=Checkpoints(out / "checkpoints", "identity", seconds=0.01),
)
if os.environ.get("RANK", "0") == "0":
    losses = torch.tensor([row["loss"] for row in trained.history], dtype=torch.float64)
    save_file(model.state_dict() | {"losses": losses}, out / "model.safetensors")
print("processes", os.environ.get("WORLD_SIZE", "1"), "steps begin at", crash_at)
"""


def launch(folder: Path, processes: int, crash_at: int = 0) -> subprocess.CompletedProcess:
    script = folder / "script.py"
    script.write_text(DISTRIBUTED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, script]
    if processes > 1:
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)),
            *("--master-port", str(port), script),
        ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",
        "HF_HOME": str(folder),
    }
    return subprocess.run(
        [*map(str, command), str(folder), str(crash_at)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
    )


@pytest.mark.slow
def test_two_processes_train_the_same_model(tmp_path: Path) -> None:
    models = {}
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        done = launch(folder, processes)
        assert done.returncode == 0, done.stderr
        assert f"processes {processes}" in done.stdout
        models[processes] = load_file(folder / "model.safetensors")
    for name, tensor in models[1].items():
        assert torch.allclose(tensor, models[2][name], rtol=1e-4, atol=1e-5), name
    # Two processes that die go on together, from checkpoints of the same step.
    folder = tmp_path / "crashed"
    folder.mkdir()
    assert launch(folder, 2, crash_at=57).returncode != 0
    assert len(list((folder / "checkpoints").glob("*.pt"))) == 2
    done = launch(folder, 2)
    assert done.returncode == 0, done.stderr
    assert "differ in age" not in done.stderr
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert torch.equal(tensor, models[2][name]), name
