"""Train the layer, one run a seed."""

import logging
import os
import time
from pathlib import Path

import torch
from retable.trial.config import TrainSettings
from retable.trial.model import linear
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.seeds import Seeds
from retable.common.training import minibatches
from retable.common.training import train as run_training

logger = logging.getLogger("retable")


def train(
    arrays: Path,
    model: Path,
    *,
    method: str,
    seeds: Seeds,
    settings: TrainSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write the weights of one layer a seed."""
    logger.info("CUDA_VISIBLE_DEVICES=%s", os.environ.get("CUDA_VISIBLE_DEVICES"))
    data = load_arrays(arrays)
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    weights = {}
    for seed in seeds:
        torch.manual_seed(seed)
        layer = linear(x.shape[1], 10)
        momentum = 0.9 if method == "momentum" else 0.0

        def loss(net, batch):
            noisy = x[batch] + 0.01 * torch.randn(len(batch), x.shape[1])
            return cross_entropy(net(noisy), y[batch])

        run_training(
            layer,
            torch.optim.SGD(layer.parameters(), settings.lr, momentum=momentum),
            loss,
            minibatches(len(x), 64, seed),
            epochs=settings.epochs,
            after_step=lambda _: time.sleep(settings.pause),
            checkpoints=checkpoints,
            name=f"seed{seed}",
        )
        weights[f"{seed}.weight"] = layer.weight.detach()
        weights[f"{seed}.bias"] = layer.bias.detach()
    save_file(weights, model)
