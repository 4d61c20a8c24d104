"""Readers of published benchmarks, on small files of the true formats."""

import io
import zipfile

import numpy as np
import pytest

from retable.evorank.alphabet import AMINO_ACIDS
from retable.evorank.benchmarks import (
    read_gb1,
    read_proteingym,
    read_proteingym_archive,
    read_stability,
)
from retable.evorank.steps.evaluate import _on_doubles

from .test_structure import chain_of

GYM = """mutant,mutated_sequence,DMS_score,DMS_score_bin
A1C,CDE,-1.5,0
D2W,AWE,0.25,1
A1C:E3K,CDK,0.1,1
E3K,ADK,,1
"""
STABILITY = """dataset,uniprot_id,pdb_code,chain_id,position,wtAA,mutAA,from,to,rel_rsa,ddG,sequence
t2837,P00644,1EY0,A,23,V,F,VAL,PHE,0.1,2.3,ATS
t2837,P00644,1ey0,A,7,LEU,ALA,LEU,ALA,0.0,-0.5,ATS
"""


def test_an_assay_of_proteingym(caplog):
    caplog.set_level("INFO")
    assay = read_proteingym(GYM.encode(), "TINY")
    assert assay.mutants == ("A1C", "D2W", "A1C:E3K")
    assert assay.scores.tolist() == [-1.5, 0.25, 0.1]
    assert assay.sequence == "ADE"
    assert assay.variant.tolist() == [0, 1, 2, 2]
    assert assay.position.tolist() == [0, 1, 0, 2]
    assert [AMINO_ACIDS[code] for code in assay.letter] == ["C", "W", "C", "K"]
    assert "TINY: 1 rows without a score left out" in caplog.text


def test_double_mutants_of_gb1():
    # The wild type is told by the commonest letters alone.
    content = "set,dist,input_ct,selected_ct,y,x\n" + "".join(
        f"training,2,10,3,{y},{x}\n"
        for y, x in ((-3.5, "AAKL"), (-1.0, "QCKA"), (0.25, "QYWA"), (0.5, "QYKL"), (1, "QDEL"))
    )
    found = read_gb1(content.encode())
    assert found.sequence == "QYKL"
    assert found.mutants == ("Q1A:Y2A", "Y2C:L4A", "K3W:L4A", "", "Y2D:K3E")
    assert found.scores.tolist() == [-3.5, -1.0, 0.25, 0.5, 1.0]
    assert found.variant.tolist() == [0, 0, 1, 1, 2, 2, 4, 4]
    assert found.position.tolist() == [0, 1, 1, 3, 2, 3, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\nAC\n", "there is no column 'y'; needed: x, y"),
        ("x,y\nAC,1\nACD,1\n", "row 3: must be 2 residues"),
        ("x,y\nAC,1\nAB,1\n", "row 3: must be 2 residues"),
        ("x,y\nAC,1\nAC,\n", "row 3: must be 2 residues of .* and a finite y"),
        ("x,y\n", "there are no rows"),
    ],
)
def test_bad_double_mutants(text, message):
    with pytest.raises(ValueError, match=message):
        read_gb1(text.encode())


def test_double_mutants_are_scored_by_sums():
    backbone = chain_of(40, seed=3)
    own = backbone.sequence
    # What the structure lacks in front is passed over with its mutants.
    wild = "MW" + own[:30]
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(40, 20))
    rows, expected = ["x,y"], []
    for _ in range(200):
        first, second = generator.choice(32, 2, replace=False)
        letters = list(wild)
        total = 0.0
        for place in (first, second):
            new = generator.choice([x for x in AMINO_ACIDS if x != wild[place]])
            letters[place] = new
            total += matrix[place - 2, AMINO_ACIDS.index(new)] if place > 1 else np.nan
        rows.append(f"{''.join(letters)},{np.nan_to_num(total, nan=9.0)}")
        expected.append(total)
    found = {
        (method, metric): value
        for _, method, _, metric, value in _on_doubles(
            "\n".join(rows).encode(),
            backbone,
            {("evorank", 0, "GB1"): matrix, ("evorank", 0, "5p21"): matrix[:5]},
        )
    }
    assert found["evorank", "spearman_n"] == np.isfinite(expected).sum() < 200
    assert found["evorank", "spearman"] == pytest.approx(1)
    with pytest.raises(ValueError, match=r"own: gb1: .* % of its residues differ from GB1's"):
        _on_doubles("\n".join(rows).encode(), chain_of(40, seed=4), {})


def test_the_archive_of_proteingym():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("DMS_ProteinGym_substitutions/B.csv", GYM)
        archive.writestr("DMS_ProteinGym_substitutions/A.csv", GYM)
        archive.writestr("DMS_ProteinGym_substitutions/readme.txt", "none")
    assert [a.name for a in read_proteingym_archive(content.getvalue())] == ["A", "B"]


def test_stability_changes():
    first, second = read_stability(STABILITY.encode())
    assert (first.structure, first.chain, first.position) == ("1ey0", "A", 23)
    assert (first.wildtype, first.mutant, first.ddg) == ("V", "F", 2.3)
    assert (second.wildtype, second.mutant, second.ddg) == ("L", "A", -0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GYM.replace("mutant,", "variant,", 1), "x: there is no column 'mutant'; needed: mutant"),
        (GYM.replace("CDE,-1", "DDE,-1"), "x: row 2: A1C does not fit its mutated_sequence"),
        (GYM.replace("D2W,AWE", "D2W,AWK"), "x: row 3: another wild type than the rows before"),
        (GYM.replace("A1C,", "A1Z,", 1), "x: row 2: variant: 'A1Z', must be like H24A"),
        (GYM[: GYM.index("A1C")], "x: there are no substitutions"),
    ],
)
def test_bad_assays(text, message):
    with pytest.raises(ValueError, match=message):
        read_proteingym(text.encode(), "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STABILITY.replace("ddG", "dG"), "x: there is no column 'ddG'"),
        (STABILITY.replace(",V,F,", ",V,Z,"), "x: row 2: amino acid 'Z', must be one of"),
        (STABILITY.replace("-0.5", "low"), "x: row 3: could not convert string to float: 'low'"),
    ],
)
def test_bad_stability_changes(text, message):
    with pytest.raises(ValueError, match=message):
        read_stability(text.encode(), "x")
