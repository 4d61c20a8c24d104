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
_SOLUBILITIES = ("(A) low", "(B) medium", "(C) high")  # low against the others
_BARRIER = "BBB+/BBB-"


def prepare(source: Path, graphs: Path, *, settings: PrepareSettings) -> None:
    """Write edge_index, node_graph, x, y and name of the graphs that the settings choose."""
    files = read_bundle(source)
    try:
        found = _large(_read(settings, files), settings.smallest)
        if settings.n is not None:
            found = _sample(found, settings.n, settings.seed)
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None
    save_arrays(graphs, found.arrays())


def _read(settings: PrepareSettings, files: dict[str, bytes]) -> GraphSet:
    if settings.source == "solubility":
        molecules, classes = [], []
        for name in ("solubility.train.sdf", "solubility.test.sdf"):
            if name not in files:
                raise ValueError(f"the file {name} is missing")
            try:
                found = molecules_of_sdf(files[name], _SOLUBILITY)
                for record, (molecule, value) in enumerate(found):
                    if value not in _SOLUBILITIES:
                        raise ValueError(
                            f"SDF record {record}: {_SOLUBILITY} '{value}', must be one of "
                            f"{', '.join(_SOLUBILITIES)}"
                        )
                    molecules.append(molecule)
                    classes.append(_SOLUBILITIES.index(value) > 0)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return graphs_of_molecules(molecules, np.array(classes), "solubility", settings.smallest)
    if settings.source == "b3db":
        name = "B3DB_classification.tsv"
        if name not in files:
            raise ValueError(f"the file {name} is missing")
        rows = list(csv.DictReader(StringIO(files[name].decode("utf-8")), delimiter="\t"))
        for column in ("SMILES", _BARRIER):
            if not rows or rows[0].get(column) is None:
                raise ValueError(f"{name}: there is no column '{column}', or no row")
        for record, row in enumerate(rows):
            if row[_BARRIER] not in ("BBB+", "BBB-"):
                raise ValueError(
                    f"{name}: record {record}: {_BARRIER} '{row[_BARRIER]}', must be BBB+ or BBB-"
                )
        labels = [row[_BARRIER] == "BBB+" for row in rows]
        return molecules_to_graphs([row["SMILES"] for row in rows], labels, "b3db")
    return parse_tu(files, settings.source)


def _large(graphs: GraphSet, smallest: int) -> GraphSet:
    """The graphs with so many vertices."""
    index = [i for i, x in enumerate(graphs.features) if len(x) >= smallest]
    if not index:
        raise ValueError(f"smallest: {smallest}, no graph has so many vertices")
    return graphs if len(index) == len(graphs) else graphs.subset(index)


def _sample(graphs: GraphSet, n: int, seed: int) -> GraphSet:
    """A stratified random sample, in the order of the data set."""
    from sklearn.model_selection import train_test_split

    if n >= len(graphs):
        raise ValueError(f"n: {n}, must be less than the {len(graphs)} graphs there are")
    index, _ = train_test_split(
        np.arange(len(graphs)), train_size=n, stratify=graphs.labels, random_state=seed
    )
    return graphs.subset(np.sort(index))
