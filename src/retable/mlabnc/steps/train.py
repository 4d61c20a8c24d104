"""Train one network and follow the collapse of its features."""

from pathlib import Path

import torch

from retable.common.checkpoints import Checkpoints
from retable.common.metrics import write_metrics
from retable.mlabnc.config import TrainSettings
from retable.mlabnc.networks import new_network, save_network
from retable.mlabnc.prepared import load_prepared
from retable.mlabnc.train import fit


def train(
    data: Path,
    model: Path,
    history: Path,
    *,
    dataset: str,
    method: str,
    seed: int,
    settings: TrainSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write the weights, and the loss, soft IoU and collapse metrics by epoch (x)."""
    train_split = load_prepared(data)["train"]
    network = new_network(settings, train_split, torch.Generator().manual_seed(seed))
    followed = fit(
        network,
        train_split,
        settings,
        seed=seed,
        checkpoints=checkpoints,
        name=f"{dataset}-{method}-seed{seed}",
    )
    save_network(model, network, settings)
    write_metrics(
        (
            {
                "experiment": "training",
                "dataset": dataset,
                "method": method,
                "seed": seed,
                "metric": metric,
                "x": row["epoch"],
                "value": value,
            }
            for row in followed.rows
            for metric, value in row.items()
            if metric != "epoch"
        ),
        history,
    )
