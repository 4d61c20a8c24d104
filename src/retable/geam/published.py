"""The published files of molecules: MOSES, and ZINC250k with docking scores."""

import csv
import io
import json
from collections.abc import Sequence

import numpy as np

from retable.common.errors import InputError

_TARGETS = ("parp1", "fa7", "5ht1b", "braf", "jak2")


def read_column(content: bytes, name: str, column: str) -> list[str]:
    """One column of a CSV file.

    Raises:
        InputError: no such column, or a row that ends before it.
    """
    rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    header = next(rows, [])
    if column not in header:
        raise InputError(f"{name}: no column {column!r}; it has {header}")
    place = header.index(column)
    values = []
    for record, row in enumerate(rows, start=1):
        if len(row) <= place:
            raise InputError(f"{name}: record {record} has no {column!r}: {row}")
        values.append(row[place].strip())
    return values


def zinc_known(content: bytes, name: str, rows: Sequence[int]) -> dict[str, np.ndarray]:
    """The scores that the official ZINC250k file has: docking targets and MPO tasks.

    Its docking columns hold -DS in kcal/mol (a failed docking is -99.9), its `sa` is (10 - SA)/9
    already. The property of a docking target is clip(-DS, 0, 20)/20 * QED * (10 - SA)/9.

    Raises:
        InputError: a value that is no number, or one of `qed`, `sa` and the MPO columns outside
            [0, 1], with its record.
    """
    header = content.split(b"\n", 1)[0].decode("utf-8").strip().split(",")

    def numbers(column: str) -> np.ndarray:
        text = read_column(content, name, column)
        try:
            return np.array([float(text[k]) for k in rows])
        except ValueError as error:
            raise InputError(f"{name}: column {column!r}: {error}") from None

    def shares(column: str) -> np.ndarray:
        values = numbers(column)
        bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
        if len(bad):
            raise InputError(
                f"{name}: record {rows[bad[0]] + 1} has {column} {values[bad[0]]:g}; it must lie "
                "in [0, 1]"
            )
        return values

    able = shares("qed") * shares("sa")
    known = {
        target: np.clip(numbers(target), 0, 20) / 20 * able
        for target in _TARGETS
        if target in header
    }
    known |= {
        column.removesuffix("_mpo"): shares(column) for column in header if column.endswith("_mpo")
    }
    return known


def zinc_split(content: bytes, name: str, count: int) -> np.ndarray:
    """The rows of the training part: all but those of the official index file.

    Raises:
        InputError: no list of row numbers, or one beyond the file's end.
    """
    try:
        valid = json.loads(content)
    except ValueError as error:
        raise InputError(f"{name}: no JSON: {error}") from None
    valid = valid["valid_idxs"] if isinstance(valid, dict) and "valid_idxs" in valid else valid
    if not isinstance(valid, list) or not all(str(k).isdigit() for k in valid):
        raise InputError(f"{name}: must be a list of row numbers")
    numbers = np.array([int(k) for k in valid], np.int64)
    if len(numbers) and numbers.max() >= count:
        raise InputError(f"{name}: row {numbers.max()} does not exist; there are {count}")
    return np.setdiff1d(np.arange(count), numbers)
