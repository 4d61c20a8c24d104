"""How well an embedding or a labelling agrees with the communities."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def accuracy(pred: np.ndarray, truth: np.ndarray) -> float:
    """Share of nodes labelled as in `truth`, under the best renaming of the labels of `pred`.

    pred, truth: (n,) integers; nodes with -1 in either are left out. Raises ValueError if the
    shapes differ or no node is left.
    """
    pred, truth = np.asarray(pred), np.asarray(truth)
    if pred.shape != truth.shape or pred.ndim != 1:
        raise ValueError(f"pred and truth must be (n,) alike, got {pred.shape} and {truth.shape}")
    counted = (pred >= 0) & (truth >= 0)
    if not counted.any():
        raise ValueError("truth must label at least one node that pred labels, got none")
    names, pred = np.unique(pred[counted], return_inverse=True)
    classes, truth = np.unique(truth[counted], return_inverse=True)
    table = np.bincount(pred * classes.size + truth, minlength=names.size * classes.size)
    table = table.reshape(names.size, classes.size)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / pred.size)


def exact_recovery(pred: np.ndarray, truth: np.ndarray) -> bool:
    """Whether every node that counts (see `accuracy`) has its right label, up to renaming."""
    return accuracy(pred, truth) == 1.0


def alignment(x: np.ndarray, labels: np.ndarray) -> float:
    """|cos| of the angle between x and the centred indicator of two communities, in [0, 1].

    x: (n,) or (n, 1); labels: (n,) with two distinct values; nodes with -1 are left out. 0 if x
    vanishes. Raises ValueError for other shapes or another number of communities.
    """
    x, labels = np.asarray(x), np.asarray(labels)
    if labels.ndim != 1 or x.shape not in ((labels.size,), (labels.size, 1)):
        raise ValueError(f"x must be (n,) or (n, 1) with n = {labels.size}, got {x.shape}")
    x = x.reshape(-1)
    known = labels >= 0
    if not known.all():
        x, labels = x[known], labels[known]
    # Not by a sort: a descent asks in each of its steps.
    second = labels == labels.max(initial=-1)
    if second.all() or ((labels == labels.min()) == second).any():
        raise ValueError(f"labels must name 2 communities, got {np.unique(labels).size}")
    indicator = second - second.mean()
    length = np.linalg.norm(x) * np.linalg.norm(indicator)
    return float(min(1.0, abs(x @ indicator) / length)) if length > 0 else 0.0
