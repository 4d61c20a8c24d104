"""The table: assay or mean x method x metric, means over seeds."""

from pathlib import Path

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table


def table(rows: Path, seed_file: Path, table: Path) -> None:
    """Write every metric over seeds."""
    write_table(add_reported(aggregate(read_metrics(rows)), read_seed_file(seed_file)), table)
