"""Readers of MNIST's and CIFAR-10's files, on small files of the true formats."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from retable.common.data.arrays import check_arrays, sha256_of_arrays
from retable.common.data.images import (
    CIFAR10,
    MNIST,
    read_cifar10_binary,
    read_cifar10_png,
    read_idx,
    read_mnist_folder,
)
from retable.common.errors import InputError


def idx(array: np.ndarray, kind: int = 8) -> bytes:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, kind, array.ndim, *array.shape)
    return header + array.tobytes()


@pytest.fixture
def digits() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        "train_images": generator.integers(0, 256, (5, 28, 28), np.uint8),
        "train_labels": np.array([3, 1, 4, 1, 5]),
        "test_images": generator.integers(0, 256, (2, 28, 28), np.uint8),
        "test_labels": np.array([9, 0]),
    }


def write_mnist(folder: Path, arrays: dict[str, np.ndarray], *, packed: bool) -> None:
    folder.mkdir(parents=True)
    for split, stem in (("train", "train"), ("test", "t10k")):
        for kind, name in (("images", "images-idx3"), ("labels", "labels-idx1")):
            content = idx(arrays[f"{split}_{kind}"].astype(np.uint8))
            path = folder / f"{stem}-{name}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content, mtime=0) if packed else content)


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_plain_or_packed(tmp_path: Path, digits: dict[str, np.ndarray], packed: bool) -> None:
    write_mnist(tmp_path / "some" / "where", digits, packed=packed)
    found = read_mnist_folder(tmp_path)
    check_arrays(found, MNIST.arrays, "made")
    assert sha256_of_arrays(found) == sha256_of_arrays(digits)
    assert found["train_images"].flags.writeable


def test_missing_idx_file_is_named(tmp_path: Path, digits: dict[str, np.ndarray]) -> None:
    write_mnist(tmp_path / "a", digits, packed=False)
    (tmp_path / "a" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(InputError, match="there is no file t10k-labels-idx1-ubyte or"):
        read_mnist_folder(tmp_path / "a")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file of unsigned bytes"),
        (b"\0\0", "not an idx file of unsigned bytes"),
        (b"<html>no</html>", "not an idx file of unsigned bytes"),
        (idx(np.zeros(3, np.int32), kind=0x0C), "not an idx file of unsigned bytes"),
        (idx(np.zeros((2, 3), np.uint8))[:10], "truncated: its header is cut off"),
        (
            idx(np.zeros((2, 3), np.uint8))[:-1],
            r"truncated or too long: 5 bytes for shape \(2, 3\)",
        ),
        (idx(np.zeros((2, 3), np.uint8)) + b"x", "truncated or too long: 7 bytes"),
        (
            gzip.compress(idx(np.zeros((40, 30), np.uint8)), mtime=0)[:-9],
            "damaged or truncated gzip file",
        ),
        (b"\x1f\x8b\x08nonsense that is no gzip", "damaged or truncated gzip file"),
        (struct.pack(">BBBB4I", 0, 0, 8, 4, *[2**16] * 4), "truncated or too long: 0 bytes"),
    ],
)
def test_wrong_idx(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file-idx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"file-idx: {message}"):
        read_idx(path)


BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


@pytest.fixture
def photos() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {
        "train_images": generator.integers(0, 256, (10, 32, 32, 3), np.uint8),
        "train_labels": generator.integers(0, 10, 10),
        "test_images": generator.integers(0, 256, (2, 32, 32, 3), np.uint8),
        "test_labels": generator.integers(0, 10, 2),
    }


def batches_of(photos: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    images = [*np.split(photos["train_images"], 5), photos["test_images"]]
    labels = [*np.split(photos["train_labels"], 5), photos["test_labels"]]
    return dict(zip(BATCHES, zip(images, labels, strict=True), strict=True))


def write_binary(folder: Path, photos: dict[str, np.ndarray]) -> None:
    folder.mkdir()
    for name, (images, labels) in batches_of(photos).items():
        # Per image: its label, then all red, all green, all blue pixels, row by row.
        records = [
            bytes([label]) + image.transpose(2, 0, 1).tobytes()
            for image, label in zip(images, labels, strict=True)
        ]
        (folder / f"{name}.bin").write_bytes(b"".join(records))


def write_png(folder: Path, photos: dict[str, np.ndarray]) -> None:
    folder.mkdir()
    for name, (images, _) in batches_of(photos).items():
        Image.fromarray(images.reshape(len(images), 1024, 3)).save(folder / f"{name}.png")
    for split in ("train", "test"):
        text = json.dumps(photos[f"{split}_labels"].tolist())
        (folder / f"{split}_lables.json").write_text(text)


def test_both_forms_of_cifar10_give_equal_arrays(
    tmp_path: Path, photos: dict[str, np.ndarray]
) -> None:
    write_binary(tmp_path / "binary", photos)
    write_png(tmp_path / "png", photos)
    for found in (read_cifar10_binary(tmp_path / "binary"), read_cifar10_png(tmp_path / "png")):
        check_arrays(found, CIFAR10.arrays, "made")
        assert sha256_of_arrays(found) == sha256_of_arrays(photos)


def test_truncated_binary_batch(tmp_path: Path, photos: dict[str, np.ndarray]) -> None:
    write_binary(tmp_path / "binary", photos)
    path = tmp_path / "binary" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"data_batch_3\.bin: 6136 bytes, must be a multiple"):
        read_cifar10_binary(tmp_path / "binary")
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"data_batch_3\.bin: 0 bytes"):
        read_cifar10_binary(tmp_path / "binary")


def test_truncated_png(tmp_path: Path, photos: dict[str, np.ndarray]) -> None:
    write_png(tmp_path / "png", photos)
    path = tmp_path / "png" / "test_batch.png"
    whole = path.read_bytes()
    for length in (0, 20, 60, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"test_batch\.png: not a whole PNG"):
            read_cifar10_png(tmp_path / "png")


def test_png_of_another_width(tmp_path: Path, photos: dict[str, np.ndarray]) -> None:
    write_png(tmp_path / "png", photos)
    Image.new("RGB", (100, 2)).save(tmp_path / "png" / "data_batch_2.png")
    with pytest.raises(InputError, match=r"data_batch_2\.png: 100 pixels a row, must be 1024"):
        read_cifar10_png(tmp_path / "png")


@pytest.mark.parametrize("text", ["", "[1, 2", '["cat", "dog"]', "[[1, 2], [3]]"])
def test_labels_that_are_no_numbers(
    tmp_path: Path, photos: dict[str, np.ndarray], text: str
) -> None:
    write_png(tmp_path / "png", photos)
    (tmp_path / "png" / "test_lables.json").write_text(text)
    with pytest.raises(InputError, match=r"test_lables\.json"):
        read_cifar10_png(tmp_path / "png")
