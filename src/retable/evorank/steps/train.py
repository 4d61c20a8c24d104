"""Train one method on the positions: every seed of the job."""

from pathlib import Path

import torch

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.evorank.config import TrainSettings
from retable.evorank.networks import save_scorers
from retable.evorank.steps.dataset import TRAINING
from retable.evorank.structure import Environments
from retable.evorank.training import Positions, train_scorer


def train(
    data: Path,
    model: Path,
    history: Path,
    *,
    method: str,
    seeds: Seeds,
    settings: TrainSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write the weights (`<seed>.<parameter>`) and the loss of each epoch."""
    positions = load_positions(data, TRAINING)
    scorers, rows = {}, []
    for seed in seeds:
        scorers[seed], found = train_scorer(
            positions, settings, seed, checkpoints=checkpoints, name=f"{method}-seed{seed}"
        )
        rows += [
            {
                "experiment": "training",
                "dataset": "training",
                "method": method,
                "seed": seed,
                "metric": "loss",
                "x": row["epoch"],
                "value": row["loss"],
            }
            for row in found
        ]
    save_scorers(model, scorers, settings)
    write_metrics(rows, history)


def load_positions(data: Path, split: int) -> Positions:
    """The positions of one split."""
    arrays = load_arrays(data)
    here = arrays["split"] == split
    tensors = {
        name: torch.from_numpy(arrays[name][here])
        for name in ("neighbours", "density", "wildtype", "p")
    }
    environments = Environments(tensors["neighbours"], tensors["density"])
    return Positions(environments, tensors["wildtype"], tensors["p"])
