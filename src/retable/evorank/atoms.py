"""Masked microenvironments of atoms, for the network of the paper's scale.

Of the masked residue nothing is there but the place of its CA. Its atoms are removed, and so are
those of its copies in other chains of a homomer; the surface of the other atoms is that of the
structure without them; partial charges depend on each atom's own residue alone; other conformers
and other residues at its place in the file are never read.
"""

import gzip
import logging
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retable.evorank.alphabet import RESIDUES, encode
from retable.evorank.charges import residue_charges
from retable.evorank.surface import exposed_points, point_areas

logger = logging.getLogger("retable")
MOST_ATOMS = 512
POINTS = 100
ENDINGS = (".pdb", ".ent", ".cif")
# Classes 0 to 8 of `retable.evorank.model.ELEMENTS`.
_CLASSES = {"H": 0, "C": 1, "N": 2, "O": 3, "F": 4, "S": 5, "P": 6}
_CLASSES |= dict.fromkeys(("CL", "BR", "I", "AT"), 7)
_OTHER = 8
_LEAST_SHARED, _LEAST_EQUAL = 0.5, 0.9  # of residue numbers and names, for two chains to be copies


@dataclass(frozen=True)
class AtomStructure:
    """The M heavy atoms of a structure, and the L residues of one of its chains.

    Attributes:
        sequence: one letter a residue that has a CA; residue_numbers: (L,) as in the file.
        chain: its name.
        ca: (L, 3) in Angstrom; residues: (L,) the group of atoms that masking removes.
        element: (M,) uint8 class 0 to 8; charge: (M,) float32 elementary charges.
        radius: (M,) float32 van der Waals; xyz: (M, 3) float64, both in Angstrom.
        group: (M,) int64, the residue of each atom; copies of a residue in a homomer share one.
    """

    sequence: str
    residue_numbers: np.ndarray
    chain: str
    ca: np.ndarray
    residues: np.ndarray
    element: np.ndarray
    charge: np.ndarray
    radius: np.ndarray
    xyz: np.ndarray
    group: np.ndarray


def read_atoms(path: Path, chain: str | None = None) -> AtomStructure:
    """Read a PDB or mmCIF file (first model), also with .gz; see `parse_atoms`."""
    path = Path(path)
    content = path.read_bytes()
    ending = path.suffix
    if ending == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: damaged gzip file: {error}") from None
        ending = path.with_suffix("").suffix
    return parse_atoms(content, ending, str(path), chain)


def parse_atoms(content: bytes, ending: str, place: str, chain: str | None = None) -> AtomStructure:
    """The atoms of a structure file that was read; `place` names it in messages.

    Water and hydrogens are left out (most files have none); of several conformers the first counts.
    All chains, ligands and ions stay. Atoms without a partial charge in the table of residues have
    the formal charge that the file gives; a log line counts them.

    Args:
        ending: .pdb, .ent or .cif.
        chain: whose residues are listed; the first one with amino acids where none is given.

    Raises:
        ValueError: another ending, a file that cannot be read, no such chain (the chains are
            listed), no amino acids with a CA.
    """
    import gemmi
    from Bio.PDB.SASA import ATOMIC_RADII

    if ending not in ENDINGS:
        raise ValueError(f"{place}: ending '{ending}', must be one of {', '.join(ENDINGS)}")
    text = content.decode("utf-8", "replace")
    try:
        if ending == ".cif":
            structure = gemmi.make_structure_from_block(gemmi.cif.read_string(text).sole_block())
        else:
            structure = gemmi.read_pdb_string(text)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{place}: {error}") from None
    table = residue_charges()
    chains: dict[str, dict[tuple[int, str], tuple[str, int]]] = {}  # residue -> name, group
    positions: dict[str, list[tuple[int, str, int, tuple[float, ...]]]] = {}
    atoms: list[tuple[int, float, float, list[float], int]] = []
    formal: Counter[str] = Counter()
    groups = 0
    for part in structure[0] if len(structure) else ():
        named = chains.setdefault(part.name, {})
        for residue in part:
            key = (residue.seqid.num, residue.seqid.icode.strip())
            letter = RESIDUES.get(residue.name)
            if residue.is_water() or key in named:
                continue
            seen: dict[str, tuple[float, ...]] = {}
            for atom in residue:
                # "SE" of selenomethionine is methionine's sulphur.
                name = "SD" if letter == "M" and atom.name == "SE" else atom.name
                if atom.is_hydrogen() or name in seen:
                    continue
                seen[name] = tuple(atom.pos.tolist())
                element = "S" if name == "SD" and letter == "M" else atom.element.name.upper()
                charge = float(atom.charge)
                if letter is not None and name == "OXT":
                    charge = table["D"]["OD2"]  # an oxygen of a carboxylate
                elif letter is not None and name in table[letter]:
                    charge = table[letter][name]
                else:
                    formal[residue.name] += 1
                kind = _CLASSES.get(element, _OTHER)
                radius = float(ATOMIC_RADII[element])
                atoms.append((kind, charge, radius, atom.pos.tolist(), groups))
            named[key] = (residue.name, groups)
            if letter is not None and "CA" in seen:
                positions.setdefault(part.name, []).append((key[0], letter, groups, seen["CA"]))
            groups += 1
    if not positions:
        raise ValueError(f"{place}: there are no amino acids with a CA")
    if chain is not None and chain not in positions:
        raise ValueError(f"{place}: there is no chain '{chain}'; there are: {', '.join(positions)}")
    wanted = next(iter(positions)) if chain is None else chain
    if formal:
        logger.warning(
            "%s: %d atoms (%s) have no partial charge but their formal one of the file",
            place,
            formal.total(),
            ", ".join(sorted(formal)),
        )
    merged = np.arange(groups)
    for name, others in chains.items():
        if name != wanted and _are_copies(chains[wanted], others):
            for key, (_, group) in others.items():
                if key in chains[wanted]:
                    merged[group] = chains[wanted][key][1]
    numbers, letters, residues, ca = zip(*positions[wanted], strict=True)
    kinds, charges, radii, xyz, group = zip(*atoms, strict=True)
    return AtomStructure(
        sequence="".join(letters),
        residue_numbers=np.array(numbers, dtype=np.int64),
        chain=wanted,
        ca=np.array(ca, dtype=np.float64),
        residues=np.array(residues, dtype=np.int64),
        element=np.array(kinds, dtype=np.uint8),
        charge=np.array(charges, dtype=np.float32),
        radius=np.array(radii, dtype=np.float32),
        xyz=np.array(xyz, dtype=np.float64),
        group=merged[np.array(group)],
    )


def _are_copies(first: dict, second: dict) -> bool:
    """Whether two chains have the same residues at the numbers that they share."""
    shared = first.keys() & second.keys()
    if not shared or len(shared) < _LEAST_SHARED * min(len(first), len(second)):
        return False
    equal = sum(first[key][0] == second[key][0] for key in shared)
    return equal >= _LEAST_EQUAL * len(shared)


def atom_environments(
    structure: AtomStructure,
    positions: np.ndarray,
    most: int = MOST_ATOMS,
    points: int = POINTS,
) -> tuple[np.ndarray, np.ndarray]:
    """The atoms nearest to the CA of some residues, without the residue itself.

    Args:
        positions: (N,) indices of the L residues.
        most: atoms of an environment.
        points: of the surface of an atom, at most 255.

    Returns:
        atoms (N, most) int32, indices by rising distance from the CA, -1 where there are no more;
        exposed (N, most) uint8, the free points of each atom in the structure without the masked
        residue: times `point_areas` its solvent-accessible surface.
    """
    if not 1 <= points <= 255:
        raise ValueError(f"points: {points}, must be within 1..255")
    if most < 1:
        raise ValueError(f"most: {most}, must be >= 1")
    base, freed = exposed_points(structure.xyz, structure.radius, structure.group, points)
    freed = freed.tocsc()
    atoms = np.full((len(positions), most), -1, dtype=np.int32)
    exposed = np.zeros((len(positions), most), dtype=np.uint8)
    for row, position in enumerate(positions):
        masked = structure.residues[position]
        others = np.flatnonzero(structure.group != masked)
        squares = ((structure.xyz[others] - structure.ca[position]) ** 2).sum(1)
        chosen = others[np.argsort(squares, kind="stable")[:most]]
        atoms[row, : len(chosen)] = chosen
        free = base.copy()
        column = slice(*freed.indptr[masked : masked + 2])
        free[freed.indices[column]] += freed.data[column]
        exposed[row, : len(chosen)] = free[chosen]
    return atoms, exposed


def environment_table(
    structure: AtomStructure,
    positions: np.ndarray,
    most: int = MOST_ATOMS,
    points: int = POINTS,
) -> dict[str, np.ndarray]:
    """The atoms of a structure and the environments of some of its residues, as plain arrays.

    Of the M atoms: `element`, `charge`, `point_area` (square Angstrom), `xyz`. Of the N positions:
    `atoms`, `exposed` (N, most), `ca` (N, 3), `wildtype` (N,).
    """
    positions = np.asarray(positions, dtype=np.int64)
    atoms, exposed = atom_environments(structure, positions, most, points)
    return {
        "element": structure.element,
        "charge": structure.charge,
        "point_area": point_areas(structure.radius, points).astype(np.float32),
        "xyz": structure.xyz.astype(np.float32),
        "atoms": atoms,
        "exposed": exposed,
        "ca": structure.ca[positions].astype(np.float32),
        "wildtype": encode(structure.sequence)[positions].astype(np.uint8),
    }
