"""How good an embedding is for a classifier: cross-validated accuracy, effective rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np

CANDIDATES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def cross_validated_accuracy(
    embeddings: Any,
    y: Any,
    seed: int,
    *,
    folds: int = 10,
    candidates: Sequence[float] = CANDIDATES,
    inner_folds: int = 5,
) -> float:
    """Accuracy of an RBF support vector machine, the mean over stratified folds.

    Standardisation is fitted on the training folds and C is chosen by cross-validation within them:
    the test fold plays no part in either.

    Args:
        embeddings: (n, d), finite.
        y: (n,) labels.
        seed: of the folds, outer and inner.

    Raises:
        ValueError: one class; a class smaller than the number of folds; values that are not finite.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    x, y = np.asarray(embeddings, dtype=np.float64), check_labels(y, folds)
    if x.ndim != 2 or len(x) != len(y) or not np.isfinite(x).all():
        raise ValueError(f"embeddings: shape {x.shape}, must be finite ({len(y)}, d)")
    machine = make_pipeline(StandardScaler(), SVC(kernel="rbf"))
    return _nested(machine, "svc__C", x, y, seed, folds, candidates, inner_folds)


def kernel_accuracy(
    K: Any,
    y: Any,
    seed: int,
    *,
    folds: int = 10,
    candidates: Sequence[float] = CANDIDATES,
    inner_folds: int = 5,
) -> float:
    """As `cross_validated_accuracy`, of a support vector machine on a kernel matrix K (n, n)."""
    from sklearn.svm import SVC

    kernel, y = np.asarray(K, dtype=np.float64), check_labels(y, folds)
    if kernel.shape != (len(y), len(y)) or not np.isfinite(kernel).all():
        raise ValueError(f"K: shape {kernel.shape}, must be finite ({len(y)}, {len(y)})")
    if not np.allclose(kernel, kernel.T):
        raise ValueError("K: is not symmetric")
    return _nested(SVC(kernel="precomputed"), "C", kernel, y, seed, folds, candidates, inner_folds)


def check_labels(y: Any, folds: int) -> np.ndarray:
    """The labels; ValueError for one class, or a class smaller than the number of folds."""
    y = np.asarray(y)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y: {len(classes)} class, at least 2 are needed")
    if counts.min() < folds:
        raise ValueError(
            f"y: class {classes[counts.argmin()]} has {counts.min()} graphs, {folds} folds need as "
            "many"
        )
    return y


def _nested(
    machine: Any,
    parameter: str,
    x: np.ndarray,
    y: np.ndarray,
    seed: int,
    folds: int,
    candidates: Sequence[float],
    inner_folds: int,
) -> float:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

    if not candidates or not all(c > 0 for c in candidates):
        raise ValueError(f"candidates: {tuple(candidates)}, must be some values of C > 0")
    inner = StratifiedKFold(inner_folds, shuffle=True, random_state=seed)
    outer = StratifiedKFold(folds, shuffle=True, random_state=seed)
    search = GridSearchCV(machine, {parameter: list(candidates)}, cv=inner)
    return float(cross_val_score(search, x, y, cv=outer).mean())


def effective_rank(embeddings: Any) -> float:
    """exp of the entropy of the normalised singular values of standardised embeddings (n, d).

    Columns that are constant up to rounding are left out; ValueError where all are, and for values
    that are not a finite (n, d).
    """
    x = np.asarray(embeddings, dtype=np.float64)
    if x.ndim != 2 or not x.size or not np.isfinite(x).all():
        raise ValueError(f"embeddings: shape {x.shape}, must be finite (n, d)")
    x = x[:, x.std(0) > np.maximum(1e-12, 1e-9 * np.abs(x).max(0))]
    if not x.shape[1]:
        raise ValueError("embeddings: every column is constant")
    x = (x - x.mean(0)) / x.std(0)
    values = np.linalg.svd(x, compute_uv=False)
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))
