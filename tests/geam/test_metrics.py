"""Novelty, hits, circles and areas, by hand."""

import itertools

import numpy as np
import pytest
from rdkit import DataStructs
from rdkit.Chem import MolFromSmiles, rdFingerprintGenerator

from retable.geam.metrics import (
    auc_top_k,
    fingerprints,
    largest_similarity,
    n_circles,
    novel_hit_ratio,
    novel_top_fraction,
    novelty,
    top_k_curve,
    uniqueness,
)

SMILES = ["CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1", "CCN(CC)CC", "c1ccncc1"]


def bits(*on):
    row = np.zeros(1024, bool)
    row[list(on)] = True
    return row


def test_similarities_are_rdkits():
    fps = fingerprints(SMILES)
    assert fps.shape == (5, 1024)
    generator = rdFingerprintGenerator.GetMorganGenerator(2, fpSize=1024)
    theirs = [generator.GetFingerprint(MolFromSmiles(text)) for text in SMILES]
    for k in range(5):
        others = [j for j in range(5) if j != k]
        expected = max(DataStructs.BulkTanimotoSimilarity(theirs[k], [theirs[j] for j in others]))
        assert largest_similarity(fps[k : k + 1], fps[others])[0] == pytest.approx(expected)


def test_novelty_is_strict():
    training = np.array([bits(0, 1, 2, 3)])
    fps = np.array([bits(0, 1, 4), bits(0, 9, 10), bits(0, 1, 2, 3)])  # 2/5, 1/6, 1
    assert novelty(fps, training, 0.4) == pytest.approx(1 / 3)  # 0.4 itself is not novel
    assert novelty(fps, training, 0.41) == pytest.approx(2 / 3)


def test_hit_ratio_counts_distinct_ones_over_all():
    smiles = ["A", "B", "A", "C"]
    novel, hit = np.array([1, 1, 1, 0], bool), np.array([1, 0, 1, 1], bool)
    assert novel_hit_ratio(smiles, [1, 0, 1, 1], novel, hit, 10) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="different lengths"):
        novel_hit_ratio(smiles, [1], novel, hit, 10)
    with pytest.raises(ValueError, match="n_generated is 2"):
        novel_hit_ratio(smiles, [1] * 4, novel, hit, 2)


def test_novel_top_fraction():
    assert novel_top_fraction([8, 9, 7], 40) == 8.5
    assert novel_top_fraction([8.0], 40) == 8.0
    assert np.isnan(novel_top_fraction([], 40))


def test_circles():
    same = np.array([bits(1, 2, 3)] * 5)
    assert n_circles(same) == 1
    apart = np.array([bits(3 * k, 3 * k + 1) for k in range(7)])
    assert n_circles(apart) == 7
    assert n_circles(np.zeros((0, 1024), bool)) == 0


def test_circles_are_those_of_the_greedy_pass():
    rng = np.random.default_rng(0)
    fps = rng.random((30, 1024)) < 0.01
    fps[:, :6] |= rng.random((30, 6)) < 0.7
    order = np.random.default_rng(5).permutation(30)
    centres = []
    for k in order:
        similar = [(fps[k] & fps[c]).sum() / (fps[k] | fps[c]).sum() for c in centres]
        if all(1 - s > 0.75 for s in similar):
            centres.append(k)
    assert n_circles(fps, seed=5) == len(centres)
    assert n_circles(fps, seed=5, n_orders=3) == n_circles(fps, seed=5, n_orders=3)


def test_area_under_the_best():
    assert auc_top_k([0.5] * 200, 1, 200) == pytest.approx(0.375)
    assert auc_top_k([0.5] * 100, 1, 200) == pytest.approx(0.375)  # the last value is held
    calls, means = top_k_curve([0.1, 0.9, 0.5, 0.7], 2, 4, every=2)
    assert calls.tolist() == [0, 2, 4]
    np.testing.assert_allclose(means, [0, 0.5, 0.8])
    with pytest.raises(ValueError, match="3 scores; the budget is 2"):
        auc_top_k([0.1] * 3, 1, 2)


def test_order_of_calls_matters_only_for_the_area():
    areas = {round(auc_top_k(list(p), 2, 4, 2), 9) for p in itertools.permutations([0, 0, 1, 1])}
    assert len(areas) == 3
    assert max(areas) == pytest.approx((0.5 * 2 + 2) / 4)


def test_bad_input():
    assert uniqueness(["A", "B", "A", "A"]) == 0.5
    with pytest.raises(ValueError, match="no generated"):
        uniqueness([])
    with pytest.raises(ValueError, match="record 1"):
        fingerprints(["CC", "C1"])
    with pytest.raises(ValueError, match="training set is empty"):
        largest_similarity(fingerprints(["CC"]), np.zeros((0, 1024), bool))
