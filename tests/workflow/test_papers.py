"""Every paper from raw data to table, figure and claims, at smoke scale, twice."""

import re

import pandas as pd
import pytest

from retable.common.claims import COLUMNS as CLAIM_COLUMNS
from retable.common.claims import FROM_WEAKEST
from retable.common.seedfile import read_seed_file
from retable.common.tables import COLUMNS

from .conftest import ROOT
from .test_graph import PAPERS


def targets(paper):
    return [
        f"results/smoke/table_{paper}.csv",
        f"results/smoke/figure_{paper}.png",
        f"results/smoke/{paper}/claims.csv",
        f"results/smoke/{paper}/claims_checks.csv",
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_is_made_with_the_same_bytes_twice(clone, paper):
    clone.run("--cores", "1", *targets(paper))
    made = {name: (clone.path / name).read_bytes() for name in targets(paper)}

    table = pd.read_csv(clone.path / targets(paper)[0])
    assert list(table.columns[: len(COLUMNS)]) == list(COLUMNS)
    assert table["mean"].notna().any()
    assert (table.loc[table["mean"].notna(), "n_seeds"] >= 1).all()
    assert made[targets(paper)[1]].startswith(b"\x89PNG")
    assert (clone.path / f"results/smoke/figure_{paper}.pdf").read_bytes().startswith(b"%PDF")

    seed_file = read_seed_file(ROOT / "seeds" / f"{paper}.yaml")
    claims = pd.read_csv(clone.path / targets(paper)[2])
    assert list(claims.columns) == CLAIM_COLUMNS
    assert claims["claim"].tolist() == [claim.id for claim in seed_file.claims]
    assert set(claims["verdict"]) <= set(FROM_WEAKEST)

    assert clone.jobs(*targets(paper)) == {}
    timed = {check.id for claim in seed_file.claims for check in claim.checks if check.timed}
    clone.run("--cores", "1", "--forceall", *targets(paper))
    for name, before in made.items():
        after = (clone.path / name).read_bytes()
        if "claims" in name and timed:
            before, after = (without_times(text, timed) for text in (before, after))
        assert after == before, f"{name} differs between two runs"


def without_times(ledger, timed):
    """The rows of a ledger whose measure is no time; a claim is as timed as its checks."""
    claims = {re.sub(r"[a-z]$", "", check) for check in timed} | timed
    lines = ledger.decode().splitlines()
    return [line for line in lines if line.split(",")[1] not in claims]
