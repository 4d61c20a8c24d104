"""Accuracy with few labels: encoders of several pretrainings, fine-tuned alike."""

import itertools
from pathlib import Path

from retable.common.data.arrays import load_arrays
from retable.common.errors import InputError
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.gemax.config import SemiSettings
from retable.gemax.data import GraphSet
from retable.gemax.evaluate import semi_supervised_accuracy
from retable.gemax.steps.train import load_encoder


def semi(
    graphs: Path,
    models: list[Path],
    rows: Path,
    *,
    dataset: str,
    seeds: Seeds,
    settings: SemiSettings,
) -> None:
    """Write the accuracy of each share of labels, pretraining and seed.

    `untrained` starts from random weights.
    """
    data = GraphSet.of_arrays(load_arrays(graphs))
    found = []
    for share, method, seed in itertools.product(settings.shares, settings.methods, seeds):
        try:
            score = semi_supervised_accuracy(
                load_encoder(models, method, seed),
                data,
                seed,
                share=share,
                folds=settings.folds,
                epochs=settings.epochs,
                lr=settings.lr,
                batch=settings.batch,
                readout=settings.readout,
            )
        except ValueError as error:
            raise InputError(f"{dataset}: {error}") from None
        found.append(
            {
                "experiment": "semi_supervised",
                "dataset": dataset,
                "method": method,
                "seed": seed,
                "metric": f"accuracy_semi{round(100 * share)}",
                "value": score,
            }
        )
    write_metrics(found, rows)
