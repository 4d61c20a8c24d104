"""What a representation holds: masked accuracy, order of pairs, and how many directions it uses."""

from typing import Any

import numpy as np


def masked_accuracy(
    train: np.ndarray, y_train: np.ndarray, test: np.ndarray, y_test: np.ndarray, steps: int = 1000
) -> float:
    """Top-1 accuracy of a multinomial logistic regression from e to the wild type.

    Read the same way for every objective, since a mutation head's output depends on the letter that
    it is told: fitted on the training positions (inputs standardised, C = 1), read on others.

    Args:
        train, test: (N, width); y_train, y_test: (N,) codes; steps: of the solver, at most.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    machine = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=steps, tol=1e-3))
    return float(machine.fit(train, y_train).score(test, y_test))


def pair_accuracy(scores: Any, p: Any, wildtype: Any, least: float = 0.05) -> tuple[float, float]:
    """Share of pairs of amino acids that scores put in the order of p, ties counting half.

    Pairs are those of a position that differ by at least `least` in p.

    Args:
        scores: (N, 20); p: (N, 20); wildtype: (N,).

    Returns:
        over all pairs, and over those without the wild type.
    """
    scores, p = np.asarray(scores, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if scores.shape != p.shape or scores.shape[1:] != (20,):
        raise ValueError(f"scores, p: shapes {scores.shape} and {p.shape}, must be (N, 20) both")
    if not (np.isfinite(scores).all() and np.isfinite(p).all()):
        raise ValueError("scores, p: hold values that are not finite")
    first, second = np.triu_indices(20, 1)
    order = p[:, first] - p[:, second]
    found = np.sign(scores[:, first] - scores[:, second])
    right = np.where(found == 0, 0.5, found == np.sign(order))
    counted = np.abs(order) >= least
    wildtype = np.asarray(wildtype)[:, None]
    others = counted & (first != wildtype) & (second != wildtype)
    if not others.any():
        raise ValueError(f"p: no pair without the wild type differs by {least}")
    return float(right[counted].mean()), float(right[others].mean())


def participation_ratio(e: Any) -> float:
    """trace(C)^2 / trace(C^2) of the covariance C of e (N, width): directions in use, >= 1."""
    e = np.asarray(e, dtype=np.float64)
    covariance = np.cov(e, rowvar=False)
    square = (covariance**2).sum()
    if not square > 0:
        raise ValueError("e: does not vary")
    return float(np.trace(covariance) ** 2 / square)
