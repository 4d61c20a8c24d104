"""The seven tasks, the docking property, and counting."""

import math

import pytest
from rdkit import Chem

from retable.geam.oracles import (
    MPO_TASKS,
    TARGETS,
    BudgetExhausted,
    CountingOracle,
    docking_property,
    mpo,
    qed,
    sa_score,
)

CELECOXIB = "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F"
OF_ITSELF = {
    "perindopril": math.exp(-4),
    "amlodipine": math.exp(-1),
    "zaleplon": 0.466499,
    "fexofenadine": 0.597340,
    "osimertinib": 0.133342,
    "ranolazine": 0.049237,
    "sitagliptin": 4e-6,
}
OF_CELECOXIB = {
    "perindopril": 0.062632,
    "amlodipine": 0.360237,
    "zaleplon": 0.226485,
    "osimertinib": 0.181751,
    "fexofenadine": 0.406461,
    "ranolazine": 0.066351,
    "sitagliptin": 0.000436,
}


@pytest.mark.parametrize("task", MPO_TASKS)
def test_scores_of_known_molecules(task):
    assert mpo(task)(Chem.MolFromSmiles(TARGETS[task])) == pytest.approx(OF_ITSELF[task], abs=2e-4)
    assert mpo(task)(Chem.MolFromSmiles(CELECOXIB)) == pytest.approx(OF_CELECOXIB[task], abs=2e-4)


@pytest.mark.parametrize("smiles", ["C", "CCO", "[Na+].[Cl-]", "c1ccccc1"])
def test_scores_lie_in_the_unit_interval(smiles):
    for task in MPO_TASKS:
        assert 0 <= mpo(task)(Chem.MolFromSmiles(smiles)) <= 1


def test_unknown_task_lists_the_seven():
    with pytest.raises(ValueError, match="'aspirin'") as error:
        mpo("aspirin")
    assert all(task in str(error.value) for task in MPO_TASKS)
    assert len(MPO_TASKS) == 7


def test_docking_property():
    assert docking_property(-10, 0.8, 2.8) == pytest.approx(0.32)
    assert docking_property(3, 0.8, 2.8) == 0
    assert docking_property(-25, 0.5, 1.0) == pytest.approx(0.5)
    assert docking_property(math.nan, 0.8, 2.8) == 0


def test_qed_and_sa():
    aspirin = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")
    assert qed(aspirin) == pytest.approx(0.55, abs=0.01)
    assert sa_score(aspirin) == pytest.approx(1.58, abs=0.05)


def test_counting_calls_once_for_each_molecule():
    seen = []

    def fn(mol):
        seen.append(mol)
        return 0.5 if len(seen) == 1 else math.nan

    oracle = CountingOracle(fn, budget=2)
    assert oracle("OCC") == oracle("CCO") == 0.5
    assert oracle.calls == len(seen) == 1
    assert math.isnan(oracle("CCC"))
    assert list(oracle.order) == ["CCO", "CCC"]
    assert oracle("C(O)C") == 0.5
    with pytest.raises(BudgetExhausted, match="all 2"):
        oracle("CCCC")
    assert oracle.calls == 2
    with pytest.raises(ValueError, match="no valid SMILES"):
        CountingOracle(fn, 2)("C1C")
