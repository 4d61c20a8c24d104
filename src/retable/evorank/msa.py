"""The evolutionary distribution of a position: alignments, sequence weights, frequencies.

An alignment is anchored at its query: (R, L) codes 0..19, -1 for a gap, row 0 the query, one column
for each of the query's residues; what other sequences insert is left out.
"""

import gzip
import io
import logging
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retable.evorank.alphabet import GAP, decode, encode

if TYPE_CHECKING:
    from pyhmmer.easel import DigitalSequenceBlock
    from pyhmmer.plan7 import TopHits

logger = logging.getLogger("retable")
_FORMATS = {".a3m": "fasta", ".sto": "stockholm", ".stk": "stockholm", ".fasta": "fasta"}
_FORMATS |= {".fa": "fasta", ".afa": "fasta"}
ALIGNMENT_ENDINGS = tuple(_FORMATS)
_BLOCK = 2_000
# A second round needs enough rows for a profile; with many it finds nothing new for its cost.
_SECOND_ROUND = range(3, 150)


def check_alignment(msa: Any) -> np.ndarray:
    """The alignment as (R, L) int8; ValueError when it is empty, ragged, or holds other codes."""
    try:
        msa = np.asarray(msa)
    except ValueError:
        raise ValueError("msa: rows have different lengths") from None
    if msa.ndim != 2 or not msa.size:
        raise ValueError(f"msa: shape {msa.shape}, must be (R, L) with R, L >= 1")
    if msa.dtype.kind not in "iu":
        raise ValueError(f"msa: {msa.dtype}, must be integer codes, -1..19")
    if msa.min() < GAP or msa.max() > 19:
        raise ValueError(f"msa: codes from {msa.min()} to {msa.max()}, must be within -1..19")
    if (msa[0] == GAP).any():
        column = int((msa[0] == GAP).argmax())
        raise ValueError(f"msa: row 0, the query, has a gap in column {column}")
    return msa.astype(np.int8)


def sequence_weights(msa: Any, identity: float = 0.8) -> np.ndarray:
    """Weight of each row: 1 / the number of rows (itself too) that are as good as equal to it.

    Rows are when at least a share `identity` of all L columns is equal, equal gaps included.

    Returns:
        (R,) float64 in (0, 1].
    """
    msa = check_alignment(msa)
    if not 0 < identity <= 1:
        raise ValueError(f"identity: {identity}, must be within (0, 1]")
    rows, columns = msa.shape
    one_hot = (msa[..., None] == np.arange(GAP, 20)).astype(np.float32).reshape(rows, -1)
    least = identity * columns - 1e-4
    counts = np.concatenate(
        [
            (one_hot[start : start + _BLOCK] @ one_hot.T >= least).sum(1)
            for start in range(0, rows, _BLOCK)
        ]
    )
    return 1.0 / counts


def site_distribution(
    msa: Any, background: Any, pseudocount: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Distribution of amino acids in each column, p_ia = (c_ia + tau q_a) / (n_i + tau).

    c_ia is the weight of the rows with amino acid a in column i, n_i = sum_a c_ia the effective
    depth, q the background, tau the pseudocount.

    Args:
        msa: (R, L).
        background: (20,) positive, summing to 1.
        pseudocount: > 0.

    Returns:
        p (L, 20) and depth n (L,).
    """
    msa = check_alignment(msa)
    background = np.asarray(background, dtype=np.float64)
    valid = background.shape == (20,) and (background >= 0).all()
    if not valid or not abs(background.sum() - 1) <= 1e-6:
        raise ValueError(
            f"background: shape {background.shape}, sum {background.sum()}: must be 20 "
            "frequencies that sum to 1"
        )
    if not pseudocount > 0:
        raise ValueError(f"pseudocount: {pseudocount}, must be > 0")
    weights = sequence_weights(msa)
    counts = np.einsum("r,rla->la", weights, msa[..., None] == np.arange(20))
    depth = counts.sum(1)
    p = (counts + pseudocount * background) / (depth + pseudocount)[:, None]
    return p, depth


def load_database(database: Path | Sequence[Path] | Sequence[bytes]) -> "DigitalSequenceBlock":
    """Sequences of FASTA files (or their bytes) for pyhmmer; equal names count once."""
    from pyhmmer.easel import Alphabet, DigitalSequenceBlock, SequenceFile

    sources = [database] if isinstance(database, str | Path) else list(database)
    alphabet = Alphabet.amino()
    block, seen = DigitalSequenceBlock(alphabet), set()
    for source in sources:
        handle = io.BytesIO(source) if isinstance(source, bytes) else str(source)
        try:
            with SequenceFile(handle, format="fasta", digital=True, alphabet=alphabet) as file:
                for sequence in file:
                    if sequence.name not in seen:
                        seen.add(sequence.name)
                        block.append(sequence)
        except (ValueError, OSError, EOFError) as error:
            place = "the bytes given" if isinstance(source, bytes) else source
            raise ValueError(f"database: {place}: {error}") from None
    if not len(block):
        raise ValueError("database: there are no sequences")
    return block


def build_msa(
    query: str,
    database: Any,
    *,
    e_value: float = 1e-3,
    max_hits: int = 300,
    rounds: int = 2,
) -> np.ndarray:
    """Align the query's homologs in a sequence database to it (HMMER, through pyhmmer).

    Round 1 searches with the sequence. Round 2, after 3 to 149 hits, searches with a profile of
    what was found, in which every residue of the query is a match state; it is kept if it finds no
    fewer.

    Args:
        query: residues; letters that are none of the twenty cannot be aligned.
        database: path of a FASTA file, a list of them, or what `load_database` returned.
        e_value: largest E-value of a hit and of a domain.
        max_hits: rows taken at most, best first.
        rounds: 1 or 2.

    Returns:
        (R, L) int8; row 0 is the query, one row for each aligned domain of a hit.
    """
    from pyhmmer.easel import Alphabet, TextMSA, TextSequence
    from pyhmmer.plan7 import Background, Builder, Pipeline

    codes = encode(query)
    if not len(codes) or (codes == GAP).any():
        raise ValueError(f"query: {query[:30]!r}..., must be residues of the 20 amino acids")
    if rounds not in (1, 2):
        raise ValueError(f"rounds: {rounds}, must be 1 or 2")
    alphabet = Alphabet.amino()
    block = database if hasattr(database, "alphabet") else load_database(database)
    pipeline = Pipeline(alphabet, E=e_value, incE=e_value, domE=e_value, incdomE=e_value)
    sequence = TextSequence(name="query", sequence=query).digitize(alphabet)
    rows = _rows(pipeline.search_seq(sequence, block), len(query), max_hits)
    if rounds == 2 and len(rows) in _SECOND_ROUND:
        texts = [
            TextSequence(name=f"row{number}", sequence=decode(row))
            for number, row in enumerate([codes, *rows])
        ]
        profile, _, _ = Builder(alphabet, architecture="fast", symfrac=0.0).build_msa(
            TextMSA(name="round1", sequences=texts).digitize(alphabet), Background(alphabet)
        )
        pipeline.clear()
        again = _rows(pipeline.search_hmm(profile, block), len(query), max_hits)
        if len(again) >= len(rows):
            rows = again
    return np.stack([codes, *rows])


def _rows(hits: "TopHits", length: int, most: int) -> list[np.ndarray]:
    """The aligned domains of the hits, as rows in the query's columns."""
    rows = []
    for hit in hits:
        if not hit.included:
            continue
        for domain in hit.domains:
            if not domain.included:
                continue
            alignment = domain.alignment
            profile = np.frombuffer(alignment.hmm_sequence.encode(), dtype=np.uint8)
            target = encode(alignment.target_sequence.upper())
            row = np.full(length, GAP, dtype=np.int8)
            # A dot in the profile is an insertion of the target.
            row[alignment.hmm_from - 1 : alignment.hmm_to] = target[profile != ord(".")]
            rows.append(row)
            if len(rows) == most:
                return rows
    return rows


def read_alignment(path: Path, query: str | None = None, max_rows: int | None = None) -> np.ndarray:
    """Read an alignment file: a3m, Stockholm (.sto) or FASTA, each also with .gz.

    Columns in which the first sequence has a gap, and lower-case insertions of a3m, are left out.
    Letters that are none of the twenty (B Z X J U O) count as gaps. Of an a3m file of ColabFold the
    lines that begin with # are passed over, and the first of several alignments counts.

    Args:
        query: what row 0 must be.
        max_rows: of the file's first rows, so many; all where none is given.

    Returns:
        (R, L) int8.

    Raises:
        ValueError: an unknown ending, no sequences, rows of different length, another query; the
            file and the record are named.
    """
    path = Path(path)
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    ending = suffixes[-1] if suffixes else ""
    if ending not in _FORMATS:
        raise ValueError(f"{path}: ending '{ending}', must be one of {', '.join(sorted(_FORMATS))}")
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: damaged gzip file: {error}") from None
    texts = _sequences(content.decode("utf-8"), _FORMATS[ending], str(path))[:max_rows]
    if ending == ".a3m":
        texts = ["".join(letter for letter in text if not letter.islower()) for text in texts]
    lengths = {len(text) for text in texts}
    if len(lengths) > 1:
        record = next(i for i, text in enumerate(texts) if len(text) != len(texts[0]))
        raise ValueError(
            f"{path}: record {record} has {len(texts[record])} columns, record 0 has "
            f"{len(texts[0])}"
        )
    kept = [i for i, letter in enumerate(texts[0]) if letter.isalpha()]
    msa = np.stack([encode(text.upper()) for text in texts])[:, kept]
    if query is not None:
        own = "".join(texts[0][i] for i in kept).upper()
        if own != query:
            raise ValueError(f"{path}: row 0 is {own[:20]}..., not the query {query[:20]}...")
    known = msa[0] != GAP
    if not known.any():
        raise ValueError(f"{path}: the first sequence has no residues")
    return msa[:, known]


def _sequences(text: str, kind: str, place: str) -> list[str]:
    if kind == "stockholm":
        from Bio import AlignIO

        try:
            found = [str(record.seq) for record in AlignIO.read(io.StringIO(text), "stockholm")]
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    else:
        from Bio.SeqIO.FastaIO import SimpleFastaParser

        # ColabFold writes "#<lengths>" first, and a zero byte between alignments.
        lines = text.partition("\0")[0].splitlines(keepends=True)
        plain = io.StringIO("".join(line for line in lines if not line.startswith("#")))
        found = [sequence for _, sequence in SimpleFastaParser(plain)]
    if not found:
        raise ValueError(f"{place}: the alignment is empty")
    return found
