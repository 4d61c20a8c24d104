"""Fetch a shared data set, or take the user's own, and write it as checked arrays."""

from pathlib import Path

from retable.common.data.arrays import save_arrays
from retable.common.data.catalogue import DATASETS


def dataset(own: list[Path], arrays: Path, *, name: str, place: str) -> None:
    """Write the data set `name` to `arrays`.

    `place` is the user's own file or folder and `own` its files; both are empty where the data
    come from the public sources.
    """
    wanted = DATASETS[name]
    found = wanted.load_own(Path(place)) if own else wanted.get()
    save_arrays(arrays, found)
