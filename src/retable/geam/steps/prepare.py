"""Draw the library and cut it into fragments."""

import logging
from pathlib import Path

import numpy as np

from retable.common.data.bundles import read_bundle
from retable.common.errors import InputError
from retable.common.molecules import parse_many
from retable.geam.config import PrepareSettings
from retable.geam.fragments import fragment_molecule
from retable.geam.library import Library
from retable.geam.modification import canonical
from retable.geam.published import read_column, zinc_known, zinc_split

logger = logging.getLogger("retable")
_SEED = 0  # one library for all seeds of the experiment


def prepare(molecules: Path, library: Path, *, settings: PrepareSettings) -> None:
    """Write the library, its fragments, and the molecules that baselines need."""
    files = read_bundle(molecules)
    rng = np.random.default_rng(_SEED)
    known: dict[str, np.ndarray] = {}
    if settings.source == "moses":
        train = read_column(files["train.csv"], f"{molecules}: train.csv", "SMILES")
        test = read_column(files["test.csv"], f"{molecules}: test.csv", "SMILES")
        order = rng.permutation(len(train))
        chosen = order[: settings.library]
    else:
        name = f"{molecules}: zinc250k.csv"
        train = read_column(files["zinc250k.csv"], name, "smiles")
        split = f"{molecules}: valid_idx_zinc250k.json"
        rows = zinc_split(files["valid_idx_zinc250k.json"], split, len(train))
        test = [train[k] for k in np.setdiff1d(np.arange(len(train)), rows)]
        order = rng.permutation(rows)
        chosen = order[: settings.library]
        known = zinc_known(files["zinc250k.csv"], name, chosen)
    if len(chosen) < settings.library:
        raise InputError(
            f"{molecules}: {len(chosen)} training molecules; the library needs {settings.library}"
        )
    smiles = _canonical([train[k] for k in chosen], molecules)
    graphs = tuple(fragment_molecule(text) for text in smiles)
    missing = sum(graph is None for graph in graphs)
    logger.info("%d molecules, %d of them without BRICS bonds", len(smiles), missing)
    others = rng.permutation(len(test))[: settings.test]
    Library(
        smiles,
        graphs,
        _canonical([test[k] for k in others], molecules),
        tuple(train[k] for k in order[: settings.prior]),
        known,
    ).save(library)


def _canonical(smiles: list[str], source: Path) -> tuple[str, ...]:
    mols, _, faults = parse_many(smiles)
    if faults:
        raise InputError(f"{source}: {faults[0]}")
    return tuple(canonical(mol) for mol in mols)
