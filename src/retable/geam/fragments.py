"""Molecules cut into BRICS fragments, as graphs (section 3.1 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from rdkit import Chem
from rdkit.Chem import BRICS, rdMolDescriptors

from retable.common.molecules import one_hot, parse_smiles, quiet_rdkit

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ATOM_FEATURES = 44
BOND_FEATURES = 10
_ELEMENTS = ["C", "N", "O", "F", "P", "S", "Cl", "Br", "I"]
_HYBRIDISATIONS = [
    getattr(Chem.HybridizationType, name) for name in ("S", "SP", "SP2", "SP3", "SP3D")
]
_BONDS = [Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE, Chem.BondType.AROMATIC]
_STEREO = [
    Chem.BondStereo.STEREONONE,
    Chem.BondStereo.STEREOANY,
    Chem.BondStereo.STEREOZ,
    Chem.BondStereo.STEREOE,
]


@dataclass(frozen=True)
class MolGraph:
    """A molecule cut into fragments.

    Attributes:
        smiles: as given.
        x: (n, 44) float32 atom features.
        edge_index: (2, 2m) int32, both directions of each bond.
        edge_attr: (2m, 10) float32 bond features.
        node2frag: (n,) int32, the fragment of each atom.
        fragments: canonical SMILES with attachment points [*:1], in the order of node2frag.
    """

    smiles: str
    x: np.ndarray
    edge_index: np.ndarray
    edge_attr: np.ndarray
    node2frag: np.ndarray
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class MolBatch:
    """Molecules side by side: N atoms, E directed bonds, F fragments.

    Attributes:
        x: (N, 44) float32.
        edge_index: (2, E) int64.
        edge_attr: (E, 10) float32.
        node2frag: (N,) int64, the fragment of each atom.
        frag2mol: (F,) int64, the molecule of each fragment.
    """

    x: "Tensor"
    edge_index: "Tensor"
    edge_attr: "Tensor"
    node2frag: "Tensor"
    frag2mol: "Tensor"

    def __len__(self) -> int:
        """The number of molecules."""
        return int(self.frag2mol[-1]) + 1

    def to(self, device: "torch.device", **options: bool) -> "MolBatch":
        """The same on a device."""
        return MolBatch(*(getattr(self, f.name).to(device, **options) for f in fields(self)))


def _fragment_smiles(mol: Chem.Mol) -> str:
    plain = Chem.RWMol(mol)
    for atom in plain.GetAtoms():
        if atom.GetAtomicNum() == 0:
            atom.SetIsotope(0)
            atom.SetAtomMapNum(1)
    Chem.RemoveStereochemistry(plain)
    return Chem.CanonSmiles(Chem.MolToSmiles(plain))


def _cut(mol: Chem.Mol) -> tuple[list[str], np.ndarray] | None:
    bonds = [mol.GetBondBetweenAtoms(*ends).GetIdx() for ends, _ in BRICS.FindBRICSBonds(mol)]
    if not bonds:
        return None
    pieces = Chem.FragmentOnBonds(mol, sorted(bonds))
    members: list[tuple[int, ...]] = []
    mols = Chem.GetMolFrags(pieces, asMols=True, sanitizeFrags=False, fragsMolAtomMapping=members)
    node2frag = np.zeros(mol.GetNumAtoms(), np.int32)
    for number, atoms in enumerate(members):
        node2frag[[atom for atom in atoms if atom < mol.GetNumAtoms()]] = number
    return [_fragment_smiles(piece) for piece in mols], node2frag


def _clip(value: int, count: int) -> int:
    return min(max(value, 0), count - 1)


def _atom_features(mol: Chem.Mol) -> np.ndarray:
    atoms = list(mol.GetAtoms())
    for atom in atoms:
        if atom.GetDegree() > 6:
            raise ValueError(f"{Chem.MolToSmiles(mol)}: an atom has {atom.GetDegree()} neighbours")
    pharmacophore = np.array(rdMolDescriptors.GetFeatureInvariants(mol), np.int64)
    columns = [
        one_hot([atom.GetSymbol() for atom in atoms], _ELEMENTS),
        np.eye(4)[[_clip(atom.GetValence(Chem.ValenceType.IMPLICIT), 4) for atom in atoms]],
        np.eye(2)[[_clip(atom.GetNumRadicalElectrons(), 2) for atom in atoms]],
        np.eye(7)[[atom.GetDegree() for atom in atoms]],
        one_hot([atom.GetFormalCharge() for atom in atoms], [-1, 0, 1]),
        one_hot([atom.GetHybridization() for atom in atoms], _HYBRIDISATIONS),
        pharmacophore[:, None] >> np.arange(6) & 1,
        np.eye(5)[[_clip(atom.GetTotalNumHs(), 5) for atom in atoms]],
        one_hot([a.GetProp("_CIPCode") if a.HasProp("_CIPCode") else "" for a in atoms], "RS"),
        np.array([[a.HasProp("_ChiralityPossible")] for a in atoms]),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def fragment_molecule(smiles: str) -> MolGraph | None:
    """Cut a molecule at all BRICS bonds; None if it has none.

    Features, as in the official code (a value outside a list counts as its last entry): element
    C N O F P S Cl Br I; implicit valence 0..3; radical electrons 0..1; degree 0..6; charge -1 0 1;
    hybridisation S SP SP2 SP3 SP3D; six pharmacophore bits; hydrogens 0..4; CIP label R S (an atom
    without one reads S); whether chirality is possible. Bonds: single, double, triple, aromatic;
    conjugated; in a ring; stereo none, any, Z, E.

    Raises:
        ValueError: no valid SMILES, or an atom with more than six neighbours.
    """
    mol = parse_smiles(smiles)
    cut = _cut(mol)
    if cut is None:
        return None
    Chem.AssignStereochemistry(mol, cleanIt=True, force=True, flagPossibleStereoCenters=True)
    bonds = list(mol.GetBonds())
    ends = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], np.int32)
    edge = np.concatenate(
        [
            one_hot([bond.GetBondType() for bond in bonds], _BONDS),
            np.array([[bond.GetIsConjugated(), bond.IsInRing()] for bond in bonds]),
            one_hot([bond.GetStereo() for bond in bonds], _STEREO),
        ],
        axis=1,
    ).astype(np.float32)
    pairs = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2).T.copy()
    return MolGraph(
        smiles, _atom_features(mol), pairs, edge.repeat(2, axis=0), cut[1], tuple(cut[0])
    )


def brics_fragments(smiles: str) -> list[str]:
    """Canonical SMILES of the BRICS fragments, with multiplicity; empty if there are no cuts.

    Raises:
        ValueError: no valid SMILES.
    """
    cut = _cut(parse_smiles(smiles))
    return [] if cut is None else cut[0]


def is_attachable(fragment: str) -> bool:
    """Whether a fragment has an attachment point and is a valid molecule with phenyl there."""
    mol = Chem.MolFromSmiles(fragment)
    if mol is None:
        return False
    points = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum() == 0]
    if not points or len(points) == mol.GetNumAtoms():
        return False
    dummy = Chem.MolFromSmarts("[#0]")
    with quiet_rdkit():
        phenyl = Chem.ReplaceSubstructs(mol, dummy, Chem.MolFromSmiles("c1ccccc1"), replaceAll=True)
        closed = Chem.DeleteSubstructs(phenyl[0], dummy)
        return Chem.SanitizeMol(closed, catchErrors=True) == Chem.SanitizeFlags.SANITIZE_NONE


def collate(graphs: Sequence[MolGraph]) -> MolBatch:
    """Lay molecules side by side.

    Raises:
        ValueError: no molecules.
    """
    import torch

    if not graphs:
        raise ValueError("no molecules to lay side by side")
    sizes = np.array([len(graph.x) for graph in graphs])
    counts = np.array([len(graph.fragments) for graph in graphs])
    atoms = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    frags = np.concatenate([[0], np.cumsum(counts)[:-1]])
    edges = [g.edge_index.astype(np.int64) + s for g, s in zip(graphs, atoms, strict=True)]
    return MolBatch(
        torch.from_numpy(np.concatenate([graph.x for graph in graphs])),
        torch.from_numpy(np.concatenate(edges, axis=1)),
        torch.from_numpy(np.concatenate([graph.edge_attr for graph in graphs])),
        torch.from_numpy(
            np.concatenate([g.node2frag.astype(np.int64) for g in graphs]) + np.repeat(frags, sizes)
        ),
        torch.from_numpy(np.repeat(np.arange(len(graphs)), counts)),
    )
