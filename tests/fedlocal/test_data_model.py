import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.fedlocal.data_model import FeatureNoiseModel, cubic_alignment

MODEL = {"n_major": 3, "n_minor": 2, "alpha": 1.0, "gamma": 0.65, "kappa": 0.4, "n": 16, "dim": 200}


@pytest.fixture
def model():
    return FeatureNoiseModel(**MODEL)


def test_the_noise_norm_follows_the_strength_of_memorisation(model):
    assert model.noise_norm == pytest.approx(6.4 ** (1 / 3), rel=1e-12)
    assert model.noise_norm == pytest.approx(1.8566355, abs=5e-8)
    doubled = FeatureNoiseModel(**(MODEL | {"alpha": 2.0}))
    assert doubled.noise_norm == pytest.approx(2 * model.noise_norm)


def test_patches_are_signal_feature_noise_and_noise(model):
    rng = np.random.default_rng(0)
    v = model.features
    for client in range(5):
        x, y = model.sample(client, 7, rng)
        assert x.shape == (7, 4, 200)
        assert x.dtype == np.float32
        assert set(y) <= {-1.0, 1.0}
        np.testing.assert_array_equal(x[:, 0], y[:, None] * v[client])
        if client < 3:
            for b in range(2):
                np.testing.assert_allclose(x[:, 1 + b], -0.65 * y[:, None] * v[3 + b], rtol=1e-7)
        else:
            assert not x[:, 1:3].any()


def test_noise_is_exactly_orthogonal_to_the_features_and_has_its_norm(model):
    x, _ = model.sample(0, 4000, np.random.default_rng(1))
    noise = x[:, -1]
    assert not (noise @ model.features.T).any()
    expected = model.noise_norm**2 * (200 - 5) / 200
    # The mean of 4000 squared norms, each with relative spread sqrt(2/195).
    assert np.square(noise).sum(1).mean() == pytest.approx(expected, rel=0.01)


def test_labels_are_uniform(model):
    _, y = model.sample(4, 10_000, np.random.default_rng(2))
    assert abs(y.mean()) < 0.04


def test_in_degree_counts_the_clients_that_carry_the_feature_as_noise(model):
    assert [model.in_degree(k) for k in range(5)] == [0, 0, 0, 3, 3]


def test_all_clients_follow_the_law_of_their_own(model):
    clients = model.clients(np.random.default_rng(3))
    assert [len(y) for _, y in clients] == [16] * 5
    for client, (x, y) in enumerate(clients):
        np.testing.assert_array_equal(x[:, 0], y[:, None] * model.features[client])
    assert [len(y) for _, y in model.clients(np.random.default_rng(3), 9)] == [9] * 5


def test_features_are_negative_noise_of_the_others():
    model = FeatureNoiseModel(10, 2, 1.0, 0.65, 0.4, 16, 400)
    alignment = np.array(
        [cubic_alignment(x, y, model.features) for x, y in model.clients(np.random.default_rng(4))]
    )
    for b in (10, 11):
        ratio = -alignment[:10, b].sum() / alignment[b, b]
        assert ratio == pytest.approx(10 * 0.65**3, rel=1e-6)
    assert not alignment[:10, :10][~np.eye(10, dtype=bool)].any()
    assert not alignment[10, 11]
    assert not alignment[11, 10]


def test_the_same_seed_gives_the_same_data(model):
    first, second = (model.clients(np.random.default_rng(5)) for _ in range(2))
    for (x, y), (x2, y2) in zip(first, second, strict=True):
        np.testing.assert_array_equal(x, x2)
        np.testing.assert_array_equal(y, y2)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 3), st.floats(0.1, 0.99), st.integers(1, 5), st.integers(0, 9)
)
def test_shapes_for_any_numbers_of_clients(n_major, n_minor, gamma, n, seed):
    k = n_major + n_minor
    model = FeatureNoiseModel(n_major, n_minor, 1.0, gamma, 0.1, n, k + n * k)
    clients = model.clients(np.random.default_rng(seed))
    assert len(clients) == k
    assert all(x.shape == (n, n_minor + 2, model.dim) for x, _ in clients)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 1.0}, "gamma is 1.0; it must be below alpha = 1.0"),
        ({"gamma": 0.0}, "gamma is 0.0; it must be positive"),
        ({"alpha": -1.0}, "alpha is -1.0; it must be positive"),
        ({"kappa": 0.0}, "kappa is 0.0; it must be positive"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"n_minor": 0}, "n_minor is 0; it must be at least 1"),
        ({"n_major": 0}, "n_major is 0; it must be at least 1"),
        ({"n": 0}, "n is 0; it must be at least 1"),
        ({"n": float("nan")}, "n is nan; it must be at least 1"),
        ({"dim": float("nan")}, "dim is nan; it must be at least"),
        ({"dim": 84}, r"dim is 84; it must be at least K \+ n K = 85"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        FeatureNoiseModel(**(MODEL | change))


def test_bad_samples(model):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"client is 5; it must be in 0\.\.4"):
        model.sample(5, 3, rng)
    with pytest.raises(ValueError, match="n is 0; it must be at least 1"):
        model.sample(0, 0, rng)
    with pytest.raises(ValueError, match="client is -1"):
        model.in_degree(-1)
