"""Full-batch trainings of one method, one run a seed."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from retable.adambias.config import TrainSettings, parse_method
from retable.adambias.data import Split, load_split
from retable.adambias.fullbatch import FullBatch, Trainee
from retable.adambias.models import cnn, mlp, resnet50, resnet101, simple_vit, small_cnn
from retable.adambias.optim import Adam
from retable.common.checkpoints import Checkpoints
from retable.common.metrics import write_csv
from retable.common.seeds import Seeds
from retable.common.training import train as run_training


def _network(settings: TrainSettings, split: Split) -> nn.Module:
    _, channels, size, _ = split.x.shape
    builders: dict[str, Callable[[], nn.Module]] = {
        "mlp": lambda: mlp(channels * size * size, settings.hidden, settings.classes),
        "small_cnn": lambda: small_cnn(settings.classes, channels, size),
        "cnn": lambda: cnn(settings.classes),
        "resnet50": lambda: resnet50(settings.classes),
        "resnet101": lambda: resnet101(settings.classes),
        "simple_vit": lambda: simple_vit(settings.classes),
    }
    return builders[settings.model]()


def train(
    data: Path,
    history: Path,
    *,
    method: str,
    seeds: Seeds,
    settings: TrainSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write one row an epoch and seed: losses, accuracies and norms of the gradient."""
    beta, rho, own_eps = parse_method(method)
    eps = settings.eps if own_eps is None else own_eps
    histories = []
    for index, seed in enumerate(seeds):
        split = load_split(data, index)
        torch.manual_seed(seed)
        trainee = Trainee(_network(settings, split))
        run = FullBatch(
            trainee,
            split,
            f"{method}, seed {seed}, lr={settings.lr:g}",
            beta=beta,
            rho=rho,
            eps=eps,
            eps_placement=settings.eps_placement,
            bias_correction=settings.bias_correction,
            squares=settings.loss == "mse",
            physical_batch=settings.physical_batch,
            augmented=settings.augment,
            test_every=settings.test_every,
        )
        optimizer = Adam(
            trainee.parameters(),
            settings.lr,
            (beta, rho),
            eps,
            bias_correction=settings.bias_correction,
            eps_placement=settings.eps_placement,
        )
        trained = run_training(
            trainee,
            optimizer,
            run.loss,
            run.batches,
            epochs=settings.epochs,
            after_epoch=run.after_epoch,
            checkpoints=checkpoints,
            name=f"{method}-seed{seed}",
        )
        rows = pd.DataFrame(trained.history).rename(columns={"loss": "train_loss"})
        rows.insert(0, "seed", seed)
        histories.append(rows)
    write_csv(pd.concat(histories, ignore_index=True), history)
