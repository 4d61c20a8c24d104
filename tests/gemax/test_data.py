"""Graphs from files in the TU format and from molecules, and padded batches."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.data.bundles import pack_files
from retable.common.errors import InputError
from retable.gemax.config import PrepareSettings
from retable.gemax.data import (
    GraphBatches,
    GraphSet,
    molecules_of_sdf,
    molecules_to_graphs,
    pad,
    parse_tu,
    read_tu,
)
from retable.gemax.kernels import graphlet_kernel, histograms, wl_kernel
from retable.gemax.steps.prepare import prepare

# A triangle and a path of two, as the collection writes them: nodes from 1, edges both ways.
TU = {
    "T_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n",
    "T_graph_indicator.txt": "1\n1\n1\n2\n2\n",
    "T_graph_labels.txt": "1\n-1\n",
}
SDF = """
     RDKit          2D

  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0
    1.2990    0.7500    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0
    2.5981   -0.0000    0.0000 O   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
  2  3  1  0
M  END
>  <class>  (1)
(A) low

$$$$
"""


def tu(**more: str) -> dict[str, bytes]:
    files = TU | {f"T_{name}.txt": text for name, text in more.items()}
    return {name: text.encode() for name, text in files.items()}


def test_tu_with_degrees(tmp_path: Path):
    for name, content in tu().items():
        (tmp_path / name).write_bytes(content)
    graphs = read_tu(tmp_path)
    assert graphs.name == "T"
    assert graphs.labels.tolist() == [1, 0]
    assert graphs.adjacency[0].tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert graphs.features[0].tolist() == [[0, 0, 1]] * 3
    assert graphs.features[1].tolist() == [[0, 1, 0]] * 2


def test_tu_with_labels_in_columns_and_attributes():
    files = tu(
        node_labels="0, 7\n1, 7\n0, 8\n0, 7\n0, 7\n",
        node_attributes="1.0,5\n2.0,5\n3.0,5\n4.0,5\n5.0,5\n",
    )
    graphs = parse_tu(files)
    x = np.concatenate(graphs.features)
    assert x[:, :4].tolist() == [
        [1, 0, 1, 0],
        [0, 1, 1, 0],
        [1, 0, 0, 1],
        [1, 0, 1, 0],
        [1, 0, 1, 0],
    ]
    assert x[:, 4] == pytest.approx((np.arange(5) - 2) / np.sqrt(2), abs=1e-6)
    assert x[:, 5].tolist() == [0] * 5


def test_edges_that_are_listed_once_go_both_ways():
    files = tu() | {"T_A.txt": b"1, 2\n2, 3\n3, 1\n4, 5\n5, 5\n"}
    assert parse_tu(files).adjacency[0].sum() == 6
    assert parse_tu(files).adjacency[1].tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"T_graph_labels.txt": None}, "here: the file T_graph_labels.txt is missing"),
        ({"T_A.txt": None}, "here: 0 files end in _A.txt"),
        ({"T_A.txt": b"1, 9\n9, 1\n"}, r"T_A.txt: nodes must be pairs within 1\.\.5"),
        ({"T_A.txt": b"1, x\n"}, "here: T_A.txt: "),
        ({"T_A.txt": b""}, "here: T_A.txt: is empty"),
        (
            {"T_A.txt": b"1, 2\n2, 3\n3, 4\n4, 5\n"},
            "here: T_A.txt: row 3: nodes 3 and 4 are of different graphs",
        ),
        (
            {"T_node_attributes.txt": b"1\n2\nnan\n4\n5\n"},
            "here: T_node_attributes.txt: row 3: attributes must be finite",
        ),
        ({"T_graph_indicator.txt": b"1\n1\n1\n3\n3\n"}, "must rise from 1 to 2"),
        ({"T_node_labels.txt": b"1\n1\n"}, "T_node_labels.txt: 2 rows, not 5"),
    ],
)
def test_bad_tu_files(change, message):
    files = {name: content for name, content in (tu() | change).items() if content is not None}
    with pytest.raises(ValueError, match=message):
        parse_tu(files, "here")


def test_molecules(caplog):
    graphs = molecules_to_graphs(["CCO", "C1CC", "c1ccccc1[Si]"], [0, 1, 1], "m")
    assert len(graphs) == 2
    assert graphs.labels.tolist() == [0, 1]
    assert graphs.adjacency[0].tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graphs.features[0].argmax(1).tolist() == [0, 0, 2]
    assert graphs.features[1].argmax(1).tolist() == [0] * 6 + [9]
    assert "m: SMILES of record 1: 'C1CC' is no valid SMILES; left out" in caplog.text
    with pytest.raises(ValueError, match="labels: 1 for 2 SMILES"):
        molecules_to_graphs(["C", "CC"], [0])


def test_sdf():
    ((molecule, value),) = molecules_of_sdf(SDF.encode(), "class")
    assert molecule.GetNumAtoms() == 3
    assert value == "(A) low"
    with pytest.raises(ValueError, match="SDF record 0: has no property 'mass'"):
        list(molecules_of_sdf(SDF.encode(), "mass"))
    bad = SDF.replace("  1  2  1  0", "  1  9  1  0")
    with pytest.raises(ValueError, match="SDF record 1: is no valid molecule"):
        list(molecules_of_sdf((SDF.lstrip("\n").join(["\n", bad])).encode(), "class"))


def prepared(tmp_path: Path, files: dict[str, bytes], **settings) -> GraphSet:
    save_arrays(tmp_path / "source.npz", pack_files(files))
    chosen = PrepareSettings(**settings)
    prepare(tmp_path / "source.npz", tmp_path / "graphs.npz", settings=chosen)
    return GraphSet.of_arrays(load_arrays(tmp_path / "graphs.npz"))


def solubility(*values: str) -> bytes:
    tagged = SDF.replace("<class>", "<SOL_classification>").lstrip("\n")
    return "".join("\n" + tagged.replace("(A) low", value) for value in values).encode()


BARRIER = b"NO.\tSMILES\tBBB+/BBB-\n1\tCCO\tBBB+\n2\tCCN\tBBB-\n3\tCO\tBBB+\n4\tCN\tBBB-\n"


def test_prepare(tmp_path: Path):
    files = {
        "solubility.train.sdf": solubility("(A) low", "(C) high"),
        "solubility.test.sdf": solubility("(B) medium"),
    }
    graphs = prepared(tmp_path, files, source="solubility", smallest=3)
    assert graphs.labels.tolist() == [0, 1, 1]
    with pytest.raises(InputError, match="no molecule has 4 atoms"):
        prepared(tmp_path, files, source="solubility", smallest=4)
    files = {"B3DB_classification.tsv": BARRIER}
    assert prepared(tmp_path, files, source="b3db").labels.tolist() == [1, 0, 1, 0]
    sample = prepared(tmp_path, files, source="b3db", n=2, seed=1)
    assert sorted(sample.labels.tolist()) == [0, 1]
    assert prepared(tmp_path, tu(), source="tu-t").labels.tolist() == [1, 0]
    assert prepared(tmp_path, tu(), source="tu-t", smallest=3).labels.tolist() == [1]
    with pytest.raises(InputError, match="smallest: 4, no graph has so many vertices"):
        prepared(tmp_path, tu(), source="tu-t", smallest=4)


@pytest.mark.parametrize(
    ("files", "source", "message"),
    [
        (
            {"solubility.train.sdf": solubility("(A) low")},
            "solubility",
            "the file solubility.test.sdf is missing",
        ),
        (
            {
                "solubility.train.sdf": solubility("(A) low"),
                "solubility.test.sdf": solubility("(A) low", "(D) none"),
            },
            "solubility",
            r"solubility.test.sdf: SDF record 1: SOL_classification '\(D\) none', must be one of",
        ),
        ({}, "b3db", "the file B3DB_classification.tsv is missing"),
        (
            {"B3DB_classification.tsv": b"SMILES\tlabel\nC\tBBB+\n"},
            "b3db",
            r"B3DB_classification.tsv: there is no column 'BBB\+/BBB-'",
        ),
        (
            {"B3DB_classification.tsv": BARRIER.replace(b"4\tCN\tBBB-", b"4\tCN\tno")},
            "b3db",
            r"record 3: BBB\+/BBB- 'no', must be BBB\+ or BBB-",
        ),
        ({}, "tu-t", "tu-t: 0 files end in _A.txt"),
    ],
)
def test_prepare_names_what_is_wrong(tmp_path, files, source, message):
    with pytest.raises(InputError, match=message):
        prepared(tmp_path, files or {"other.txt": b""}, source=source)


def test_arrays_round_trip_and_padding():
    graphs = molecules_to_graphs(["CCO", "C", "c1ccccc1N"], [0, 1, 0])
    again = GraphSet.of_arrays(graphs.arrays())
    for a, b in zip(graphs.adjacency, again.adjacency, strict=True):
        assert a.tolist() == b.tolist()
    adj, x, mask = pad(graphs)
    assert adj.shape == (3, 7, 7)
    assert x.shape == (3, 7, 10)
    assert mask.sum(1).tolist() == [3, 1, 7]
    assert adj[0, :3, :3].tolist() == graphs.adjacency[0].tolist()
    assert adj[1].sum() == 0
    assert adj[2].tolist() == graphs.adjacency[2].tolist()
    assert x[0, 3:].abs().sum() == 0
    # In any order, and only as large as the largest of them.
    adj, x, mask = GraphBatches(graphs)([1, 0])
    assert adj.shape == (2, 3, 3)
    assert adj[1].tolist() == graphs.adjacency[0].tolist()
    assert x[1].tolist() == graphs.features[0].tolist()
    assert graphs.subset([2, 0]).labels.tolist() == [0, 0]


def test_sparse_matrices_are_taken():
    adjacency = sparse.csr_matrix(np.array([[0, 1], [1, 0]]))
    graphs = GraphSet([adjacency], [np.ones((2, 1))], np.array([0]))
    assert pad(graphs)[0][0].tolist() == [[0, 1], [1, 0]]


def test_large_graphs_are_kept_sparse():
    ring = sparse.eye(600, k=1, format="lil", dtype=np.uint8)
    ring[0, 599] = 1
    ring = sparse.csr_matrix(ring + ring.T)
    pair = np.array([[0, 1], [1, 0]])
    graphs = GraphSet([pair, ring], [np.ones((2, 1)), np.ones((600, 1))], np.array([0, 1]))
    again = GraphSet.of_arrays(graphs.arrays())
    assert sparse.issparse(again.adjacency[1])
    assert not sparse.issparse(again.adjacency[0])
    assert (again.adjacency[1] != ring).nnz == 0
    assert histograms(again)[1].tolist() == [600, 600, 600]
    assert again.arrays()["edge_index"].tolist() == graphs.arrays()["edge_index"].tolist()
    adj, _, mask = pad(again)
    assert adj.sum((1, 2)).tolist() == [2, 1200]
    assert mask.sum(1).tolist() == [2, 600]


def test_passes_are_cut_to_what_fits(monkeypatch):
    graphs = molecules_to_graphs(["C" * n for n in (2, 3, 9, 4, 4, 1)], [0] * 6)
    batches = GraphBatches(graphs)
    assert batches.chunks(range(6)) == [[0, 1, 2, 3, 4, 5]]
    monkeypatch.setattr("retable.gemax.data._CHUNK_ENTRIES", 40)
    # Two graphs of 3 take 18; one of 9 alone is more than fits; two of 4 take 32, three 48.
    assert batches.chunks(range(6)) == [[0, 1], [2], [3, 4], [5]]
    assert batches.chunks([5, 0]) == [[5, 0]]


def test_kernels_of_sparse_matrices():
    graphs = molecules_to_graphs(["CCO", "CCCC", "C1CC1"], [0, 1, 1])
    loose = GraphSet(
        [sparse.csr_matrix(a) for a in graphs.adjacency], graphs.features, graphs.labels
    )
    assert wl_kernel(loose).tolist() == wl_kernel(graphs).tolist()
    assert histograms(loose).tolist() == histograms(graphs).tolist()


def test_kernel_of_graphs_with_attributes_alone():
    graphs = molecules_to_graphs(["CCO", "CCC", "C1CC1"], [0, 1, 1])
    bare = GraphSet(graphs.adjacency, [x[:, :1] + 0.5 for x in graphs.features], graphs.labels)
    kernel = wl_kernel(bare)
    assert kernel[0, 1] == pytest.approx(1)
    assert kernel[0, 2] < 1
    assert histograms(bare).tolist() == [[3, 2], [3, 2], [3, 3]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "there are no graphs"),
        (([np.zeros((2, 2))], [np.ones((2, 1))], [0, 1]), "1 adjacency matrices, 1 features and 2"),
        (([np.zeros((2, 2))], [np.ones((3, 1))], [0]), r"graph 0: features of shape \(3, 1\)"),
        (([np.eye(2)], [np.ones((2, 1))], [0]), "graph 0: vertex 0 has a self-loop"),
    ],
)
def test_bad_graph_sets(arguments, message):
    with pytest.raises(ValueError, match=message):
        GraphSet(arguments[0], arguments[1], np.array(arguments[2]))


def test_kernels():
    graphs = molecules_to_graphs(["CCO", "OCC", "c1ccccc1", "CCCCN"], [0, 0, 1, 1])
    kernel = wl_kernel(graphs)
    assert kernel.shape == (4, 4)
    assert np.diag(kernel) == pytest.approx(1)
    assert kernel[0, 1] == pytest.approx(1)
    assert kernel[0, 2] < 0.5
    kernel = graphlet_kernel(graphs, (3,), 20)
    assert kernel.tolist() == graphlet_kernel(graphs, (3,), 20).tolist()
    counts = histograms(graphs)
    assert counts[0].tolist() == [2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 2]
    assert counts[2, -2:].tolist() == [6, 6]
