"""Data sets that are files of many kinds: kept byte for byte, read by the paper that knows them.

Molecules, structures and alignments have formats of their own, and libraries that read them. Such
a data set is a bundle: its files' names and bytes in plain arrays, checked like any other.
"""

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from retable.common.data.arrays import Arrays, ArraySpec, load_arrays
from retable.common.data.fetch import Reader
from retable.common.errors import InputError

BUNDLE = {
    "names": ArraySpec("str", ("files",)),
    "ends": ArraySpec("int64", ("files",), low=0),
    "content": ArraySpec("uint8", ("bytes",)),
}
_TEXT = (".txt", ".csv", ".tsv")


def bundle_of(*patterns: str) -> Reader:
    """A reader that keeps the files below a folder that match, wherever they lie.

    A pattern is a file's name or has wildcards (`*.pdb`). A name that exists only with `.gz` behind
    it is unpacked. Line ends of text files (.txt, .csv, .tsv) become those of Unix: copies of the
    same data differ in them.

    Raises:
        InputError: nothing matches a pattern; two files of one name differ; a damaged gzip file.
    """

    def read(folder: Path) -> dict[str, np.ndarray]:
        files: dict[str, bytes] = {}
        for pattern in patterns:
            for name, content in _matching(folder, pattern):
                if files.setdefault(name, content) != content:
                    raise InputError(f"{folder}: there are two different files '{name}'")
        return pack_files(files)

    return read


def pack_files(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    """Lay files into arrays, sorted by name: `names`, all bytes, and where each file ends."""
    names = sorted(files)
    content = np.frombuffer(b"".join(files[name] for name in names), dtype=np.uint8)
    ends = np.cumsum([len(files[name]) for name in names], dtype=np.int64)
    return {"names": np.array(names, dtype=str), "ends": ends, "content": content}


def unpack_files(arrays: Arrays) -> dict[str, bytes]:
    """The files that `pack_files` laid into arrays: name -> bytes."""
    ends = arrays["ends"].tolist()
    content = arrays["content"].tobytes()
    return {
        str(name): content[start:end]
        for name, start, end in zip(arrays["names"], [0, *ends[:-1]], ends, strict=True)
    }


def read_bundle(path: Path) -> dict[str, bytes]:
    """The files of a prepared bundle (`results/data/<name>.npz`): name -> bytes.

    Raises:
        InputError: not a bundle.
    """
    arrays = load_arrays(path)
    missing = [name for name in BUNDLE if name not in arrays]
    if missing:
        raise InputError(
            f"{path}: the array '{missing[0]}' is missing; needed: {', '.join(BUNDLE)}"
        )
    return unpack_files(arrays)


def _matching(folder: Path, pattern: str) -> list[tuple[str, bytes]]:
    plain = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    packed = [path for path in sorted(folder.rglob(f"{pattern}.gz")) if path.is_file()]
    if plain:
        found = [(path.name, path.read_bytes()) for path in plain]
    elif packed:
        found = [(path.name.removesuffix(".gz"), _gunzipped(path)) for path in packed]
    else:
        raise InputError(f"{folder}: there is no file '{pattern}'")
    return [
        (name, content.replace(b"\r\n", b"\n") if name.endswith(_TEXT) else content)
        for name, content in found
    ]


def _gunzipped(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged or truncated gzip file: {error}") from None
