"""Label sets as multi-hot rows, and the checks that every function of this package shares."""

from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float


def as_numpy(values) -> np.ndarray:
    """A numpy view of a numpy array, a torch tensor on any device, or nested lists."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if values.is_floating_point():
            values = values.double()  # numpy knows no bfloat16
        return values.numpy()
    return np.asarray(values)


def as_matrix(values, name: str) -> Float[np.ndarray, "rows columns"]:
    """`values` as a finite float64 matrix.

    Raises ValueError when it is not two-dimensional or holds NaN or infinity.
    """
    matrix = as_numpy(values).astype(np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must be a non-empty matrix, got shape {matrix.shape}")
    if not (finite := np.isfinite(matrix)).all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name} must be finite, got {matrix[row, column]} in row {row}, column {column}"
        )
    return matrix


def check_targets(targets, name: str = "targets") -> Bool[np.ndarray, "N K"]:
    """Multi-hot rows as booleans.

    Raises ValueError unless `targets` is a matrix of 0 and 1 with K >= 2 columns and at least one
    label in every row.
    """
    values = as_numpy(targets)
    if values.ndim != 2 or values.shape[0] == 0:
        raise ValueError(f"{name} must be a non-empty [N, K] matrix, got shape {values.shape}")
    if values.shape[1] < 2:
        raise ValueError(f"{name} must have at least 2 classes (columns), got {values.shape[1]}")
    labels = values == 1
    if not (allowed := labels | (values == 0)).all():
        row, column = np.argwhere(~allowed)[0]
        raise ValueError(
            f"{name} must hold only 0 and 1, got {values[row, column]} in row {row}, "
            f"column {column}"
        )
    if not (labelled := labels.any(axis=1)).all():
        raise ValueError(
            f"{name} must have at least one label in every row, row {np.argmin(labelled)} has none"
        )
    return labels


def check_features(features, targets) -> tuple[np.ndarray, np.ndarray]:
    """Features as a finite float64 [N, d] matrix and targets as booleans [N, K], N the same."""
    features, targets = as_matrix(features, "features"), check_targets(targets)
    if len(features) != len(targets):
        raise ValueError(
            f"features and targets must have the same number of rows, "
            f"got {len(features)} and {len(targets)}"
        )
    return features, targets


def all_label_sets(num_classes: int, multiplicity: int) -> Bool[np.ndarray, "M K"]:
    """Every set of `multiplicity` out of `num_classes` labels, in lexicographic order, multi-hot.

    Raises ValueError unless 1 <= multiplicity <= num_classes.
    """
    if not 1 <= multiplicity <= num_classes:
        raise ValueError(
            f"multiplicity must be in 1..{num_classes} (the number of classes), got {multiplicity}"
        )
    members = np.array(list(combinations(range(num_classes), multiplicity)))
    sets = np.zeros((len(members), num_classes), dtype=bool)
    np.put_along_axis(sets, members, True, axis=1)
    return sets


def members(label_set) -> tuple[int, ...]:
    """The labels of one multi-hot row, ascending."""
    return tuple(int(k) for k in np.flatnonzero(label_set))
