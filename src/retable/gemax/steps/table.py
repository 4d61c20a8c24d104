"""The table: data set x method x metric, means over seeds."""

from pathlib import Path

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table


def table(rows: Path, seed_file: Path, table: Path) -> None:
    """Write the table; the curves of training stay in the rows and the figure."""
    frame = read_metrics(rows)
    frame = frame[frame["experiment"] != "training"]
    write_table(add_reported(aggregate(frame), read_seed_file(seed_file)), table)


def speed(rows: Path, table: Path) -> None:
    """Write the measured times."""
    write_table(aggregate(read_metrics(rows)), table)
