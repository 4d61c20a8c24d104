"""Networks for prepared data, and their weights on disk with the settings of their training."""

from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from retable.mlabnc.config import TrainSettings
from retable.mlabnc.data import MLabArrays
from retable.mlabnc.models import FeatureClassifier, build


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
