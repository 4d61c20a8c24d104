"""Judge the claims of one paper."""

from pathlib import Path

from retable.common.claims import by_claim, ledger, write_ledger
from retable.common.metrics import read_measures
from retable.common.seedfile import read_seed_file


def claims(
    measures: list[Path], seed_file: Path, claims: Path, checks: Path, *, scale: str
) -> None:
    """Write one row a claim and one row a check from what the evaluation measured."""
    content = read_seed_file(seed_file)
    judged = ledger(content, read_measures(measures), scale)
    write_ledger(judged, checks)
    write_ledger(by_claim(content, judged), claims)
