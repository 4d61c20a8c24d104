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

    An epoch's time is that of a training of some epochs less that of a training of one, over the
    number of further epochs, so that what is done once does not count; `train` has the data set's
    settings of training.
    """
    data = GraphSet.of_arrays(load_arrays(graphs))
    more = TrainConfig.model_validate(train | {"epochs": settings.epochs})
    once = more.model_copy(update={"epochs": 1})
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    # One round more than asked for: the first pays for what later ones find loaded.
    for round_ in range(settings.rounds + 1):
        for method, found in seconds.items():
            short, long = (
                _seconds(data, *objective_of(method, config), round_) for config in (once, more)
            )
            found.append((long - short) / (settings.epochs - 1))
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


def _seconds(data: GraphSet, objective: str, config: TrainConfig, seed: int) -> float:
    started = time.perf_counter()
    fit(data, objective, config, seed)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started
