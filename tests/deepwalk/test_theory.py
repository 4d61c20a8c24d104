import math

import numpy as np
import pytest

from retable.deepwalk import Cooccurrence, accuracy, alignment, exact_recovery, sbm_log, theory
from retable.deepwalk.theory import centred_matvec, centred_rmatvec


def test_signal_fixed_point_and_loss():
    # lambda = (4 - 1)/(4 + 1) = 0.6
    s = theory.signal(4, 1, 3)
    assert s == pytest.approx(0.392)
    assert theory.fixed_point(s) == pytest.approx(0.414161, abs=1e-6)
    assert theory.fixed_point_loss(s, 200) / 200 == pytest.approx(5.219386, abs=1e-6)
    # lambda = 5/7
    s = theory.signal(6, 1, 3)
    assert s == pytest.approx(0.529640, abs=1e-6)
    assert theory.fixed_point(s) == pytest.approx(0.589645, abs=1e-6)


def test_signal_of_more_blocks_and_of_disassortative_graphs():
    assert theory.signal(4, 1, 1, k=4) == pytest.approx(3 / 7)
    assert theory.signal(1, 4, 1) == pytest.approx(-0.6)
    assert theory.signal(1, 4, 2) == pytest.approx((-0.6 + 0.36) / 2)


def test_signal_is_the_singular_value_in_expectation():
    n, s = 60, 0.392
    z = np.repeat([1.0, -1.0], n // 2)
    cooc = Cooccurrence.from_matrix((1 + s * np.outer(z, z)) / n)
    assert theory.leading_singular_values(cooc, 2) == pytest.approx([s, 0], abs=1e-12)


def test_singular_values_of_a_graph():
    cooc = Cooccurrence(sbm_log(200, 6, 1, seed=0).adjacency, 3)
    m = cooc.toarray() - np.outer(cooc.row_mass, np.ones(200)) / 200
    expected = np.linalg.svd(m, compute_uv=False)[:3]
    assert theory.leading_singular_values(cooc, 3) == pytest.approx(expected, rel=1e-6)
    v = np.random.default_rng(0).standard_normal((200, 2))
    for block in (v, v[:, 0]):
        assert np.allclose(centred_matvec(cooc, block), m @ block)
        assert np.allclose(centred_rmatvec(cooc, block), m.T @ block)


def test_exact_threshold():
    assert theory.exact_threshold(8, 1)
    assert theory.exact_threshold(6, 1)
    assert not theory.exact_threshold(3, 1)
    assert theory.exact_threshold(1, 8)


def test_steps_to_alignment():
    assert theory.alignment_steps(10_000, 0.5, 0.2, 1.0) == pytest.approx(
        math.log(100) / math.log(1.5 / 1.2)
    )
    assert theory.alignment_steps(10_000, 0.2, 0.2, 1.0) == math.inf


def test_lost_nodes_against_a_direct_count():
    n, p, q = 12, 0.5, 0.2
    direct = sum(
        math.comb(6, cross) * q**cross * (1 - q) ** (6 - cross)
        * math.comb(5, own) * p**own * (1 - p) ** (5 - own)
        for cross in range(7)
        for own in range(6)
        if cross >= own
    )  # fmt: skip
    assert theory.expected_lost_nodes(n, p, q) == pytest.approx(n * direct)


def test_lost_nodes_vanish_only_above_the_threshold():
    def lost(n, a):
        return theory.expected_lost_nodes(n, a * math.log(n) / n, math.log(n) / n)

    assert lost(4000, 6) == pytest.approx(0.10, abs=0.01)
    assert lost(64_000, 6) == pytest.approx(0.07, abs=0.01)
    assert lost(4000, 8) < 1e-3
    assert lost(16_000, 3) > lost(4000, 3) > 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.signal(1, 1, 0), "window must be at least 1"),
        (lambda: theory.signal(0, 0, 1), "not both 0"),
        (lambda: theory.signal(-1, 2, 1), "must be >= 0"),
        (lambda: theory.signal(float("nan"), 1, 1), "must be >= 0 and not both 0, got p = nan"),
        (lambda: theory.signal(1, 1, float("nan")), "window must be at least 1, got nan"),
        (lambda: theory.exact_threshold(-1, 1), "a must be >= 0, got -1"),
        (lambda: theory.exact_threshold(1, float("nan")), "b must be >= 0, got nan"),
        (lambda: theory.signal(1, 1, 1, k=1), "k must be at least 2"),
        (lambda: theory.fixed_point(1.0), r"s must lie in \(-1, 1\), got 1"),
        (lambda: theory.fixed_point(float("nan")), "s must lie in"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_accuracy_takes_the_best_renaming():
    truth = np.array([0, 0, 1, 1, 2, 2])
    assert accuracy(np.array([5, 5, 0, 0, 1, 1]), truth) == 1
    assert accuracy(np.array([5, 5, 0, 0, 1, 5]), truth) == pytest.approx(5 / 6)
    assert accuracy(np.zeros(6, dtype=int), truth) == pytest.approx(1 / 3)
    assert accuracy(np.arange(6), truth) == pytest.approx(1 / 2)


def test_unlabelled_nodes_do_not_count():
    truth = np.array([0, 0, 1, 1, -1])
    assert accuracy(np.array([1, 1, 0, 0, 0]), truth) == 1
    assert exact_recovery(np.array([1, 1, 0, -1, 1]), truth)
    assert not exact_recovery(np.array([1, 1, 0, 1, 1]), truth)
    with pytest.raises(ValueError, match="at least one node"):
        accuracy(np.full(5, -1), truth)
    with pytest.raises(ValueError, match="alike"):
        accuracy(np.zeros(4, dtype=int), truth)


def test_alignment():
    labels = np.array([0, 0, 0, 1, 1, 1])
    z = 2.0 * labels - 1
    assert alignment(3 * z, labels) == pytest.approx(1)
    assert alignment(-z[:, None], labels) == pytest.approx(1)
    assert alignment(np.ones(6), labels) == pytest.approx(0)
    assert alignment(np.zeros(6), labels) == 0
    assert alignment(np.array([1.0, -1, 0, 0, 0, 0]), labels) == pytest.approx(0)
    assert alignment(np.array([-1.0, -1, -1, 1, 1, 99]), np.array([0, 0, 0, 1, 1, -1])) > 0.97
    with pytest.raises(ValueError, match="2 communities, got 3"):
        alignment(np.ones(3), np.arange(3))
    with pytest.raises(ValueError, match="2 communities, got 1"):
        alignment(np.ones(3), np.zeros(3, dtype=int))
    with pytest.raises(ValueError, match="2 communities, got 0"):
        alignment(np.ones(3), np.full(3, -1))
    with pytest.raises(ValueError, match=r"x must be \(n,\)"):
        alignment(np.ones((6, 2)), labels)
