"""Published benchmarks of mutational effects in their own formats: ProteinGym and T2837."""

import csv
import io
import logging
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from retable.evorank.alphabet import AMINO_ACIDS, RESIDUES
from retable.evorank.dms import Assay, parse_variant

logger = logging.getLogger("retable")
_GYM_COLUMNS = ("mutant", "mutated_sequence", "DMS_score")
_STABILITY_COLUMNS = ("uniprot_id", "pdb_code", "chain_id", "position", "wtAA", "mutAA", "ddG")


@dataclass(frozen=True)
class StabilityChange:
    """One measured change of folding stability.

    Attributes:
        structure: PDB code, lower case; chain: its name.
        position: residue number in the chain.
        wildtype, mutant: one-letter amino acids.
        ddg: kcal/mol, > 0 destabilises: correlate scores with -ddg.
    """

    structure: str
    chain: str
    position: int
    wildtype: str
    mutant: str
    ddg: float


@dataclass(frozen=True)
class GymAssay:
    """One assay of ProteinGym with its multiple mutants.

    Attributes:
        name: of the assay; sequence: its wild type.
        mutants: such as `H24A` or `H24A:E31K`, V of them; scores: (V,), higher = fitter.
        variant, position, letter: (S,) the substitutions of all mutants: the mutant's number, the
            position from 0, the new letter's code.
    """

    name: str
    sequence: str
    mutants: tuple[str, ...]
    scores: np.ndarray
    variant: np.ndarray
    position: np.ndarray
    letter: np.ndarray


def read_gym_assay(content: bytes, name: str) -> GymAssay:
    """One assay of ProteinGym's substitutions, multiple mutants included.

    Rows without a score are left out, with a log line that counts them.

    Raises:
        ValueError: a missing column; a mutant that does not fit its sequence (row named); no rows.
    """
    mutants, scores, substitutions, wild, left_out = [], [], [], "", 0
    for number, row in enumerate(_rows(content, _GYM_COLUMNS, name), start=2):
        if not row["DMS_score"]:
            left_out += 1
            continue
        sequence, place = row["mutated_sequence"], f"{name}: row {number}"
        try:
            changes = [parse_variant(part) for part in row["mutant"].split(":")]
            score = float(row["DMS_score"])
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        if not wild:
            letters = list(sequence)
            for old, position, _ in changes:
                if position <= len(letters):
                    letters[position - 1] = AMINO_ACIDS[old]
            wild = "".join(letters)
        for old, position, new in changes:
            fits = 1 <= position <= len(sequence) == len(wild)
            if not fits or sequence[position - 1] != AMINO_ACIDS[new]:
                raise ValueError(f"{place}: {row['mutant']} does not fit its mutated_sequence")
            if wild[position - 1] != AMINO_ACIDS[old]:
                raise ValueError(f"{place}: another wild type than the rows before")
            substitutions.append((len(mutants), position - 1, new))
        mutants.append(row["mutant"])
        scores.append(score)
    if not mutants:
        raise ValueError(f"{name}: there are no substitutions")
    if left_out:
        logger.info("%s: %d rows without a score left out", name, left_out)
    variant, position, letter = np.array(substitutions, dtype=np.int64).T
    return GymAssay(name, wild, tuple(mutants), np.array(scores), variant, position, letter)


def read_proteingym(content: bytes, name: str) -> Assay:
    """One assay of ProteinGym's substitutions (CSV: mutant, mutated_sequence, DMS_score, ...).

    Multiple mutants (`A1C:D2E`) and rows without a score are left out, with a log line that counts
    them; higher scores are fitter. The structure has the assay's name.

    Raises:
        ValueError: a missing column; a mutant that does not fit its sequence (row named).
    """
    rows = _rows(content, _GYM_COLUMNS, name)
    variants, scores, wild, left_out = [], [], None, 0
    for number, row in enumerate(rows, start=2):
        if ":" in row["mutant"] or not row["DMS_score"]:
            left_out += 1
            continue
        try:
            old, position, new = parse_variant(row["mutant"])
        except ValueError as error:
            raise ValueError(f"{name}: row {number}: {error}") from None
        sequence = row["mutated_sequence"]
        if position > len(sequence) or sequence[position - 1] != AMINO_ACIDS[new]:
            raise ValueError(
                f"{name}: row {number}: {row['mutant']} does not fit its mutated_sequence"
            )
        own = sequence[: position - 1] + AMINO_ACIDS[old] + sequence[position:]
        if wild is not None and own != wild:
            raise ValueError(f"{name}: row {number}: another wild type than the rows before")
        wild = own
        variants.append(row["mutant"])
        scores.append(float(row["DMS_score"]))
    if wild is None:
        raise ValueError(f"{name}: there are no single substitutions")
    if left_out:
        logger.info("%s: %d multiple mutants or rows without a score left out", name, left_out)
    return Assay(name, name, wild, tuple(variants), np.array(scores), True, "MIT")


def read_proteingym_archive(content: bytes) -> Iterator[Assay]:
    """All assays of the archive `DMS_ProteinGym_substitutions.zip`, by name."""
    for name, table in archive_files(content, ".csv"):
        yield read_proteingym(table, name)


def archive_files(content: bytes, ending: str) -> Iterator[tuple[str, bytes]]:
    """The files of a zip that end so, with their names up to the ending, sorted by path.

    Raises:
        ValueError: not a zip file.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise ValueError(f"archive: {error}") from None
    with archive:
        for member in sorted(archive.namelist()):
            name = member.rpartition("/")[2]
            # Archives that were made on a Mac hold a second, empty shape of each file.
            if name.endswith(ending) and not member.startswith("__MACOSX"):
                yield name.removesuffix(ending), archive.read(member)


def read_stability(content: bytes, name: str = "T2837") -> list[StabilityChange]:
    """The changes of a stability set (CSV: uniprot_id, pdb_code, chain_id, position, ..., ddG).

    Raises:
        ValueError: a missing column; an unknown amino acid or a value that is no number, with its
            row.
    """
    found = []
    for number, row in enumerate(_rows(content, _STABILITY_COLUMNS, name), start=2):
        try:
            wild, mutant = (_letter(row[column]) for column in ("wtAA", "mutAA"))
            change = StabilityChange(
                row["pdb_code"].lower(),
                row["chain_id"],
                int(row["position"]),
                wild,
                mutant,
                float(row["ddG"]),
            )
        except ValueError as error:
            raise ValueError(f"{name}: row {number}: {error}") from None
        found.append(change)
    return found


def _letter(text: str) -> str:
    """One letter of an amino acid that is given by one or three."""
    letter = RESIDUES.get(text.upper(), text.upper())
    if len(letter) != 1 or letter not in AMINO_ACIDS:
        raise ValueError(f"amino acid '{text}', must be one of {AMINO_ACIDS}")
    return letter


def _rows(content: bytes, columns: tuple[str, ...], name: str) -> Iterator[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(content.decode("utf-8")))
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"{name}: there is no column '{missing[0]}'; needed: {', '.join(columns)}")
    return iter(reader)
