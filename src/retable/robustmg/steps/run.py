"""Run one experiment for one or more seeds."""

from pathlib import Path
from typing import Any

from retable.common.data.arrays import save_arrays
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.robustmg.experiments import EXPERIMENTS


def run(
    rows: Path, games: Path, *, experiment: str, seeds: Seeds, settings: dict[str, Any]
) -> None:
    """Write tidy rows of the experiment, and the games that were drawn (float64 arrays)."""
    function, model = EXPERIMENTS[experiment]
    checked = model.model_validate(settings)
    found, arrays = [], {}
    for seed in seeds:
        measured, drawn = function(seed, checked)
        found += [{"experiment": experiment, "seed": seed, **row} for row in measured]
        arrays |= {f"seed{seed}.{name}": array for name, array in drawn.items()}
    write_metrics(found, rows)
    save_arrays(games, arrays)
