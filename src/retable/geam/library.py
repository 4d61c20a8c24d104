"""The library of molecules with its fragments, as arrays and as graphs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays
from retable.geam.fragments import MolGraph


@dataclass(frozen=True)
class Library:
    """Molecules that are labelled, and those that other methods need.

    Attributes:
        smiles: the library, canonical.
        graphs: one a molecule; None where it has no BRICS bond.
        test: molecules beside the library.
        prior: molecules for a language model.
        known: scores that the data set itself has, by task; NaN where it has none.
    """

    smiles: tuple[str, ...]
    graphs: tuple[MolGraph | None, ...]
    test: tuple[str, ...]
    prior: tuple[str, ...]
    known: dict[str, np.ndarray]

    def labelled(self, y: np.ndarray) -> tuple[list[MolGraph], np.ndarray]:
        """The graphs of molecules with a label and fragments, and their labels."""
        rows = [k for k, g in enumerate(self.graphs) if g is not None and not np.isnan(y[k])]
        return [self.graphs[k] for k in rows], y[rows]

    def save(self, path: Path) -> None:
        """Write as plain arrays: the graphs' concatenated, with how many atoms each has."""
        graphs = [graph for graph in self.graphs if graph is not None]
        names = sorted({fragment for graph in graphs for fragment in graph.fragments})
        number = {name: k for k, name in enumerate(names)}
        fragments = [number[fragment] for graph in graphs for fragment in graph.fragments]
        arrays = {
            "smiles": np.array(self.smiles, dtype=str),
            "cut": np.array([graph is not None for graph in self.graphs]),
            "test": np.array(self.test, dtype=str),
            "prior": np.array(self.prior, dtype=str),
            "fragment_names": np.array(names, dtype=str),
            "fragments": np.array(fragments, np.int32),
            "fragment_counts": np.array([len(graph.fragments) for graph in graphs], np.int32),
            "atom_counts": np.array([len(graph.x) for graph in graphs], np.int32),
            "edge_counts": np.array([graph.edge_index.shape[1] for graph in graphs], np.int32),
            "x": np.concatenate([graph.x for graph in graphs]).astype(np.uint8),
            "edge_index": np.concatenate([graph.edge_index for graph in graphs], axis=1),
            "edge_attr": np.concatenate([graph.edge_attr for graph in graphs]).astype(np.uint8),
            "node2frag": np.concatenate([graph.node2frag for graph in graphs]),
        }
        known = {f"known_{task}": y for task, y in self.known.items()}
        save_arrays(path, arrays | known)

    @classmethod
    def load(cls, path: Path) -> "Library":
        """Read what `save` wrote."""
        a = load_arrays(path)
        names = a["fragment_names"].tolist()
        atoms = np.cumsum(a["atom_counts"])[:-1]
        edges = np.cumsum(a["edge_counts"])[:-1]
        counts = np.cumsum(a["fragment_counts"])[:-1]
        smiles = a["smiles"].tolist()
        parts = zip(
            [text for text, cut in zip(smiles, a["cut"], strict=True) if cut],
            np.split(a["x"].astype(np.float32), atoms),
            np.split(a["edge_index"], edges, axis=1),
            np.split(a["edge_attr"].astype(np.float32), edges),
            np.split(a["node2frag"], atoms),
            [tuple(names[k] for k in part) for part in np.split(a["fragments"], counts)],
            strict=True,
        )
        graphs = iter([MolGraph(*part) for part in parts])
        known = {key.removeprefix("known_"): y for key, y in a.items() if key.startswith("known_")}
        return cls(
            tuple(smiles),
            tuple(next(graphs) if cut else None for cut in a["cut"]),
            tuple(a["test"].tolist()),
            tuple(a["prior"].tolist()),
            known,
        )
