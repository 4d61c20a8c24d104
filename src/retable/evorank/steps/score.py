"""Score matrices of all methods on the assays' structures."""

from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays
from retable.evorank.baselines import blosum62_scores, msa_site_scores
from retable.evorank.files import load_backbones
from retable.evorank.networks import load_scorers
from retable.evorank.structure import microenvironments, wildtype_of


def score(test: Path, data: Path, models: list[Path], scores: Path) -> None:
    """Write `<method>.<seed>.<structure>` (L, 20), higher = more tolerated.

    `blosum62` and `msa_site` (the structure's own alignment, each position by itself) have no seed.
    """
    backbones = load_backbones(test)
    arrays = load_arrays(data)
    environments = {name: microenvironments(b) for name, b in backbones.items()}
    found = {}
    for name, backbone in backbones.items():
        found[f"blosum62..{name}"] = blosum62_scores(backbone.sequence)
        found[f"msa_site..{name}"] = msa_site_scores(arrays[f"{name}.p"], wildtype_of(backbone))
    for path in models:
        for seed, scorer in load_scorers(path).items():
            for name, backbone in backbones.items():
                matrix = scorer.score_matrix(environments[name], wildtype_of(backbone))
                found[f"{path.parent.name}.{seed}.{name}"] = matrix.numpy().astype(np.float32)
    save_arrays(scores, found)
