"""The reference that has seen experiments: trained on the assays of all proteins but one."""

from pathlib import Path

import numpy as np
import torch

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import save_arrays
from retable.common.data.bundles import read_bundle
from retable.common.seeds import Seeds
from retable.evorank.config import FinetuneSettings
from retable.evorank.dms import align_to_structure, load_assay, mapped
from retable.evorank.files import load_backbones
from retable.evorank.networks import load_scorers
from retable.evorank.structure import microenvironments, wildtype_of
from retable.evorank.training import Measured, rank_transform
from retable.evorank.training import finetune as run_finetune


def finetune(
    test: Path,
    assays: Path,
    models: list[Path],
    scores: Path,
    *,
    names: list,
    seeds: Seeds,
    settings: FinetuneSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write `finetuned.<seed>.<structure>`: the scores of the protein that was left out.

    The pretrained encoder is the one of the wild-type objective with the same seed.
    """
    backbones, files = load_backbones(test), read_bundle(assays)
    measured = []
    for name in names:
        assay = load_assay(name, files)
        backbone = backbones[assay.structure]
        places, letters, values = mapped(assay, align_to_structure(assay, backbone))
        measured.append(
            Measured(
                name,
                assay.structure,
                microenvironments(backbone),
                torch.from_numpy(wildtype_of(backbone)),
                places,
                letters,
                rank_transform(values),
            )
        )
    found = {}
    for seed in seeds:
        for protein in dict.fromkeys(assay.protein for assay in measured):
            # A fresh copy for each protein: training changes it.
            (encoder,) = (s[seed].encoder for s in map(load_scorers, models) if seed in s)
            scorer = run_finetune(
                encoder,
                [assay for assay in measured if assay.protein != protein],
                settings,
                seed,
                checkpoints=checkpoints,
                name=f"{protein}-seed{seed}",
            )
            own = next(assay for assay in measured if assay.protein == protein)
            matrix = scorer.score_matrix(own.environments, own.wildtype)
            found[f"finetuned.{seed}.{protein}"] = matrix.numpy().astype(np.float32)
    save_arrays(scores, found)
