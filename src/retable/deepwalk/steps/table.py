"""The tables: recovery by all methods, and costs as ratios."""

from pathlib import Path

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table


def table(metrics: Path, seed_file: Path, table: Path) -> None:
    """Write every quantity over seeds; curves are left to the figure."""
    rows = read_metrics(metrics)
    rows = rows[rows["x"].isna()]
    write_table(add_reported(aggregate(rows), read_seed_file(seed_file)), table)


def speed(rows: list[Path], table: Path) -> None:
    """Write the ratios of times and of memory over graphs."""
    write_table(aggregate(read_metrics(rows)), table)
