"""Named arrays on disk (npz without pickle), their hash and their description."""

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retable.common.errors import InputError

Arrays = Mapping[str, np.ndarray]
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class ArraySpec:
    """What an array must be.

    Attributes:
        dtype: exact numpy dtype, for example `uint8`.
        shape: one entry an axis: a number, or a name; equal names must have equal lengths.
        low, high: smallest and largest value allowed; None where it does not apply.
    """

    dtype: str
    shape: tuple[int | str, ...]
    low: float | None = None
    high: float | None = None


def sha256_of_arrays(arrays: Arrays) -> str:
    """Hash names, dtypes, shapes and values: equal for every source of the same data."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write an npz whose bytes depend on the arrays alone (numpy's own holds the time)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_FIXED_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                # In C order: the file would tell how the array lay in memory.
                plain = np.asarray(array, order="C")
                np.lib.format.write_array(file, plain, allow_pickle=False)


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read an npz; InputError when it is none, is damaged, or holds Python objects."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except Exception as error:  # damaged bytes make numpy and zipfile raise nearly everything
        raise InputError(f"{path}: not a readable npz of plain arrays: {error}") from None


def check_arrays(arrays: Arrays, spec: Mapping[str, ArraySpec], place: str) -> None:
    """Hold arrays against their description; InputError names array, value and what is allowed."""
    missing = [name for name in spec if name not in arrays]
    if missing:
        raise InputError(f"{place}: the array '{missing[0]}' is missing; needed: {', '.join(spec)}")
    lengths: dict[str, tuple[int, str]] = {}
    for name, want in spec.items():
        array = arrays[name]
        if array.dtype != np.dtype(want.dtype) and not (
            want.dtype == "str" and array.dtype.kind == "U"
        ):
            raise InputError(f"{place}: {name}: dtype {array.dtype}, must be {want.dtype}")
        if array.ndim != len(want.shape):
            raise InputError(
                f"{place}: {name}: shape {array.shape}, must have {len(want.shape)} axes "
                f"({', '.join(map(str, want.shape))})"
            )
        for axis, (length, wanted) in enumerate(zip(array.shape, want.shape, strict=True)):
            if isinstance(wanted, int):
                if length != wanted:
                    raise InputError(
                        f"{place}: {name}: shape {array.shape}, axis {axis} must be {wanted}"
                    )
                continue
            known, first = lengths.setdefault(wanted, (length, name))
            if length != known:
                raise InputError(
                    f"{place}: {name}: axis {axis} has {length} entries, but {first} has {known}"
                )
        if array.size == 0:
            raise InputError(f"{place}: {name}: is empty")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{place}: {name}: holds values that are not finite")
        if want.low is not None and array.min() < want.low:
            raise InputError(
                f"{place}: {name}: smallest value {array.min()}, must be >= {want.low}"
            )
        if want.high is not None and array.max() > want.high:
            raise InputError(
                f"{place}: {name}: largest value {array.max()}, must be <= {want.high}"
            )
