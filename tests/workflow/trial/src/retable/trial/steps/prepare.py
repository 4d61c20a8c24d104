"""Digits as arrays."""

from pathlib import Path

from sklearn.datasets import load_digits

from retable.common.data.arrays import save_arrays


def prepare(arrays: Path) -> None:
    """Write 1797 digits of 8 x 8 pixels in [0, 1] and their labels."""
    digits = load_digits()
    save_arrays(arrays, {"x": (digits.data / 16).astype("float32"), "y": digits.target})
