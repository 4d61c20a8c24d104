"""The user's own structures and alignments for the paper's scale: a list or a folder of them."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retable.common.errors import InputError
from retable.evorank.atoms import ENDINGS
from retable.evorank.files import own_path
from retable.evorank.msa import ALIGNMENT_ENDINGS

_COLUMNS = ("name", "structure", "alignment")
_OPTIONAL = ("chain", "family")


@dataclass(frozen=True)
class Protein:
    """One protein to train on: `chain` of a structure file (empty: the first), its alignment, and
    the family with which it is held out."""

    name: str
    structure: Path
    alignment: Path
    chain: str
    family: str


def own_proteins(value: str | None) -> list[Protein]:
    """The proteins to train on, by name.

    Either a CSV file with the columns name, structure, alignment and, if wanted, chain and family
    (paths from the file's folder), or a folder with `structures/` and `alignments/` whose files
    have the same names up to their endings.

    Raises:
        InputError: nothing named, a column, file or value that is missing, a name twice.
    """
    what = (
        "a CSV file (columns name, structure, alignment; chain, family) or a folder with "
        "structures/ and alignments/"
    )
    path = own_path(value, "proteins", what)
    found = _of_folder(path) if path.is_dir() else _of_list(path)
    if not found:
        raise InputError(f"{path}: there are no proteins")
    names = [protein.name for protein in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: the name '{twice}' stands there twice")
    return sorted(found, key=lambda protein: protein.name)


def _of_list(path: Path) -> list[Protein]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        head = reader.fieldnames or []
        missing = [column for column in _COLUMNS if column not in head]
        if missing:
            raise InputError(
                f"{path}: there is no column '{missing[0]}'; needed: {', '.join(_COLUMNS)}; "
                f"allowed besides: {', '.join(_OPTIONAL)}"
            )
        found = []
        for number, row in enumerate(reader, start=2):
            empty = [column for column in _COLUMNS if not (row[column] or "").strip()]
            if empty:
                raise InputError(f"{path}: row {number}: '{empty[0]}' is empty")
            files = [path.parent / row[column].strip() for column in _COLUMNS[1:]]
            absent = [file for file in files if not file.is_file()]
            if absent:
                raise InputError(f"{path}: row {number}: {absent[0]}: no such file")
            name = row["name"].strip()
            chain, family = ((row.get(column) or "").strip() for column in _OPTIONAL)
            found.append(Protein(name, *files, chain, family or name))
    return found


def _of_folder(path: Path) -> list[Protein]:
    kinds = (("structures", ENDINGS), ("alignments", ALIGNMENT_ENDINGS))
    by_kind: list[dict[str, Path]] = []
    for folder, endings in kinds:
        if not (path / folder).is_dir():
            raise InputError(f"{path}: there is no folder '{folder}'")
        named: dict[str, Path] = {}
        for file in sorted((path / folder).iterdir()):
            name = file.name.removesuffix(".gz")
            ending = next((e for e in endings if name.endswith(e)), None)
            if ending is None:
                continue
            stem = name.removesuffix(ending)
            if stem in named:
                raise InputError(f"{path / folder}: there are two files of the name '{stem}'")
            named[stem] = file
        by_kind.append(named)
    structures, alignments = by_kind
    missing = sorted(structures.keys() - alignments.keys())
    if missing:
        raise InputError(f"{path / 'alignments'}: there is none of the structure '{missing[0]}'")
    return [Protein(name, file, alignments[name], "", name) for name, file in structures.items()]


def held_out_families(proteins: list[Protein], share: float) -> set[str]:
    """The families that are never trained on: a share of them, one at least, drawn once for all."""
    families = sorted({protein.family for protein in proteins})
    count = max(1, round(share * len(families)))
    order = np.random.default_rng(0).permutation(len(families))
    return {families[number] for number in order[:count]}


def structure_file(folder: Path, code: str) -> Path:
    """The file of a PDB code in a folder, `<code>.pdb`, `.ent` or `.cif`, also with .gz.

    Raises:
        InputError: there is none.
    """
    for name in (code.lower(), code.upper()):
        for ending in ENDINGS:
            for packed in ("", ".gz"):
                file = folder / f"{name}{ending}{packed}"
                if file.is_file():
                    return file
    raise InputError(
        f"config/evorank.yaml, own: stability_structures: {folder}: there is no structure '{code}' "
        f"({', '.join(ENDINGS)}, also with .gz)"
    )
