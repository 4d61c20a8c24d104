"""Exact graph entropy of the learned distributions, beside what the method takes for it."""

import logging
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.gemax.config import EntropySettings
from retable.gemax.data import GraphSet
from retable.gemax.entropy import graph_entropy, nearest_representation, orthonormal_lower_bound
from retable.gemax.losses import packing_entropy, vertex_distribution
from retable.gemax.model import GeMaxEncoder
from retable.gemax.steps.train import load_encoder
from retable.gemax.train import converge_weights, vertex_vectors

logger = logging.getLogger("retable")


def entropy(
    graphs: Path,
    models: list[Path],
    embeddings: list[Path],
    rows: Path,
    values: Path,
    *,
    dataset: str,
    seeds: Seeds,
    settings: EntropySettings,
) -> None:
    """Write means over the graphs, and each graph's values for the figure.

    Exact entropies are those of the distribution that an encoder gives, before training
    (`untrained`) and after (`gemax`). The weights a are first carried to convergence with the
    encoder fixed; the lower bound is that of the orthonormal representation nearest to the vectors.
    """
    data = GraphSet.of_arrays(load_arrays(graphs))
    trained = {
        name: value
        for path in embeddings
        for name, value in load_arrays(path).items()
        if name.endswith(".weights")
    }
    found, arrays = [], {}

    def add(method: str, seed: int, metric: str, value: float) -> None:
        key = {"experiment": "entropy", "dataset": dataset, "method": method, "seed": seed}
        found.append(key | {"metric": metric, "value": value})

    for seed in seeds:
        for method in ("untrained", "gemax"):
            encoder = load_encoder(models, method, seed)
            z, p, mask = _vectors(encoder, data)
            exact = [
                graph_entropy(adjacency, row[real].numpy(), settings.tolerance, settings.max_sets)
                for adjacency, row, real in zip(data.adjacency, p, mask, strict=True)
            ]
            value = np.array([result.value for result in exact])
            add(method, seed, "entropy_exact", value.mean())
            arrays[f"{method}.{seed}.exact"] = value
            if method == "untrained":
                continue
            a = torch.ones_like(p)
            a[mask] = torch.from_numpy(trained[f"gemax.{seed}.weights"]).double()
            start = packing_entropy(p, a, mask).numpy()
            a = converge_weights(
                z, p, a, mask, settings.gamma, settings.weight_steps, settings.lr_weights
            )
            learned = packing_entropy(p, a, mask).numpy()
            bound = np.array(_lower_bounds(data, z, p, mask))
            positive = value > settings.tolerance
            gap = np.abs(learned - value)[positive] / value[positive]
            add(method, seed, "entropy_learned", learned.mean())
            add(method, seed, "entropy_in_training", start.mean())
            add(method, seed, "entropy_relative_gap", gap.mean())
            add(method, seed, "entropy_lower_bound", np.maximum(bound, 0).mean())
            add(method, seed, "entropy_bound_gap", (value - np.maximum(bound, 0)).mean())
            add(method, seed, "entropy_spearman", _spearman(learned, value))
            arrays |= {
                f"gemax.{seed}.learned": learned,
                f"gemax.{seed}.bound": bound,
                f"gemax.{seed}.p": p[mask].numpy(),
                f"gemax.{seed}.a": a[mask].numpy(),
                f"gemax.{seed}.packing": np.concatenate([result.packing for result in exact]),
            }
        logger.info("seed %d: exact entropies of %d graphs", seed, len(data))
    write_metrics(found, rows)
    save_arrays(values, arrays)


def _vectors(encoder: GeMaxEncoder, graphs: GraphSet) -> tuple[Tensor, Tensor, Tensor]:
    """z (G, N, d), p (G, N) and mask (G, N) of all graphs, padded to the largest."""
    parts = [
        (z, vertex_distribution(z, g, mask).double(), mask)
        for z, g, _, mask in vertex_vectors(encoder, graphs)
    ]
    n = max(mask.shape[1] for _, _, mask in parts)

    def widened(tensor: Tensor) -> Tensor:
        missing = n - tensor.shape[1]
        return torch.cat([tensor, tensor.new_zeros(len(tensor), missing, *tensor.shape[2:])], 1)

    z, p, mask = (torch.cat([widened(part[i]) for part in parts]) for i in range(3))
    p = p / p.sum(1, keepdim=True)
    return z.double(), p, mask


def _lower_bounds(graphs: GraphSet, z: Tensor, p: Tensor, mask: Tensor) -> list[float]:
    bounds = []
    for adjacency, vectors, row, real in zip(graphs.adjacency, z, p, mask, strict=True):
        exact = nearest_representation(adjacency, vectors[real].numpy())
        weights = row[real].numpy()
        centre = weights @ exact
        bounds.append(orthonormal_lower_bound(exact, centre / np.linalg.norm(centre), weights))
    return bounds


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 on; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
