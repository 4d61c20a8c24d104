"""Write a shared data set of molecules as checked arrays."""

from pathlib import Path

from retable.common.data.molecules import MOLECULES
from retable.common.data.prepare import write_dataset


def molecules(own: list[Path], arrays: Path, *, name: str, place: str) -> None:
    """Write the data set `name` to `arrays`; `own` are the files of a user's copy in `place`."""
    write_dataset(MOLECULES, name, own, place, arrays)
