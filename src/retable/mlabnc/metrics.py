"""How far features and classifier are from multi-label neural collapse (section 4 of the paper).

All functions take numpy arrays or torch tensors, compute in float64 and change nothing. They are
meant for features of the training set, taken in evaluation mode. Zero is perfect collapse.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from retable.mlabnc.label_sets import all_label_sets, as_matrix, check_features, members

# Singular directions of the class means below this share of the largest are rounding noise:
# Sigma_B has rank K-1 at most, and inverting noise would make NC1 arbitrary.
_SIGMA_B_RTOL = 1e-6
# A mean shorter than this share of the features' size has no direction beyond rounding.
_ZERO_NORM = 1e-12


@dataclass(frozen=True)
class LabelSetMeans:
    """The mean feature of every label set that occurs.

    `sets` are tuples of labels, by multiplicity and then lexicographic; `means` [M, d] and `counts`
    [M] follow that order; `index` [N] tells each sample's place in it.
    """

    sets: list[tuple[int, ...]]
    means: Float[np.ndarray, "M d"]
    counts: Int[np.ndarray, " M"]
    index: Int[np.ndarray, " N"]


@dataclass(frozen=True)
class TagSet:
    """One label set against the sum of its labels' means: angle in degrees, scale, residual."""

    angle_deg: float
    kappa: float
    residual: float


@dataclass(frozen=True)
class TagAverage:
    """How well mu_S is a scaled sum of the mu_k, k in S, over the sets of one multiplicity.

    `angle_deg` is the mean angle between the two, `baseline_deg` the mean angle over all pairs of a
    sum and an observed set, `angle_ratio` their quotient. `kappa_mean` and `kappa_std` (over sets,
    population) are of the least-squares scale of each set, `residual` is the mean relative residual
    of that fit. `per_set` has the same for each label set.
    """

    angle_deg: float
    angle_ratio: float
    baseline_deg: float
    kappa_mean: float
    kappa_std: float
    residual: float
    per_set: dict[tuple[int, ...], TagSet]


def label_set_means(features, targets) -> LabelSetMeans:
    """Mean feature of every label set that occurs in multi-hot `targets` [N, K].

    Raises ValueError for non-finite features, targets that are not multi-hot, or a row without a
    label.
    """
    features, targets = check_features(features, targets)
    distinct, index = np.unique(targets, axis=0, return_inverse=True)
    labels = [members(row) for row in distinct]
    order = sorted(range(len(labels)), key=lambda s: (len(labels[s]), labels[s]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    index = rank[index.reshape(-1)]
    counts = np.bincount(index, minlength=len(order))
    grouped = features[np.argsort(index, kind="stable")]
    sums = np.add.reduceat(grouped, np.cumsum(counts) - counts, axis=0)
    return LabelSetMeans([labels[s] for s in order], sums / counts[:, None], counts, index)


def single_label_means(means: LabelSetMeans, num_classes: int) -> Float[np.ndarray, "K d"]:
    """mu_k for every class, in order. Raises ValueError that lists the classes without one."""
    present = [labels[0] for labels in means.sets if len(labels) == 1]
    if missing := sorted(set(range(num_classes)) - set(present)):
        raise ValueError(
            f"targets must have a sample with a single label for every class, "
            f"classes {missing} have none"
        )
    return means.means[:num_classes]  # sets are ordered: single labels come first


def nc1(features, targets, multiplicity: int = 1) -> float:
    """Variability within the label sets of one multiplicity m, relative to that between classes.

    NC1 = tr(Sigma_W Sigma_B^+) / K with Sigma_W the covariance of the samples with m labels around
    the means of their label sets and Sigma_B = (1/K) sum_k (mu_k - G)(mu_k - G)^T of the single
    labels. Raises ValueError when a class has no sample with that label alone, when no sample has m
    labels, or when the single-label means coincide; warns when a label set has one sample only,
    which adds no variability.
    """
    features, targets = check_features(features, targets)
    return _nc1(features, targets, label_set_means(features, targets), multiplicity)


def nc2(matrix) -> float:
    """Distance of the rows' Gram matrix from that of a simplex ETF, both of Frobenius norm 1.

    || M M^T / ||M M^T||_F - P_K / sqrt(K-1) ||_F for M of shape K x d; M is used as it is: centre
    class means before. Raises ValueError for a zero or non-finite matrix and for K < 2.
    """
    matrix = as_matrix(matrix, "matrix")
    return _distance_to_etf(matrix @ matrix.T, "matrix")


def nc3(weight, means) -> float:
    """Distance of classifier and class means from being one simplex ETF up to scale.

    || W C^T / ||W C^T||_F - P_K / sqrt(K-1) ||_F for the classifier W [K, d] and the (centred)
    single-label means C [K, d]. Raises ValueError for shapes that differ or a zero product.
    """
    weight, means = as_matrix(weight, "weight"), as_matrix(means, "means")
    if weight.shape != means.shape:
        raise ValueError(
            f"weight and means must have the same shape [K, d], got {weight.shape} and "
            f"{means.shape}"
        )
    return _distance_to_etf(weight @ means.T, "weight @ means.T")


def tag_average(features, targets, multiplicity: int = 2, center: bool = True) -> TagAverage:
    """Compare the mean of each label set with the sum of its labels' single-label means.

    For every observed set S with m = `multiplicity` labels: a_S = sum_{k in S} mu_k and q_S = mu_S,
    their angle, the scale kappa_S = <q_S, a_S> / ||a_S||^2 and the residual
    ||q_S - kappa_S a_S|| / ||q_S||. The baseline is the mean angle between a_T and q_S over all
    C(K, m) sets T and all observed S, matching ones included. `center` subtracts G, the mean of the
    single-label means, from every mean first: without it (the raw means) features that are all
    positive, as after a ReLU, have small angles for that reason alone.

    Raises ValueError when a class has no sample with that label alone, when no sample has m labels,
    or when a mean that an angle needs is zero.
    """
    features, targets = check_features(features, targets)
    return _tag_average(label_set_means(features, targets), targets, multiplicity, center)


def group_angle_ratio(result: TagAverage, sets: Iterable[tuple[int, ...]]) -> float:
    """The angle ratio of a group of label sets: their mean angle over the baseline of all sets.

    Raises ValueError for an empty group or a set that `result` does not have.
    """
    sets = [tuple(sorted(labels)) for labels in sets]
    if not sets:
        raise ValueError("sets must name at least one label set, got none")
    if missing := [labels for labels in sets if labels not in result.per_set]:
        raise ValueError(f"sets must be label sets of the result, got {missing[0]}")
    return float(np.mean([result.per_set[s].angle_deg for s in sets]) / result.baseline_deg)


def nc_metrics(features, targets, weight, center: bool = True) -> dict[str, float]:
    """All metrics of multi-label neural collapse for features [N, d] and a classifier [K, d].

    Keys: `nc1_m{m}` for every multiplicity m that occurs; `nc2_h`, `nc2_w`, `nc3`; and of the
    tag-wise average `angle_deg`, `angle_ratio`, `kappa_mean`, `kappa_std`, `residual` for m = 2,
    with the suffix `_m{m}` for m > 2, where such sets occur (m = K excepted, whose centred sum is
    zero). `center=False` uses raw means in nc2_h, nc3 and the tag-wise average. Raises ValueError
    as the single functions do.
    """
    features, targets = check_features(features, targets)
    weight = as_matrix(weight, "weight")
    num_classes = targets.shape[1]
    if weight.shape != (num_classes, features.shape[1]):
        raise ValueError(
            f"weight must have shape [K, d] = [{num_classes}, {features.shape[1]}], "
            f"got {weight.shape}"
        )
    means = label_set_means(features, targets)
    single = single_label_means(means, num_classes)
    if center:
        single = single - single.mean(axis=0)
    occurring = sorted({len(labels) for labels in means.sets})
    result = {f"nc1_m{m}": _nc1(features, targets, means, m) for m in occurring}
    result |= {"nc2_h": nc2(single), "nc2_w": nc2(weight), "nc3": nc3(weight, single)}
    for m in occurring:
        if 2 <= m < num_classes:
            tags = _tag_average(means, targets, m, center)
            suffix = "" if m == 2 else f"_m{m}"
            result |= {
                f"{name}{suffix}": getattr(tags, name)
                for name in ("angle_deg", "angle_ratio", "kappa_mean", "kappa_std", "residual")
            }
    return result


def _nc1(features: np.ndarray, targets: np.ndarray, means: LabelSetMeans, m: int) -> float:
    num_classes = targets.shape[1]
    single = single_label_means(means, num_classes)
    chosen = _samples_with(targets, m)
    multiplicities = np.array([len(labels) for labels in means.sets])
    if lonely := [
        means.sets[s] for s in np.flatnonzero((multiplicities == m) & (means.counts < 2))
    ]:
        warnings.warn(
            f"nc1: {len(lonely)} label sets with {m} labels have one sample only, which adds no "
            f"variability (first: {lonely[0]})",
            RuntimeWarning,
            stacklevel=3,
        )
    # tr(Sigma_W Sigma_B^+) through the singular vectors of C, since Sigma_B = C^T C / K; the
    # d x d matrices themselves are never formed.
    _, singular, directions = np.linalg.svd(single - single.mean(axis=0), full_matrices=False)
    variances = singular**2 / num_classes
    if variances[0] <= (_ZERO_NORM * _size(means.means)) ** 2:
        raise ValueError("features must have distinct single-label means, got the same for all")
    kept = variances > _SIGMA_B_RTOL * variances[0]
    deviations = features[chosen] - means.means[means.index[chosen]]
    whitened = deviations @ directions[kept].T / np.sqrt(variances[kept])
    return float(np.square(whitened).sum() / (chosen.sum() * num_classes))


def _tag_average(means: LabelSetMeans, targets: np.ndarray, m: int, center: bool) -> TagAverage:
    num_classes = targets.shape[1]
    single = single_label_means(means, num_classes)
    _samples_with(targets, m)
    origin = single.mean(axis=0) if center else 0.0
    observed = [s for s, labels in enumerate(means.sets) if len(labels) == m]
    sets = [means.sets[s] for s in observed]
    candidates = all_label_sets(num_classes, m)
    sums = candidates.astype(np.float64) @ (single - origin)
    set_means = means.means[observed] - origin
    smallest = _ZERO_NORM * _size(means.means)
    _check_nonzero(sums, [members(c) for c in candidates], smallest, "sum of single-label means")
    _check_nonzero(set_means, sets, smallest, "mean feature")
    place = {members(c): t for t, c in enumerate(candidates)}
    matching = sums[[place[labels] for labels in sets]]

    angles = _angles_deg(matching, set_means)
    cosines = _unit(sums) @ _unit(set_means).T
    # Rounding can push a cosine just past 1, where arccos is undefined.
    baseline = float(np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0))).mean())
    kappas = (set_means * matching).sum(axis=1) / np.square(matching).sum(axis=1)
    residuals = np.linalg.norm(set_means - kappas[:, None] * matching, axis=1)
    residuals = residuals / np.linalg.norm(set_means, axis=1)
    per_set = {
        labels: TagSet(float(angle), float(kappa), float(residual))
        for labels, angle, kappa, residual in zip(sets, angles, kappas, residuals, strict=True)
    }
    return TagAverage(
        angle_deg=float(angles.mean()),
        angle_ratio=float(angles.mean() / baseline),
        baseline_deg=baseline,
        kappa_mean=float(kappas.mean()),
        kappa_std=float(kappas.std()),
        residual=float(residuals.mean()),
        per_set=per_set,
    )


def _samples_with(targets: np.ndarray, multiplicity: int) -> Bool[np.ndarray, " N"]:
    chosen = targets.sum(axis=1) == multiplicity
    if not chosen.any():
        raise ValueError(f"targets must have samples with {multiplicity} labels, got none")
    return chosen


def _distance_to_etf(gram: np.ndarray, name: str) -> float:
    k = len(gram)
    if k < 2:
        raise ValueError(f"{name} must have at least 2 rows (classes), got {k}")
    norm = np.linalg.norm(gram)
    if norm == 0:
        raise ValueError(f"{name} must not be zero: a zero matrix has no angles")
    ideal = (np.eye(k) - 1 / k) / math.sqrt(k - 1)
    return float(np.linalg.norm(gram / norm - ideal))


def _size(vectors: np.ndarray) -> float:
    """Root mean square norm of the rows: what "zero" is measured against."""
    return float(np.linalg.norm(vectors) / math.sqrt(len(vectors)))


def _check_nonzero(vectors: np.ndarray, sets: list, smallest: float, what: str) -> None:
    zero = np.linalg.norm(vectors, axis=1) <= smallest
    if zero.any():
        raise ValueError(
            f"features must give every label set a direction, the {what} of set "
            f"{sets[int(np.argmax(zero))]} is zero and its angle undefined"
        )


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _angles_deg(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row-wise angles in degrees, accurate for angles near 0 where arccos loses half the digits."""
    a, b = _unit(a), _unit(b)
    return np.degrees(2 * np.arctan2(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1)))
