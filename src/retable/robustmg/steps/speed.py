"""Enumeration of all equilibria against the linear program, timed side by side."""

import statistics
import time
from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.metrics import write_csv
from retable.robustmg.config import SpeedSettings
from retable.robustmg.games import random_matrix_game
from retable.robustmg.matrix import RobustMatrixGame, enumerate_equilibria, solve
from retable.robustmg.uncertainty import AdditiveBall


def speed(table: Path, *, settings: SpeedSettings) -> None:
    """Write the median ratio of the two times (wall clock, in alternation) for each size."""
    rng = np.random.default_rng(0)
    rows = []
    for n in settings.sizes:
        ratios = []
        for _ in range(settings.repeats + 1):
            payoff, other = random_matrix_game((n, n), rng), random_matrix_game((n, n), rng)
            game = RobustMatrixGame.zero_sum(payoff, AdditiveBall((n, n), 1, 1.0, 1.0))
            started = time.perf_counter()
            solve(game)
            solved = time.perf_counter()
            enumerate_equilibria(payoff, other)
            ratios.append((time.perf_counter() - solved) / (solved - started))
        # The first pair warms up.
        counted = ratios[1:]
        rows.append(
            {
                "experiment": "speed",
                "dataset": "matrix",
                "method": "vertex enumeration / lp",
                "metric": "time_ratio",
                "x": n,
                "median": statistics.median(counted),
                "low": min(counted),
                "high": max(counted),
                "n_repeats": len(counted),
            }
        )
    write_csv(pd.DataFrame(rows), table)
