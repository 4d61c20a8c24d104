"""Alignments: weights and distributions of known cases, readers of the true formats, HMMER."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from retable.evorank.alphabet import AMINO_ACIDS, BACKGROUND, decode, encode
from retable.evorank.msa import (
    build_msa,
    load_database,
    read_alignment,
    sequence_weights,
    site_distribution,
)

UNIFORM = np.full(20, 0.05)
FOUR = np.stack([encode(row) for row in ("ACDEF", "ACDEF", "ACDEY", "GHIKL")])
# The first residues of human carbonic anhydrase 2.
QUERY = (
    "SHHWGYGKHNGPEHWHKDFPIAKGERQSPVDIDTHTAKYDPSLKPLSVSYDQATSLRILN"
    "NGHAFNVEFDDSQDKAVLKGGPLDGTYRLIQFHFHWG"
)


def test_codes():
    assert encode("ACY-BZ").tolist() == [0, 1, 19, -1, -1, -1]
    assert decode(encode(AMINO_ACIDS)) == AMINO_ACIDS
    assert pytest.approx(1) == BACKGROUND.sum()


def test_weights_of_a_known_case():
    assert sequence_weights(FOUR).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    assert sequence_weights(FOUR, 0.9).tolist() == pytest.approx([1 / 2, 1 / 2, 1, 1])


def test_gaps_count_as_equal():
    rows = np.stack([encode(row) for row in ("ACDEFGHIKL", "ACDEFGH---", "ACDEWGH---")])
    assert sequence_weights(rows).tolist() == pytest.approx([1, 1 / 2, 1 / 2])


def test_distribution_of_a_known_case():
    p, depth = site_distribution(FOUR, UNIFORM)
    assert depth.tolist() == pytest.approx([2] * 5)
    first = dict(zip(AMINO_ACIDS, p[0], strict=True))
    assert first["A"] == first["G"] == pytest.approx(0.275)
    assert first["C"] == pytest.approx(0.025)
    last = dict(zip(AMINO_ACIDS, p[4], strict=True))
    assert last["F"] == pytest.approx(0.191667, abs=1e-6)
    assert last["Y"] == pytest.approx(0.108333, abs=1e-6)
    assert last["L"] == pytest.approx(0.275)
    assert p.sum(1) == pytest.approx(1)


def test_copies_of_rows_change_nothing():
    generator = np.random.default_rng(0)
    rows = generator.integers(-1, 20, size=(6, 40))
    rows[0] = np.abs(rows[0])
    p, depth = site_distribution(rows, BACKGROUND)
    again, deeper = site_distribution(np.concatenate([rows, rows[2:4], rows[3:4]]), BACKGROUND)
    assert again == pytest.approx(p)
    assert deeper == pytest.approx(depth)


@pytest.mark.parametrize(
    ("msa", "message"),
    [
        ([[0, 1], [0]], "msa: rows have different lengths"),
        (np.zeros((0, 3)), r"msa: shape \(0, 3\)"),
        ([[0.5, 1]], "msa: float64, must be integer codes"),
        ([[0, 21]], "msa: codes from 0 to 21, must be within -1..19"),
        ([[0, -1], [0, 1]], "msa: row 0, the query, has a gap in column 1"),
    ],
)
def test_bad_alignments(msa, message):
    with pytest.raises(ValueError, match=message):
        sequence_weights(msa)


def test_bad_arguments():
    with pytest.raises(ValueError, match="identity: 0, must be within"):
        sequence_weights(FOUR, 0)
    with pytest.raises(ValueError, match=r"background: shape \(20,\), sum 2"):
        site_distribution(FOUR, UNIFORM * 2)
    with pytest.raises(ValueError, match=r"background: shape \(20,\), sum nan"):
        site_distribution(FOUR, UNIFORM * np.nan)
    with pytest.raises(ValueError, match="pseudocount: 0, must be > 0"):
        site_distribution(FOUR, UNIFORM, 0)


A3M = """>query
ACDEFG
>one with an insertion
ACdkDEFG
>two with gaps and odd letters
A-DXFB
"""
STOCKHOLM = """# STOCKHOLM 1.0
#=GF ID test
query    AC.DE
one/1-5  ACKDE
two/1-4  .C-DE
//
"""
FASTA = ">query\nAC-DE\n>one\nACWDE\n"


def test_a3m(tmp_path: Path):
    (tmp_path / "x.a3m").write_text(A3M)
    msa = read_alignment(tmp_path / "x.a3m", query="ACDEFG")
    assert [decode(row) for row in msa] == ["ACDEFG", "ACDEFG", "A-D-F-"]
    with pytest.raises(ValueError, match=r"row 0 is ACDEFG\.\.\., not the query WWW"):
        read_alignment(tmp_path / "x.a3m", query="WWW")


def test_a3m_of_colabfold(tmp_path: Path):
    """A comment with the lengths first, and a zero byte before the next query's alignment."""
    text = f"#6\t1\n{A3M}\0#3\t1\n>102\nWWW\n"
    (tmp_path / "x.a3m.gz").write_bytes(gzip.compress(text.encode()))
    msa = read_alignment(tmp_path / "x.a3m.gz", query="ACDEFG")
    assert [decode(row) for row in msa] == ["ACDEFG", "ACDEFG", "A-D-F-"]
    assert len(read_alignment(tmp_path / "x.a3m.gz", max_rows=2)) == 2
    (tmp_path / "x.a3m.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match="damaged gzip file"):
        read_alignment(tmp_path / "x.a3m.gz")


def test_stockholm_and_fasta_drop_what_the_query_lacks(tmp_path: Path):
    (tmp_path / "x.sto.gz").write_bytes(gzip.compress(STOCKHOLM.encode()))
    msa = read_alignment(tmp_path / "x.sto.gz")
    assert [decode(row) for row in msa] == ["ACDE", "ACDE", "-CDE"]
    (tmp_path / "x.fasta").write_text(FASTA)
    assert [decode(row) for row in read_alignment(tmp_path / "x.fasta")] == ["ACDE", "ACDE"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.txt", "", r"ending '\.txt', must be one of"),
        ("x.fasta", "", r"x\.fasta: the alignment is empty"),
        ("x.a3m", ">a\nACD\n>b\nAC\n", "record 1 has 2 columns, record 0 has 3"),
        ("x.sto", "ACD\n", r"x\.sto: "),
        ("x.fa", ">a\nXXX\n>b\nACD\n", "the first sequence has no residues"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str, message: str):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_alignment(tmp_path / name)


def mutated(sequence: str, share: float, seed: int) -> str:
    generator = np.random.default_rng(seed)
    letters = np.array(list(sequence))
    changed = generator.random(len(letters)) < share
    letters[changed] = generator.choice(list(AMINO_ACIDS), changed.sum())
    return "".join(letters)


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    """Relatives of the query with an insertion and a deletion, among unrelated sequences."""
    generator = np.random.default_rng(1)
    lines = []
    for number in range(5):
        relative = mutated(QUERY, 0.3, number)
        relative = relative[:40] + "WWWWW" + relative[40:70] + relative[74:]
        lines.append(f">relative{number}\nMKT{relative}GG\n")
    for number in range(300):
        lines.append(f">other{number}\n{''.join(generator.choice(list(AMINO_ACIDS), 120))}\n")
    path = tmp_path_factory.mktemp("database") / "db.fasta"
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("rounds", [1, 2])
def test_homologs_are_aligned_to_the_query(database, rounds):
    msa = build_msa(QUERY, database, rounds=rounds)
    assert decode(msa[0]) == QUERY
    assert len(msa) >= 6
    whole = [row for row in msa[1:] if (row >= 0).sum() > 60]
    assert len(whole) == 5
    for row in whole:
        own = row >= 0
        assert (row[own] == msa[0][own]).mean() > 0.55
    assert len(build_msa(QUERY, database, rounds=rounds, max_hits=2)) == 3


def test_a_database_is_loaded_once_for_many_queries(database):
    block = load_database([database, database])
    assert len(block) == 305
    assert build_msa(QUERY, block).tolist() == build_msa(QUERY, database).tolist()
    unrelated = "".join(np.random.default_rng(9).choice(list(AMINO_ACIDS), 90))
    assert build_msa(unrelated, block).shape == (1, 90)


def test_bad_searches(database, tmp_path: Path):
    with pytest.raises(ValueError, match="query: 'ACB'"):
        build_msa("ACB", database)
    with pytest.raises(ValueError, match="rounds: 3, must be 1 or 2"):
        build_msa(QUERY, database, rounds=3)
    (tmp_path / "empty.fasta").write_text("")
    with pytest.raises(ValueError, match="database: "):
        load_database(tmp_path / "empty.fasta")
