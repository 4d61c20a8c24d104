"""Steps as jobs, each in a process of its own as in a run, with real faults."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from retable.common.jobs import Job, named

HEAD = """
import json, os, resource, signal, sys, time
from pathlib import Path, PosixPath
from typing import Literal
from pydantic import Field
from retable.common.checkpoints import Checkpoints
from retable.common.errors import InputError
from retable.common.jobs import Job, run
from retable.common.seeds import Seeds
from retable.common.settings import StepSettings

folder = Path(sys.argv[1])


def called():
    with (folder / "calls").open("a") as file:
        file.write("x")


def wait_until(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)

"""
TAIL = """
values = dict(
    inputs={"data": folder / "data.txt"},
    outputs={"out": folder / "results" / "out.txt"},
    wildcards={"method": "m", "seeds": "0-2", "number": "7"},
    settings='{"epochs": 3}',
    code="code",
    log=folder / "work" / "logs" / "train_m.log",
    step="retable.p.steps.train",
)
values |= eval(sys.argv[2])
sys.exit(run(Job(**values), lambda: train))
"""
GOOD = """
def train(data: Path, out: Path):
    called()
    out.write_text(data.read_text() + " done")
"""


@dataclass
class Runner:
    folder: Path

    def start(self, code: str, run: str | None = None, **values: object) -> subprocess.Popen:
        (self.folder / "data.txt").write_text("data")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RETABLE_")}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        if run is not None:
            environment["RETABLE_RUN"] = run
        return subprocess.Popen(
            [sys.executable, "-c", HEAD + code + TAIL, str(self.folder), repr(values)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, code: str, run: str | None = None, **values: object) -> tuple[int, str]:
        process = self.start(code, run, **values)
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors

    @property
    def out(self) -> Path:
        return self.folder / "results" / "out.txt"

    @property
    def results(self) -> list[str]:
        """All files below results/, hidden ones too."""
        return sorted(path.name for path in self.out.parent.rglob("*") if path.is_file())

    @property
    def log(self) -> str:
        return (self.folder / "work" / "logs" / "train_m.log").read_text()

    @property
    def calls(self) -> int:
        path = self.folder / "calls"
        return len(path.read_text()) if path.exists() else 0

    @property
    def costs(self) -> list[dict]:
        path = self.folder / "work" / "costs" / "train_m.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def wait_for(self, path: Path) -> None:
        until = time.monotonic() + 30
        while not path.exists():
            assert time.monotonic() < until
            time.sleep(0.01)

    def wait_for_log(self, text: str) -> None:
        until = time.monotonic() + 30
        while text not in self.log:
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.fixture
def job(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_good_job(job: Runner) -> None:
    status, errors = job(GOOD)
    assert (status, errors) == (0, "")
    assert job.out.read_text() == "data done"
    assert job.results == ["out.txt"]


def test_outputs_are_not_there_before_the_end(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    out.write_text("half")
    final = folder / "results" / "out.txt"
    assert not final.exists()
    assert out != final and out.parent == final.parent and out.suffix == ".txt"
"""
    assert job(code) == (0, "")
    assert job.out.read_text() == "half"


def test_what_a_step_is_given(job: Runner) -> None:
    code = """
class TrainSettings(StepSettings):
    epochs: int = Field(ge=1)


def train(
    data: list[Path], out: Path, *, seeds: Seeds, method: Literal["m", "n"], number: int,
    settings: TrainSettings, place: str, checkpoints: Checkpoints, other: int = 5,
):
    out.write_text(repr([
        [path.name for path in data], seeds, type(seeds).__name__, method, number,
        settings.epochs, place, str(checkpoints.folder), other,
    ]))
"""
    values = {"others": {"place": "p"}, "inputs": {"data": [job.folder / "data.txt"] * 2}}
    assert job(code, **values) == (0, "")
    assert eval(job.out.read_text()) == [
        *(["data.txt", "data.txt"], (0, 1, 2), "Seeds", "m", 7, 3, "p"),
        *(str(job.folder / "work" / "checkpoints" / "train_m"), 5),
    ]


@pytest.mark.parametrize(
    ("signature", "values", "message"),
    [
        ("data, out, colour", {}, "asks for 'colour', which its rule does not give"),
        ("data", {}, "does not take out, which its rule gives"),
        ("data, out, *, method: Literal['a']", {}, "wildcard method: 'm' is not allowed"),
        ("data, out, *, method: int", {}, "invalid literal for int"),
        ("data, out, *, settings: StepSettings", {}, "settings of retable.p.steps.train: .*epochs"),
    ],
)
def test_rule_and_step_do_not_fit(job: Runner, signature: str, values: dict, message: str) -> None:
    status, errors = job(f"def train({signature}):\n    called()\n", **values)
    assert status == 1
    assert re.search(message, errors, re.DOTALL)
    assert job.calls == 0
    assert job.results == []


def test_failing_step(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    out.write_text("half")
    raise KeyError("it broke")
"""
    status, errors = job(code)
    assert status == 1
    assert errors.splitlines()[0] == "retable.p.steps.train (train_m): KeyError: 'it broke'"
    assert str(job.folder / "work" / "logs" / "train_m.log") in errors.splitlines()[1]
    assert "Traceback" not in errors
    assert "Traceback" in job.log
    assert job.log.splitlines()[-1].endswith("ERROR KeyError: 'it broke'")
    assert job.results == []
    # Such an error may be a passing one: the next attempt of the same run tries again.
    assert job(GOOD)[0] == 0


def test_missing_output(job: Runner) -> None:
    code = """
def train(data: Path, out: Path, second: Path):
    out.write_text("written")
"""
    second = job.out.with_name("second.txt")
    status, errors = job(code, outputs={"out": job.out, "second": second})
    assert status == 1
    assert "retable.p.steps.train did not write its output 'second'" in errors
    assert job.results == []


BAD_INPUT = """
def train(data: Path, out: Path):
    called()
    raise InputError("config/p.yaml: lr: 100 % wrong")
"""


def test_bad_input_is_not_tried_twice_in_a_run(job: Runner) -> None:
    for _ in range(3):
        status, errors = job(BAD_INPUT, run="first")
        assert status == 1
        assert errors.splitlines()[0] == (
            "retable.p.steps.train (train_m): config/p.yaml: lr: 100 % wrong"
        )
        assert job.log.splitlines()[-1].endswith("ERROR config/p.yaml: lr: 100 % wrong")
        assert "Traceback" not in job.log
    assert job.calls == 1
    # The user has mended the input and starts a new run.
    assert job(BAD_INPUT, run="second")[0] == 1
    assert job.calls == 2
    assert job(GOOD, run="third") == (0, "")
    assert job.calls == 3
    assert job(GOOD, run="third") == (0, "")


def test_by_hand_every_attempt_is_a_run(job: Runner) -> None:
    assert job(BAD_INPUT)[0] == 1
    assert job(BAD_INPUT)[0] == 1
    assert job.calls == 2


def test_leftovers_of_a_killed_attempt(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    out.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert job(code)[0] == -signal.SIGKILL
    assert len(job.results) == 1
    assert "part" in job.results[0]
    assert job(GOOD) == (0, "")
    assert job.results == ["out.txt"]


def test_sigterm_of_a_job_that_does_not_train(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    out.write_text("half")
    called()
    time.sleep(60)
"""
    process = job.start(code)
    job.wait_for(job.folder / "calls")
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM
    assert not job.out.exists()
    assert job(GOOD) == (0, "")
    assert job.results == ["out.txt"]


def test_two_attempts_never_run_at_once(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    with (folder / "times").open("a") as file:
        file.write(f"{time.monotonic()} ")
    out.write_text("data done")
    if not (folder / "calls").exists():
        (folder / "calls").touch()
        wait_until(lambda: (folder / "second").exists())
    assert out.read_text() == "data done"
    with (folder / "times").open("a") as file:
        file.write(f"{time.monotonic()} ")
"""
    first = job.start(code)
    job.wait_for(job.folder / "calls")
    second = job.start(code)
    job.wait_for_log("an earlier attempt of this job still runs; waiting for its end")
    (job.folder / "second").touch()
    assert (first.wait(30), second.wait(30)) == (0, 0)
    times = [float(text) for text in (job.folder / "times").read_text().split()]
    assert times == sorted(times)
    assert len(times) == 4
    assert "an earlier attempt of this job still runs; waiting for its end" in job.log
    assert job.results == ["out.txt"]


def test_the_lock_ends_with_its_process(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    called()
    time.sleep(60)
"""
    orphan = job.start(code)
    job.wait_for(job.folder / "calls")
    waiting = job.start(GOOD)
    job.wait_for_log("an earlier attempt of this job still runs")
    assert waiting.poll() is None
    orphan.kill()
    orphan.wait()
    assert waiting.wait(20) == 0
    assert job.results == ["out.txt"]


def test_costs(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    until = time.process_time() + 0.4
    while time.process_time() < until:
        pass
    block = bytearray(60 << 20)
    time.sleep(0.3)
    out.write_text("x")
"""
    assert job(code, reserved=4)[0] == 0
    assert job(BAD_INPUT)[0] == 1
    assert job("def train(data, out):\n    raise SystemExit(143)\n")[0] == 143
    assert [row["status"] for row in job.costs] == ["done", "failed", "stopped"]
    first = job.costs[0]
    assert (first["step"], first["job"]) == ("retable.p.steps.train", "train_m")
    assert first["reserved_cores"] == 4
    assert first["cpu_s"] >= 0.4
    assert first["wall_s"] >= 0.7
    assert first["peak_mib"] > 60


def test_costs_of_children_count(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    import subprocess
    loop = "import time\\nwhile time.process_time() < 0.6: pass"
    subprocess.run([sys.executable, "-c", loop], check=True)
    out.write_text("x")
"""
    assert job(code) == (0, "")
    assert job.costs[0]["cpu_s"] >= 0.6


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        ("out.write_bytes(bytes(10**6))", "File too large"),
        (
            "import numpy as np; np.save(out.open('wb'), np.zeros(10**6))",
            "[0-9]+ requested and [0-9]+ written",
        ),
        (
            "import numpy as np; from retable.common.data.arrays import save_arrays; "
            "save_arrays(out, {'x': np.random.default_rng(0).normal(size=10**5)})",
            "File too large",
        ),
        (
            "import pandas as pd; from retable.common.metrics import write_csv; "
            "write_csv(pd.DataFrame({'a': range(10**5)}), out)",
            "File too large",
        ),
    ],
    ids=["bytes", "npy", "npz", "csv"],
)
def test_full_disk(job: Runner, write: str, reason: str) -> None:
    """Real: the system refuses to let any file grow beyond 50 kB."""
    code = f"""
def train(data: Path, out: Path):
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    {write}
"""
    status, errors = job(code)
    assert status == 1
    lines = errors.splitlines()
    start = re.escape(f"retable.p.steps.train (train_m): {job.out}: ")
    assert re.fullmatch(start + reason, lines[0])
    assert len(lines) == 2
    assert job.results == []
    # Not in vain: the user makes room, and the next attempt of the same run goes well.
    assert job(GOOD) == (0, "")


def test_disk_so_full_that_not_even_the_costs_fit(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
    out.write_text("x" * 100)
"""
    status, errors = job(code)
    assert status == 1
    assert f"{job.out}: File too large" in errors
    assert job.results == []


def test_missing_input_is_named(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    (folder / "none.csv").read_text()
"""
    status, errors = job(code)
    assert status == 1
    assert f"{job.folder / 'none.csv'}: No such file or directory" in errors


def test_unwritable_output_is_named(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    out.mkdir()
    out.write_text("x")
"""
    status, errors = job(code)
    assert status == 1
    assert f"{job.out}: Is a directory" in errors


def test_generators_and_threads_depend_on_the_job_alone(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    import random
    import numpy as np
    import torch
    state = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())
    out.write_text(repr([random.random(), np.random.random(), torch.rand(1).item(), state]))
"""
    assert job(code, threads=2) == (0, "")
    first = job.out.read_text()
    assert "(2, True)" in first
    # Imported at the top of the module, torch is in the same state.
    assert job(f"import torch\n{code}", threads=2) == (0, "")
    assert job.out.read_text() == first


def test_a_job_that_trains_does_not_load_the_compiler(job: Runner) -> None:
    code = """
def train(data: Path, out: Path):
    import torch
    torch.optim.SGD([torch.zeros(1)]).zero_grad()
    out.write_text(str("torch._dynamo.eval_frame" in sys.modules))
"""
    assert job(f"import sys\n{code}") == (0, "")
    assert job.out.read_text() == "False"


def test_identity_depends_on_everything_that_counts(tmp_path: Path) -> None:
    data = tmp_path / "a"
    data.write_text("a")
    base = {
        "inputs": {"data": data},
        "outputs": {"out": tmp_path / "b"},
        "wildcards": {"method": "m", "seeds": "0"},
        "settings": "{}",
        "code": "c",
        "log": tmp_path / "logs" / "x.log",
        "step": "s",
    }
    first = Job(**base).identity()
    assert Job(**base).identity() == first
    assert Job(**base | {"log": tmp_path / "other" / "x.log"}).identity() == first
    reordered = base | {"wildcards": {"seeds": "0", "method": "m"}}
    assert Job(**reordered).identity() == first
    for change in (
        {"settings": '{"lr":1}'},
        {"code": "d"},
        {"step": "t"},
        {"wildcards": {"method": "n", "seeds": "0"}},
        {"inputs": {"other": data}},
        {"inputs": {"data": [data, data]}},
    ):
        assert Job(**base | change).identity() != first
    data.write_text("b")
    assert Job(**base).identity() != first


def test_names_of_inputs() -> None:
    class Items(dict):
        pass

    found = named(Items(data="a.csv", many=["b", "c"], after="d", none=[]))
    assert found == {"data": Path("a.csv"), "many": [Path("b"), Path("c")], "none": []}
