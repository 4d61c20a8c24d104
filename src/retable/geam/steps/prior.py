"""Train the language model that REINVENT begins with."""

from pathlib import Path

from retable.common.checkpoints import Checkpoints
from retable.geam.baselines import train_prior
from retable.geam.config import PriorSettings
from retable.geam.library import Library


def prior(library: Path, model: Path, *, settings: PriorSettings, checkpoints: Checkpoints) -> None:
    """Write the model."""
    train_prior(
        Library.load(library).prior,
        embedding=settings.embedding,
        width=settings.width,
        epochs=settings.epochs,
        lr=settings.lr,
        batch=settings.batch,
        seed=0,
        checkpoints=checkpoints,
    ).save(model)
