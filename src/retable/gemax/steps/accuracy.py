"""Cross-validated accuracy of all methods on one data set, and the embeddings' effective rank."""

import logging
from pathlib import Path

from retable.common.data.arrays import load_arrays
from retable.common.errors import InputError
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.gemax.classify import cross_validated_accuracy, effective_rank, kernel_accuracy
from retable.gemax.config import AccuracySettings

logger = logging.getLogger("retable")


def accuracy(
    graphs: Path,
    embeddings: list[Path],
    matrices: Path,
    rows: Path,
    *,
    dataset: str,
    seeds: Seeds,
    settings: AccuracySettings,
) -> None:
    """Write accuracy and effective_rank of each method and seed; the seed also draws the folds."""
    y = load_arrays(graphs)["y"]
    fixed = load_arrays(matrices)
    learned = {
        name.removesuffix(f".{settings.readout}"): value
        for path in embeddings
        for name, value in load_arrays(path).items()
        if name.endswith(f".{settings.readout}")
    }
    choice = {
        "folds": settings.folds,
        "candidates": settings.c,
        "inner_folds": settings.inner_folds,
    }
    found = []
    try:
        for seed in seeds:
            for name, value in learned.items():
                method, _, own = name.partition(".")
                if int(own) == seed:
                    score = cross_validated_accuracy(value, y, seed, **choice)
                    found += [
                        (method, seed, "accuracy", score),
                        (method, seed, "effective_rank", effective_rank(value)),
                    ]
            for method, value in fixed.items():
                measure = cross_validated_accuracy if method == "histogram" else kernel_accuracy
                found.append((method, seed, "accuracy", measure(value, y, seed, **choice)))
            logger.info("%s, seed %d done", dataset, seed)
    except ValueError as error:
        raise InputError(f"{dataset}: {error}") from None
    write_metrics(
        (
            {
                "experiment": "unsupervised",
                "dataset": dataset,
                "method": method,
                "seed": seed,
                "metric": metric,
                "value": value,
            }
            for method, seed, metric, value in found
        ),
        rows,
    )
