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
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in sorted(archive.namelist()):
            if member.endswith(".csv"):
                name = member.rpartition("/")[2].removesuffix(".csv")
                yield read_proteingym(archive.read(member), name)


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
