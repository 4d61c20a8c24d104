"""Label the library with a task's property."""

import logging
import math
from pathlib import Path

import numpy as np
from rdkit import Chem

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import save_arrays
from retable.geam.config import LabelSettings
from retable.geam.docking import DOCKING_TARGETS
from retable.geam.library import Library
from retable.geam.oracles import evaluate_many
from retable.geam.tasks import make_oracle

logger = logging.getLogger("retable")


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
    mols = [Chem.MolFromSmiles(smiles) for smiles in molecules.smiles[:count]]
    for k, score in enumerate(evaluate_many(oracle, mols)):
        y[k] = 0.0 if math.isnan(score) else score
        if dataset in DOCKING_TARGETS and (k + 1) % 20 == 0:
            logger.info("%d of %d molecules are docked", k + 1, len(mols))
    save_arrays(labels, {"y": y})
