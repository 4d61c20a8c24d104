"""CIFAR-100 and EuroSAT, which only this paper's own scale uses."""

from pathlib import Path

import numpy as np

from retable.common.data.arrays import ArraySpec
from retable.common.data.fetch import Dataset, Download
from retable.common.errors import InputError

SIDE = 32
CIFAR100_RECORD = 2 + 3 * SIDE * SIDE  # coarse label, fine label, pixels
EUROSAT_CLASSES = 10


def read_cifar100(folder: Path) -> dict[str, np.ndarray]:
    """Read the binary version, train.bin and test.bin anywhere below `folder`; fine labels."""
    arrays = {}
    for split in ("train", "test"):
        found = sorted(folder.rglob(f"{split}.bin"))
        if not found:
            raise InputError(f"{folder}: there is no file {split}.bin")
        raw = np.fromfile(found[0], np.uint8)
        if raw.size == 0 or raw.size % CIFAR100_RECORD:
            raise InputError(
                f"{found[0]}: {raw.size} bytes, must be a multiple of {CIFAR100_RECORD}"
            )
        records = raw.reshape(-1, CIFAR100_RECORD)
        pixels = records[:, 2:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
        arrays[f"{split}_images"] = np.ascontiguousarray(pixels)
        arrays[f"{split}_labels"] = records[:, 1].astype(np.int64)
    return arrays


def read_eurosat(folder: Path) -> dict[str, np.ndarray]:
    """Read the RGB version: a folder of JPEG images a class; resized to 32×32 (bilinear).

    Classes in alphabetical order, images in that of their names. Gives `images` and `labels`; the
    split into training and test images is `steps.prepare`'s.
    """
    from PIL import Image, UnidentifiedImageError

    paths = sorted(folder.rglob("*.jpg"), key=lambda path: (path.parent.name, path.name))
    classes = sorted({path.parent.name for path in paths})
    if len(classes) != EUROSAT_CLASSES:
        raise InputError(
            f"{folder}: {len(classes)} folders of JPEG images, must be {EUROSAT_CLASSES}, "
            "one a class"
        )
    images = np.empty((len(paths), SIDE, SIDE, 3), np.uint8)
    for row, path in enumerate(paths):
        try:
            with Image.open(path) as image:
                images[row] = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        except (UnidentifiedImageError, OSError) as error:
            raise InputError(f"{path}: not a whole image: {error}") from None
    labels = np.array([classes.index(path.parent.name) for path in paths], np.int64)
    return {"images": images, "labels": labels}


CIFAR100 = Dataset(
    name="cifar100",
    arrays={
        name: spec
        for split in ("train", "test")
        for name, spec in (
            (f"{split}_images", ArraySpec("uint8", (f"{split} samples", SIDE, SIDE, 3))),
            (f"{split}_labels", ArraySpec("int64", (f"{split} samples",), low=0, high=99)),
        )
    },
    sources=(
        Download(
            {"cifar-100-binary.tar.gz": "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"},
            read_cifar100,
            unpack=True,
        ),
    ),
    read=read_cifar100,
    licence="no explicit licence; research use",
)

EUROSAT = Dataset(
    name="eurosat",
    arrays={
        "images": ArraySpec("uint8", ("samples", SIDE, SIDE, 3)),
        "labels": ArraySpec("int64", ("samples",), low=0, high=EUROSAT_CLASSES - 1),
    },
    sources=(
        Download(
            {"EuroSAT.zip": "https://madm.dfki.de/files/sentinel/EuroSAT.zip"},
            read_eurosat,
            unpack=True,
        ),
        Download(
            {"EuroSAT_RGB.zip": "https://zenodo.org/records/7711810/files/EuroSAT_RGB.zip"},
            read_eurosat,
            unpack=True,
        ),
    ),
    read=read_eurosat,
    licence="MIT",
)
SOURCES = {dataset.name: dataset for dataset in (CIFAR100, EUROSAT)}
