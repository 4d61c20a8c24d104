"""The loop: budget, seeds, ablations, the dynamic vocabulary."""

import math

import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Crippen

from retable.geam.config import GenerationConfig, SACConfig
from retable.geam.fgib import FGIB
from retable.geam.generation import Record, run_geam
from retable.geam.vocabulary import Vocabulary

FRAGMENTS = [
    "CC(=O)[*:1]",
    "O([*:1])[*:1]",
    "N([*:1])[*:1]",
    "c1cc([*:1])ccc1[*:1]",
    "C1CCN([*:1])CC1",
    "c1cn([*:1])cc1[*:1]",
    "OC(C[*:1])C[*:1]",
    "CC(C)C[*:1]",
    "O=C([*:1])C[*:1]",
    "FC(F)(F)[*:1]",
]
VOCABULARY = Vocabulary({fragment: 0.2 - 0.01 * k for k, fragment in enumerate(FRAGMENTS)}, 12)


def oracle(mol):
    """A smooth property: how near logP is to 2."""
    return math.exp(-((Crippen.MolLogP(mol) - 2) ** 2) / 4)


@pytest.fixture(scope="module")
def fgib():
    torch.manual_seed(0)
    return FGIB().eval()


def config(**changes):
    sac = SACConfig(width=8, batch=16, critic_updates=5, update_after=64)
    settings = {
        "budget": 60, "population": 20, "vocabulary_limit": 14, "random_steps": 96,
        "oracle_every": 32, "max_atoms": 30, "sac": sac,
    }  # fmt: skip
    return GenerationConfig(**(settings | changes))


@pytest.fixture(scope="module")
def result(fgib):
    return run_geam(oracle, VOCABULARY, fgib, config(), seed=0)


def test_the_budget_is_met_and_never_exceeded(fgib):
    seen = []

    def counted(mol):
        seen.append(Chem.MolToSmiles(mol))
        return oracle(mol)

    table = run_geam(counted, VOCABULARY, fgib, config(), seed=0).table
    assert len(seen) == len(set(seen)) == 60
    assert table["call"].max() == 60
    assert list(table.columns) == ["smiles", "score", "source", "call"]


def test_rows_are_canonical_and_repeats_share_a_call(result):
    table = result.table
    assert all(Chem.CanonSmiles(smiles) == smiles for smiles in table["smiles"])
    assert (table.groupby("smiles")["call"].nunique() == 1).all()
    first = table.drop_duplicates("smiles")
    assert first["call"].tolist() == list(range(1, len(first) + 1))
    for row in table.itertuples():
        assert row.score == pytest.approx(oracle(Chem.MolFromSmiles(row.smiles)))
    assert set(table["source"]) == {"random", "sac", "ga"}


def test_phases_come_in_order(result):
    sources = result.table["source"].tolist()
    assert "random" not in sources[sources.index("sac") :]
    assert "ga" not in sources[: sources.index("sac")]


def test_one_offspring_an_episode(result):
    counts = result.table["source"].value_counts()
    assert abs(counts["ga"] - counts["sac"]) <= 16  # the last batch may be cut off


def test_same_seed_same_molecules(fgib, result):
    again = run_geam(oracle, VOCABULARY, fgib, config(), seed=0)
    assert again.table.equals(result.table)
    assert again.vocabulary_history == result.vocabulary_history
    other = run_geam(oracle, VOCABULARY, fgib, config(), seed=1)
    assert not other.table.equals(result.table)


def test_global_generators_do_not_matter(fgib, result):
    torch.manual_seed(123)
    torch.rand(5)
    state = torch.random.get_rng_state()
    again = run_geam(oracle, VOCABULARY, fgib, config(), seed=0)
    assert again.table.equals(result.table)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_static_shares_the_random_phase(fgib, result):
    static = run_geam(oracle, VOCABULARY, None, config(dynamic=False), seed=0)
    random_rows = (result.table["source"] == "random").sum()
    assert static.table[:random_rows].equals(result.table[:random_rows])
    assert len(static.vocabulary_history) == 1


def test_the_vocabulary_grows_within_its_limit_and_never_loses_a_better_one(result):
    assert len(result.vocabulary_history) > 1
    calls = [calls for calls, _ in result.vocabulary_history]
    assert calls == sorted(calls)
    for _, fragments in result.vocabulary_history:
        assert len(fragments) <= 14
    assert result.vocabulary_history[0][1] == VOCABULARY.fragments
    assert VOCABULARY.fragments == tuple(FRAGMENTS)  # the caller's is untouched


def test_ablations(fgib):
    without = run_geam(oracle, VOCABULARY, None, config(modification=False), seed=0).table
    assert set(without["source"]) == {"random", "sac"}
    uniform = run_geam(oracle, VOCABULARY, fgib, config(assembly="random"), seed=0).table
    assert set(uniform["source"]) == {"random", "ga"}
    start = {
        Chem.CanonSmiles("CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1"): 0.5,
        Chem.CanonSmiles("COc1ccccc1OCC(O)CN2CCN(CC(=O)Nc3c(C)cccc3C)CC2"): 0.7,
    }
    alone = run_geam(oracle, VOCABULARY, None, config(assembly="none"), seed=0, start=start).table
    assert set(alone["source"]) == {"ga"}
    assert alone["call"].max() == 60


def test_a_run_that_repeats_itself_ends_at_max_molecules():
    tiny = Vocabulary({"F[*:1]": 1.0}, 2)  # one molecule can be made
    settings = config(modification=False, dynamic=False, max_molecules=70)
    table = run_geam(oracle, tiny, None, settings, seed=0).table
    assert len(table) == 70
    assert table["smiles"].nunique() == 1
    assert (table["call"] == 1).all()


def test_a_failed_oracle_scores_zero(fgib):
    failing = run_geam(lambda mol: math.nan, VOCABULARY, fgib, config(), seed=0)
    assert (failing.table["score"] == 0).all()


def test_progress_shows_what_a_reader_wants(result):
    progress = result.progress
    assert progress["calls"].iloc[-1] == 60
    assert progress.loc[progress["phase"] == "sac", "entropy"].notna().all()
    assert progress["mean_score_assembled"].between(0, 1).any()
    assert (progress["episode_length"].dropna() >= 1).all()


def test_bad_input(fgib):
    with pytest.raises(ValueError, match="vocabulary is empty"):
        run_geam(oracle, Vocabulary({}, 5), fgib, config(), seed=0)
    with pytest.raises(ValueError, match="fgib is None"):
        run_geam(oracle, VOCABULARY, None, config(), seed=0)
    with pytest.raises(ValueError, match="start population"):
        run_geam(oracle, VOCABULARY, fgib, config(assembly="none"), seed=0)
    with pytest.raises(ValueError, match="budget is 10"):
        config(budget=10)
    with pytest.raises(ValueError, match=r"oracle gave 1\.5 for"):
        run_geam(lambda mol: 1.5, VOCABULARY, fgib, config(), seed=0)


def test_record_counts_distinct_calls():
    record = Record(oracle, budget=2, max_molecules=10)
    record.score("CCO", "a")
    record.score("CCO", "b")
    assert (record.calls, record.full) == (1, False)
    record.score("CCC", "a")
    assert (record.calls, record.full) == (2, True)
    assert record.table()["call"].tolist() == [1, 1, 2]
