"""From published files to graphs as plain arrays."""

import csv
from io import StringIO
from pathlib import Path

import numpy as np

from retable.common.data.arrays import save_arrays
from retable.common.data.bundles import read_bundle
from retable.common.errors import InputError
from retable.gemax.config import PrepareSettings
from retable.gemax.data import (
    GraphSet,
    graphs_of_molecules,
    molecules_of_sdf,
    molecules_to_graphs,
    parse_tu,
)

_SOLUBILITY = "SOL_classification"


def prepare(source: Path, graphs: Path, *, settings: PrepareSettings) -> None:
    """Write edge_index, node_graph, x, y and name of the graphs that the settings choose."""
    files = read_bundle(source)
    try:
        found = _read(settings, files)
        if settings.n is not None:
            found = _sample(found, settings.n, settings.seed)
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None
    save_arrays(graphs, found.arrays())


def _read(settings: PrepareSettings, files: dict[str, bytes]) -> GraphSet:
    if settings.source == "solubility":
        molecules, classes = [], []
        for split in ("train", "test"):
            for molecule, value in molecules_of_sdf(files[f"solubility.{split}.sdf"], _SOLUBILITY):
                molecules.append(molecule)
                classes.append(value != "(A) low")
        return graphs_of_molecules(molecules, np.array(classes), "solubility", settings.smallest)
    if settings.source == "b3db":
        text = files["B3DB_classification.tsv"].decode("utf-8")
        rows = list(csv.DictReader(StringIO(text), delimiter="\t"))
        labels = [row["BBB+/BBB-"] == "BBB+" for row in rows]
        return molecules_to_graphs([row["SMILES"] for row in rows], labels, "b3db")
    return parse_tu(files)


def _sample(graphs: GraphSet, n: int, seed: int) -> GraphSet:
    """A stratified random sample, in the order of the data set."""
    from sklearn.model_selection import train_test_split

    if n >= len(graphs):
        raise ValueError(f"n: {n}, must be less than the {len(graphs)} graphs there are")
    index, _ = train_test_split(
        np.arange(len(graphs)), train_size=n, stratify=graphs.labels, random_state=seed
    )
    return graphs.subset(np.sort(index))
