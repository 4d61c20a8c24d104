"""The table of the paper."""

from pathlib import Path

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table


def table(rows: Path, seed_file: Path, table: Path) -> None:
    """Aggregate over seeds and put the paper's numbers beside ours."""
    write_table(add_reported(aggregate(read_metrics(rows)), read_seed_file(seed_file)), table)
