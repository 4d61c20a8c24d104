"""The library on disk, the MOSES and ZINC250k files, the configuration, and the steps' inputs."""

import json

import numpy as np
import pytest

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.data.bundles import pack_files
from retable.common.errors import InputError
from retable.geam.config import Config, GenerationConfig, PrepareSettings
from retable.geam.fragments import fragment_molecule
from retable.geam.library import Library
from retable.geam.published import read_column, zinc_known, zinc_split
from retable.geam.steps.prepare import prepare

SMILES = (
    "CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1",
    "c1ccccc1",
    "CCOC(=O)c1ccc(N)cc1",
)
ZINC = (
    b"smiles,parp1,jak2,qed,sa,perindopril_mpo\n"
    b"CCOC(=O)c1ccc(N)cc1,10.0,-99.9,0.8,0.8,0.25\n"
    b"c1ccccc1,5.0,7.0,0.4,1.0,0.0\n"
    b"CC(=O)Nc1ccc(O)cc1,-2.0,25.0,0.6,0.9,0.5\n"
)


def test_a_library_survives_saving(tmp_path):
    graphs = tuple(fragment_molecule(text) for text in SMILES)
    library = Library(SMILES, graphs, ("CC",), ("CCC", "CCO"), {"jak2": np.array([0.1, 0.2, 0.3])})
    library.save(tmp_path / "library.npz")
    again = Library.load(tmp_path / "library.npz")
    assert (again.smiles, again.test, again.prior) == (SMILES, ("CC",), ("CCC", "CCO"))
    assert again.graphs[1] is None
    np.testing.assert_array_equal(again.known["jak2"], library.known["jak2"])
    for ours, theirs in zip(again.graphs, graphs, strict=True):
        if theirs is None:
            continue
        assert ours.smiles == theirs.smiles
        assert ours.fragments == theirs.fragments
        for name in ("x", "edge_index", "edge_attr", "node2frag"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    kept, y = again.labelled(np.array([0.5, 0.6, np.nan]))
    assert [graph.smiles for graph in kept] == [SMILES[0]]
    assert y.tolist() == [0.5]


def test_moses_is_read(tmp_path):
    rows = "\n".join(f"{'C' * n}OC(=O)c1ccc(N)cc1,train" for n in range(1, 9))
    files = {
        "train.csv": f"SMILES,SPLIT\n{rows}\n".encode(),
        "test.csv": b"SMILES,SPLIT\nCCN(CC)C(=O)c1ccccc1,test\n",
    }
    save_arrays(tmp_path / "moses.npz", pack_files(files))
    settings = PrepareSettings(library=6, test=5, prior=7)
    prepare(tmp_path / "moses.npz", tmp_path / "library.npz", settings=settings)
    library = Library.load(tmp_path / "library.npz")
    assert len(set(library.smiles)) == 6
    assert len(library.prior) == 7
    assert library.test == ("CCN(CC)C(=O)c1ccccc1",)
    first = (tmp_path / "library.npz").read_bytes()
    prepare(tmp_path / "moses.npz", tmp_path / "library.npz", settings=settings)
    assert (tmp_path / "library.npz").read_bytes() == first
    with pytest.raises(InputError, match="8 training molecules; the library needs 9"):
        prepare(tmp_path / "moses.npz", tmp_path / "l.npz", settings=PrepareSettings(library=9))


def test_zinc_is_read(tmp_path):
    files = {"zinc250k.csv": ZINC, "valid_idx_zinc250k.json": b"[1]"}
    save_arrays(tmp_path / "zinc.npz", pack_files(files))
    settings = PrepareSettings(source="zinc250k", library=2, test=5, prior=2)
    prepare(tmp_path / "zinc.npz", tmp_path / "library.npz", settings=settings)
    library = Library.load(tmp_path / "library.npz")
    assert set(library.smiles) == {"CCOC(=O)c1ccc(N)cc1", "CC(=O)Nc1ccc(O)cc1"}
    assert library.test == ("c1ccccc1",)
    first = library.smiles.index("CCOC(=O)c1ccc(N)cc1")
    assert library.known["parp1"][first] == pytest.approx(0.5 * 0.8 * 0.8)
    assert library.known["jak2"][first] == 0  # a failed docking
    assert library.known["perindopril"][first] == 0.25
    assert "fa7" not in library.known


def test_docking_columns_hold_minus_ds_and_sa_is_a_share():
    known = zinc_known(ZINC, "zinc.csv", [2, 1, 0])
    np.testing.assert_allclose(known["parp1"], [0, 5 / 20 * 0.4, 0.5 * 0.8 * 0.8])  # +2 kcal/mol
    np.testing.assert_allclose(known["jak2"], [0.6 * 0.9, 7 / 20 * 0.4, 0])  # 25: above the clip
    raw = ZINC.replace(b"0.4,1.0,", b"0.4,2.8,")
    with pytest.raises(InputError, match=r"record 2 has sa 2\.8; it must lie in \[0, 1\]"):
        zinc_known(raw, "zinc.csv", [2, 1, 0])
    with pytest.raises(InputError, match="record 3 has qed nan"):
        zinc_known(ZINC.replace(b"0.6,0.9", b"nan,0.9"), "zinc.csv", [0, 1, 2])


def test_bad_files_are_named():
    with pytest.raises(InputError, match="no column 'smiles'"):
        read_column(b"SMILES\nC\n", "file.csv", "smiles")
    with pytest.raises(InputError, match="record 2 has no 'b'"):
        read_column(b"a,b\n1,2\n3\n", "file.csv", "b")
    with pytest.raises(InputError, match="column 'qed'"):
        zinc_known(ZINC.replace(b"0.6,0.9", b"x,0.9"), "zinc.csv", [0, 1, 2])
    with pytest.raises(InputError, match="row 3 does not exist; there are 3"):
        zinc_split(b"[3]", "idx.json", 3)
    with pytest.raises(InputError, match="no JSON"):
        zinc_split(b"[3", "idx.json", 3)
    with pytest.raises(InputError, match="list of row numbers"):
        zinc_split(b'{"a": 1}', "idx.json", 3)
    assert zinc_split(json.dumps({"valid_idxs": ["1"]}).encode(), "i", 3).tolist() == [0, 2]


def test_configuration():
    config = Config(
        seeds=(0,), tasks=("zaleplon",), methods=("geam", "assembly/fgib", "graph_ga"),
        generate={"methods_per_job": 2},
    )  # fmt: skip
    assert config.method_groups() == ["geam+assembly.fgib", "graph_ga"]
    with pytest.raises(ValueError, match="budget is 50"):
        GenerationConfig(budget=50)
    with pytest.raises(ValueError, match="methods"):
        Config(seeds=(0,), tasks=("zaleplon",), methods=("geam2",))


def test_arrays_hold_no_objects(tmp_path):
    graphs = tuple(fragment_molecule(text) for text in SMILES)
    Library(SMILES, graphs, ("CC",), ("CC",), {}).save(tmp_path / "library.npz")
    kinds = {array.dtype.kind for array in load_arrays(tmp_path / "library.npz").values()}
    assert "O" not in kinds
