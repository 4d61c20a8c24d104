"""Published benchmarks of mutational effects in their own formats: ProteinGym, T2837, GB1."""

import csv
import io
import logging
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from retable.evorank.alphabet import AMINO_ACIDS, RESIDUES, encode
from retable.evorank.dms import parse_variant

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


def read_proteingym(content: bytes, name: str) -> GymAssay:
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
        letters = list(sequence)
        for old, position, new in changes:
            if not 1 <= position <= len(letters) or sequence[position - 1] != AMINO_ACIDS[new]:
                raise ValueError(f"{place}: {row['mutant']} does not fit its mutated_sequence")
            letters[position - 1] = AMINO_ACIDS[old]
            substitutions.append((len(mutants), position - 1, new))
        own = "".join(letters)
        wild = wild or own
        if own != wild:
            raise ValueError(f"{place}: another wild type than the rows before")
        mutants.append(row["mutant"])
        scores.append(score)
    if not mutants:
        raise ValueError(f"{name}: there are no substitutions")
    if left_out:
        logger.info("%s: %d rows without a score left out", name, left_out)
    variant, position, letter = np.array(substitutions, dtype=np.int64).T
    return GymAssay(name, wild, tuple(mutants), np.array(scores), variant, position, letter)


def read_proteingym_archive(content: bytes) -> Iterator[GymAssay]:
    """The assays of the archive `DMS_ProteinGym_substitutions.zip`, by name."""
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


def read_gb1(content: bytes) -> GymAssay:
    """The double mutants of GB1 (CSV: x, the sequence, and y, the log2 enrichment).

    The wild type is the commonest letter of each position.

    Raises:
        ValueError: a missing column; sequences of other lengths or letters, or a y that is not
            finite (row named).
    """
    import pandas as pd

    table = pd.read_csv(io.BytesIO(content))
    missing = [column for column in ("x", "y") if column not in table]
    if missing:
        raise ValueError(f"gb1_data.csv: there is no column '{missing[0]}'; needed: x, y")
    texts, scores = table["x"].astype(str), table["y"].to_numpy(dtype=np.float64)
    length = len(texts.iloc[0]) if len(texts) else 0
    wrong = (texts.str.len() != length).to_numpy() | ~np.isfinite(scores)
    codes = np.zeros((0, length), dtype=np.int8)
    if len(texts) and not wrong.any():
        codes = encode("".join(texts)).reshape(-1, length)
        wrong = (codes < 0).any(1)
    if not len(texts):
        raise ValueError("gb1_data.csv: there are no rows")
    if wrong.any():
        row = int(wrong.argmax()) + 2
        raise ValueError(
            f"gb1_data.csv: row {row}: must be {length} residues of {AMINO_ACIDS} and a finite y"
        )
    wild = np.stack([(codes == letter).sum(0) for letter in range(20)]).argmax(0)
    variant, position = np.nonzero(codes != wild)
    letter = codes[variant, position].astype(np.int64)
    parts = [
        f"{AMINO_ACIDS[wild[i]]}{i + 1}{AMINO_ACIDS[b]}"
        for i, b in zip(position.tolist(), letter.tolist(), strict=True)
    ]
    ends = np.searchsorted(variant, np.arange(len(codes) + 1)).tolist()
    mutants = tuple(":".join(parts[start:end]) for start, end in pairwise(ends))
    sequence = "".join(AMINO_ACIDS[code] for code in wild)
    return GymAssay("GB1", sequence, mutants, scores, variant, position, letter)


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
