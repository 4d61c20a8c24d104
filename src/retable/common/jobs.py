"""Running one step of the library as a job: inputs in, whole outputs out, costs noted.

A step is a plain function. It gets the rule's named inputs and outputs as paths, the wildcards
that it names (converted by its annotations), its settings, and, if it asks for them, its
`checkpoints`. Outputs get their names only when the step has ended well.
"""

import contextlib
import fcntl
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import logging
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from retable.common import environment
from retable.common.checkpoints import Checkpoints
from retable.common.compiler import defer_compiler
from retable.common.errors import InputError
from retable.common.files import move_into_place, partial_path, remove_partial, sha256_of_file
from retable.common.processes import announced, count_processes, launch, rank
from retable.common.seeds import Seeds

logger = logging.getLogger("retable")
EXIT_FAILED = 1

Paths = Path | list[Path]


@dataclass(frozen=True)
class Job:
    """One job of the workflow, as plain data.

    `log` names the job: `results/laptop/hstu/logs/train_x.log` is the job `train_x` whose locks,
    costs and checkpoints lie in folders beside `logs/`.
    """

    inputs: Mapping[str, Paths]
    outputs: Mapping[str, Path]
    wildcards: Mapping[str, str]
    settings: str
    code: str
    log: Path
    step: str
    threads: int = 1
    reserved: int = 1
    processes: int = 1
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.log.stem

    @property
    def checkpoints(self) -> Path:
        """Where this job keeps its checkpoints until it has ended well."""
        return self.beside("checkpoints") / self.name

    def beside(self, folder: str) -> Path:
        """A folder for this kind of job: locks, costs, checkpoints."""
        return self.log.parent.parent / folder

    def identity(self) -> str:
        """What the result depends on: code, settings, wildcards and the bytes of the inputs."""
        digest = hashlib.sha256()
        for part in (self.step, self.code, self.settings, sorted(self.wildcards.items())):
            digest.update(repr(part).encode())
        for name, paths in sorted(self.inputs.items()):
            for path in paths if isinstance(paths, list) else [paths]:
                digest.update(f"{name}={sha256_of_file(path)}".encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class _Share:
    """What one of several processes of a job is told: the job, and where its outputs grow."""

    job: Job
    parts: Mapping[str, Path]


def run(job: Job, load: Callable[[], Callable[..., None]], command: Sequence[str] = ()) -> int:
    """Run a job from start to end; return its exit status and leave the reason in its log.

    Args:
        job: what to run on. With more than one process, each of them runs the step; the training
            loop shares the batches among them, and the first one's outputs are kept.
        load: imports and returns the step's function; called after threads and seeds are set.
        command: runs `run_share` with the file that is added to it; for several processes.

    Returns:
        0 when all outputs are in place; 143 when it was asked to stop and left a checkpoint;
        1 for an error, of which the last line of the log says what it was.
    """
    started = time.monotonic()
    _log_to(job.log)
    status = "failed"
    with _only_attempt(job) as lock:
        try:
            _refuse_in_vain(job)
            parts = {name: partial_path(path) for name, path in job.outputs.items()}
            for path in job.outputs.values():
                path.parent.mkdir(parents=True, exist_ok=True)
            processes = count_processes(job.processes)
            if processes > 1:
                description = TypeAdapter(_Share).dump_json(_Share(job, parts))
                if launch(command, description, processes, lock) != 0:
                    # The process that failed has said why.
                    return EXIT_FAILED
            else:
                _seed(job)
                with _torch_prepared(job):
                    _call(load(), job, parts)
            _finish(job, parts)
            status = "done"
            return 0
        except InputError as error:
            _fail(job, str(error), repeat_in_vain=True)
        except OSError as error:
            _fail(job, f"{_place(job, error)}{error.strerror or error}")
        except SystemExit as stop:
            status = "stopped"
            return stop.code if isinstance(stop.code, int) else EXIT_FAILED
        except Exception as error:
            _fail(job, f"{type(error).__name__}: {error}")
        finally:
            _remove_leftovers(job)
            _note_costs(job, status, time.monotonic() - started)
    return EXIT_FAILED


def run_share(file: Path, load: Callable[[], Callable[..., None]]) -> int:
    """Be one of the processes of a job: run its step; return the exit status.

    `file` is what `run` wrote for its processes. What others than the first one write is dropped.
    """
    share = TypeAdapter(_Share).validate_json(file.read_bytes())
    job, parts = share.job, share.parts
    _log_to(job.log)
    first = rank() == 0
    if not first:
        logging.getLogger().setLevel(logging.WARNING)
    with announced(file), tempfile.TemporaryDirectory() as scratch:
        if not first:
            parts = {name: Path(scratch) / f"{name}{p.suffix}" for name, p in parts.items()}
        try:
            _seed(job)
            with _torch_prepared(job):
                _call(load(), job, parts)
            return 0
        except InputError as error:
            _fail(job, str(error), repeat_in_vain=True)
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else EXIT_FAILED
        except Exception as error:
            _fail(job, f"process {rank()}: {type(error).__name__}: {error}")
    return EXIT_FAILED


def _place(job: Job, error: OSError) -> str:
    """The file that an error names, else the output that was being written."""
    if error.filename is None:
        parts = {partial_path(path): path for path in job.outputs.values()}
        written = [part for part in parts if part.exists()]
        if not written:
            return ""
        return f"{parts[max(written, key=lambda part: part.stat().st_mtime)]}: "
    for path in job.outputs.values():
        if Path(error.filename) == partial_path(path):
            return f"{path}: "
    return f"{error.filename}: "


def _call(function: Callable[..., None], job: Job, parts: Mapping[str, Path]) -> None:
    parameters = inspect.signature(function).parameters
    annotations = typing.get_type_hints(function)
    given: dict[str, Any] = {**job.inputs, **parts, **job.others}
    for name in parameters:
        if name in given:
            continue
        if name == "settings":
            given[name] = _settings(job, annotations[name])
        elif name == "checkpoints":
            given[name] = Checkpoints(
                job.checkpoints, job.identity(), environment.checkpoint_seconds()
            )
        elif name in job.wildcards:
            given[name] = _convert(name, job.wildcards[name], annotations.get(name, str))
        elif parameters[name].default is inspect.Parameter.empty:
            raise TypeError(f"{job.step} asks for '{name}', which its rule does not give")
    unknown = [name for name in given if name not in parameters]
    if unknown:
        raise TypeError(f"{job.step} does not take {', '.join(unknown)}, which its rule gives")
    function(**given)
    for name, part in parts.items():
        if not part.exists():
            raise RuntimeError(f"{job.step} did not write its output '{name}'")


def _finish(job: Job, parts: Mapping[str, Path]) -> None:
    for name, part in parts.items():
        move_into_place(part, job.outputs[name])
    shutil.rmtree(job.checkpoints, ignore_errors=True)


def _settings(job: Job, annotation: Any) -> Any:
    try:
        return TypeAdapter(annotation).validate_json(job.settings)
    except ValidationError as error:
        raise InputError(f"settings of {job.step}: {error}") from None


def _convert(name: str, text: str, annotation: Any) -> Any:
    if annotation is Seeds:
        return Seeds.parse(text)
    if annotation in (str, int, float):
        return annotation(text)
    try:
        return TypeAdapter(annotation).validate_python(text)
    except ValidationError:
        raise InputError(f"wildcard {name}: '{text}' is not allowed ({annotation})") from None


def _log_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    to_file = logging.FileHandler(path, encoding="utf-8")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handlers: list[logging.Handler] = [to_file]
    if sys.stderr.isatty():
        to_terminal = logging.StreamHandler()
        to_terminal.setFormatter(logging.Formatter(f"{path.stem}: %(message)s"))
        handlers.append(to_terminal)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)


@contextlib.contextmanager
def _only_attempt(job: Job) -> Iterator[int]:
    """Wait for an attempt of the same job that outlived its Snakemake, then keep others out.

    Yields the file descriptor that holds the lock.
    """
    path = job.beside("locks") / f"{job.name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.warning("an earlier attempt of this job still runs; waiting for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for output in job.outputs.values():
            remove_partial(output)
        yield lock.fileno()


def _marker(job: Job) -> Path:
    return job.beside("locks") / f"{job.name}.failed"


def _refuse_in_vain(job: Job) -> None:
    """End at once where an earlier attempt of the same run failed in a way that will repeat."""
    marker = _marker(job)
    if not marker.exists():
        return
    run_id, _, message = marker.read_text(encoding="utf-8").partition("\n")
    if run_id == environment.run_id():
        raise InputError(message)
    marker.unlink()


def _fail(job: Job, message: str, *, repeat_in_vain: bool = False) -> None:
    if repeat_in_vain:
        logger.error(message)
        _marker(job).write_text(f"{environment.run_id()}\n{message}", encoding="utf-8")
    else:
        logger.error("where it happened", exc_info=True)
        logger.error(message)
    print(f"{job.step} ({job.name}): {message}", file=sys.stderr)
    print(f"  log: {job.log}", file=sys.stderr)


def _seed_of(job: Job) -> int:
    return int.from_bytes(hashlib.sha256(job.name.encode()).digest()[:4], "big")


def _seed(job: Job) -> None:
    """Seed the global generators from the job's name, for code that has no generator of its own."""
    seed = _seed_of(job)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the global generator is what is to be fixed here
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def _prepare_torch(job: Job) -> None:
    torch = sys.modules["torch"]
    torch.set_num_threads(job.threads)
    torch.manual_seed(_seed_of(job))
    # As `use_deterministic_algorithms(True, warn_only=True)`, which loads the compiler besides.
    torch.set_deterministic_debug_mode("warn")
    defer_compiler()


class _AtImportOfTorch(importlib.abc.MetaPathFinder):
    """Prepares torch when it is imported, at the top of the step's module or inside a function.

    Importing it in advance would cost every job that does without it more than a second.
    """

    def __init__(self, job: Job) -> None:
        self.job = job

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_prepare(module: types.ModuleType) -> None:
            execute(module)
            _prepare_torch(self.job)

        spec.loader.exec_module = execute_and_prepare
        return spec


@contextlib.contextmanager
def _torch_prepared(job: Job) -> Iterator[None]:
    """Within it torch computes with the job's threads and seed, whenever it is imported."""
    if "torch" in sys.modules:
        _prepare_torch(job)
        yield
        return
    finder = _AtImportOfTorch(job)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)


def _remove_leftovers(job: Job) -> None:
    for output in job.outputs.values():
        partial_path(output).unlink(missing_ok=True)


def _note_costs(job: Job, status: str, wall: float) -> None:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    row = {
        "step": job.step,
        "job": job.name,
        "status": status,
        "cpu_s": round(sum(u.ru_utime + u.ru_stime for u in (own, children)), 3),
        "wall_s": round(wall, 3),
        "peak_mib": round(max(own.ru_maxrss, children.ru_maxrss) / 1024, 1),
        "reserved_cores": job.reserved,
    }
    path = job.beside("costs") / f"{job.name}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    except OSError as error:
        # A note that cannot be taken changes neither a result nor the reason of a failure.
        logger.warning("%s: the costs of this attempt are not noted: %s", path, error.strerror)


def named(items: Any) -> dict[str, Paths]:
    """Turn a rule's named inputs or outputs into paths; a list stays a list.

    The name `after` is left out: such inputs only say what must be made first.
    """
    return {
        name: [Path(part) for part in value]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else Path(value)
        for name, value in items.items()
        if name != "after"
    }
