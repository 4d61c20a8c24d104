"""The table."""

from pathlib import Path

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import KEYS, add_reported, aggregate, write_table


def table(rows: Path, seed_file: Path, table: Path) -> None:
    """Write means over seeds; the curves of errors over step sizes are the figure's.

    A loss that a seed does not reach lowers `n_seeds`; one that no seed reaches leaves an empty
    row.
    """
    found = read_metrics(rows)
    found = found[found["x"].isna()]
    made = aggregate(found.dropna(subset="value"))
    order = found[list(KEYS)].drop_duplicates()
    made = order.merge(made, on=list(KEYS), how="left")
    made["n_seeds"] = made["n_seeds"].fillna(0).astype("Int64")
    write_table(add_reported(made, read_seed_file(seed_file)), table)
