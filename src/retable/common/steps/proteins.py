"""Write a shared data set of proteins as checked arrays."""

from pathlib import Path

from retable.common.data.prepare import write_dataset
from retable.common.data.proteins import PROTEINS


def proteins(own: list[Path], arrays: Path, *, name: str, place: str) -> None:
    """Write the data set `name` to `arrays`; `own` are the files of a user's copy in `place`."""
    write_dataset(PROTEINS, name, own, place, arrays)
