"""The environment variables that a run and its jobs read; the only place where they are named."""

import os
from pathlib import Path

_RUN = "RETABLE_RUN"
_CACHE = "RETABLE_CACHE"
_CHECKPOINT = "RETABLE_CHECKPOINT_SECONDS"


def announce_run(run_id: str, cache: str | None, checkpoint_seconds: float) -> None:
    """Set what the jobs of this run will read; Snakemake and Slurm hand the environment on."""
    os.environ[_RUN] = run_id
    if cache:
        os.environ[_CACHE] = str(Path(cache).expanduser().resolve())
    # A user (or a test) who set the interval by hand keeps it.
    os.environ.setdefault(_CHECKPOINT, str(checkpoint_seconds))


def run_id() -> str:
    """The run that this job belongs to; a step that is called by hand is a run of its own."""
    return os.environ.get(_RUN, f"process-{os.getpid()}")


def cache_folder() -> Path:
    """Where downloads are kept: RETABLE_CACHE, else the user's cache folder."""
    chosen = os.environ.get(_CACHE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "retable"


def checkpoint_seconds() -> float:
    """Seconds between two checkpoints of a training job."""
    return float(os.environ.get(_CHECKPOINT, "60"))
