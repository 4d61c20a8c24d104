"""The published files of molecules: MOSES, and ZINC250k with docking scores."""

import csv
import io
import json
from collections.abc import Sequence

import numpy as np

from retable.common.errors import InputError


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

    Docking columns hold DS in kcal/mol or -DS: binding molecules are the rule, so the sign of the
    column's median tells which. A failed docking is 99.9 kcal/mol and becomes 0. The property is
    clip(-DS, 0, 20)/20 * QED * (10 - SA)/9 with the file's `qed` and `sa`.
    """
    header = content.split(b"\n", 1)[0].decode("utf-8").strip().split(",")

    def numbers(column: str) -> np.ndarray:
        text = read_column(content, name, column)
        try:
            return np.array([float(text[k]) for k in rows])
        except ValueError as error:
            raise InputError(f"{name}: column {column!r}: {error}") from None

    qed, sa = numbers("qed"), numbers("sa")
    known = {}
    for target in ("parp1", "fa7", "5ht1b", "braf", "jak2"):
        if target in header:
            column = numbers(target)
            failed = np.isclose(np.abs(column), 99.9)
            sign = 1.0 if np.median(column[~failed]) >= 0 else -1.0
            binding = np.where(failed, 0.0, np.clip(sign * column, 0, 20))
            known[target] = binding / 20 * qed * (10 - sa) / 9
    for column in header:
        if column.endswith("_mpo"):
            known[column.removesuffix("_mpo")] = numbers(column)
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
