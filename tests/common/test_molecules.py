import re

import numpy as np
import pytest

from retable.common.molecules import bond_indices, one_hot, parse_many, parse_smiles


def test_good_smiles_is_sanitised() -> None:
    molecule = parse_smiles("c1ccccc1O")
    assert molecule.GetNumAtoms() == 7
    assert molecule.GetAtomWithIdx(0).GetIsAromatic()


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        ("c1ccccc", "SMILES of record 7: 'c1ccccc' is no valid SMILES"),
        ("C(C)(C)(C)(C)C", "SMILES of record 7: 'C(C)(C)(C)(C)C' is no valid SMILES"),
        ("", "SMILES of record 7: '' has no atoms"),
        (None, "SMILES of record 7: None is no text"),
    ],
)
def test_bad_smiles_is_named(smiles: str, message: str, capfd: pytest.CaptureFixture) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_smiles(smiles, 7)
    assert capfd.readouterr() == ("", "")


def test_the_rest_of_a_batch_goes_on() -> None:
    molecules, kept, faults = parse_many(["CCO", "C1CC", "", "CN"])
    assert [molecule.GetNumAtoms() for molecule in molecules] == [3, 2]
    assert kept.tolist() == [0, 3]
    assert faults == [
        "SMILES of record 1: 'C1CC' is no valid SMILES",
        "SMILES of record 2: '' has no atoms",
    ]


def test_bonds_go_both_ways() -> None:
    pairs = bond_indices(parse_smiles("CC(=O)C"))
    assert pairs.tolist() == [[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]]
    assert pairs.dtype == np.int32
    assert bond_indices(parse_smiles("C")).shape == (2, 0)


def test_what_is_no_choice_counts_as_the_last() -> None:
    assert one_hot(["C", "Xe", "N"], ["C", "N", "I"]).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert one_hot([], ["C"]).shape == (0, 1)
