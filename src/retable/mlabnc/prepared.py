"""Prepared data sets on disk, with what is needed to use them again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays, sha256_of_arrays
from retable.common.errors import InputError
from retable.mlabnc.data import MLabArrays

SPLITS = ("train", "validation", "test")


def save_prepared(
    path: Path, splits: Mapping[str, MLabArrays], metadata: Mapping[str, Any]
) -> None:
    """Write the splits to one npz: x, y, source, split (place in SPLITS), mean, std, metadata.

    The metadata (JSON text) also gets the number of samples of each split and the SHA-256 of the
    arrays.
    """
    parts = [splits[name] for name in SPLITS]
    slots = max(part.source.shape[1] for part in parts)
    arrays = {
        "x": np.concatenate([part.x for part in parts]),
        "y": np.concatenate([part.y for part in parts]),
        "source": np.concatenate(
            [
                np.pad(p.source, ((0, 0), (0, slots - p.source.shape[1])), constant_values=-1)
                for p in parts
            ]
        ),
        "split": np.repeat(np.arange(len(parts), dtype=np.uint8), [len(part.x) for part in parts]),
        "mean": np.array(parts[0].mean),
        "std": np.array(parts[0].std),
    }
    about = {
        **metadata,
        "samples": {name: len(part.x) for name, part in zip(SPLITS, parts, strict=True)},
        "sha256": sha256_of_arrays(arrays),
    }
    save_arrays(path, arrays | {"metadata": np.array(json.dumps(about, sort_keys=True))})


def load_prepared(path: Path) -> dict[str, MLabArrays]:
    """Read the splits of a prepared data set; InputError when its arrays do not match its hash."""
    arrays = load_arrays(path)
    about = json.loads(str(arrays.pop("metadata")))
    if sha256_of_arrays(arrays) != about["sha256"]:
        raise InputError(f"{path}: its arrays do not match the SHA-256 in its metadata; remove it")
    mean, std = tuple(arrays["mean"].tolist()), tuple(arrays["std"].tolist())
    return {
        name: MLabArrays(
            *(arrays[key][arrays["split"] == s] for key in ("x", "y", "source")), mean, std
        )
        for s, name in enumerate(SPLITS)
    }
