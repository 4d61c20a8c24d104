"""Put the papers' ledgers and costs together."""

from pathlib import Path

import pandas as pd

from retable.common.claims import write_ledger
from retable.common.costs import sum_costs
from retable.common.metrics import write_csv


def summary(papers: list[Path], ledger: Path) -> None:
    """Write the ledgers of all papers, one below the other."""
    frames = [
        pd.read_csv(
            path, keep_default_na=False, na_values={"value": [""], "ci_low": [""], "ci_high": [""]}
        )
        for path in papers
    ]
    write_ledger(pd.concat(frames, ignore_index=True), ledger)


def costs(papers: list[Path], table: Path) -> None:
    """Sum the costs that lie beside each paper's ledger."""
    folders = {path.parent.name: path.parent / "costs" for path in papers}
    write_csv(sum_costs(folders), table)
