"""A copy of the working tree, with a small paper in it, and Snakemake to run there."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
TRIAL = Path(__file__).parent / "trial"
CODE = ("src", "rules", "config", "envs", "workflow", "seeds", "slurm")


class Clone:
    """A copy of the project in which a test may change what it likes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments]

    def environment(self, **extra: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RETABLE_")}
        return kept | {"RETABLE_CACHE": os.environ.get("RETABLE_CACHE", _cache())} | extra

    def run(self, *arguments: str, check: bool = True, **extra: str) -> str:
        """Run Snakemake to its end; return all that it printed."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.path,
            env=self.environment(**extra),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if check:
            assert done.returncode == 0, done.stdout
        else:
            assert done.returncode != 0, done.stdout
        return done.stdout

    def start(self, *arguments: str, **extra: str) -> subprocess.Popen[str]:
        """Start Snakemake in a process group of its own and come back at once."""
        log = (self.path / "run.log").open("w")
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.path,
            env=self.environment(**extra),
            text=True,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def jobs(self, *arguments: str) -> dict[str, int]:
        """What a run would do now: rule -> number of jobs."""
        printed = self.run("-n", *arguments)
        if "Nothing to be done" in printed:
            return {}
        table = printed.split("Job stats:")[1].split("\n\n")[0]
        return {
            name: int(count)
            for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)
            if name != "total"
        }

    def replace(self, file: str, old: str, new: str) -> None:
        """Change one piece of a file; it must be there."""
        path = self.path / file
        text = path.read_text()
        assert old in text, f"{file} does not hold {old!r}"
        path.write_text(text.replace(old, new))

    def results(self, pattern: str = "results/*") -> dict[str, bytes]:
        """The bytes of all results for which identity is promised."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.glob(pattern))
            if path.is_file() and "costs" not in path.name and "speed" not in path.name
        }


def _cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return str(Path(base) / "retable")


def copy_code(path: Path) -> Clone:
    """The code of the working tree, without results."""
    for folder in CODE:
        shutil.copytree(
            ROOT / folder, path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    clone = Clone(path)
    # The tests read what Snakemake prints by itself; a terminal's user sees a table instead.
    clone.replace("workflow/profiles/default/config.yaml", "logger: [rich]\n", "")
    return clone


def add_trial(clone: Clone) -> None:
    shutil.copytree(TRIAL, clone.path, dirs_exist_ok=True)
    # Tests look at the whole of a default run: let it be this paper alone.
    clone.replace("config/config.yaml", "papers: all", "papers: [trial]")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """The project as it stands."""
    return copy_code(tmp_path / "project")


@pytest.fixture
def trial(tmp_path: Path) -> Clone:
    """The project with the trial paper as its only one; nothing has run."""
    clone = copy_code(tmp_path / "project")
    add_trial(clone)
    return clone


@pytest.fixture(scope="session")
def finished_trial(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """The trial paper after a default run; not to be changed."""
    clone = copy_code(tmp_path_factory.mktemp("finished") / "project")
    add_trial(clone)
    clone.run()
    return clone


@pytest.fixture
def finished(finished_trial: Clone, tmp_path: Path) -> Clone:
    """A copy of the trial paper after a default run, times of files included."""
    shutil.copytree(finished_trial.path, tmp_path / "project", symlinks=True)
    return Clone(tmp_path / "project")


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that a test starts; whatever is left of them is killed at its end."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        kill_group(process)


def kill_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL to a run and to all of its jobs."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def resting(run: subprocess.Popen[str]) -> Iterator[None]:
    """The jobs of a run stand still meanwhile, so that what is tested does not hang on speed."""
    jobs = psutil.Process(run.pid).children(recursive=True)
    for job in jobs:
        with contextlib.suppress(psutil.NoSuchProcess):
            job.suspend()
    try:
        yield
    finally:
        for job in jobs:
            with contextlib.suppress(psutil.NoSuchProcess):
                job.resume()


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something is so; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)
