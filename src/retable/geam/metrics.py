"""How good, new and diverse a set of generated molecules is (section 4.1 of the paper).

The denominator of all ratios is the number of generated molecules, repeats included. Fingerprints
are Morgan, radius 2, 1024 bits: (n, 1024) bool arrays.
"""

import math
from collections.abc import Sequence

import numpy as np
from rdkit.Chem import rdFingerprintGenerator

from retable.common.molecules import parse_smiles

FINGERPRINT_BITS = 1024
_ROWS_AT_ONCE = 2048


def fingerprints(smiles: Sequence[str]) -> np.ndarray:
    """Fingerprints (n, 1024) bool.

    Raises:
        ValueError: a SMILES that cannot be read, with its position.
    """
    generator = rdFingerprintGenerator.GetMorganGenerator(2, fpSize=FINGERPRINT_BITS)
    rows = [generator.GetFingerprintAsNumPy(parse_smiles(text, k)) for k, text in enumerate(smiles)]
    return np.array(rows, dtype=bool).reshape(len(rows), FINGERPRINT_BITS)


def _tanimoto(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Similarities (n, m); two empty fingerprints are equal."""
    a, b = first.astype(np.float32), second.astype(np.float32)
    common = a @ b.T
    union = a.sum(1)[:, None] + b.sum(1)[None] - common
    return np.where(union > 0, common / np.maximum(union, 1), 1.0)


def largest_similarity(fps: np.ndarray, training_fps: np.ndarray) -> np.ndarray:
    """The largest Tanimoto similarity (n,) of each molecule to the training set."""
    if not len(training_fps):
        raise ValueError("the training set is empty: nothing to be novel against")
    starts = range(0, len(fps), _ROWS_AT_ONCE)
    parts = [_tanimoto(fps[k : k + _ROWS_AT_ONCE], training_fps).max(1) for k in starts]
    return np.concatenate(parts) if parts else np.zeros(0)


def novelty(fps: np.ndarray, training_fps: np.ndarray, threshold: float = 0.4) -> float:
    """Share of molecules whose largest similarity to the training set is below the threshold."""
    if not len(fps):
        raise ValueError("no generated molecules")
    return float((largest_similarity(fps, training_fps) < threshold).mean())


def uniqueness(smiles: Sequence[str]) -> float:
    """Distinct canonical SMILES over generated ones."""
    if not len(smiles):
        raise ValueError("no generated molecules")
    return len(set(smiles)) / len(smiles)


def novel_hit_ratio(
    smiles: Sequence[str],
    scores: Sequence[float],
    novel: np.ndarray,
    hit: np.ndarray,
    n_generated: int,
) -> float:
    """Distinct molecules that are novel and hits, over all generated ones.

    Args:
        novel, hit: (n,) bool, one a SMILES.

    Raises:
        ValueError: lengths differ, or there are fewer generated molecules than distinct ones.
    """
    lengths = {len(smiles), len(scores), len(novel), len(hit)}
    if len(lengths) > 1:
        raise ValueError(f"smiles, scores, novel and hit have different lengths: {sorted(lengths)}")
    found = {
        text for text, good in zip(smiles, np.asarray(novel) & np.asarray(hit), strict=True) if good
    }
    if n_generated < max(1, len(set(smiles))):
        raise ValueError(f"n_generated is {n_generated}; there are {len(set(smiles))} molecules")
    return len(found) / n_generated


def novel_top_fraction(scores: Sequence[float], n_generated: int, fraction: float = 0.05) -> float:
    """Mean of the best floor(fraction N) scores of distinct, novel, drug-like molecules.

    NaN where there is none; fewer than floor(fraction N): the mean of those there are.
    """
    best = np.sort(np.asarray(scores, dtype=float))[::-1][: math.floor(fraction * n_generated)]
    return float(best.mean()) if len(best) else math.nan


def n_circles(fps: np.ndarray, threshold: float = 0.75, seed: int = 0, n_orders: int = 1) -> float:
    """#Circles (Xie et al. 2023): molecules that lie further than the threshold from each other.

    Greedy, in a random order: a molecule opens a circle if its distance 1 - Tanimoto to all centres
    so far exceeds the threshold. The number depends on the order: mean over `n_orders`.
    """
    if not len(fps):
        return 0.0
    distance = 1 - _tanimoto(fps, fps)
    rng = np.random.default_rng(seed)
    counts = []
    for _ in range(n_orders):
        free = np.ones(len(fps), bool)
        count = 0
        for k in rng.permutation(len(fps)):
            if free[k]:
                count += 1
                free &= distance[k] > threshold
        counts.append(count)
    return float(np.mean(counts))


def top_k_curve(
    scores: Sequence[float], k: int, budget: int, every: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the k best so far after 0, every, 2 every, ..., budget calls.

    Args:
        scores: one a call, in the order of calls. A run that stopped early keeps its last value.
    """
    values = np.asarray(scores, dtype=float)
    if len(values) > budget:
        raise ValueError(f"there are {len(values)} scores; the budget is {budget}")
    calls = np.unique([*range(0, budget + 1, every), budget])
    means = [np.sort(values[:c])[::-1][:k].mean() if c and len(values) else 0.0 for c in calls]
    return calls, np.array(means)


def auc_top_k(scores: Sequence[float], k: int, budget: int, every: int = 100) -> float:
    """Area under the mean of the k best so far, by trapezoids, over the budget (PMO)."""
    calls, means = top_k_curve(scores, k, budget, every)
    return float(np.trapezoid(means, calls) / budget)
