"""Time an epoch with a fixed classifier against one with a learned classifier."""

import time
from pathlib import Path

import numpy as np

from retable.common.metrics import write_metrics
from retable.common.training import train
from retable.mlabnc.config import SpeedSettings
from retable.mlabnc.networks import load_network
from retable.mlabnc.prepared import load_prepared
from retable.mlabnc.train import batches, objective, sgd


def speed(data: Path, learned: Path, fixed: Path, rows: Path, *, settings: SpeedSettings) -> None:
    """Write the median CPU seconds of an epoch of each, timed in alternation, and their ratio.

    The networks go on from where their training ended; the time of an epoch does not depend on it.
    """
    split = load_prepared(data)["train"]
    networks = {path.parent.name: load_network(path, split) for path in (learned, fixed)}
    seconds: dict[str, list[float]] = {name: [] for name in networks}
    # One round more than asked for: the first pays for memory that later ones find allocated.
    for epoch in range(settings.rounds + 1):
        for name, (model, trained_with) in networks.items():
            loss = objective(split, trained_with)
            order = batches(len(split.x), trained_with.batch_size, epoch)
            started = time.process_time()
            train(model, sgd(model, trained_with), loss, order, epochs=1, name=name)
            seconds[name].append(time.process_time() - started)
    times = {name: np.array(values[1:]) for name, values in seconds.items()}
    key = {"experiment": "speed", "dataset": data.parent.name}
    found = [
        key | {"method": name, "metric": "cpu_seconds_per_epoch", "value": float(np.median(values))}
        for name, values in times.items()
    ]
    ratio = times[fixed.parent.name] / times[learned.parent.name]
    method = f"{fixed.parent.name}/{learned.parent.name}"
    found.append(
        key | {"method": method, "metric": "cpu_time_ratio", "value": float(np.median(ratio))}
    )
    write_metrics(found, rows)
