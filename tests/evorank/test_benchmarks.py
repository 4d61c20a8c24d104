"""Readers of published benchmarks, on small files of the true formats."""

import io
import zipfile

import pytest

from retable.evorank.benchmarks import read_proteingym, read_proteingym_archive, read_stability

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
    assert assay.variants == ("A1C", "D2W")
    assert assay.scores.tolist() == [-1.5, 0.25]
    assert assay.sequence == "ADE"
    assert assay.higher_is_fitter
    assert "TINY: 2 multiple mutants or rows without a score left out" in caplog.text


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
        (GYM[: GYM.index("A1C")], "x: there are no single substitutions"),
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
