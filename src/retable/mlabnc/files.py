"""Prepared data sets and trained networks on disk, each with what is needed to use it again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from retable.common.data.arrays import load_arrays, save_arrays, sha256_of_arrays
from retable.common.errors import InputError
from retable.mlabnc.config import TrainSettings
from retable.mlabnc.data import MLabArrays
from retable.mlabnc.models import FeatureClassifier, build

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


def new_network(
    settings: TrainSettings, data: MLabArrays, generator: torch.Generator | None = None
) -> FeatureClassifier:
    """The network that `settings` describe, for images and labels like those of `data`."""
    return build(
        settings.network,
        data.x.shape[1],
        data.y.shape[1],
        settings.feature_dim,
        settings.fixed_etf,
        image_size=data.x.shape[2],
        feature_relu=settings.feature_relu,
        generator=generator,
    )


def save_network(path: Path, model: FeatureClassifier, settings: TrainSettings) -> None:
    """Write the weights (safetensors) with the settings that they were trained with."""
    weights = {name: tensor.cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, path, metadata={"settings": settings.model_dump_json()})


def load_network(path: Path, data: MLabArrays) -> tuple[FeatureClassifier, TrainSettings]:
    """Read a trained network for images like those of `data`, and its settings."""
    with safe_open(path, framework="pt") as file:
        settings = TrainSettings.model_validate_json(file.metadata()["settings"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    model = new_network(settings, data)
    model.load_state_dict(weights)
    return model, settings
