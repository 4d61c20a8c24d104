"""Fetch an image set that no other paper uses."""

from pathlib import Path

from retable.adambias.sources import SOURCES
from retable.common.data.arrays import save_arrays


def images(arrays: Path, *, source: str) -> None:
    """Write the data set `source` (cifar100 or eurosat) as arrays."""
    save_arrays(arrays, SOURCES[source].get())
