"""Oracles by name, and the labels they give: with a stand-in for the docking program."""

import math
import sys

import numpy as np
import pytest
from rdkit import Chem

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.data.bundles import pack_files
from retable.common.errors import InputError
from retable.geam.config import LabelSettings
from retable.geam.fragments import fragment_molecule
from retable.geam.library import Library
from retable.geam.oracles import docking_property, mpo, qed, sa_score
from retable.geam.steps.labels import labels
from retable.geam.tasks import make_oracle

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
SALT = "CC(=O)[O-].[Na+]"
PROGRAM = b"""#!/bin/sh
if [ "$1" = --version ]; then echo "Engine 1"; exit 0; fi
echo "   1         -9.0      0.000      0.000"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache of a test."""
    monkeypatch.setenv("RETABLE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "docking"


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "dockstring.npz"
    files = {
        "vina_linux": PROGRAM,
        "vina_mac_catalina": PROGRAM,
        "JAK2_target.pdbqt": b"REMARK receptor\n",
    }
    save_arrays(path, pack_files(files))
    return path


def docked(smiles):
    mol = Chem.MolFromSmiles(smiles)
    return docking_property(-9.0, qed(mol), sa_score(mol))


def test_multi_property_tasks_need_no_receptor(tmp_path):
    mol = Chem.MolFromSmiles(ASPIRIN)
    assert make_oracle("zaleplon", [], tmp_path)(mol) == mpo("zaleplon")(mol)
    assert not list(tmp_path.iterdir())  # neither engine nor cache
    with pytest.raises(ValueError, match="'egfr'; known are amlodipine"):
        make_oracle("egfr", [], tmp_path)


def test_docking_tasks_unpack_program_and_receptor(bundle, tmp_path, cache):
    oracle = make_oracle("jak2", [bundle], tmp_path / "job")
    assert oracle(Chem.MolFromSmiles(ASPIRIN)) == pytest.approx(docked(ASPIRIN))
    assert math.isnan(oracle(Chem.MolFromSmiles(SALT)))
    (scores,) = cache.glob("JAK2_target-*.tsv")
    lines = scores.read_text().splitlines()
    assert len(lines) == 3
    assert lines[1] == f"{ASPIRIN}\t-9.0"


def test_what_the_bundle_lacks_is_named(bundle, tmp_path, monkeypatch):
    with pytest.raises(
        InputError, match=r"dockstring\.npz: no FA7_target\.pdbqt, .*'fa7' .*\(data: dockstring"
    ):
        make_oracle("fa7", [bundle], tmp_path / "job")
    empty = tmp_path / "empty.npz"
    save_arrays(empty, pack_files({"JAK2_target.pdbqt": b"REMARK receptor\n"}))
    with pytest.raises(InputError, match=r"empty\.npz: no vina_"):
        make_oracle("jak2", [empty], tmp_path / "job")
    with pytest.raises(InputError, match="'jak2': no bundle"):
        make_oracle("jak2", [], tmp_path / "job")
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InputError, match=r"no docking engine for win32; .*linux"):
        make_oracle("jak2", [bundle], tmp_path / "job")


@pytest.fixture
def library(tmp_path):
    smiles = (ASPIRIN, SALT, "CCOC(=O)c1ccc(N)cc1")
    graphs = tuple(fragment_molecule(text) for text in smiles)
    path = tmp_path / "library.npz"
    Library(smiles, graphs, (), (), {"parp1": np.array([0.1, 0.2, 0.3])}).save(path)
    return path


def label(library, receptors, task, tmp_path, **settings):
    out = tmp_path / f"{task}.npz"
    labels(
        library,
        receptors,
        out,
        dataset=task,
        settings=LabelSettings(**settings),
        checkpoints=Checkpoints(tmp_path / "checkpoints", "test"),
    )
    return load_arrays(out)["y"]


def test_labels(library, bundle, tmp_path):
    y = label(library, [], "osimertinib", tmp_path)
    assert y[0] == mpo("osimertinib")(Chem.MolFromSmiles(ASPIRIN))
    assert np.isfinite(y).all()
    # A failed docking is 0; what is beyond the number of docked molecules has no label.
    y = label(library, [bundle], "jak2", tmp_path, docked=2)
    np.testing.assert_allclose(y, [docked(ASPIRIN), 0.0, np.nan])
    # Scores that came with the molecules are used as they are.
    assert label(library, [bundle], "parp1", tmp_path).tolist() == [0.1, 0.2, 0.3]


def test_jobs_share_the_scores_of_a_target(bundle, tmp_path, cache):
    first = make_oracle("jak2", [bundle], tmp_path / "a")
    second = make_oracle("jak2", [bundle], tmp_path / "b")
    first(Chem.MolFromSmiles(ASPIRIN))
    (tmp_path / "b/vina_linux").unlink()  # whatever it docks now is an error
    assert second(Chem.MolFromSmiles(ASPIRIN)) == pytest.approx(docked(ASPIRIN))
    # Other settings have a file of their own.
    make_oracle("jak2", [bundle], tmp_path / "c", exhaustiveness=2)
    assert len(list(cache.iterdir())) == 2
