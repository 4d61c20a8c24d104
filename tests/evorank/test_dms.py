"""Assays: tables in their true forms, places on structures, rank correlation, baselines."""

import io
from dataclasses import replace

import numpy as np
import pytest

from retable.common.data.bundles import unpack_files
from retable.common.data.proteins import DOCKSTRING, PROTEIN_ASSAYS
from retable.evorank.alphabet import AMINO_ACIDS, encode
from retable.evorank.baselines import blosum62, blosum62_scores, msa_site_scores
from retable.evorank.config import GPCRS, KINASES, Config
from retable.evorank.dms import (
    ASSAYS,
    Assay,
    align_to_structure,
    load_assay,
    local_alignment,
    parse_variant,
    spearman,
)
from retable.evorank.representation import masked_accuracy, pair_accuracy, participation_ratio
from retable.evorank.structure import structure_of

from .test_structure import chain_of, pdb_text

BACKBONE = chain_of(60, seed=5)


def workbook(**sheets) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def test_a_listed_table():
    rows = [
        ("variant", "DMS"),
        ("S2A", 0.5),
        ("S2C", None),
        ("D3D", 1.0),
        ("D3*", 0.1),
        ("D3Y", -999),
        ("K5W", 2),
    ]
    assay = load_assay("HSP82", {"DMS_others.xlsx": workbook(HSP82=rows)})
    assert assay.variants == ("S2A", "K5W")
    assert assay.scores.tolist() == [0.5, 2]
    assert assay.sequence == "XSXXK"
    assert assay.structure == "HSP90AA1"
    with pytest.raises(ValueError, match="SUMO1: no column 'DMS'; there are"):
        load_assay("SUMO1", {"DMS_others.xlsx": workbook(SUMO1=[("variant", "x"), ("S2A", 1)])})
    with pytest.raises(ValueError, match=r"DMS_others\.xlsx: no sheet 'bla'"):
        load_assay("bla", {"DMS_others.xlsx": workbook(SUMO1=rows)})


def test_a_matrix_takes_the_wild_type_from_its_structure():
    rows = [("Aminoacid", 1, 2, 3), *((a, 0.1, 0.2, None) for a in AMINO_ACIDS), (None,) * 4]
    files = {
        "DMS_others.xlsx": workbook(KKA2_S3_Kan18_L1=rows),
        "1nd4.pdb": pdb_text(BACKBONE).encode(),
    }
    assay = load_assay("KKA2", files)
    assert len(assay.variants) == 2 * 19
    assert assay.sequence == BACKBONE.sequence[:2]
    assert parse_variant(assay.variants[0])[1] in (1, 2)


def test_hras_has_a_row_a_letter_and_a_column_a_residue():
    table = np.arange(21 * 165, dtype=float).reshape(21, 165)
    content = "\n".join(",".join(map(str, row)) for row in table).encode()
    assay = load_assay("HRAS_RBD", {"HRas166_RBD.csv": content})
    assert len(assay.variants) == 165 * 19
    # Residue 2 is T: A is the first row, C the second.
    assert assay.variants[:2] == ("T2A", "T2C")
    assert assay.scores[:2].tolist() == [0, 165]
    assert assay.sequence[11] == "G"  # the residue whose mutations cause cancer
    with pytest.raises(ValueError, match=r"HRAS table: shape \(1, 2\), must be \(21, 165\)"):
        load_assay("HRAS_RBD", {"HRas166_RBD.csv": b"1,2\n"})


def assay_of(sequence: str, structure: str = "x") -> Assay:
    variants = [
        f"{wild}{i}{letter}"
        for i, wild in enumerate(sequence, start=1)
        for letter in "AW"
        if wild not in ("X", letter)
    ]
    return Assay("a", structure, sequence, tuple(variants), np.arange(len(variants), dtype=float))


def test_places_on_a_structure():
    # The assay's numbering begins elsewhere, and one of its letters is another one.
    sequence = "XXX" + BACKBONE.sequence[5:30]
    changed = "W" if sequence[10] != "W" else "A"
    sequence = sequence[:10] + changed + sequence[11:]
    mapping = align_to_structure(assay_of(sequence), BACKBONE)
    assert mapping == {i + 1: i + 2 for i in range(3, 28) if i != 10}
    assert list(local_alignment("ACDEFGHIKL", "WWWACDEFGHIKL")) == [(i, i + 3) for i in range(10)]


def test_an_assay_of_another_protein_is_refused(caplog):
    letters = list(BACKBONE.sequence)
    for place in range(0, 60, 2):
        letters[place] = "W" if letters[place] != "W" else "A"
    with pytest.raises(ValueError, match=r"a: \d+ % of \d+ aligned positions disagree with x"):
        align_to_structure(assay_of("".join(letters)), BACKBONE)
    letters = list(BACKBONE.sequence)
    for place in range(10, 50, 8):
        letters[place] = "W" if letters[place] != "W" else "A"
    align_to_structure(assay_of("".join(letters)), BACKBONE)
    assert "aligned positions disagree with x and are left out" in caplog.text


def test_rank_correlation_and_its_sign():
    assay = assay_of(BACKBONE.sequence)
    mapping = align_to_structure(assay, BACKBONE)
    scores = np.zeros((60, 20))
    for variant, value in zip(assay.variants, assay.scores, strict=True):
        _, position, letter = parse_variant(variant)
        scores[position - 1, letter] = value**3
    assert spearman(assay, scores, mapping) == (pytest.approx(1), len(assay.variants))
    less = replace(assay, higher_is_fitter=False)
    assert spearman(less, scores, mapping)[0] == pytest.approx(-1)
    few = dict(list(mapping.items())[:5])
    assert spearman(assay, scores, few)[1] <= 10
    with pytest.raises(ValueError, match="scores: hold nan; all must be finite"):
        spearman(assay, scores * np.nan, mapping)
    with pytest.raises(ValueError, match="only 0 variants lie on the structure"):
        spearman(assay, scores, {})


def test_bad_names():
    with pytest.raises(ValueError, match=f"assay: 'x', must be one of {', '.join(ASSAYS)}"):
        load_assay("x", {})
    for variant in ("A24", "24A", "H24*", "B1A"):
        with pytest.raises(ValueError, match="must be like H24A"):
            parse_variant(variant)


def test_baselines():
    scores = blosum62_scores("AW")
    assert scores.shape == (2, 20)
    assert scores[0, 0] == 4
    assert scores[1, AMINO_ACIDS.index("W")] == 11
    assert (blosum62() == blosum62().T).all()
    p = np.full((2, 20), 0.02)
    p[:, 3] = 0.62
    found = msa_site_scores(p, encode("AE"))
    assert found[0, 3] == pytest.approx(np.log(31))
    assert found[1].max() == 0
    with pytest.raises(ValueError, match="sequence: position 1 is none of"):
        blosum62_scores("AX")
    with pytest.raises(ValueError, match=r"p: smallest value 0\.0, must be > 0"):
        msa_site_scores(np.eye(20)[:2], [0, 1])
    with pytest.raises(ValueError, match=r"wildtype: from 0 to 20, must be within 0\.\.19"):
        msa_site_scores(np.full((2, 20), 0.05), [0, 20])
    with pytest.raises(ValueError, match=r"p, wildtype: shapes \(2, 20\) and \(3,\)"):
        msa_site_scores(p, [0, 1, 2])


def test_pair_accuracy():
    p = np.full((1, 20), 0.01)
    p[0, :3] = 0.5, 0.2, 0.13
    scores = np.zeros((1, 20))
    # Every pair ties.
    assert pair_accuracy(scores, p, [0]) == (0.5, 0.5)
    scores[0, :3] = 3, 2, 1
    assert pair_accuracy(scores, p, [0]) == (1, 1)
    scores[0, :3] = -3, 2, 1
    every, others = pair_accuracy(scores, p, [0])
    # 3 letters against 17 and among themselves: 54 pairs, 19 of them with the wild type.
    assert every == pytest.approx(35 / 54)
    assert others == 1
    with pytest.raises(ValueError, match=r"no pair without the wild type differs by 0\.9"):
        pair_accuracy(scores, p, [0], 0.9)
    with pytest.raises(ValueError, match="scores, p: hold values that are not finite"):
        pair_accuracy(scores * np.nan, p, [0])
    with pytest.raises(ValueError, match="must be"):
        pair_accuracy(scores[:, :5], p, [0])


def test_participation_ratio_and_accuracy():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(4000, 6))
    assert participation_ratio(x) == pytest.approx(6, abs=0.1)
    assert participation_ratio(x * [1, 0, 0, 0, 0, 0]) == pytest.approx(1)
    with pytest.raises(ValueError, match="e: does not vary"):
        participation_ratio(np.ones((5, 2)))
    y = (x[:, 0] > 0).astype(int)
    assert masked_accuracy(x[:2000], y[:2000], x[2000:], y[2000:]) > 0.97


SECTIONS = {
    "seeds": [0],
    "methods": ["wildtype", "evorank"],
    "assays": ["bla"],
    "dataset": {"held_out": ["DHFR"]},
    "train": {name: {"method": {"objective": name}} for name in ("wildtype", "evorank")},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["evorank"]}, "methods: must hold wildtype and evorank"),
        ({"methods": ["wildtype", "evorank", "x"]}, "train: has no settings for the method 'x'"),
        ({"assays": ["GB1"]}, "assays"),
        ({"level": "atom"}, "atom_train: has no settings for the method 'wildtype'"),
        ({"own": {"gb2": "x"}}, "own.gb2"),
        ({"extended": "perhaps"}, "extended"),
        ({"msa": {"rounds": 3}}, "rounds"),
        ({"finetune": {"held_out": 1.0}}, "held_out"),
    ],
)
def test_bad_configuration(change, message):
    Config(**SECTIONS)
    with pytest.raises(ValueError, match=message):
        Config(**(SECTIONS | change))


def test_extended_configuration():
    plain, extended = Config(**SECTIONS), Config(**(SECTIONS | {"extended": True}))
    assert plain.assay_names == ("bla",)
    assert plain.dataset.excluded == ()
    assert plain.structures.tested == ("HSP90AA1",)
    assert extended.assay_names == ("bla", "MAPK1", "ADRB2")
    assert extended.dataset.excluded == (*KINASES, *GPCRS)
    assert extended.structures.tested == ("HSP90AA1", "MAPK1", "ADRB2")
    assert extended.dataset.held_out == ("DHFR",)


@pytest.fixture(scope="module")
def published():
    return unpack_files(DOCKSTRING.get()) | unpack_files(PROTEIN_ASSAYS.get())


def test_kinases_and_receptors_are_docking_targets(published):
    ending = "_target.pdbqt"
    targets = {name.removesuffix(ending) for name in published if name.endswith(ending)}
    assert len(targets) == 58
    assert len({*KINASES, *GPCRS}) == 21 + 5
    assert {*KINASES, *GPCRS} <= targets


@pytest.mark.parametrize(
    ("name", "measured", "scored", "sign"),
    [("MAPK1", 6810, 4836, -1), ("ADRB2", 7800, 4243, 1)],
)
def test_extended_assays_as_published(published, name, measured, scored, sign):
    assay = load_assay(name, published)
    backbone = structure_of(published, assay.structure)
    mapping = align_to_structure(assay, backbone)
    assert len(assay.variants) == measured
    assert assay.higher_is_fitter is (sign > 0)
    rho, count = spearman(assay, blosum62_scores(backbone.sequence), mapping)
    assert count == scored
    assert rho > 0.1
