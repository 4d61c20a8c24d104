import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.fedlocal.partition import feature_heterogeneity


def partition(classes, h, n_clients, seed=0):
    classes = np.asarray(classes)
    return feature_heterogeneity(classes, classes % 2, h, n_clients, np.random.default_rng(seed))


def test_ten_classes_for_two_clients():
    classes = np.arange(10)
    clients = partition(classes, 1.0, 2)
    assert [set(classes[c]) for c in clients] == [{0, 2, 1, 3}, {4, 6, 5, 7}]
    assert [list(classes[c]) for c in clients] == [[0, 2, 1, 3], [4, 6, 5, 7]]


@settings(max_examples=50, deadline=None)
@given(st.integers(200, 500), st.sampled_from([0, 0.25, 0.5, 1]), st.integers(1, 8), st.integers(0))
def test_clients_are_disjoint_equal_and_balanced(n, h, n_clients, seed):
    classes = np.random.default_rng(seed).integers(0, 10, n)
    clients = partition(classes, h, n_clients, seed)
    together = np.concatenate(clients)
    assert len(np.unique(together)) == len(together)
    assert together.min() >= 0
    assert together.max() < n
    assert len({len(c) for c in clients}) == 1
    assert n - len(together) < 3 * n_clients
    if h == 1:
        ones = [(classes[c] % 2).sum() for c in clients]
        assert len(set(ones)) == 1


def test_heterogeneous_clients_hold_different_classes_and_iid_clients_all():
    classes = np.repeat(np.arange(10), 400)
    for client in partition(classes, 1.0, 5):
        assert len(np.unique(classes[client])) == 2
        assert (classes[client] % 2).mean() == 0.5
    for client in partition(classes, 0.0, 5):
        assert len(np.unique(classes[client])) == 10


def test_half_heterogeneity_keeps_an_iid_half():
    classes = np.repeat(np.arange(10), 800)
    clients = partition(classes, 0.5, 8)
    counts = np.array([np.bincount(classes[c], minlength=10) for c in clients])
    assert (counts.sum(1) >= 990).all()
    # The iid half alone gives every class about 50 samples.
    assert counts.min() > 20
    assert counts.max() > 250


def test_the_generator_decides():
    classes = np.random.default_rng(0).integers(0, 10, 300)
    one, same, other = (partition(classes, 0.5, 4, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_client_without_both_labels_is_logged(caplog):
    with caplog.at_level(logging.WARNING):
        partition([0, 1], 0.0, 2)
    assert "has samples of label" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.arange(10), np.arange(10) % 2, 1.5, 2), r"h is 1.5; it must be in \[0, 1\]"),
        ((np.arange(10), np.arange(10) % 2, -0.1, 2), r"h is -0.1"),
        ((np.arange(10), np.arange(10) % 2, 1.0, 6), "n_clients is 6; it must not exceed the 5"),
        ((np.arange(10), np.arange(10) % 2, 0.5, 0), "n_clients is 0; it must be at least 1"),
        ((np.arange(11), np.arange(11) % 2, 0.5, 2), r"classes has values in 0\.\.10"),
        ((np.arange(10), np.arange(10), 0.5, 2), "binary has values other than 0 and 1"),
        ((np.arange(10), np.zeros(9), 0.5, 2), r"classes has shape \(10,\), binary \(9,\)"),
        ((np.arange(10.0), np.zeros(10), 0.5, 2), "classes has dtype float64"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        feature_heterogeneity(*arguments, np.random.default_rng(0))
