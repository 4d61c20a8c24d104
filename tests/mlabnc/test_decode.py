"""Decoders on features whose right answer is known, and the tuning of a threshold."""

import numpy as np
import pytest

from retable.mlabnc import (
    OneNearestLabelSet,
    balanced_label_sets,
    exact_match,
    simplex_etf,
    threshold_decode,
    tune_threshold,
)


def collapsed(num_classes=5, counts=None, scale=0.7, offset=3.0):
    """Perfectly collapsed features away from the origin: tag sums, multi-label ones shrunk."""
    targets = balanced_label_sets(num_classes, counts or {1: 3, 2: 2}).numpy()
    shrink = np.where(targets.sum(axis=1, keepdims=True) == 1, 1.0, scale)
    return shrink * (targets @ simplex_etf(num_classes).numpy()) + offset, targets.astype(bool)


@pytest.mark.parametrize(
    ("prototypes", "metric"),
    [("empirical", "cosine"), ("empirical", "euclidean"), ("tagwise", "cosine")],
)
def test_collapsed_features_decode_exactly(prototypes, metric):
    features, targets = collapsed()
    decoder = OneNearestLabelSet(prototypes, metric).fit(features, targets)
    rng = np.random.default_rng(0)
    noisy = features + 0.02 * rng.standard_normal(features.shape)
    np.testing.assert_array_equal(decoder.predict(noisy), targets)


def test_tagwise_prototypes_reach_sets_never_seen():
    features, targets = collapsed()
    seen = ~targets[:, [1, 3]].all(axis=1)
    unseen = np.zeros(5, dtype=bool)
    unseen[[1, 3]] = True
    tagwise = OneNearestLabelSet("tagwise").fit(features[seen], targets[seen])
    assert (tagwise.predict(features[~seen]) == unseen).all()
    empirical = OneNearestLabelSet("empirical").fit(features[seen], targets[seen])
    assert len(empirical.label_sets_) == 5 + 9
    assert not (empirical.predict(features[~seen]) == unseen).all(axis=1).any()
    single = targets.sum(axis=1) == 1
    from_singles = OneNearestLabelSet("tagwise").fit(features[single], targets[single])
    assert exact_match(from_singles.predict(features), targets) == 1


def test_classifier_rows_can_stand_for_the_means():
    features, targets = collapsed()
    frame = simplex_etf(5).numpy()
    decoder = OneNearestLabelSet("tagwise").fit(features, targets, weight=4 * frame)
    np.testing.assert_allclose(decoder.prototypes_[:5], 4 * frame, atol=1e-14)
    np.testing.assert_array_equal(decoder.predict(features), targets)


def test_multiplicities_limit_the_candidates():
    features, targets = collapsed(counts={1: 2, 2: 2, 3: 2})
    for multiplicities, sets in (((1,), 5), ((1, 2), 15), ((1, 2, 3), 25), ((3,), 10)):
        for prototypes in ("empirical", "tagwise"):
            decoder = OneNearestLabelSet(prototypes, multiplicities=multiplicities)
            decoder.fit(features, targets)
            assert len(decoder.label_sets_) == sets
            assert set(decoder.predict(features).sum(axis=1)) <= set(multiplicities)
    assert exact_match(
        OneNearestLabelSet(multiplicities=(1, 2, 3)).fit(features, targets).predict(features),
        targets,
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_nearest_by_brute_force(metric):
    rng = np.random.default_rng(1)
    targets = balanced_label_sets(4, {1: 3, 2: 3}).numpy()
    features = targets @ rng.standard_normal((4, 6)) + rng.standard_normal((len(targets), 6))
    decoder = OneNearestLabelSet(metric=metric).fit(features, targets)
    queries = rng.standard_normal((50, 6))
    centre = np.mean([features[(targets == row).all(axis=1)].mean(axis=0) for row in np.eye(4)], 0)
    for query, predicted in zip(queries, decoder.predict(queries), strict=True):
        distances = {}
        for label_set in {tuple(row) for row in targets}:
            mean = features[(targets == label_set).all(axis=1)].mean(axis=0)
            a, b = query - centre, mean - centre
            cosine = 1 - a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
            distances[label_set] = cosine if metric == "cosine" else np.linalg.norm(query - mean)
        assert tuple(predicted) == min(distances, key=distances.get)


def test_threshold_takes_the_best_label_when_none_passes():
    scores = [[0.6, 0.5, 0.1], [0.3, 0.2, 0.25], [0.4, 0.4, 0.4]]
    predicted = threshold_decode(scores, 0.4)
    np.testing.assert_array_equal(predicted, [[1, 1, 0], [1, 0, 0], [1, 1, 1]])


def test_tuning_finds_the_best_threshold_and_the_smallest_of_equals():
    scores = np.array([[0.9, 0.05, 0.05], [0.5, 0.4, 0.1], [0.1, 0.35, 0.55]])
    targets = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]])
    assert tune_threshold(scores, targets, [0.6, 0.3, 0.2, 0.06, 0.01]) == 0.2
    wants_everything = tune_threshold(
        scores, targets, [0.5, 0.3, 0.01], criterion=lambda p, y: float(p.sum())
    )
    assert wants_everything == 0.01


def test_bad_input():
    features, targets = collapsed()
    with pytest.raises(ValueError, match='prototypes must be "empirical" or "tagwise", got'):
        OneNearestLabelSet("both")
    with pytest.raises(ValueError, match='metric must be "cosine" or "euclidean", got'):
        OneNearestLabelSet(metric="l1")
    with pytest.raises(ValueError, match='must be "cosine" with tagwise prototypes'):
        OneNearestLabelSet("tagwise", "euclidean")
    with pytest.raises(ValueError, match=r"positive and not empty, got \(0, 1\)"):
        OneNearestLabelSet(multiplicities=(0, 1))
    with pytest.raises(ValueError, match="at most 5"):
        OneNearestLabelSet(multiplicities=(6,)).fit(features, targets)
    with pytest.raises(ValueError, match=r"samples with \(3,\) labels, got none"):
        OneNearestLabelSet(multiplicities=(3,)).fit(features, targets)
    without = ~(targets[:, 2] & (targets.sum(axis=1) == 1))
    with pytest.raises(ValueError, match=r"classes \[2\] have none"):
        OneNearestLabelSet().fit(features[without], targets[without])
    with pytest.raises(ValueError, match='weight must be None unless prototypes are "tagwise"'):
        OneNearestLabelSet().fit(features, targets, weight=np.eye(5))
    with pytest.raises(ValueError, match=r"weight must have shape \[K, d\] = \[5, 5\]"):
        OneNearestLabelSet("tagwise").fit(features, targets, weight=np.eye(4))
    with pytest.raises(ValueError, match="call fit"):
        OneNearestLabelSet().predict(features)
    with pytest.raises(ValueError, match="5 columns as in fit, got 4"):
        OneNearestLabelSet().fit(features, targets).predict(features[:, :4])
    flat = features.copy()
    flat[targets[:, 0] & targets[:, 1]] = features[:15].mean(axis=0)
    with pytest.raises(ValueError, match=r"prototype of set \(0, 1\) is zero"):
        OneNearestLabelSet().fit(flat, targets)
    for theta in (0, 1, -0.2):
        with pytest.raises(ValueError, match=r"theta must be in \(0, 1\), got"):
            threshold_decode(features, theta)
    with pytest.raises(ValueError, match="scores must be finite"):
        threshold_decode([[np.nan, 0.2]], 0.5)
    with pytest.raises(ValueError, match="grid must hold at least one theta"):
        tune_threshold(features, targets, [])
    with pytest.raises(ValueError, match="same shape"):
        tune_threshold(features[1:], targets, [0.5])
