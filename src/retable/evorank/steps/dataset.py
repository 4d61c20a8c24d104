"""Positions to train on: environments, wild type, and the distribution that the alignment gives."""

import logging
from pathlib import Path

import numpy as np

from retable.common.data.arrays import save_arrays
from retable.common.errors import InputError
from retable.evorank.alphabet import BACKGROUND, encode
from retable.evorank.config import DatasetSettings
from retable.evorank.files import load_alignments, load_backbones
from retable.evorank.msa import site_distribution
from retable.evorank.placing import alike
from retable.evorank.structure import environment_features

logger = logging.getLogger("retable")
TRAINING, HELD_OUT = 0, 1


def dataset(
    training: Path,
    test: Path,
    alignments: list[Path],
    data: Path,
    *,
    settings: DatasetSettings,
) -> None:
    """Write neighbours, density, wildtype, p, depth, protein_names, protein_index and split.

    Left out are proteins with few homologs, those like a test protein, and shallow positions;
    `split` is 0 for training and 1 for the held-out families. `<protein>.p` are the distributions
    of the test structures' own alignments.
    """
    backbones, tested = load_backbones(training), load_backbones(test)
    msas = load_alignments(alignments)
    sequences = {name: backbone.sequence for name, backbone in tested.items()}
    unknown = sorted(set(settings.held_out) - set(backbones))
    if unknown:
        raise InputError(
            f"config/evorank.yaml, dataset: held_out: '{unknown[0]}': must be one of "
            f"{', '.join(backbones)}"
        )
    parts, names = [], []
    for name, backbone in backbones.items():
        hits = len(msas[name]) - 1
        if name in settings.excluded or hits < settings.least_hits:
            logger.info("%s: left out, %d homologs", name, hits)
            continue
        like = alike(backbone.sequence, sequences, settings.identity, settings.aligned)
        if like:
            logger.info("%s: left out, like the test structure %s", name, like)
            continue
        p, depth = site_distribution(msas[name], BACKGROUND, settings.pseudocount)
        deep = np.flatnonzero(depth >= settings.least_depth)
        if not len(deep):
            logger.info("%s: no position is deep enough", name)
            continue
        neighbours, density = environment_features(backbone)
        count = len(names)
        names.append(name)
        parts.append(
            {
                "neighbours": neighbours[deep],
                "density": density[deep],
                "wildtype": encode(backbone.sequence)[deep].astype(np.int64),
                "p": p[deep].astype(np.float32),
                "depth": depth[deep],
                "protein_index": np.full(len(deep), count),
                "split": np.full(len(deep), HELD_OUT if name in settings.held_out else TRAINING),
            }
        )
    arrays = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    for split, label in ((TRAINING, "training"), (HELD_OUT, "held-out")):
        positions = int((arrays["split"] == split).sum())
        if not positions:
            raise InputError(f"{data}: there are no {label} positions")
        logger.info("%d %s positions", positions, label)
    arrays["protein_names"] = np.array(names)
    for name in tested:
        arrays[f"{name}.p"] = site_distribution(msas[name], BACKGROUND, settings.pseudocount)[0]
    save_arrays(data, arrays)
