"""Docking: a stand-in engine for the interface, and the real one where it is at hand."""

import math
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

import retable
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
from retable.geam.oracles import OracleStopped, docking_property, qed, sa_score

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


def test_scores_do_not_depend_on_the_number_of_threads(place):
    program = place / "counting"
    # Each ligand has another score, and the first of them is the last to be ready.
    program.write_text(
        """#!/bin/sh
if [ "$1" = --version ]; then echo "Engine 1"; exit 0; fi
atoms=$(grep -c ATOM "$4")
[ "$atoms" = 1 ] && while [ ! -e """
        + str(place / "go")
        + """ ]; do :; done
[ "$atoms" = 6 ] && touch """
        + str(place / "go")
        + """
echo "   1         -$atoms.0      0.000      0.000"
"""
    )
    program.chmod(0o755)
    receptor, box = docking_target("jak2", place)
    smiles = ["C", "CC", "CCC", "CC", "CCCC", "CCCCC", "CCCCCC"]
    expected = [-1.0, -2.0, -3.0, -2.0, -4.0, -5.0, -6.0]
    for threads in (2, 6):
        cache = place / f"cache{threads}"
        dock = VinaEngine(receptor, box, cache=cache, binary=program, threads=threads)
        assert list(dock.many(smiles)) == expected
    (place / "go").touch()
    dock = VinaEngine(receptor, box, cache=place / "cache1", binary=program)
    assert list(dock.many(smiles)) == expected
    with pytest.raises(ValueError, match="threads is 0"):
        VinaEngine(receptor, box, cache=place / "c", binary=program, threads=0)


def test_an_engine_that_is_ended_from_outside_says_nothing_of_the_ligand(place):
    binary = place / "dying"
    binary.write_text(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Engine 1'; exit 0; fi\nkill -TERM $$\n"
    )
    binary.chmod(0o755)
    receptor, box = docking_target("jak2", place)
    dock = VinaEngine(receptor, box, cache=place / "cache.tsv", binary=binary)
    with pytest.raises(OracleStopped, match="signal 15 at 'CCO'"):
        dock("CCO")
    assert engine(place)("CCO") == -7.5


def test_whoever_stops_listening_keeps_what_is_docked(place):
    scores = engine(place).many(["CCO", "CCC", "CCN", "CCCC"])
    next(scores)
    scores.close()
    docked = (place / "cache.tsv").read_text().splitlines()[1:]
    assert docked[0] == "CCO\t-7.5"
    assert len(docked) < 4


KILLED = """
import os, sys
from pathlib import Path
from retable.geam.docking import DockingScores
scores = DockingScores(Path(sys.argv[1]), {{"version": "Engine 1"}})
for number in range(200):
    scores.add("C" * (number + 1) + "{end}", -float(number))
"""


def test_jobs_append_side_by_side_and_may_be_killed(tmp_path):
    cache = tmp_path / "cache.tsv"
    # The code under test, wherever it lies.
    place = os.environ | {"PYTHONPATH": str(Path(retable.__file__).parents[1])}
    writers = [
        subprocess.Popen([sys.executable, "-c", KILLED.format(end=end), cache], env=place)
        for end in "NOF"
    ]
    while not cache.exists() or cache.stat().st_size < 3000:
        assert writers[0].poll() in (None, 0)
    writers[0].kill()
    assert [writer.wait(60) for writer in writers[1:]] == [0, 0]
    writers[0].wait(60)
    first, *lines = cache.read_text().splitlines()
    assert first == '{"version": "Engine 1"}'
    found = {}
    for line in lines:
        smiles, score = line.split("\t")
        assert smiles not in found
        found[smiles] = float(score)
    for end in "OF":
        assert [found["C" * (n + 1) + end] for n in range(200)] == [-float(n) for n in range(200)]


def test_half_a_line_in_the_cache_is_docked_again(place):
    engine(place)("CCO")
    with (place / "cache.tsv").open("a") as file:
        file.write("CCC\t-99")
    assert engine(place)("CCC") == -7.5
    assert [line.split("\t")[0] for line in (place / "cache.tsv").read_text().splitlines()[1:]] == [
        "CCO", "CCC",
    ]  # fmt: skip


def test_a_file_that_is_no_cache_is_refused(place):
    (place / "cache.tsv").write_text("no settings\n")
    with pytest.raises(ValueError, match="first line tells no settings: 'no settings'"):
        engine(place)
    (place / "cache.tsv").unlink()
    engine(place)
    with (place / "cache.tsv").open("a") as file:
        file.write("CCO nothing\n")
    with pytest.raises(ValueError, match=r"cache\.tsv: no SMILES and score: 'CCO nothing'"):
        engine(place)


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
