"""The table: every measured quantity over seeds."""

from pathlib import Path

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table


def table(metrics: Path, seed_file: Path, table: Path) -> None:
    """Write means and intervals; x is the radius, its scale, n, S or H, by experiment."""
    rows = read_metrics(metrics)
    # The points of the figure's first panel are no quantities of their own.
    rows = rows[rows["metric"] != "robust_value"]
    write_table(add_reported(aggregate(rows, ["x"]), read_seed_file(seed_file)), table)
