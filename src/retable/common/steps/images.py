"""Write a shared data set of images as checked arrays."""

from pathlib import Path

from retable.common.data.images import IMAGES
from retable.common.data.prepare import write_dataset


def images(own: list[Path], arrays: Path, *, name: str, place: str) -> None:
    """Write the data set `name` to `arrays`; `own` are the files of a user's copy in `place`."""
    write_dataset(IMAGES, name, own, place, arrays)
