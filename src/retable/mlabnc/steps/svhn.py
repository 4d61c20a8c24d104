"""Fetch the street-view house numbers."""

from pathlib import Path

from retable.common.data.arrays import save_arrays
from retable.mlabnc.svhn import SVHN


def svhn(arrays: Path) -> None:
    """Write the images (32 x 32 pixels) and the digits of both splits."""
    save_arrays(arrays, SVHN.get())
