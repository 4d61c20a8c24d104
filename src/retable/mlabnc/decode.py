"""From features or scores to label sets: nearest prototype, and thresholds to compare with."""

from collections.abc import Callable, Sequence
from typing import Literal, Self

import numpy as np
from jaxtyping import Bool, Float

from retable.mlabnc.evaluate import exact_match
from retable.mlabnc.label_sets import all_label_sets, as_matrix, check_features, check_targets
from retable.mlabnc.metrics import label_set_means, single_label_means


class OneNearestLabelSet:
    """Predict the label set whose prototype is nearest to the feature.

    Under neural collapse the mean features of the label sets are known from the single-label means,
    so that nearest-mean decoding needs one vector per class only.

    `prototypes`: "empirical" is the mean training feature of every label set seen with an allowed
    multiplicity; "tagwise" is the sum of single-label vectors for every set of an allowed
    multiplicity, seen or not. `metric`: "cosine" after subtracting G (the mean of the single-label
    means), or "euclidean", for empirical prototypes only, since a tag-wise sum knows the direction
    of a set's mean but not its scale kappa_m. `multiplicities`: the set sizes that may be
    predicted. Ties go to the candidate with fewer labels, then to the lexicographically first.

    Attributes after `fit`: `label_sets_` [M, K] bool, `prototypes_` [M, d], `center_` [d].
    """

    def __init__(
        self,
        prototypes: Literal["empirical", "tagwise"] = "empirical",
        metric: Literal["cosine", "euclidean"] = "cosine",
        multiplicities: Sequence[int] = (1, 2),
    ) -> None:
        if prototypes not in ("empirical", "tagwise"):
            raise ValueError(f'prototypes must be "empirical" or "tagwise", got {prototypes!r}')
        if metric not in ("cosine", "euclidean"):
            raise ValueError(f'metric must be "cosine" or "euclidean", got {metric!r}')
        if prototypes == "tagwise" and metric == "euclidean":
            raise ValueError(
                'metric must be "cosine" with tagwise prototypes, got "euclidean": the scale of a '
                "sum of tag means is unknown"
            )
        if not multiplicities or min(multiplicities) < 1:
            raise ValueError(f"multiplicities must be positive and not empty, got {multiplicities}")
        self.prototypes = prototypes
        self.metric = metric
        self.multiplicities = tuple(sorted(set(multiplicities)))

    def fit(self, features, targets, weight=None) -> Self:
        """Compute the prototypes from training features [N, d] and multi-hot targets [N, K].

        `weight` [K, d] replaces the single-label means in tag-wise prototypes by the rows of the
        classifier. Raises ValueError when a class has no sample with that label alone, when no
        sample has an allowed multiplicity, or when a prototype is zero and the metric is cosine.
        """
        features, targets = check_features(features, targets)
        num_classes = targets.shape[1]
        means = label_set_means(features, targets)
        single = single_label_means(means, num_classes)
        if max(self.multiplicities) > num_classes:
            raise ValueError(
                f"multiplicities must be at most {num_classes} (the number of classes), "
                f"got {max(self.multiplicities)}"
            )
        self.center_ = single.mean(axis=0)
        if self.prototypes == "tagwise":
            tags = single - self.center_
            if weight is not None:
                tags = _check_weight(weight, tags.shape)
            self.label_sets_ = np.concatenate(
                [all_label_sets(num_classes, m) for m in self.multiplicities]
            )
            self.prototypes_ = self.label_sets_.astype(np.float64) @ tags
        else:
            if weight is not None:
                raise ValueError('weight must be None unless prototypes are "tagwise"')
            allowed = np.isin([len(labels) for labels in means.sets], self.multiplicities)
            if not allowed.any():
                raise ValueError(
                    f"targets must have samples with {self.multiplicities} labels, got none"
                )
            # One sample of each set carries its multi-hot row.
            _, first = np.unique(means.index, return_index=True)
            self.label_sets_ = targets[first[allowed]]
            self.prototypes_ = means.means[allowed] - self.center_
        if self.metric == "cosine":
            norms = np.linalg.norm(self.prototypes_, axis=1)
            if (norms <= 1e-12 * norms.max()).any():
                labels = np.flatnonzero(self.label_sets_[norms.argmin()]).tolist()
                raise ValueError(
                    f"features must give every label set a direction, the prototype of set "
                    f"{tuple(labels)} is zero"
                )
        return self

    def predict(self, features) -> Bool[np.ndarray, "N K"]:
        """The label set of the nearest prototype for each row of features [N, d], multi-hot.

        Raises ValueError before `fit`, for non-finite features or another d than in `fit`.
        """
        if not hasattr(self, "prototypes_"):
            raise ValueError("predict needs prototypes: call fit(features, targets) first")
        features = as_matrix(features, "features")
        if features.shape[1] != self.prototypes_.shape[1]:
            raise ValueError(
                f"features must have {self.prototypes_.shape[1]} columns as in fit, "
                f"got {features.shape[1]}"
            )
        inner = (features - self.center_) @ self.prototypes_.T
        norms = np.linalg.norm(self.prototypes_, axis=1)
        # The norm of the feature itself does not change which prototype is nearest.
        closeness = inner / norms if self.metric == "cosine" else inner - norms**2 / 2
        return self.label_sets_[closeness.argmax(axis=1)]


def threshold_decode(scores, theta: float) -> Bool[np.ndarray, "N K"]:
    """The labels whose score (softmax or sigmoid) is at least theta; the best one if none is.

    `scores` is [N, K]. Raises ValueError for theta outside (0, 1) or non-finite scores.
    """
    if not 0 < theta < 1:
        raise ValueError(f"theta must be in (0, 1), got {theta}")
    scores = as_matrix(scores, "scores")
    predicted = scores >= theta
    best = np.eye(scores.shape[1], dtype=bool)[scores.argmax(axis=1)]
    return np.where(predicted.any(axis=1, keepdims=True), predicted, best)


def tune_threshold(
    scores,
    targets,
    grid: Sequence[float] | Float[np.ndarray, " T"],
    criterion: Callable[[np.ndarray, np.ndarray], float] = exact_match,
) -> float:
    """The theta of `grid` with the best `criterion(predicted, targets)`; the smallest on ties.

    Meant for a validation split, never for the one that is reported. Raises ValueError for an empty
    grid, a theta outside (0, 1), or scores and targets of different shape.
    """
    scores, targets = as_matrix(scores, "scores"), check_targets(targets)
    if scores.shape != targets.shape:
        raise ValueError(
            f"scores and targets must have the same shape, got {scores.shape} and {targets.shape}"
        )
    thetas = sorted(float(theta) for theta in grid)
    if not thetas:
        raise ValueError("grid must hold at least one theta, got none")
    quality = [criterion(threshold_decode(scores, theta), targets) for theta in thetas]
    return thetas[int(np.argmax(quality))]


def _check_weight(weight, shape: tuple[int, int]) -> np.ndarray:
    weight = as_matrix(weight, "weight")
    if weight.shape != shape:
        raise ValueError(f"weight must have shape [K, d] = {list(shape)}, got {weight.shape}")
    return weight
