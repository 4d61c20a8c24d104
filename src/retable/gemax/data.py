"""Graphs with node features and labels: from TU text files, from molecules, padded to batches."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retable.common.molecules import bond_indices, one_hot, parse_many, quiet_rdkit
from retable.gemax.checks import check_adjacency

if TYPE_CHECKING:
    from rdkit.Chem import Mol
    from torch import Tensor

logger = logging.getLogger("retable")
ELEMENTS = ("C", "N", "O", "F", "S", "Cl", "Br", "P", "I", "other")
_LARGEST_DEGREE = 64
_CHUNK_ENTRIES = 2**23
_DENSE_VERTICES = 512


@dataclass(frozen=True)
class GraphSet:
    """Undirected graphs with node features and one label each.

    Attributes:
        adjacency: one (n_j, n_j) 0/1 array or scipy.sparse matrix a graph, symmetric, no loops.
        features: one (n_j, f) array a graph.
        labels: (G,) classes.
        name: of the data set.

    Raises:
        ValueError: lists of different lengths; a bad adjacency matrix, named by its graph's number;
            features that do not fit or are not finite.
    """

    adjacency: Sequence[Any]
    features: Sequence[np.ndarray]
    labels: np.ndarray
    name: str = ""

    def __post_init__(self) -> None:
        count = len(self.adjacency)
        if not count:
            raise ValueError(f"{self.name or 'graphs'}: there are no graphs")
        if len(self.features) != count or len(self.labels) != count:
            raise ValueError(
                f"{self.name or 'graphs'}: {count} adjacency matrices, {len(self.features)} "
                f"features and {len(self.labels)} labels; must be equally many"
            )
        width = np.shape(self.features[0])[-1]
        for number, (adjacency, x) in enumerate(zip(self.adjacency, self.features, strict=True)):
            n = len(check_adjacency(adjacency, f"graph {number}"))
            if np.shape(x) != (n, width):
                raise ValueError(
                    f"graph {number}: features of shape {np.shape(x)}, must be ({n}, {width})"
                )
            if not np.isfinite(x).all():
                raise ValueError(f"graph {number}: features that are not finite")

    def __len__(self) -> int:
        return len(self.adjacency)

    def subset(self, index: Iterable[int]) -> "GraphSet":
        """The graphs at these positions, in this order."""
        index = [int(i) for i in index]
        return GraphSet(
            [self.adjacency[i] for i in index],
            [self.features[i] for i in index],
            np.asarray(self.labels)[index],
            self.name,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """As plain arrays: edge_index (2, M), node_graph (N,), x (N, f), y (G,), name."""
        sizes = np.array([len(x) for x in self.features])
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        edges = [
            np.stack(np.nonzero(dense(adjacency))) + offset
            for adjacency, offset in zip(self.adjacency, offsets, strict=True)
        ]
        return {
            "edge_index": np.concatenate(edges, axis=1).astype(np.int32),
            "node_graph": np.repeat(np.arange(len(sizes)), sizes).astype(np.int32),
            "x": np.concatenate(self.features).astype(np.float32),
            "y": np.asarray(self.labels, dtype=np.int64),
            "name": np.array(self.name),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "GraphSet":
        """The graphs that `arrays` laid out; those above 512 vertices as sparse matrices."""
        node_graph, y = arrays["node_graph"], arrays["y"]
        sizes = np.bincount(node_graph, minlength=len(y))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        left, right = arrays["edge_index"]
        order = np.argsort(node_graph[left], kind="stable")
        left, right = left[order], right[order]
        ends = np.searchsorted(node_graph[left], np.arange(len(y) + 1))
        adjacency = []
        for graph, n in enumerate(sizes):
            part = slice(ends[graph], ends[graph + 1])
            rows, columns = left[part] - starts[graph], right[part] - starts[graph]
            if n > _DENSE_VERTICES:
                from scipy.sparse import csr_matrix

                ones = np.ones(len(rows), dtype=np.uint8)
                adjacency.append(csr_matrix((ones, (rows, columns)), shape=(n, n)))
                continue
            matrix = np.zeros((n, n), dtype=np.uint8)
            matrix[rows, columns] = 1
            adjacency.append(matrix)
        features = np.split(arrays["x"], starts[1:-1])
        return cls(adjacency, features, y, str(arrays.get("name", "")))


def read_tu(folder: Path) -> GraphSet:
    """Read one data set in the format of the TU collection: text files `<NAME>_A.txt`, ....

    Node features are the one-hot node labels (each column of them), then the standardised node
    attributes; where there is neither, the one-hot degree (64 and more count as 64).

    Raises:
        ValueError: a file is missing or damaged (named).
    """
    files = {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.txt"))}
    return parse_tu(files, str(folder))


def parse_tu(files: Mapping[str, bytes], place: str = "TU data set") -> GraphSet:
    """As `read_tu`, of files that were read: name -> bytes."""
    names = [name.removesuffix("_A.txt") for name in files if name.endswith("_A.txt")]
    if len(names) != 1:
        raise ValueError(f"{place}: {len(names)} files end in _A.txt; there must be one")
    (name,) = names

    def read(part: str, dtype: type, *, needed: bool = True) -> np.ndarray | None:
        file = f"{name}_{part}.txt"
        if file not in files:
            if needed:
                raise ValueError(f"{place}: the file {file} is missing")
            return None
        if not files[file].strip():
            raise ValueError(f"{place}: {file}: is empty")
        try:
            return np.loadtxt(BytesIO(files[file]), delimiter=",", dtype=dtype, ndmin=2)
        except ValueError as error:
            raise ValueError(f"{place}: {file}: {error}") from None

    pairs = read("A", np.int64) - 1
    graph = read("graph_indicator", np.int64)[:, 0] - 1
    labels = read("graph_labels", np.int64)[:, 0]
    if pairs.shape[1] != 2 or pairs.min() < 0 or pairs.max() >= len(graph):
        raise ValueError(f"{place}: {name}_A.txt: nodes must be pairs within 1..{len(graph)}")
    if graph.min() != 0 or graph.max() != len(labels) - 1 or (np.diff(graph) < 0).any():
        raise ValueError(
            f"{place}: {name}_graph_indicator.txt: must rise from 1 to {len(labels)}, the "
            "number of graph labels"
        )
    across = graph[pairs[:, 0]] != graph[pairs[:, 1]]
    if across.any():
        row = int(across.argmax())
        left, right = pairs[row] + 1
        raise ValueError(
            f"{place}: {name}_A.txt: row {row + 1}: nodes {left} and {right} are of different "
            "graphs"
        )
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    columns = []
    node_labels = read("node_labels", np.int64, needed=False)
    attributes = read("node_attributes", np.float64, needed=False)
    for part, values in (("node_labels", node_labels), ("node_attributes", attributes)):
        if values is not None and len(values) != len(graph):
            raise ValueError(f"{place}: {name}_{part}.txt: {len(values)} rows, not {len(graph)}")
    if node_labels is not None:
        for column in node_labels.T:
            values = np.unique(column)
            columns.append((column[:, None] == values).astype(np.float32))
    if attributes is not None:
        finite = np.isfinite(attributes).all(1)
        if not finite.all():
            raise ValueError(
                f"{place}: {name}_node_attributes.txt: row {int(finite.argmin()) + 1}: "
                "attributes must be finite"
            )
        spread = attributes.std(0)
        columns.append((attributes - attributes.mean(0)) / np.where(spread > 0, spread, 1))
    if not columns:
        degree = np.bincount(np.unique(pairs, axis=0)[:, 0], minlength=len(graph))
        degree = np.minimum(degree, _LARGEST_DEGREE)
        columns.append(np.eye(degree.max() + 1, dtype=np.float32)[degree])
    return GraphSet.of_arrays(
        {
            # Some files list an edge once, some twice.
            "edge_index": np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0).T,
            "node_graph": graph,
            "x": np.concatenate(columns, axis=1).astype(np.float32),
            "y": np.unique(labels, return_inverse=True)[1].astype(np.int64),
            "name": np.array(name),
        }
    )


def molecules_to_graphs(smiles: Sequence[str], labels: Sequence[int], name: str = "") -> GraphSet:
    """Molecules as graphs: heavy atoms, unweighted bonds, one-hot elements (C N O F S Cl Br P I).

    What is no valid SMILES is left out, with one log line that names its number.

    Raises:
        ValueError: as many labels as SMILES are needed; no SMILES is valid.
    """
    if len(smiles) != len(labels):
        raise ValueError(f"labels: {len(labels)} for {len(smiles)} SMILES; must be equally many")
    molecules, kept, faults = parse_many(smiles)
    for fault in faults:
        logger.warning("%s: %s; left out", name or "molecules", fault)
    return graphs_of_molecules(molecules, np.asarray(labels)[kept], name)


def graphs_of_molecules(
    molecules: Sequence["Mol"], labels: np.ndarray, name: str = "", smallest: int = 1
) -> GraphSet:
    """As `molecules_to_graphs`, of molecules; those below `smallest` atoms are left out."""
    large = [i for i, molecule in enumerate(molecules) if molecule.GetNumAtoms() >= smallest]
    if not large:
        raise ValueError(f"{name or 'molecules'}: no molecule has {smallest} atoms")
    adjacency, features = [], []
    for molecule in (molecules[i] for i in large):
        n = molecule.GetNumAtoms()
        matrix = np.zeros((n, n), dtype=np.uint8)
        matrix[tuple(bond_indices(molecule))] = 1
        adjacency.append(matrix)
        features.append(one_hot([atom.GetSymbol() for atom in molecule.GetAtoms()], ELEMENTS))
    return GraphSet(adjacency, features, np.asarray(labels, dtype=np.int64)[large], name)


def molecules_of_sdf(content: bytes, tag: str) -> Iterator[tuple["Mol", str]]:
    """Molecules of an SDF file with the value of one of their properties.

    Raises:
        ValueError: a record cannot be read or lacks the property; its number (from 0) is named.
    """
    from rdkit.Chem import ForwardSDMolSupplier

    with quiet_rdkit():
        for record, molecule in enumerate(ForwardSDMolSupplier(BytesIO(content))):
            if molecule is None:
                raise ValueError(f"SDF record {record}: is no valid molecule")
            if not molecule.HasProp(tag):
                raise ValueError(f"SDF record {record}: has no property '{tag}'")
            yield molecule, molecule.GetProp(tag)


def pad(graphs: GraphSet) -> tuple["Tensor", "Tensor", "Tensor"]:
    """The graphs as one batch: adj (B, N, N) and x (B, N, f) float32, mask (B, N) bool."""
    return GraphBatches(graphs)(range(len(graphs)))


class GraphBatches:
    """Padded batches of a set of graphs, each only as large as its largest graph."""

    def __init__(self, graphs: GraphSet) -> None:
        import torch

        arrays = graphs.arrays()
        sizes = np.bincount(arrays["node_graph"], minlength=len(graphs))
        owner = arrays["node_graph"][arrays["edge_index"][0]]
        self.sizes = torch.from_numpy(sizes)
        self.starts = torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)[:-1]]))
        self.edges = torch.from_numpy(arrays["edge_index"].astype(np.int64))
        self.edge_counts = torch.from_numpy(np.bincount(owner, minlength=len(graphs)))
        self.edge_starts = torch.cumsum(self.edge_counts, 0) - self.edge_counts
        self.x = torch.from_numpy(arrays["x"])

    def chunks(self, index: Iterable[int]) -> list[list[int]]:
        """These graphs, in order, in parts whose padded adjacency matrices fit into 32 MiB.

        For passes that train nothing: a part may be of any size, and is one graph at least.
        """
        parts: list[list[int]] = []
        largest = 0
        for i in map(int, index):
            largest = max(largest, int(self.sizes[i]))
            if not parts or (len(parts[-1]) + 1) * largest**2 > _CHUNK_ENTRIES:
                parts.append([])
                largest = int(self.sizes[i])
            parts[-1].append(i)
        return parts

    def __call__(
        self, index: "Iterable[int] | Tensor", device: Any = "cpu"
    ) -> tuple["Tensor", "Tensor", "Tensor"]:
        """adj (B, N, N) and x (B, N, f) float32, mask (B, N) bool of these graphs."""
        import torch

        if not isinstance(index, torch.Tensor):
            index = torch.tensor([int(i) for i in index], dtype=torch.int64)
        index = index.cpu()
        sizes = self.sizes[index]
        n = int(sizes.max())
        mask = torch.arange(n) < sizes[:, None]
        x = self.x.new_zeros(len(index), n, self.x.shape[1])
        x[mask] = self.x[_ranges(self.starts[index], sizes)]
        counts = self.edge_counts[index]
        picked = _ranges(self.edge_starts[index], counts)
        batch = torch.repeat_interleave(torch.arange(len(index)), counts)
        left, right = self.edges[:, picked] - self.starts[index][batch]
        adj = self.x.new_zeros(len(index), n, n)
        adj[batch, left, right] = 1
        return adj.to(device), x.to(device), mask.to(device)


def _ranges(starts: "Tensor", counts: "Tensor") -> "Tensor":
    """The numbers starts[i], ..., starts[i] + counts[i] - 1, one range after the other."""
    import torch

    before = torch.cumsum(counts, 0) - counts
    within = torch.arange(int(counts.sum())) - torch.repeat_interleave(before, counts)
    return torch.repeat_interleave(starts, counts) + within


def dense(adjacency: Any) -> np.ndarray:
    """An adjacency matrix, dense or of scipy.sparse, as a dense array."""
    return adjacency.toarray() if hasattr(adjacency, "toarray") else np.asarray(adjacency)
