"""The tables: means over seeds, with the paper's numbers."""

from pathlib import Path

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table


def table(rows: Path, seed_file: Path, table: Path) -> None:
    """Write what the methods generated; curves stay in the rows."""
    metrics = read_metrics(rows)
    chosen = metrics[metrics["experiment"].isin(["generation", "learning"])]
    write_table(add_reported(aggregate(chosen), read_seed_file(seed_file)), table)


def vocabulary(rows: Path, seed_file: Path, table: Path) -> None:
    """Write what the vocabularies are worth under random assembly."""
    metrics = read_metrics(rows)
    chosen = aggregate(metrics[metrics["experiment"] == "vocabulary"])
    write_table(add_reported(chosen, read_seed_file(seed_file), append=False), table)


def docking(rows: Path, seed_file: Path, table: Path) -> None:
    """Write what the methods generated for docking targets."""
    metrics = read_metrics(rows)
    chosen = aggregate(metrics[metrics["experiment"] == "docking"])
    write_table(add_reported(chosen, read_seed_file(seed_file), append=False), table)
