"""Deep mutational scans: reading them, placing them on structures, and rank correlation."""

import io
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retable.evorank.alphabet import AMINO_ACIDS
from retable.evorank.config import ASSAYS, EXTENDED_ASSAYS
from retable.evorank.structure import Backbone

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ASSAYS", "EXTENDED_ASSAYS", "Assay", "align_to_structure", "load_assay", "spearman"]
logger = logging.getLogger("retable")
_VARIANT = re.compile(rf"([{AMINO_ACIDS}])(\d+)([{AMINO_ACIDS}])")
_MISSING = -999.0
_MOST_DISAGREEMENT = 0.30
_WORTH_A_WARNING = 0.05
_HRAS = (
    "MTEYKLVVVGAGGVGKSALTIQLIQNHFVDEYDPTIEDSYRKQVVIDGETCLLDILDTAGQEEYSAMRDQYMRTGEGFLCVFA"
    "INNTKSFEDIHQYREQIKRVKDSDDVPMVLVGNKCDLAARTVESRQAQDLARSYGIPYIETSAKTRQGVEDAFYTLVREIRQH"
)
_FIRST_HRAS = 2  # the residue of the first column
# Name -> (structure, sheet, column).
_SHEETS = {
    "bla": ("1erm", "bla", "DMS_amp_2500_(b)"),
    "SUMO1": ("1a5r", "SUMO1", "DMS"),
    "UBE2I": ("2grn", "UBE2I", "DMS_flipped"),
    "KKA2": ("1nd4", "KKA2_S3_Kan18_L1", ""),
    "HSP82": ("HSP90AA1", "HSP82", "DMS"),
    "UBI4": ("1ubi", "UBI4", "DMS_limiting_(b)"),
    "MAPK1": ("MAPK1", "MAPK1", "DMS_DOX"),
    "ADRB2": ("ADRB2", "ADRB2", "DMS_0.625"),
}
# Cells survive the induced expression of MAPK1 the better, the less of it works.
_HIGHER_IS_LESS_FIT = ("MAPK1",)
_HRAS_FILES = {"HRAS_RBD": "HRas166_RBD.csv", "HRAS_GAPGEF": "HRas166_GAPGEF.csv"}


@dataclass(frozen=True)
class Assay:
    """The measured effects of single substitutions in one protein.

    Attributes:
        name: of `ASSAYS` or `EXTENDED_ASSAYS`.
        structure: name of the structure that its positions are placed on.
        sequence: the wild type from position 1 on, X where no variant tells it.
        variants: such as `H24A`.
        scores: (variants,) float.
        higher_is_fitter: the sign of the scores.
        licence: terms of use.
    """

    name: str
    structure: str
    sequence: str
    variants: tuple[str, ...]
    scores: np.ndarray
    higher_is_fitter: bool = True
    licence: str = "published measurements"


def parse_variant(variant: str) -> tuple[int, int, int]:
    """`H24A` as (code of H, 24, code of A); ValueError for anything else."""
    found = _VARIANT.fullmatch(variant)
    if not found:
        raise ValueError(f"variant: '{variant}', must be like H24A, of {AMINO_ACIDS}")
    return AMINO_ACIDS.index(found[1]), int(found[2]), AMINO_ACIDS.index(found[3])


def load_assay(name: str, files: Mapping[str, bytes] | None = None) -> Assay:
    """An assay by name; `files` are those of the shared data set, fetched where not given.

    Wild-type cells, stops, and cells without a value are left out. ValueError for an unknown name,
    which lists the known ones.
    """
    known = (*ASSAYS, *EXTENDED_ASSAYS)
    if name not in known:
        raise ValueError(f"assay: '{name}', must be one of {', '.join(known)}")
    if files is None:
        from retable.common.data.bundles import unpack_files
        from retable.common.data.proteins import PROTEIN_ASSAYS

        files = unpack_files(PROTEIN_ASSAYS.get())
    if name in _HRAS_FILES:
        structure, cells = "5p21", _hras_cells(files[_HRAS_FILES[name]])
    else:
        structure, sheet, column = _SHEETS[name]
        rows = _sheet(files["DMS_others.xlsx"], sheet)
        cells = _matrix_cells(rows) if name == "KKA2" else _listed_cells(rows, sheet, column)
        if name == "KKA2":
            # Its table holds no wild type: the structure's residue numbers are its positions.
            cells = _with_wildtype(cells, files)
    cells = [(w, i, b, v) for w, i, b, v in cells if v is not None and np.isfinite(v) and w != b]
    longest = max(position for _, position, _, _ in cells)
    letters = ["X"] * longest
    for wild, position, _, _ in cells:
        letters[position - 1] = wild
    return Assay(
        name=name,
        structure=structure,
        sequence="".join(letters),
        variants=tuple(f"{w}{i}{b}" for w, i, b, _ in cells),
        scores=np.array([value for *_, value in cells], dtype=np.float64),
        higher_is_fitter=name not in _HIGHER_IS_LESS_FIT,
    )


Cell = tuple[str, int, str, float | None]


def _hras_cells(content: bytes) -> list[Cell]:
    """21 rows of letters (the last one stops), one column a residue from 2 on."""
    table = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2)
    if table.shape != (21, len(_HRAS) - 1):
        raise ValueError(f"HRAS table: shape {table.shape}, must be (21, {len(_HRAS) - 1})")
    return [
        (_HRAS[column + _FIRST_HRAS - 1], column + _FIRST_HRAS, letter, table[row, column])
        for column in range(table.shape[1])
        for row, letter in enumerate(AMINO_ACIDS)
    ]


def _sheet(content: bytes, name: str) -> list[tuple[Any, ...]]:
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    if name not in book.sheetnames:
        raise ValueError(f"DMS_others.xlsx: no sheet '{name}'; there are {book.sheetnames}")
    return list(book[name].iter_rows(values_only=True))


def _listed_cells(rows: list[tuple[Any, ...]], sheet: str, column: str) -> list[Cell]:
    head = list(rows[0])
    if column not in head:
        raise ValueError(f"DMS_others.xlsx: {sheet}: no column '{column}'; there are {head}")
    place, cells = head.index(column), []
    for row in rows[1:]:
        if row[0] is None or not _VARIANT.fullmatch(str(row[0])):
            continue
        value = row[place]
        if not isinstance(value, int | float) or value == _MISSING:
            continue
        wild, position, letter = _VARIANT.fullmatch(row[0]).groups()
        cells.append((wild, int(position), letter, float(value)))
    return cells


def _matrix_cells(rows: list[tuple[Any, ...]]) -> list[Cell]:
    """A row of positions, then one row a letter; the wild type is not told."""
    positions = rows[0][1:]
    return [
        ("X", int(position), str(row[0]), float(value))
        for row in rows[1:]
        if row[0] in tuple(AMINO_ACIDS)
        for position, value in zip(positions, row[1:], strict=True)
        if isinstance(position, int | float) and isinstance(value, int | float)
    ]


def _with_wildtype(cells: list[Cell], files: Mapping[str, bytes]) -> list[Cell]:
    from retable.evorank.structure import structure_of

    backbone = structure_of(dict(files), "1nd4")
    numbers = backbone.residue_numbers.tolist()
    wild = dict(zip(numbers, backbone.sequence, strict=True))
    return [(wild[i], i, letter, value) for _, i, letter, value in cells if i in wild]


def local_alignment(first: str, second: str) -> "Iterator[tuple[int, int]]":
    """Pairs of positions that a BLOSUM62 local alignment (gaps -11, -1) puts together."""
    from Bio.Align import PairwiseAligner, substitution_matrices

    aligner = PairwiseAligner()
    aligner.mode = "local"
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    aligner.open_gap_score, aligner.extend_gap_score = -11, -1
    alignments = aligner.align(first, second)
    if not len(alignments):
        return
    for (start, end), (other, _) in zip(*alignments[0].aligned, strict=True):
        for step in range(end - start):
            yield int(start) + step, int(other) + step


def align_to_structure(assay: Assay, backbone: Backbone) -> dict[int, int]:
    """The assay's positions (from 1) on the structure: position -> index of the residue.

    By local alignment of the wild-type letters; only where the letters agree.

    Raises:
        ValueError: more than 30 % of the aligned positions disagree.
    """
    pairs = [
        (i, j)
        for i, j in local_alignment(assay.sequence, backbone.sequence)
        if assay.sequence[i] != "X"
    ]
    if not pairs:
        raise ValueError(f"{assay.name}: nothing aligns with its structure {assay.structure}")
    agreeing = [(i, j) for i, j in pairs if assay.sequence[i] == backbone.sequence[j]]
    share = 1 - len(agreeing) / len(pairs)
    if share > _MOST_DISAGREEMENT:
        raise ValueError(
            f"{assay.name}: {100 * share:.0f} % of {len(pairs)} aligned positions disagree with "
            f"{assay.structure}; at most {100 * _MOST_DISAGREEMENT:.0f} % are allowed"
        )
    if share > _WORTH_A_WARNING:
        logger.warning(
            "%s: %.0f %% of %d aligned positions disagree with %s and are left out",
            assay.name,
            100 * share,
            len(pairs),
            assay.structure,
        )
    return {i + 1: j for i, j in agreeing}


def mapped(assay: Assay, mapping: Mapping[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The variants on the structure: their residues' indices, new letters' codes, and fitness."""
    places, letters, values = [], [], []
    sign = 1.0 if assay.higher_is_fitter else -1.0
    for variant, score in zip(assay.variants, assay.scores, strict=True):
        _, position, letter = parse_variant(variant)
        if position in mapping:
            places.append(mapping[position])
            letters.append(letter)
            values.append(sign * score)
    return np.array(places, dtype=np.int64), np.array(letters), np.array(values)


def spearman(assay: Assay, scores: Any, mapping: Mapping[int, int]) -> tuple[float, int]:
    """Rank correlation of scores (L, 20) with the assay's fitness, and the number of variants."""
    from scipy.stats import spearmanr

    scores = np.asarray(scores, dtype=np.float64)
    places, letters, values = mapped(assay, mapping)
    if scores.ndim != 2 or scores.shape[1] != 20:
        raise ValueError(f"scores: shape {scores.shape}, must be (L, 20)")
    if len(places) < 3:
        raise ValueError(f"{assay.name}: only {len(places)} variants lie on the structure")
    found = scores[places, letters]
    if not np.isfinite(found).all():
        raise ValueError(f"scores: hold {found[~np.isfinite(found)][0]}; all must be finite")
    return float(spearmanr(found, values).statistic), len(places)
