"""Docking: a stand-in engine for the interface, and the real one where it is at hand."""

import math
import stat
import sys

import numpy as np
import pytest
from rdkit import Chem

from retable.common.data.bundles import unpack_files
from retable.common.data.proteins import DOCKSTRING
from retable.geam.docking import (
    BOXES,
    DOCKING_TARGETS,
    Box,
    DockingProperty,
    VinaEngine,
    docking_target,
)
from retable.geam.oracles import docking_property, qed, sa_score

ENGINE = """#!/bin/sh
if [ "$1" = --version ]; then echo "Engine {version}"; exit 0; fi
echo "$@" >> {log}
if [ {fails} = 1 ]; then exit 3; fi
echo "mode |   affinity | dist from best mode"
echo "-----+------------+----------+----------"
echo "   1         -7.5      0.000      0.000"
echo "   2         -7.1      1.000      2.000"
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "JAK2_target.pdbqt").write_text("REMARK receptor\n")
    return tmp_path


def engine(place, version="1", fails=0, **options):
    binary = place / f"engine{version}{fails}"
    text = ENGINE.format(version=version, fails=fails, log=place / "log")
    binary.write_text(text)
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    receptor, box = docking_target("jak2", place)
    return VinaEngine(receptor, box, cache=place / "cache.tsv", binary=binary, **options)


def test_docks_once_and_remembers(place):
    dock = engine(place)
    assert dock("OCC") == dock("CCO") == -7.5
    lines = (place / "log").read_text().splitlines()
    assert len(lines) == 1
    for part in ("--center_x 114.758", "--size_z 20.283", "--exhaustiveness 1", "--seed 1",
                 "--cpu 1"):  # fmt: skip
        assert part in lines[0]
    assert engine(place)("CCO") == -7.5
    assert len((place / "log").read_text().splitlines()) == 1


def test_half_a_line_in_the_cache_is_docked_again(place):
    engine(place)("CCO")
    with (place / "cache.tsv").open("a") as file:
        file.write("CCC\t-99")
    assert engine(place)("CCC") == -7.5


def test_failure_is_nan_and_property_says_so(place):
    dock = engine(place, fails=1)
    assert math.isnan(dock("CCO"))
    assert math.isnan(DockingProperty(dock)(Chem.MolFromSmiles("CCO")))


def test_property(place):
    mol = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")
    expected = docking_property(-7.5, qed(mol), sa_score(mol))
    assert DockingProperty(engine(place))(mol) == pytest.approx(expected)


def test_a_cache_belongs_to_its_settings(place):
    engine(place)("CCO")
    with pytest.raises(ValueError, match="version is 'Engine 1'; this run has 'Engine 2'"):
        engine(place, version="2")
    with pytest.raises(ValueError, match="seed is 1; this run has 3"):
        engine(place, seed=3)


def test_what_is_missing_is_named(place):
    with pytest.raises(ValueError, match="unknown docking target 'egfr'"):
        docking_target("egfr", place)
    with pytest.raises(ValueError, match=r"PARP1_target\.pdbqt"):
        docking_target("parp1", place)
    plain = place / "plain"
    plain.write_text("no program")
    box = Box((0, 0, 0), (1, 1, 1))
    receptor = place / "JAK2_target.pdbqt"
    with pytest.raises(ValueError, match="not an executable"):
        VinaEngine(receptor, box, cache=place / "c", binary=plain)
    with pytest.raises(ValueError, match=r"receptor .* does not exist"):
        VinaEngine(place / "none", box, cache=place / "c", binary=plain)
    assert set(DOCKING_TARGETS) == set(BOXES)


@pytest.mark.network
@pytest.mark.skipif(sys.platform != "linux", reason="the engine at hand is for Linux")
def test_two_real_dockings(tmp_path):
    files = unpack_files(DOCKSTRING.get())
    for name in ("JAK2_target.pdbqt", "vina_linux"):
        (tmp_path / name).write_bytes(files[name])
    binary = tmp_path / "vina_linux"
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    receptor, box = docking_target("jak2", tmp_path)
    scores = []
    for run in "ab":
        dock = VinaEngine(receptor, box, cache=tmp_path / run, binary=binary)
        scores.append(dock("c1ccc2[nH]ncc2c1"))
    assert scores[0] == scores[1]
    assert -9 < scores[0] < -4
    assert np.isfinite(scores).all()
