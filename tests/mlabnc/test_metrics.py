"""Collapse metrics: hand-worked values, invariances, an independent reference, and bad input."""

import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.mlabnc import (
    balanced_label_sets,
    group_angle_ratio,
    label_set_means,
    nc1,
    nc2,
    nc3,
    nc_metrics,
    simplex_etf,
    tag_average,
)

INVARIANT = ("nc1_m1", "nc1_m2", "nc2_h", "nc3", "angle_deg", "angle_ratio")


def noisy_problem(seed, num_classes=4, dim=6, copies=3, noise=0.3, offset=2.0):
    """Features around scaled sums of random class vectors, pairs of labels included."""
    rng = np.random.default_rng(seed)
    targets = balanced_label_sets(num_classes, {1: copies, 2: copies}).numpy()
    tags = rng.standard_normal((num_classes, dim))
    scale = np.where(targets.sum(axis=1) == 1, 1.0, 0.8)[:, None]
    features = scale * (targets @ tags) + noise * rng.standard_normal((len(targets), dim)) + offset
    return features, targets, rng.standard_normal((num_classes, dim))


def collapsed_pairs(num_classes, pair_feature):
    """One feature per single label (a simplex frame) and per pair, as pair_feature gives it."""
    frame = simplex_etf(num_classes).numpy()
    targets = balanced_label_sets(num_classes, {1: 1, 2: 1}).numpy()
    pairs = [pair_feature(frame, *pair) for pair in itertools.combinations(range(num_classes), 2)]
    return np.concatenate([frame, np.array(pairs)]), targets


def test_means_by_hand():
    features = [[1.0, 0], [3, 0], [0, 5], [2, 2], [4, 4]]
    targets = [[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
    means = label_set_means(features, targets)
    assert means.sets == [(0,), (1,), (2,), (0, 1)]
    np.testing.assert_array_equal(means.means, [[0, 5], [2, 0], [4, 4], [2, 2]])
    np.testing.assert_array_equal(means.counts, [1, 2, 1, 1])
    np.testing.assert_array_equal(means.index, [1, 1, 0, 3, 2])


def test_nc1_of_a_triangle_of_crosses():
    angles = np.radians([90, 210, 330])
    centres = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    cross = 0.1 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    features = (centres[:, None] + cross).reshape(12, 2)
    targets = np.repeat(np.eye(3), 4, axis=0)
    assert nc1(features, targets) == pytest.approx(0.0066666667, abs=1e-10)


@pytest.mark.parametrize("multiplicity", [1, 2])
@pytest.mark.parametrize("dim", [2, 3, 6, 20])
def test_nc1_against_explicit_covariances(multiplicity, dim):
    features, targets, _ = noisy_problem(0, dim=dim)
    sets = {tuple(row) for row in targets}
    mean = {s: features[(targets == s).all(axis=1)].mean(axis=0) for s in sets}
    chosen = targets.sum(axis=1) == multiplicity
    deviations = np.array(
        [h - mean[tuple(y)] for h, y in zip(features[chosen], targets[chosen], strict=True)]
    )
    within = deviations.T @ deviations / chosen.sum()
    single = np.array([mean[tuple(row)] for row in np.eye(4)])
    single = single - single.mean(axis=0)
    between = single.T @ single / 4
    expected = np.trace(within @ np.linalg.pinv(between, rcond=1e-6, hermitian=True)) / 4
    assert nc1(features, targets, multiplicity) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("num_classes", "value"), [(3, 0.6058108931), (10, 0.3203644860)])
def test_nc2_of_the_identity(num_classes, value):
    assert nc2(np.eye(num_classes)) == pytest.approx(value, abs=1e-10)
    formula = math.sqrt(2 - 2 * math.sqrt((num_classes - 1) / num_classes))
    assert nc2(np.eye(num_classes)) == pytest.approx(formula, abs=1e-14)


def test_nc3_is_zero_for_parallel_frames_and_large_for_opposed_ones():
    frame = simplex_etf(5, 7, torch.Generator().manual_seed(0))
    assert nc3(3 * frame, 0.2 * frame) < 1e-12
    assert nc3(frame, -frame) == pytest.approx(2, abs=1e-12)


@pytest.mark.parametrize(("num_classes", "degrees"), [(3, 80), (4, 90), (10, 89.177)])
def test_baseline_angle_of_a_perfect_frame(num_classes, degrees):
    features, targets = collapsed_pairs(num_classes, lambda z, i, j: z[i] + z[j])
    result = tag_average(features, targets)
    assert result.baseline_deg == pytest.approx(degrees, abs=5e-4)
    assert result.angle_deg < 1e-6


def test_pairs_that_follow_their_first_label_only():
    features, targets = collapsed_pairs(4, lambda z, i, j: z[i])
    result = tag_average(features, targets)
    assert result.angle_deg == pytest.approx(54.7356103, abs=1e-7)
    assert result.angle_ratio == pytest.approx(0.60817345, abs=1e-8)


def test_pairs_that_are_scaled_sums():
    features, targets = collapsed_pairs(4, lambda z, i, j: 0.8 * (z[i] + z[j]))
    result = tag_average(features, targets)
    assert result.angle_ratio < 1e-6
    assert result.kappa_mean == pytest.approx(0.8, abs=1e-12)
    assert result.kappa_std < 1e-12
    assert result.residual < 1e-12


def test_one_scale_a_set_against_least_squares():
    features, targets, _ = noisy_problem(1)
    result = tag_average(features, targets, center=False)
    means = label_set_means(features, targets)
    by_set = dict(zip(means.sets, means.means, strict=True))
    assert list(result.per_set) == list(itertools.combinations(range(4), 2))
    for (i, j), of_set in result.per_set.items():
        total, mean = by_set[(i,)] + by_set[(j,)], by_set[(i, j)]
        (kappa,), (squared,), *_ = np.linalg.lstsq(total[:, None], mean, rcond=None)
        cosine = total @ mean / (np.linalg.norm(total) * np.linalg.norm(mean))
        assert of_set.kappa == pytest.approx(kappa, rel=1e-12)
        assert of_set.residual == pytest.approx(math.sqrt(squared) / np.linalg.norm(mean), rel=1e-9)
        assert of_set.angle_deg == pytest.approx(math.degrees(math.acos(cosine)), rel=1e-9)
    assert result.kappa_std == pytest.approx(
        np.std([s.kappa for s in result.per_set.values()]), rel=1e-12
    )


def test_triples_that_are_scaled_sums():
    frame = simplex_etf(5).numpy()
    targets = balanced_label_sets(5, {1: 2, 3: 2}).numpy()
    features = np.where(targets.sum(axis=1, keepdims=True) == 3, 0.6, 1.0) * (targets @ frame)
    result = tag_average(features, targets, multiplicity=3)
    assert result.angle_deg < 1e-6
    assert result.kappa_mean == pytest.approx(0.6, abs=1e-12)
    metrics = nc_metrics(features + 1, targets, frame)
    assert metrics["angle_ratio_m3"] < 1e-6
    assert "angle_ratio" not in metrics


def test_groups_share_the_baseline():
    features, targets, _ = noisy_problem(2)
    result = tag_average(features, targets)
    sets = list(result.per_set)
    ratios = [group_angle_ratio(result, sets[:2]), group_angle_ratio(result, sets[2:])]
    assert (2 * ratios[0] + 4 * ratios[1]) / 6 == pytest.approx(result.angle_ratio, rel=1e-12)
    assert group_angle_ratio(result, [(1, 0)]) == group_angle_ratio(result, [(0, 1)])
    with pytest.raises(ValueError, match=r"label sets of the result, got \(0, 9\)"):
        group_angle_ratio(result, [(0, 9)])
    with pytest.raises(ValueError, match="at least one label set"):
        group_angle_ratio(result, [])


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3))
def test_rotation_and_scale_change_nothing(seed, scale):
    features, targets, weight = noisy_problem(seed)
    rotation = np.linalg.qr(np.random.default_rng(seed + 1).standard_normal((6, 6)))[0]
    before = nc_metrics(features, targets, weight)
    turned = nc_metrics(features @ rotation, targets, weight @ rotation)
    for name, value in before.items():
        assert turned[name] == pytest.approx(value, rel=1e-7, abs=1e-9), name
    scaled = nc_metrics(scale * features, targets, weight)
    for name in INVARIANT:
        assert scaled[name] == pytest.approx(before[name], rel=1e-7, abs=1e-9), name


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.floats(-5, 5))
def test_centred_metrics_ignore_a_constant_vector(seed, shift):
    features, targets, weight = noisy_problem(seed)
    moved = features + shift * np.arange(1, 7)
    before, after = nc_metrics(features, targets, weight), nc_metrics(moved, targets, weight)
    for name in INVARIANT:
        assert after[name] == pytest.approx(before[name], rel=1e-6, abs=1e-9), name


def test_raw_means_see_the_constant_vector():
    features, targets, weight = noisy_problem(0, offset=10.0)
    raw, centred = (nc_metrics(features, targets, weight, center=c) for c in (False, True))
    assert raw["angle_deg"] < 0.5 * centred["angle_deg"]
    assert raw["nc2_h"] > centred["nc2_h"]
    assert raw["nc1_m1"] == centred["nc1_m1"]
    assert raw["nc2_w"] == centred["nc2_w"]


def test_tensors_and_arrays_agree_and_stay_as_they_were():
    features, targets, weight = noisy_problem(3)
    tensors = [torch.tensor(v, requires_grad=v is not targets) for v in (features, targets, weight)]
    copies = features.copy(), targets.copy(), weight.copy()
    assert nc_metrics(*tensors) == nc_metrics(features, targets, weight)
    for value, copy in zip((features, targets, weight), copies, strict=True):
        np.testing.assert_array_equal(value, copy)
    half = nc_metrics(tensors[0].bfloat16(), tensors[1].bool(), tensors[2])
    assert half["nc1_m1"] == pytest.approx(nc_metrics(*tensors)["nc1_m1"], rel=0.1)


def test_keys_follow_the_multiplicities_that_occur():
    targets = balanced_label_sets(4, {1: 2, 2: 2, 3: 2}).numpy()
    rng = np.random.default_rng(0)
    features, weight = rng.standard_normal((len(targets), 5)), rng.standard_normal((4, 5))
    always = {"nc1_m1", "nc2_h", "nc2_w", "nc3"}
    tags = {"angle_deg", "angle_ratio", "kappa_mean", "kappa_std", "residual"}
    for highest, extra in ((1, set()), (2, tags), (3, tags | {f"{t}_m3" for t in tags})):
        rows = targets.sum(axis=1) <= highest
        expected = always | {f"nc1_m{m}" for m in range(1, highest + 1)} | extra
        assert nc_metrics(features[rows], targets[rows], weight).keys() == expected


def test_a_set_with_one_sample_warns_in_nc1():
    features, targets, _ = noisy_problem(0)
    rows = np.r_[0, 3:30]  # class 0 keeps one of its three samples
    with pytest.warns(RuntimeWarning, match=r"1 label sets with 1 labels have one sample only"):
        nc1(features[rows], targets[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nc1(features[rows], targets[rows], multiplicity=2)


def test_bad_input():
    features, targets, weight = noisy_problem(0)
    holes = features.copy()
    holes[4, 2] = np.inf
    with pytest.raises(ValueError, match="features must be finite, got inf in row 4, column 2"):
        nc_metrics(holes, targets, weight)
    with pytest.raises(ValueError, match=r"same number of rows, got 29 and 30"):
        nc1(features[1:], targets)
    rows = targets[:, [0, 2]].sum(axis=1) * (targets.sum(axis=1) == 1) == 0
    with pytest.raises(ValueError, match=r"classes \[0, 2\] have none"):
        nc_metrics(features[rows], targets[rows], weight)
    with pytest.raises(ValueError, match="samples with 3 labels, got none"):
        tag_average(features, targets, multiplicity=3)
    with pytest.raises(ValueError, match="samples with 3 labels, got none"):
        nc1(features, targets, multiplicity=3)
    with pytest.raises(ValueError, match=r"weight must have shape \[K, d\] = \[4, 6\], got"):
        nc_metrics(features, targets, weight[:, :5])
    with pytest.raises(ValueError, match="same shape"):
        nc3(weight, weight[:, :5])
    with pytest.raises(ValueError, match="matrix must not be zero"):
        nc2(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="at least 2 rows"):
        nc2(np.ones((1, 3)))
    with pytest.raises(ValueError, match="distinct single-label means"):
        nc1(np.ones_like(features), targets)
    with pytest.raises(ValueError, match="at least one label in every row, row 0 has none"):
        nc1(features, np.r_[np.zeros((1, 4)), targets[1:]])
    with pytest.raises(ValueError, match=r"only 0 and 1, got 0\.5 in row 0, column 0"):
        nc1(features, np.where(targets == 1, 0.5, 0))
    with pytest.raises(ValueError, match="at least 2 classes"):
        nc1(features, np.ones((len(features), 1)))


def test_a_zero_mean_has_no_angle():
    features, targets = collapsed_pairs(
        4, lambda z, i, j: z[i] + z[j] if (i, j) != (1, 2) else 0 * z[0]
    )
    with pytest.raises(ValueError, match=r"the mean feature of set \(1, 2\) is zero"):
        tag_average(features, targets)
    frame = simplex_etf(3).numpy()
    full = np.r_[np.eye(3), np.ones((1, 3))]
    with pytest.raises(ValueError, match=r"sum of single-label means of set \(0, 1, 2\) is zero"):
        tag_average(np.r_[frame, frame[:1]] + 0.5, full, multiplicity=3)
