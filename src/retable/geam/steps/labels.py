"""Label the library with a task's property."""

import math
from pathlib import Path

import numpy as np
from rdkit import Chem

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import save_arrays
from retable.geam.config import LabelSettings
from retable.geam.docking import DOCKING_TARGETS
from retable.geam.library import Library
from retable.geam.tasks import make_oracle


def labels(
    library: Path,
    receptors: list[Path],
    labels: Path,
    *,
    dataset: str,
    settings: LabelSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write `y`, one a molecule of the library; NaN where it is not labelled.

    Scores that the data set itself has are used as they are. Docking labels the first
    `settings.docked` molecules; a failed docking is the label 0.
    """
    molecules = Library.load(library)
    if dataset in molecules.known:
        save_arrays(labels, {"y": molecules.known[dataset]})
        return
    oracle = make_oracle(dataset, receptors, checkpoints.folder, settings.exhaustiveness)
    y = np.full(len(molecules.smiles), np.nan)
    count = settings.docked if dataset in DOCKING_TARGETS else len(y)
    for k, smiles in enumerate(molecules.smiles[:count]):
        score = oracle(Chem.MolFromSmiles(smiles))
        y[k] = 0.0 if math.isnan(score) else score
    save_arrays(labels, {"y": y})
