"""Street-view house numbers with several digits (SVHN format 1), for the paper scale."""

from pathlib import Path

import numpy as np

from retable.common.data.arrays import ArraySpec
from retable.common.data.fetch import Dataset, Download
from retable.common.errors import InputError

SIDE = 32
# No house number in the data set has more digits.
MOST_DIGITS = 6


def read_svhn(folder: Path) -> dict[str, np.ndarray]:
    """Read the folders `train` and `test` of PNG images with their digitStruct.mat.

    Images are resized to 32 x 32 (bilinear). Digits are int64 [n, 6]: 1 to 9, 10 for zero, -1 after
    the last one. InputError for a missing or damaged file.
    """
    arrays = {}
    for split in ("train", "test"):
        place = folder / split
        digits = read_digit_struct(place / "digitStruct.mat")
        images = np.empty((len(digits), SIDE, SIDE, 3), dtype=np.uint8)
        numbers = np.full((len(digits), MOST_DIGITS), -1, dtype=np.int64)
        for row, (name, number) in enumerate(digits):
            if len(number) > MOST_DIGITS:
                raise InputError(f"{place / name}: {len(number)} digits, must be at most 6")
            images[row] = _small_image(place / name)
            numbers[row, : len(number)] = number
        arrays |= {f"{split}_images": images, f"{split}_digits": numbers}
    return arrays


def read_digit_struct(path: Path) -> list[tuple[str, list[int]]]:
    """File name and digits of every image, from a digitStruct.mat (MATLAB 7.3, which is HDF5)."""
    import h5py

    try:
        with h5py.File(path) as file:
            struct = file["digitStruct"]
            return [
                (_text(file[name]), _labels(file, file[box]["label"]))
                for name, box in zip(struct["name"][:, 0], struct["bbox"][:, 0], strict=True)
            ]
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, KeyError) as error:
        raise InputError(f"{path}: not a readable digitStruct.mat: {error}") from None


def _text(codes) -> str:
    return "".join(map(chr, codes[:, 0]))


def _labels(file, label) -> list[int]:
    """An image with one digit holds its label itself, one with several holds references."""
    if label.shape[0] == 1:
        return [int(label[0, 0])]
    return [int(file[reference][0, 0]) for reference in label[:, 0]]


def _small_image(path: Path) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
            return np.asarray(small)
    except (FileNotFoundError, UnidentifiedImageError, OSError) as error:
        raise InputError(f"{path}: not a readable image: {error}") from None


_BASE = "http://ufldl.stanford.edu/housenumbers"

SVHN = Dataset(
    name="svhn",
    arrays={
        f"{split}_{kind}": ArraySpec("uint8", (f"{split} samples", SIDE, SIDE, 3))
        if kind == "images"
        else ArraySpec("int64", (f"{split} samples", MOST_DIGITS), low=-1, high=10)
        for split in ("train", "test")
        for kind in ("images", "digits")
    },
    sources=(
        Download(
            {name: f"{_BASE}/{name}" for name in ("train.tar.gz", "test.tar.gz")},
            read_svhn,
            unpack=True,
        ),
    ),
    read=read_svhn,
    licence="non-commercial use",
)
