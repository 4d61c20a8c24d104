"""Time an epoch of each objective on the same graphs."""

import time
from pathlib import Path

import numpy as np
import torch

from retable.common.data.arrays import load_arrays
from retable.common.metrics import write_metrics
from retable.gemax.config import SpeedSettings, TrainConfig
from retable.gemax.data import GraphSet
from retable.gemax.steps.train import objective_of
from retable.gemax.train import fit


def speed(
    graphs: Path,
    rows: Path,
    *,
    methods: list[str],
    train: dict,
    settings: SpeedSettings,
) -> None:
    """Write the median wall seconds of an epoch of each method, timed in alternation, and ratios.

    An epoch is a training of one epoch from the start, the making of the encoder included; `train`
    has the data set's settings of training.
    """
    data = GraphSet.of_arrays(load_arrays(graphs))
    config = TrainConfig.model_validate(train | {"epochs": 1})
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    # One round more than asked for: the first pays for what later ones find loaded.
    for epoch in range(settings.rounds + 1):
        for method, found in seconds.items():
            objective, own = objective_of(method, config)
            started = time.perf_counter()
            fit(data, objective, own, epoch)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            found.append(time.perf_counter() - started)
    times = {method: np.array(found[1:]) for method, found in seconds.items()}
    key = {"experiment": "speed", "dataset": settings.dataset}
    found = [
        key | {"method": method, "metric": "seconds_per_epoch", "value": float(np.median(values))}
        for method, values in times.items()
    ]
    for method, values in times.items():
        if method != settings.base:
            name = f"{method}/{settings.base}"
            ratio = float(np.median(values / times[settings.base]))
            found.append(key | {"method": name, "metric": "time_ratio", "value": ratio})
    write_metrics(found, rows)
