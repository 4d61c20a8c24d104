"""Accuracy of each layer."""

from pathlib import Path

from safetensors.numpy import load_file

from retable.common.data.arrays import load_arrays
from retable.common.metrics import write_measures, write_metrics


def evaluate(arrays: Path, models: list[Path], rows: Path, measures: Path) -> None:
    """Write the accuracy of every method and seed, and the measure of the claim."""
    data = load_arrays(arrays)
    found = []
    for path in models:
        weights = load_file(path)
        for seed in sorted({int(name.split(".")[0]) for name in weights}):
            scores = data["x"] @ weights[f"{seed}.weight"].T + weights[f"{seed}.bias"]
            accuracy = float((scores.argmax(1) == data["y"]).mean())
            found.append(
                {
                    "experiment": "digits",
                    "dataset": "digits",
                    "method": path.parent.name,
                    "seed": seed,
                    "metric": "accuracy",
                    "value": accuracy,
                }
            )
    write_metrics(found, rows)
    write_measures(
        [
            {"check": "trial-1", "seed": row["seed"], "value": row["value"]}
            for row in found
            if row["method"] == "momentum"
        ],
        measures,
    )
