import numpy as np
import pytest

from retable.hstu.synthetic import DirichletStream

SMALL = {"n_items": 40, "n_categories": 8, "n_records": 300, "length": 12, "alpha": (1, 20)}


@pytest.fixture(scope="module")
def stream():
    return DirichletStream(**SMALL, seed=1)


def test_shapes_and_ranges(stream):
    assert stream.records.shape == (300, 12)
    assert stream.records.dtype == np.int64
    assert stream.item_category.shape == (40,)
    assert stream.records.min() >= 1
    assert stream.records.max() <= 40
    assert stream.available(0) == 16
    assert stream.available(150) == 28
    assert stream.available(299) == 39
    assert stream.first_test_record == 270


def test_seed_decides(stream):
    assert (DirichletStream(**SMALL, seed=1).records == stream.records).all()
    assert (DirichletStream(**SMALL, seed=2).records != stream.records).any()


def test_at_most_five_categories_and_only_available_items(stream):
    for r in range(300):
        own = np.unique(stream.item_category[stream.records[r] - 1])
        assert len(own) <= 5
        for item in stream.records[r]:
            peers = np.flatnonzero(stream.item_category == stream.item_category[item - 1]) + 1
            assert item <= stream.available(r) or item == peers[0] > stream.available(r)


@pytest.mark.parametrize(("r", "j"), [(0, 0), (0, 11), (280, 6), (299, 11)])
def test_oracle_probs(stream, r, j):
    probs = stream.oracle_probs(r, j)
    assert probs.shape == (40,)
    assert probs.sum() == pytest.approx(1)
    assert probs[stream.records[r, j] - 1] > 0
    hidden = stream._hidden
    past = stream.item_category[stream.records[r, :j] - 1]
    for item in range(1, 41):
        category = stream.item_category[item - 1]
        peers = np.flatnonzero(stream.item_category == category) + 1
        offer = peers[peers <= stream.available(r)]
        offer = offer if len(offer) else peers[:1]
        place = np.flatnonzero(hidden.categories[r] == category)
        prior = hidden.prior[r, place[0]] if len(place) else 0.0
        share = (hidden.alpha[r] * prior + (past == category).sum()) / (hidden.alpha[r] + j)
        expected = share / len(offer) if item in offer else 0.0
        assert probs[item - 1] == pytest.approx(expected, abs=1e-12)


def test_category_counts_are_unbiased():
    stream = DirichletStream(50, 10, 40_000, 2, (1, 20), seed=3)
    own = (stream._hidden.prior > 0).sum(1)
    np.testing.assert_allclose(np.bincount(own, minlength=6)[1:] / 40_000, 0.2, atol=0.01)
    first = np.bincount(stream.item_category[stream.records[:, 0] - 1], minlength=10) / 40_000
    np.testing.assert_allclose(first, 0.1, atol=0.008)


def test_rich_get_richer():
    # With 5 categories known to the oracle, step 1 repeats the category of step 0 with
    # probability (1 + a E[p^2] ...) / (a + 1): check the mean of the oracle's own probability.
    stream = DirichletStream(50, 10, 30_000, 2, (1, 1), seed=4, initial_fraction=1.0)
    category = stream.item_category[stream.records - 1]
    repeated = (category[:, 0] == category[:, 1]).mean()
    hidden = stream._hidden
    first = hidden.categories == category[:, :1]
    prior = (hidden.prior * first).sum(1)
    assert repeated == pytest.approx(((prior + 1) / 2).mean(), abs=0.01)


def test_oracle_rates_are_those_of_its_probabilities(stream):
    hits, gains, loss = [], [], []
    for r in range(stream.first_test_record, 300):
        for j in range(6, 12):
            probs = stream.oracle_probs(r, j)
            p = probs[stream.records[r, j] - 1]
            ahead = int((probs > p + 1e-12).sum())
            ties = int((np.abs(probs - p) <= 1e-12).sum())
            hits.append(np.clip((5 - ahead) / ties, 0, 1))
            gains.append(
                sum(1 / np.log2(rank + 1) for rank in range(ahead + 1, ahead + ties + 1)
                    if rank <= 5) / ties
            )  # fmt: skip
            loss.append(-np.log(p))
    assert stream.oracle_hit_rate(5) == pytest.approx(np.mean(hits))
    assert stream.oracle_ndcg(5) == pytest.approx(np.mean(gains))
    assert stream.oracle_loss() == pytest.approx(np.mean(loss))
    assert stream.oracle_hit_rate(40) == pytest.approx(1)


def test_oracle_beats_any_fixed_predictor():
    stream = DirichletStream(200, 20, 3000, 16, (1, 20), seed=0)
    test = stream.records[stream.first_test_record :][:, stream.test_slots]
    counts = np.bincount(stream.records[: stream.first_test_record].ravel(), minlength=201)
    popular = np.argsort(-counts, kind="stable")[:10]
    assert stream.oracle_hit_rate(10) > np.isin(test, popular).mean() + 0.1
    # Repeating the record's own past is a strong rule, and still below the oracle.
    past = stream.records[stream.first_test_record :][:, ~stream.test_slots]
    assert stream.oracle_hit_rate(8) > (test[:, :, None] == past[:, None]).any(2).mean()


def test_blocks_change_nothing_in_the_oracle(stream, monkeypatch):
    whole = stream.oracle_loss()
    monkeypatch.setattr("retable.hstu.synthetic.BLOCK", 7)
    assert stream.oracle_loss() == pytest.approx(whole)


def test_bad_input(stream):
    with pytest.raises(ValueError, match="n_items must be at least 1, got 0"):
        DirichletStream(**{**SMALL, "n_items": 0})
    with pytest.raises(ValueError, match=r"alpha must be \(low, high\)"):
        DirichletStream(**{**SMALL, "alpha": (3, 2)})
    with pytest.raises(ValueError, match=r"initial_fraction must lie in \(0, 1\], got 0"):
        DirichletStream(**SMALL, initial_fraction=0)
    with pytest.raises(ValueError, match="max_categories = 9 exceeds the 8 categories"):
        DirichletStream(**SMALL, max_categories=9)
    with pytest.raises(ValueError, match=r"r must lie in 0\.\.299, got 300"):
        stream.oracle_probs(300, 0)
    with pytest.raises(ValueError, match=r"j must lie in 0\.\.11, got 12"):
        stream.oracle_probs(0, 12)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        stream.oracle_hit_rate(0)
