"""Writing a shared data set to where the rules look for it."""

from collections.abc import Sequence
from pathlib import Path

from retable.common.data.arrays import save_arrays
from retable.common.data.fetch import Dataset


def write_dataset(
    datasets: Sequence[Dataset], name: str, own: list[Path], place: str, arrays: Path
) -> None:
    """Fetch the data set `name`, or take the user's own, and write it as checked arrays.

    `place` is the user's own file or folder and `own` its files; both are empty where the data
    come from the public sources.
    """
    (wanted,) = (dataset for dataset in datasets if dataset.name == name)
    found = wanted.load_own(Path(place)) if own else wanted.get()
    save_arrays(arrays, found)
