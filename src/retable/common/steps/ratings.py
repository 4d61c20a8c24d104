"""Write a shared data set of ratings as checked arrays."""

from pathlib import Path

from retable.common.data.movielens import MOVIELENS
from retable.common.data.prepare import write_dataset
from retable.common.data.ratings import RATINGS


def ratings(own: list[Path], arrays: Path, *, name: str, place: str) -> None:
    """Write the data set `name` to `arrays`; `own` are the files of a user's copy in `place`."""
    write_dataset((*MOVIELENS, *RATINGS), name, own, place, arrays)
