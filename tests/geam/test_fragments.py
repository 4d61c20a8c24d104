"""Cutting, features, batches."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from retable.geam.fragments import (
    ATOM_FEATURES,
    brics_fragments,
    collate,
    fragment_molecule,
    is_attachable,
)

FIRST = "CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1"
CELECOXIB = "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F"
MOLECULES = [
    FIRST,
    CELECOXIB,
    "COc1ccccc1OCC(O)CN2CCN(CC(=O)Nc3c(C)cccc3C)CC2",
    "O=C(OCC)C(NC(C(=O)N1C(C(=O)O)CC2CCCCC12)C)CCC",
    "C/C=C/C(=O)N[C@@H](C)c1ccc(Br)cc1",
    "C[N+](C)(C)CCOC(=O)c1ccc(I)cc1",
]


def heavy(smiles):
    return sum(atom.GetAtomicNum() > 0 for atom in Chem.MolFromSmiles(smiles).GetAtoms())


def test_six_fragments():
    graph = fragment_molecule(FIRST)
    expected = ["CC(=O)[*:1]", "N([*:1])[*:1]", "c1cc([*:1])ccc1[*:1]", "O([*:1])[*:1]",
                "OC(C[*:1])C[*:1]", "C1CCN([*:1])CC1"]  # fmt: skip
    assert list(graph.fragments) == [Chem.CanonSmiles(text) for text in expected]
    assert [heavy(text) for text in graph.fragments] == [3, 1, 6, 1, 4, 6]
    assert np.bincount(graph.node2frag).tolist() == [3, 1, 6, 1, 4, 6]


def test_celecoxib_and_benzene():
    sizes = sorted(heavy(text) for text in fragment_molecule(CELECOXIB).fragments)
    assert sizes == [4, 5, 7, 10]
    assert fragment_molecule("c1ccccc1") is None
    assert brics_fragments("c1ccccc1") == []


@pytest.mark.parametrize("smiles", MOLECULES)
def test_fragments_share_out_the_heavy_atoms(smiles):
    graph = fragment_molecule(smiles)
    mol = Chem.MolFromSmiles(smiles)
    assert sum(heavy(text) for text in graph.fragments) == mol.GetNumAtoms()
    for number, text in enumerate(graph.fragments):
        members = np.flatnonzero(graph.node2frag == number)
        symbols = sorted(mol.GetAtomWithIdx(int(k)).GetSymbol() for k in members)
        atoms = Chem.MolFromSmiles(text).GetAtoms()
        assert symbols == sorted(a.GetSymbol() for a in atoms if a.GetAtomicNum())
        assert Chem.CanonSmiles(text) == text
        assert "@" not in text
    assert brics_fragments(smiles) == list(graph.fragments)
    cut = 2 * (len(graph.fragments) - 1)
    assert sum(text.count("*") for text in graph.fragments) == cut


def test_features_one_hot_blocks():
    graph = fragment_molecule(MOLECULES[5])
    assert graph.x.shape == (Chem.MolFromSmiles(MOLECULES[5]).GetNumAtoms(), ATOM_FEATURES)
    ends = np.cumsum([0, 9, 4, 2, 7, 3, 5])
    for start, end in itertools.pairwise(ends):
        assert (graph.x[:, start:end].sum(1) == 1).all()
    assert (graph.x[:, 36:41].sum(1) == 1).all()
    nitrogen = graph.x[1]
    assert nitrogen[1] == 1
    assert nitrogen[24] == 1  # charge +1: the last of -1, 0, 1
    assert graph.edge_attr.shape == (graph.edge_index.shape[1], 10)
    assert (graph.edge_attr[:, :4].sum(1) == 1).all()
    assert (graph.edge_attr[:, 6:].sum(1) == 1).all()


def test_chirality_and_double_bonds_are_seen():
    graph = fragment_molecule(MOLECULES[4])
    mirror = fragment_molecule(MOLECULES[4].replace("@@", "@"))
    differs = np.flatnonzero((graph.x != mirror.x).any(1))
    assert len(differs) == 1
    assert set(np.flatnonzero(graph.x[differs[0]] != mirror.x[differs[0]])) == {41, 42}
    assert graph.x[differs[0], 43] == 1
    assert graph.edge_attr[:, 9].sum() == 2  # the E bond, in both directions


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(len(MOLECULES))))
def test_batches_are_laid_side_by_side(order):
    graphs = [fragment_molecule(MOLECULES[k]) for k in order]
    batch = collate(graphs)
    assert len(batch) == len(graphs)
    counts = torch.bincount(batch.frag2mol).tolist()
    assert counts == [len(graph.fragments) for graph in graphs]
    ends = torch.tensor(np.cumsum([len(graph.x) for graph in graphs]))
    owner = torch.bucketize(torch.arange(len(batch.x)), ends, right=True)
    assert torch.equal(batch.frag2mol[batch.node2frag], owner)
    source, target = batch.edge_index
    assert torch.equal(owner[source], owner[target])


def test_attachable():
    assert is_attachable("c1cc([*:1])ccc1[*:1]")
    assert is_attachable("O([*:1])[*:1]")
    assert not is_attachable("CCO")
    assert not is_attachable("not a molecule")
    assert not is_attachable("c1ccn([*:1])c1C(=[*:1])=O")


def test_bad_input():
    with pytest.raises(ValueError, match="'C1CC' is no valid SMILES"):
        fragment_molecule("C1CC")
    with pytest.raises(ValueError, match="no molecules"):
        collate([])
