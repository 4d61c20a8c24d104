"""Node-level vectors: telling edges from other pairs within graphs that were not trained on."""

from pathlib import Path

import numpy as np

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.errors import InputError
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.gemax.config import EdgesSettings
from retable.gemax.data import GraphSet
from retable.gemax.evaluate import edge_aucs
from retable.gemax.train import fit, vertex_vectors


def edges(
    graphs: Path,
    rows: Path,
    *,
    dataset: str,
    seeds: Seeds,
    settings: EdgesSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write the AUROC of |z_i . z_j| on the graphs that each seed holds out.

    The linear graph autoencoder is scored by its own decoder, z_i . z_j.
    """
    data = GraphSet.of_arrays(load_arrays(graphs))
    found = []
    for seed in seeds:
        order = np.random.default_rng([seed, 80]).permutation(len(data))
        count = round(settings.share * len(data))
        kept, held = data.subset(order[:count]), data.subset(order[count:])
        for method in settings.methods:
            result = fit(
                kept,
                method,
                settings.train,
                seed,
                checkpoints=checkpoints,
                name=f"{method}-seed{seed}",
            )
            scores = []
            for z, _, adj, mask in vertex_vectors(result.encoder, held):
                scores += edge_aucs(z, adj, mask, signed=method == "lgae")
            if not scores:
                raise InputError(f"{dataset}: no held-out graph has both edges and other pairs")
            found.append(
                {
                    "experiment": "edges",
                    "dataset": dataset,
                    "method": method,
                    "seed": seed,
                    "metric": "edge_auc",
                    "value": np.mean(scores),
                }
            )
    write_metrics(found, rows)
