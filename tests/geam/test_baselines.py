"""Graph GA, REINVENT and the random library: budget, seeds, and that REINVENT learns."""

import math

import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Crippen

from retable.geam.baselines import (
    SmilesLSTM,
    graph_ga,
    random_library,
    reinvent,
    tokenise,
    train_prior,
)

MOLECULES = [
    "CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1",
    "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "COc1ccccc1OCC(O)CN1CCN(CC(=O)Nc2c(C)cccc2C)CC1",
    "CCOC(=O)C(CCC)NC(C)C(=O)N1C(C(=O)O)CC2CCCCC21",
    "CC(C)Cc1ccc(C(C)C(=O)O)cc1C(=O)NCC",
    "Clc1ccccc1C1C(C(=O)OC)=C(C)NC(COCCN)=C1C(=O)OCC",
]


def oracle(mol):
    return math.exp(-((Crippen.MolLogP(mol) - 2) ** 2) / 4)


def test_graph_ga_counts_its_start_and_keeps_the_budget():
    seen = []

    def counted(mol):
        seen.append(Chem.MolToSmiles(mol))
        return oracle(mol)

    table = graph_ga(
        counted, MOLECULES, budget=30, population=6, offspring=10, seed=0
    ).table  # fmt: skip
    assert len(seen) == len(set(seen)) == 30
    assert table["source"].tolist()[:6] == ["start"] * 6
    assert set(table["source"][6:]) == {"ga"}
    sizes = [Chem.MolFromSmiles(s).GetNumHeavyAtoms() for s in table["smiles"][6:]]
    assert min(sizes) >= 16
    assert max(sizes) <= 39
    again = graph_ga(oracle, MOLECULES, budget=30, population=6, offspring=10, seed=0).table
    assert again.equals(table)


def test_random_library_draws_without_replacement():
    table = random_library(oracle, MOLECULES, budget=4, seed=0).table
    assert table["smiles"].nunique() == 4
    assert set(table["smiles"]) <= {Chem.CanonSmiles(s) for s in MOLECULES}
    with pytest.raises(ValueError, match="has 6 molecules; the budget is 7"):
        random_library(oracle, MOLECULES, budget=7, seed=0)


def test_tokens():
    assert tokenise("Clc1[nH]ccc1Br") == ["Cl", "c", "1", "[nH]", "c", "c", "c", "1", "Br"]
    assert tokenise("C%12C%12") == ["C", "%12", "C", "%12"]


@pytest.fixture(scope="module")
def prior():
    chains = [prefix + "C" * n + end for n in range(1, 6) for prefix in "CON" for end in "CON"]
    return train_prior(chains, embedding=8, width=24, epochs=40, lr=1e-2, batch=16, seed=0)


def test_codes_and_likelihood_by_hand(prior):
    codes = prior.encode(["CCO", "CN"])
    assert prior.decode(codes) == ["CCO", "CN"]
    with torch.no_grad():
        whole = prior.log_likelihood(codes)
        states, _ = prior.lstm(prior.embed(torch.tensor([[0, *codes[1, :2].tolist()]])))
        steps = torch.log_softmax(prior.readout(states), -1)[0]
    by_hand = sum(steps[t, code] for t, code in enumerate([*codes[1, :2].tolist(), 0]))
    assert whole[1].item() == pytest.approx(by_hand.item(), abs=1e-5)
    alone = prior.log_likelihood(prior.encode(["CN"]))
    assert alone.item() == pytest.approx(whole[1].item(), abs=1e-5)  # padding does not count


def test_prior_writes_what_it_has_read(prior):
    codes = prior.sample(200, torch.Generator().manual_seed(0))
    texts = prior.decode(codes)
    assert sum(Chem.MolFromSmiles(text) is not None for text in texts) > 180
    assert set("".join(texts)) <= set("CON")


def test_prior_survives_saving(prior, tmp_path):
    prior.save(tmp_path / "prior.safetensors")
    again = SmilesLSTM.load(tmp_path / "prior.safetensors")
    assert again.tokens == prior.tokens
    codes = prior.encode(["CCO"])
    assert torch.equal(again.log_likelihood(codes), prior.log_likelihood(codes))


def test_reinvent_moves_towards_what_scores(prior):
    def nitrogen(mol):
        return sum(atom.GetSymbol() == "N" for atom in mol.GetAtoms()) / mol.GetNumAtoms()

    result = reinvent(
        nitrogen, prior, budget=400, sigma=60.0, batch=32, lr=5e-3, seed=0
    )  # fmt: skip
    scores = result.progress["mean_score"]
    assert scores[-5:].mean() > scores[:5].mean() + 0.1
    assert (result.progress["validity"] <= 1).all()
    assert result.table["call"].max() <= 400


def test_reinvent_keeps_the_budget_and_the_prior(prior):
    before = [p.clone() for p in prior.parameters()]
    runs = [reinvent(oracle, prior, budget=20, batch=16, seed=1).table for _ in "ab"]
    assert runs[0].equals(runs[1])
    assert runs[0]["call"].max() == 20
    assert all(torch.equal(x, y) for x, y in zip(before, prior.parameters(), strict=True))


def test_unknown_tokens_are_named(prior):
    with pytest.raises(ValueError, match="'S' of 'CS'"):
        prior.encode(["CS"])
