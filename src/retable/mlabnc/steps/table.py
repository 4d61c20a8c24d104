"""The tables: collapse, decoding, sizes and free optimisation; and, apart, the times."""

from pathlib import Path

import pandas as pd

from retable.common.metrics import read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table

# What is also shown after the first epoch.
_FOLLOWED = r"(nc1_m\d|nc2_h|nc2_w|nc3|angle_ratio)(_m\d)?$"


def table(
    histories: list[Path],
    evaluations: list[Path],
    ufm: Path,
    sizes: Path,
    seed_file: Path,
    table: Path,
) -> None:
    """Write means over seeds; collapse after the first epoch stands beside that of the end."""
    evaluated = read_metrics(evaluations)
    collapse = evaluated[evaluated["experiment"] == "collapse"]
    history = read_metrics(histories)
    first = history[(history["x"] == 1) & history["metric"].str.match(_FOLLOWED)]
    # The evaluation leaves out nc2_w of a frozen frame, which is zero without any collapse.
    measured = set(collapse[["dataset", "method", "metric"]].itertuples(index=False, name=None))
    keys = first[["dataset", "method", "metric"]].itertuples(index=False, name=None)
    first = first[[key in measured for key in keys]]
    first = first.assign(experiment="collapse", metric=first["metric"] + "_epoch1")
    ordered = pd.concat(
        [
            collapse,
            first,
            evaluated[evaluated["experiment"] == "test"],
            read_metrics(ufm),
            _once_a_method(evaluated[evaluated["experiment"] == "size"]),
            read_metrics(sizes),
        ],
        ignore_index=True,
    )
    write_table(add_reported(aggregate(ordered), read_seed_file(seed_file)), table)


def speed(rows: Path, table: Path) -> None:
    """Write the measured times."""
    write_table(aggregate(read_metrics(rows)), table)


def _once_a_method(sizes: pd.DataFrame) -> pd.DataFrame:
    """Parameter counts do not depend on the seed: one row instead of one a seed."""
    keys = ["dataset", "method", "metric"]
    return sizes.drop_duplicates(keys).assign(seed=pd.NA)
