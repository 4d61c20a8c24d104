"""A copy of the code that a run and all of its jobs read, so that edits do not reach them.

The main process copies src/, rules/, config/, envs/ and workflow/ to
`.snakemake/code/<fingerprint>/` and makes the copy's Snakefile the one that its jobs are started
with. A copy is held by a lock for as long as a run, or one of its jobs, uses it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retable.common.files import hold_folder

FOLDERS = ("src", "rules", "config", "envs", "workflow")
# Snakemake reruns a job whose script is newer than its outputs. What a script means is part of
# the fingerprint in the job's params, so its time must say nothing.
_FIXED_TIME = 946684800  # 2000-01-01 UTC


def take_snapshot(root: Path, config: Mapping[str, Any], store: Path) -> Path:
    """Copy the code below `root` into `store` unless the same copy is there; return its folder.

    `config` is the configuration as Snakemake merged it; it is kept with the copy, since jobs on
    other machines must see the same one.
    """
    files = _code_files(root)
    settings = json.dumps(config, sort_keys=True, default=str)
    digest = hashlib.sha256(settings.encode())
    contents = {}
    for path in files:
        contents[path] = content = path.read_bytes()
        digest.update(f"\0{path.relative_to(root)}\0{len(content)}\0".encode() + content)
    place = store / digest.hexdigest()[:16]
    store.mkdir(parents=True, exist_ok=True)
    hold_folder(place)
    if not (place / "config.json").exists():
        # Built aside and renamed: another run may make the same copy at the same time.
        with tempfile.TemporaryDirectory(dir=store, prefix=".new-") as folder:
            draft = Path(folder) / place.name
            for path, content in contents.items():
                copy = draft / path.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
                os.utime(copy, (_FIXED_TIME, _FIXED_TIME))
            (draft / "config.json").write_text(settings, encoding="utf-8")
            try:
                os.rename(draft, place)
            except OSError:
                if not (place / "config.json").exists():
                    raise
    _remove_unused(store, keep=place)
    return place


def _remove_unused(store: Path, keep: Path) -> None:
    for place in store.iterdir():
        if place == keep or not place.is_dir() or place.name.startswith(".new-"):
            continue
        path = store / f"{place.name}.lock"
        with path.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # a run or a job still uses it
            shutil.rmtree(place)
            path.unlink()


def _code_files(root: Path) -> list[Path]:
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            relative = path.relative_to(root).parts
            if "__pycache__" in relative or any(
                part.startswith(".") or part.endswith((".egg-info", "~")) for part in relative
            ):
                continue
            if path.is_file():
                found.append(path)
    return sorted(found)


def run_from_snapshot(workflow: Any, config: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the code and the configuration for this process of Snakemake.

    The main process makes the copy. The process of a job is started with the Snakefile inside
    the copy, so it knows the folder, and it takes the configuration that is kept there.
    """
    here = Path(workflow.main_snakefile).resolve().parents[1]
    if workflow.is_main_process:
        here = take_snapshot(here, config, Path.cwd() / ".snakemake" / "code")
        _start_jobs_with(workflow, here / "workflow" / "Snakefile")
    else:
        hold_folder(here)
    return here, json.loads((here / "config.json").read_text(encoding="utf-8"))


def _start_jobs_with(workflow: Any, snakefile: Path) -> None:
    """Make Snakemake pass `snakefile` to the processes of its jobs.

    Snakemake names the first file that it read; its list of files is the only place to say so.
    """
    from snakemake.sourcecache import LocalSourceFile

    workflow._included[str(snakefile)] = LocalSourceFile(str(snakefile))
    workflow._included.move_to_end(str(snakefile), last=False)
