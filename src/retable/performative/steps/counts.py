"""MovieLens as demand: how many viewers liked films of each genre, and how many none."""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from retable.common.data.arrays import check_arrays, load_arrays
from retable.common.data.movielens import ARRAYS
from retable.common.errors import InputError
from retable.common.metrics import write_csv
from retable.performative.config import CountsSettings

LIKED = 4
NOT_BOUGHT = "(nothing)"


def counts(ratings: Path, table: Path, *, settings: CountsSettings) -> None:
    """Write genre, count: the largest genres, largest first, then those who bought nothing."""
    arrays = load_arrays(ratings)
    check_arrays(arrays, ARRAYS, str(ratings))
    names, bought, not_bought = count_demand(
        arrays["item"], arrays["rating"], arrays["item_genres"], arrays["genre_names"]
    )
    if len(names) < settings.genres:
        raise InputError(f"{ratings}: {len(names)} genres were liked, genres={settings.genres}")
    top = settings.genres
    frame = pd.DataFrame(
        {"genre": [*names[:top], NOT_BOUGHT], "count": [*bought[:top], float(not_bought)]}
    )
    # All digits: utilities are logarithms of ratios of these counts.
    frame["count"] = frame["count"].map(repr)
    write_csv(frame, table)


def count_demand(
    item: NDArray, rating: NDArray, item_genres: NDArray, genre_names: NDArray
) -> tuple[list[str], list[float], int]:
    """Genres with their buyers, most bought first, and how many bought nothing.

    A rating of 4 or 5 is one customer who bought, shared evenly by the film's genres; a lower one
    is a customer who bought nothing. item, rating (k,); item_genres (items, genres) bool, row i for
    item i + 1. InputError when a liked film has no genre.
    """
    flags = item_genres[item - 1]
    liked = rating >= LIKED
    share = flags[liked].sum(axis=1, keepdims=True)
    if np.any(share == 0):
        raise InputError(f"item {item[liked][share[:, 0] == 0][0]}: a liked film has no genre")
    bought = (flags[liked] / share).sum(axis=0)
    order = [k for k in np.argsort(-bought, kind="stable") if bought[k] > 0]
    return (
        [str(genre_names[k]) for k in order],
        [float(bought[k]) for k in order],
        int((~liked).sum()),
    )


def read_counts(table: Path) -> tuple[list[str], NDArray[np.float64], float]:
    """Genres, their buyers, and how many bought nothing, as `counts` wrote them."""
    # Python's own reading of a number keeps every digit.
    frame = pd.read_csv(table, dtype=str)
    if list(frame.columns) != ["genre", "count"] or frame["genre"].iloc[-1] != NOT_BOUGHT:
        raise InputError(f"{table}: must have the columns genre, count and end with {NOT_BOUGHT}")
    numbers = np.array([float(text) for text in frame["count"]])
    return frame["genre"].tolist()[:-1], numbers[:-1], float(numbers[-1])
