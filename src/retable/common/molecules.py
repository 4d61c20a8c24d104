"""Molecules from SMILES: read with one clear line for what cannot be read, and laid into arrays."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rdkit.Chem import Mol


@contextmanager
def quiet_rdkit() -> Iterator[None]:
    """RDKit's own messages are held back: they name neither the record nor what is allowed."""
    from rdkit import rdBase

    with rdBase.BlockLogs():
        yield


def parse_smiles(smiles: str, record: int | None = None) -> "Mol":
    """Read one SMILES as a sanitised molecule with at least one atom.

    `record` is its number in the caller's data, for the message.

    Raises:
        ValueError: not a string, empty, or no valid SMILES.
    """
    from rdkit import Chem

    place = "SMILES" if record is None else f"SMILES of record {record}"
    if not isinstance(smiles, str):
        raise ValueError(f"{place}: {smiles!r} is no text")
    with quiet_rdkit():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"{place}: {smiles!r} is no valid SMILES")
    if molecule.GetNumAtoms() == 0:
        raise ValueError(f"{place}: {smiles!r} has no atoms")
    return molecule


def parse_many(smiles: Iterable[str]) -> tuple[list["Mol"], np.ndarray, list[str]]:
    """Read many SMILES; those that cannot be read are left out and named.

    Returns:
        The molecules; the positions (int64) in `smiles` that they come from; one line for each that
        was left out, with its position counted from 0.
    """
    molecules, kept, faults = [], [], []
    for position, text in enumerate(smiles):
        try:
            molecules.append(parse_smiles(text, position))
        except ValueError as error:
            faults.append(str(error))
        else:
            kept.append(position)
    return molecules, np.array(kept, dtype=np.int64), faults


def bond_indices(molecule: "Mol") -> np.ndarray:
    """The bonds as directed pairs of atoms: (2, 2 x bonds) int32, both directions side by side."""
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    pairs = np.array(ends, dtype=np.int32).reshape(-1, 2)
    return np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2).T.copy()


def one_hot(values: Sequence[object], choices: Sequence[object]) -> np.ndarray:
    """One row a value, one column a choice, float32; what is no choice counts as the last one."""
    position = {choice: column for column, choice in enumerate(choices)}
    columns = [position.get(value, len(choices) - 1) for value in values]
    return np.eye(len(choices), dtype=np.float32)[columns]
