"""Files that are whole or not there: written beside their place, then moved into it."""

import contextlib
import fcntl
import glob
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_MARK = ".part-"
_held: list[IO[str]] = []


def partial_path(path: Path) -> Path:
    """Where a process writes the file before it is whole; the ending stays, for numpy's sake."""
    return path.with_name(f".{path.stem}{_MARK}{os.getpid()}{path.suffix}")


def remove_partial(path: Path) -> None:
    """Remove what killed processes left of earlier attempts to write `path`."""
    stem, suffix = glob.escape(path.stem), glob.escape(path.suffix)
    # The process's number: without it a file that has no ending would claim those of others.
    for leftover in path.parent.glob(f".{stem}{_MARK}*{suffix}"):
        if not leftover.name[len(f".{path.stem}{_MARK}") :].removesuffix(path.suffix).isdigit():
            continue
        leftover.unlink(missing_ok=True)


def move_into_place(part: Path, path: Path) -> None:
    """Give a finished file its name, on disk before the name shows (fsync, then rename)."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(part, path)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` on success and is removed on an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = partial_path(path)
    try:
        yield part
        move_into_place(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            # Python does not say which file was being written when the disk was full.
            error.filename = str(path)
        raise


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes, as hexadecimal text."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hold_folder(place: Path) -> None:
    """Share a lock on a folder until this process ends: who clears up leaves it alone."""
    path = place.parent / f"{place.name}.lock"
    while True:
        lock = path.open("a")
        fcntl.flock(lock, fcntl.LOCK_SH)
        # Whoever removes a copy removes its lock file too: then this one locks nothing.
        if path.exists() and os.path.samestat(os.fstat(lock.fileno()), path.stat()):
            _held.append(lock)
            return
        lock.close()
