"""The tables: quality, and times apart from it."""

from pathlib import Path

from retable.common.metrics import read_metrics, write_csv
from retable.common.seedfile import read_seed_file
from retable.common.tables import add_reported, aggregate, write_table

NOTES = {
    "public": "all items compete; ties count against the target",
    "stream": "the paper's stream is larger and partly unpublished: its numbers are for reference,"
    " not comparable",
    "scaling": "excess loss: test loss minus the oracle's on the same targets",
    "ranking": "the paper's industrial data are not public: its numbers are for reference, not"
    " comparable",
    "sl": "evaluated with the full history",
    "retrieval": "industrial data, not public",
}

FUSED = (
    "one processor thread: the Transformer's attention is a fused kernel, HSTU's is not, so that"
    " ratios without SL on one side alone fall below those of the paper's fused kernels"
)


def table(all_rows: Path, seed_file: Path, table: Path) -> None:
    """Write mean and spread over seeds beside the paper's numbers; curves stay out."""
    rows = read_metrics(all_rows)
    single = rows[rows["x"].isna() & ~rows["metric"].isin(["loss", "guess"])]
    joined = add_reported(aggregate(single), read_seed_file(seed_file))
    write_table(joined.assign(note=joined["experiment"].map(NOTES)), table)


def speed(times: Path, table: Path) -> None:
    """Write mean, spread and median of the ratios of times over the repeats."""
    rows = read_metrics(times)
    keys = ["experiment", "dataset", "method", "metric"]
    median = rows.groupby(keys, sort=False)["value"].median().rename("median").reset_index()
    joined = aggregate(rows).merge(median, on=keys).rename(columns={"n_seeds": "n_repeats"})
    layers = joined["method"].str.startswith("transformer")
    write_csv(joined.assign(note=layers.map({True: FUSED, False: ""})), table)
