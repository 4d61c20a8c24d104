"""Training a network with the pick-all-label loss, and following the collapse of its features."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from retable.common.checkpoints import Checkpoints
from retable.common.training import minibatches, train
from retable.mlabnc.config import TrainConfig
from retable.mlabnc.data import MLabArrays
from retable.mlabnc.evaluate import soft_iou
from retable.mlabnc.losses import pick_all_label_loss
from retable.mlabnc.metrics import nc_metrics

_EVALUATION_BATCH = 512


@dataclass(frozen=True)
class History:
    """What happened in training, one row an epoch.

    Each row has `epoch` (from 1) and `loss` (mean over steps, penalty included); every `iou_every`
    epochs and where collapse is measured also `soft_iou` (after the epoch, evaluation mode,
    training set). Rows of measured epochs have the keys of `nc_metrics` besides, and those that
    depend on centring once more with raw means, suffix `_raw`.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)

    def curve(self, metric: str) -> tuple[list[int], list[float]]:
        """Epochs and values of one metric, where it was measured."""
        found = [(row["epoch"], row[metric]) for row in self.rows if metric in row]
        return [epoch for epoch, _ in found], [value for _, value in found]


def fit(
    model: nn.Module,
    data: MLabArrays,
    config: TrainConfig,
    *,
    seed: int = 0,
    checkpoints: Checkpoints | None = None,
    name: str = "fit",
) -> History:
    """Train `model` in place on composed images; `model(x)` returns (logits, features).

    The objective of a batch B is

        mean over B of the loss + lam_h * sum over B of ||h_i||^2

    and SGD adds the weight decay of all trainable parameters. `seed` fixes the order of the
    samples; the model's weights are the caller's. Loss "bce" is binary cross entropy summed over
    the K labels. Raises ValueError when a class has no sample with that label alone, since collapse
    cannot be measured then.
    """
    device = PartialState().device
    x = torch.from_numpy(data.x).to(device)
    normalise = Normalise(data)
    optimizer = sgd(model, config)
    measured = config.measured_epochs()

    def after_epoch(epoch: int) -> dict[str, float]:
        if epoch % config.iou_every and epoch not in measured:
            return {}
        logits, features = outputs(model, x, normalise)
        row = {"soft_iou": soft_iou(logits, data.y)}
        if epoch in measured:
            weight = model.head.weight
            row |= nc_metrics(features, data.y, weight)
            raw = nc_metrics(features, data.y, weight, center=False)
            row |= {f"{k}_raw": v for k, v in raw.items() if not k.startswith(("nc1", "nc2_w"))}
        return row

    trained = train(
        model,
        optimizer,
        objective(data, config),
        batches(len(x), config.batch_size, seed),
        epochs=config.epochs,
        schedule=torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, config.epochs, eta_min=config.lr / 1000
        ),
        after_epoch=after_epoch,
        checkpoints=checkpoints,
        name=name,
        mixed_precision=config.mixed_precision,
    )
    return History(trained.history)


def objective(data: MLabArrays, config: TrainConfig) -> Callable[[nn.Module, Tensor], Tensor]:
    """The function (model, sample indices of a batch) -> loss that `fit` minimises."""
    device = PartialState().device
    x = torch.from_numpy(data.x).to(device)
    y = torch.from_numpy(data.y).to(device)
    normalise = Normalise(data)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        logits, features = model(normalise(x[batch]))
        targets = y[batch]
        if config.loss == "pal":
            value = pick_all_label_loss(logits, targets, config.per_label)
        else:
            value = binary_cross_entropy_with_logits(logits, targets.to(logits.dtype))
            value = value * logits.shape[1]
        return value + config.lam_h * features.square().sum()

    return loss


def sgd(model: nn.Module, config: TrainConfig) -> torch.optim.SGD:
    """The optimiser over the trainable parameters: weight decay must not shrink a frozen frame."""
    return torch.optim.SGD(
        [p for p in model.parameters() if p.requires_grad],
        config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )


def batches(count: int, size: int, seed: int) -> Callable[[int], list[Tensor]]:
    """Batches of an epoch in an order fixed by the seed; a last batch of one sample is left out.

    Batch normalisation has no variance to divide by there.
    """
    return minibatches(count, size, seed, drop_last=count % size == 1)


class Normalise:
    """uint8 images to float32 network inputs: (x / 255 - mean) / std per channel."""

    def __init__(self, data: MLabArrays) -> None:
        self.mean = torch.tensor(data.mean, dtype=torch.float32)[:, None, None]
        self.std = torch.tensor(data.std, dtype=torch.float32)[:, None, None]

    def __call__(self, x: UInt8[Tensor, "N C H W"]) -> Float[Tensor, "N C H W"]:
        return (x.float() / 255 - self.mean.to(x.device)) / self.std.to(x.device)


@torch.no_grad()
def outputs(
    model: nn.Module, x: UInt8[Tensor, "N C H W"], normalise: Normalise
) -> tuple[Float[np.ndarray, "N K"], Float[np.ndarray, "N d"]]:
    """Logits and features of all images, in evaluation mode; leaves the model in that mode."""
    model.eval()
    parts = [model(normalise(part)) for part in x.split(_EVALUATION_BATCH)]
    logits, features = (torch.cat(column).float().cpu() for column in zip(*parts, strict=True))
    return logits.numpy(), features.numpy()
