"""Large rating files in CSV: MovieLens 20M's form and Amazon's."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from retable.common.data.arrays import ArraySpec
from retable.common.data.fetch import Dataset, Download
from retable.common.errors import InputError

RATING_ARRAYS = {
    "user": ArraySpec("int64", ("ratings",), low=1),
    "item": ArraySpec("int64", ("ratings",), low=1),
    "rating": ArraySpec("float32", ("ratings",), low=0.5, high=5),
    "timestamp": ArraySpec("int64", ("ratings",), low=0),
}


def read_ratings_csv(
    path: Path, kinds: Mapping[str, str], *, header: bool
) -> dict[str, np.ndarray]:
    """Read columns user, item, rating, timestamp in file order.

    Args:
        path: comma-separated file.
        kinds: pandas dtype of each column; ids that are text (`str`) become their rank among all
            ids, sorted, from 1.
        header: whether the first line names the columns.

    Raises:
        InputError: no such file, or a field that cannot be read; names the file.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(
            path,
            header=0 if header else None,
            names=list(RATING_ARRAYS),
            dtype=dict(kinds),
            keep_default_na=False,
        )
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path}: not a table of user,item,rating,timestamp: {error}") from None
    arrays = {}
    for name, spec in RATING_ARRAYS.items():
        column = frame[name]
        if kinds[name] == "str":
            column = pd.factorize(column, sort=True)[0] + 1
        arrays[name] = np.asarray(column).astype(spec.dtype)
    return arrays


def _only(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        for path in sorted(folder.rglob(name)):
            return path
    raise InputError(f"{folder}: there is no file {' or '.join(names)}")


def read_amazon_books(folder: Path) -> dict[str, np.ndarray]:
    """Read ratings_Books.csv: no header, ids that are text."""
    kinds = {"user": "str", "item": "str", "rating": "float32", "timestamp": "int64"}
    return read_ratings_csv(_only(folder, ["ratings_Books.csv"]), kinds, header=False)


AMAZON_BOOKS = Dataset(
    name="amazon-books",
    arrays=RATING_ARRAYS,
    sources=(
        Download(
            {
                "ratings_Books.csv": (
                    "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/"
                    "ratings_Books.csv"
                )
            },
            read_amazon_books,
        ),
    ),
    read=read_amazon_books,
    licence="research use",
)

RATINGS = (AMAZON_BOOKS,)
