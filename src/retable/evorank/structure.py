"""Backbones from structure files, and the masked microenvironment of each residue.

The residue's own identity and side chain enter nowhere: the environment is made of backbone atoms
and of the neighbours' letters.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retable.evorank.alphabet import AMINO_ACIDS, RESIDUES, encode

if TYPE_CHECKING:
    import torch
    from torch import Tensor

logger = logging.getLogger("retable")
FEATURES = 58
NEIGHBOURS = 16
_LEAST_RESIDUES = 30
_FARTHEST = 8  # places in the sequence
_LONGEST_BOND = 2.0  # Angstrom, C to the next N
_RADII = np.array([6.0, 8, 10, 14])  # Angstrom
_USUAL_COUNTS = np.array([8.0, 15, 25, 50])
_BACKBONE = ("N", "CA", "C")

Residue = tuple[str, str, int, str, dict[str, tuple[float, float, float]]]


@dataclass(frozen=True)
class Backbone:
    """One chain's residues that have their backbone atoms.

    Attributes:
        sequence: one letter a residue, L of them.
        residue_numbers: (L,) int, as in the file.
        chain: its name, empty where the file has none.
        coords: (L, 3, 3) of N, CA, C, in Angstrom.
    """

    sequence: str
    residue_numbers: np.ndarray
    chain: str
    coords: np.ndarray


@dataclass(frozen=True)
class Environments:
    """What surrounds each of N residues: `environments[index]` selects some.

    Attributes:
        neighbours: (N, K, 58) float32.
        density: (N, 4) float32.
    """

    neighbours: "Tensor"
    density: "Tensor"

    def __getitem__(self, index: "Tensor") -> "Environments":
        return Environments(self.neighbours[index], self.density[index])

    def __len__(self) -> int:
        return len(self.density)

    def to(self, device: "torch.device") -> "Environments":
        return Environments(self.neighbours.to(device), self.density.to(device))

    @staticmethod
    def concatenate(parts: Iterable["Environments"]) -> "Environments":
        """All environments of several structures, one after the other."""
        import torch

        parts = list(parts)
        return Environments(
            torch.cat([part.neighbours for part in parts]),
            torch.cat([part.density for part in parts]),
        )


def read_structure(path: Path, chain: str | None = None) -> Backbone:
    """Read one chain of a PDB, mmCIF or pdbqt file (first model).

    Non-standard residues that are forms of standard ones (MSE, HID, CYX, ...) count as these;
    others, and residues without N, CA and C, are left out with a log line that counts them.

    Args:
        path: ending .pdb, .ent, .cif or .pdbqt.
        chain: its name; the first one with residues where none is given.

    Raises:
        ValueError: an unknown ending, no such chain (the chains are listed), no residues.
    """
    path = Path(path)
    return parse_structure(path.read_bytes(), path.suffix, str(path), chain)


def parse_structure(content: bytes, ending: str, place: str, chain: str | None = None) -> Backbone:
    """As `read_structure`, of a file that was read; `place` names it in messages."""
    if ending == ".pdbqt":
        residues = _residues_of_columns(content.decode("utf-8", "replace"), place)
    elif ending in (".pdb", ".ent", ".cif"):
        residues = _residues_of_gemmi(content.decode("utf-8", "replace"), ending, place)
    else:
        raise ValueError(f"{place}: ending '{ending}', must be .pdb, .ent, .cif or .pdbqt")
    residues = [r for r in residues if r[3] in RESIDUES or set(_BACKBONE) <= set(r[4])]
    chains = list(dict.fromkeys(residue[0] for residue in residues))
    if not residues:
        raise ValueError(f"{place}: there are no amino acids")
    if chain is not None and chain not in chains:
        raise ValueError(f"{place}: there is no chain '{chain}'; there are: {', '.join(chains)}")
    wanted = chains[0] if chain is None else chain
    residues = [residue for residue in residues if residue[0] == wanted]
    unknown = [r[3] for r in residues if r[3] not in RESIDUES]
    broken = [r for r in residues if r[3] in RESIDUES and not set(_BACKBONE) <= set(r[4])]
    if unknown or broken:
        logger.warning(
            "%s: %d unknown residues (%s) and %d without backbone are left out",
            place,
            len(unknown),
            ", ".join(sorted(set(unknown))) or "none",
            len(broken),
        )
    kept = [r for r in residues if r[3] in RESIDUES and set(_BACKBONE) <= set(r[4])]
    if not kept:
        raise ValueError(f"{place}: chain '{wanted}' has no residue with N, CA and C")
    return Backbone(
        sequence="".join(RESIDUES[residue[3]] for residue in kept),
        residue_numbers=np.array([residue[2] for residue in kept], dtype=np.int64),
        chain=wanted,
        coords=np.array([[r[4][atom] for atom in _BACKBONE] for r in kept], dtype=np.float64),
    )


def _residues_of_columns(text: str, place: str) -> list[Residue]:
    """The residues of a pdbqt file: columns as in PDB, but for the element's."""
    found: dict[tuple[str, str], Residue] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("ENDMDL"):
            break
        if not line.startswith(("ATOM", "HETATM")):
            continue
        try:
            position = (float(line[30:38]), float(line[38:46]), float(line[46:54]))
            serial = int(line[22:26])
        except ValueError:
            raise ValueError(f"{place}: line {number}: no residue number or coordinates") from None
        chain, name = line[21].strip(), line[17:20].strip()
        key = (chain, line[22:27])
        residue = found.setdefault(key, (chain, line[26].strip(), serial, name, {}))
        residue[4].setdefault(line[12:16].strip(), position)
    return list(found.values())


def _residues_of_gemmi(text: str, ending: str, place: str) -> list[Residue]:
    import gemmi

    try:
        if ending == ".cif":
            block = gemmi.cif.read_string(text).sole_block()
            structure = gemmi.make_structure_from_block(block)
        else:
            structure = gemmi.read_pdb_string(text)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{place}: {error}") from None
    if not len(structure):
        return []
    found = []
    for chain in structure[0]:
        for residue in chain:
            atoms: dict[str, tuple[float, float, float]] = {}
            for atom in residue:
                atoms.setdefault(atom.name, tuple(atom.pos.tolist()))
            found.append(
                (chain.name, residue.seqid.icode.strip(), residue.seqid.num, residue.name, atoms)
            )
    return found


def load_structure(name: str) -> Backbone:
    """A structure of the experiments by name, fetched where it is not in the cache yet.

    Names: those of the docking targets (`JAK2`, ...), and 5p21, 1erm, 1a5r, 2grn, 1nd4, 1ubi.
    ValueError lists them for any other.
    """
    from retable.common.data.bundles import unpack_files
    from retable.common.data.proteins import DOCKSTRING, PROTEIN_ASSAYS, UBIQUITIN

    if name == "1ubi":
        files = unpack_files(UBIQUITIN.get())
    elif name in TEST_STRUCTURES:
        files = unpack_files(PROTEIN_ASSAYS.get())
    else:
        files = unpack_files(DOCKSTRING.get())
    return structure_of(files, name)


TEST_STRUCTURES = ("5p21", "1erm", "1a5r", "2grn", "1nd4", "1ubi")


def structure_of(files: dict[str, bytes], name: str) -> Backbone:
    """A structure by name among the files of the data sets; ValueError lists the names."""
    file = {"1ubi": "pdb1ubi.pdb"}.get(name, f"{name}.pdb")
    if file not in files:
        file = f"{name}_target.pdbqt"
    if file not in files:
        targets = (f.removesuffix("_target.pdbqt") for f in files if f.endswith("_target.pdbqt"))
        known = sorted({*targets, *TEST_STRUCTURES})
        raise ValueError(f"structure: '{name}', must be one of {', '.join(known)}")
    return parse_structure(files[file], Path(file).suffix, file)


def virtual_cb(coords: np.ndarray) -> np.ndarray:
    """Place of an ideal CB (L, 3) from N, CA, C (L, 3, 3)."""
    n, ca, c = coords[:, 0], coords[:, 1], coords[:, 2]
    b, d = ca - n, c - ca
    return ca - 0.58273431 * np.cross(b, d) + 0.56802827 * b - 0.54067466 * d


def local_frames(coords: np.ndarray) -> np.ndarray:
    """Rotations (L, 3, 3) whose rows are the axes of each residue's frame.

    e1 along C - CA; e2 is N - CA, made orthogonal to e1; e3 = e1 x e2.
    """
    n, ca, c = coords[:, 0], coords[:, 1], coords[:, 2]
    e1 = _unit(c - ca)
    e2 = n - ca
    e2 = _unit(e2 - (e2 * e1).sum(1, keepdims=True) * e1)
    return np.stack([e1, e2, np.cross(e1, e2)], axis=1)


def microenvironments(backbone: Backbone, k: int = NEIGHBOURS) -> Environments:
    """The environment of every residue: its K nearest residues by virtual CB, itself left out.

    Features of a neighbour j of i (58): its amino acid (20); the offset j - i in the sequence,
    -8..8 or far, where a chain break between them counts as far (18); CB_j - CA_i in the frame of i
    in 10 Angstrom (3); 8 radial basis functions of the CB-CB distance, centres 3 to 15, width 1.7
    Angstrom; the relative rotation R_i R_j^T, row by row (9). Density: other residues' CB within 6,
    8, 10, 14 Angstrom, over 8, 15, 25, 50.

    Raises:
        ValueError: fewer than 30 residues, or k not below their number; arrays of other shapes,
            coordinates that are not finite, letters that are none of the twenty.
    """
    import torch

    neighbours, density = environment_features(backbone, k)
    return Environments(torch.from_numpy(neighbours), torch.from_numpy(density))


def environment_features(backbone: Backbone, k: int = NEIGHBOURS) -> tuple[np.ndarray, np.ndarray]:
    """As `microenvironments`, as arrays: neighbours (L, K, 58) and density (L, 4), float32."""
    length = len(backbone.sequence)
    if length < _LEAST_RESIDUES:
        raise ValueError(
            f"backbone: {length} residues; an environment needs at least {_LEAST_RESIDUES}"
        )
    if not 1 <= k < length:
        raise ValueError(f"k: {k}, must be within 1..{length - 1}")
    coords = np.asarray(backbone.coords, dtype=np.float64)
    codes, numbers = encode(backbone.sequence), np.asarray(backbone.residue_numbers)
    if coords.shape != (length, 3, 3) or numbers.shape != (length,):
        raise ValueError(
            f"backbone: coords {coords.shape} and residue_numbers {numbers.shape}, must be "
            f"({length}, 3, 3) and ({length},)"
        )
    if not np.isfinite(coords).all():
        raise ValueError("backbone: coords hold values that are not finite")
    if (codes < 0).any():
        place = int((codes < 0).argmax())
        raise ValueError(
            f"backbone: sequence: '{backbone.sequence[place]}' at {place} is no residue"
        )
    cb, frames = virtual_cb(coords), local_frames(coords)
    distances = np.linalg.norm(cb[:, None] - cb, axis=2)
    np.fill_diagonal(distances, np.inf)
    density = (distances[..., None] < _RADII).sum(1) / _USUAL_COUNTS
    near = np.argsort(distances, axis=1, kind="stable")[:, :k]
    away = np.take_along_axis(distances, near, axis=1)
    rows = np.arange(length)[:, None]

    letters = np.eye(20)[codes[near]]
    bonds = np.linalg.norm(coords[1:, 0] - coords[:-1, 2], axis=1)
    breaks = (np.diff(numbers) != 1) | (bonds > _LONGEST_BOND)
    segment = np.concatenate([[0], np.cumsum(breaks)])
    offset = near - rows
    far = (np.abs(offset) > _FARTHEST) | (segment[near] != segment[rows])
    offsets = np.eye(2 * _FARTHEST + 2)[np.where(far, 2 * _FARTHEST + 1, offset + _FARTHEST)]
    place = np.einsum("lij,lkj->lki", frames, cb[near] - coords[:, None, 1]) / 10
    centres = np.linspace(3, 15, 8)
    radial = np.exp(-(((away[..., None] - centres) / 1.7) ** 2))
    rotation = np.einsum("lij,lkmj->lkim", frames, frames[near]).reshape(length, k, 9)
    features = np.concatenate([letters, offsets, place, radial, rotation], axis=2)
    return features.astype(np.float32), density.astype(np.float32)


def wildtype_of(backbone: Backbone) -> np.ndarray:
    """Codes (L,) int64 of the residues."""
    return encode(backbone.sequence).astype(np.int64)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


assert len(AMINO_ACIDS) + 2 * _FARTHEST + 2 + 3 + 8 + 9 == FEATURES
