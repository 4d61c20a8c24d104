"""Quality of predicted label sets, each a mean in [0, 1] over samples (micro_f1: over labels)."""

import numpy as np
from scipy.special import softmax

from retable.mlabnc.label_sets import as_matrix, as_numpy, check_targets


def soft_iou(logits, targets) -> float:
    """Mean softmax mass that logits [N, K] put on the true label set.

    Called IoU in the experiments of the paper's code; it is no overlap of sets, see `set_iou`.
    Uniform logits score m/K. Raises ValueError for non-finite logits or bad targets.
    """
    logits, targets = as_matrix(logits, "logits"), check_targets(targets)
    _check_shapes(logits, targets, "logits")
    return float((softmax(logits, axis=1) * targets).sum(axis=1).mean())


def set_iou(predicted, targets) -> float:
    """Mean Jaccard index of predicted and true label sets, |A and B| / |A or B|."""
    from sklearn.metrics import jaccard_score

    predicted, targets = _check_predicted(predicted, targets)
    return float(jaccard_score(targets, predicted, average="samples"))


def exact_match(predicted, targets) -> float:
    """Share of samples whose whole label set is predicted."""
    predicted, targets = _check_predicted(predicted, targets)
    return float((predicted == targets).all(axis=1).mean())


def micro_f1(predicted, targets) -> float:
    """F1 of all (sample, label) decisions pooled; 0 when no prediction hits."""
    from sklearn.metrics import f1_score

    predicted, targets = _check_predicted(predicted, targets)
    return float(f1_score(targets, predicted, average="micro", zero_division=0.0))


def multiplicity_f1(predicted, targets) -> float:
    """F1 of telling samples with several labels (the positive class) from those with one.

    1 when neither prediction nor truth has a sample with several labels.
    """
    from sklearn.metrics import f1_score

    predicted, targets = _check_predicted(predicted, targets)
    several = predicted.sum(axis=1) > 1
    return float(f1_score(targets.sum(axis=1) > 1, several, zero_division=1.0))


def _check_predicted(predicted, targets) -> tuple[np.ndarray, np.ndarray]:
    """Predicted and true label sets as booleans; a prediction may be empty, the truth may not."""
    predicted, targets = as_numpy(predicted), check_targets(targets)
    _check_shapes(predicted, targets, "predicted")
    if not np.isin(predicted, (0, 1)).all():
        raise ValueError("predicted must hold only 0 and 1 (label sets, not scores)")
    return predicted.astype(bool), targets


def _check_shapes(values: np.ndarray, targets: np.ndarray, name: str) -> None:
    if values.shape != targets.shape:
        raise ValueError(
            f"{name} and targets must have the same shape, got {values.shape} and {targets.shape}"
        )
