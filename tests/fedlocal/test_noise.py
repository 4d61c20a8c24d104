import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from retable.fedlocal.noise import add_feature_noise


def noised(pixel, source, rho, mode):
    images = np.full((1, 2, 2, 3), pixel, dtype=np.uint8)
    sources = np.full((1, 2, 2, 3), source, dtype=np.uint8)
    result = add_feature_noise(images, np.array([0]), sources, rho, mode)
    assert result.dtype == np.uint8
    assert (result == result.flat[0]).all()
    return int(result.flat[0])


def test_dark_pixels_are_clipped_or_wrap():
    assert noised(10, 200, 0.25, "clip") == 0
    assert noised(10, 200, 0.25, "wrap") == 216
    assert noised(100, 200, 0.25, "clip") == noised(100, 200, 0.25, "wrap") == 50


def test_differences_are_truncated_toward_zero():
    assert noised(10, 5, 0.25, "wrap") == 8  # 8.75
    assert noised(1, 5, 0.25, "wrap") == 0  # -0.25
    assert noised(0, 255, 0.25, "wrap") == 256 - 63  # -63.75


@settings(max_examples=30, deadline=None)
@given(
    hnp.arrays(np.uint8, (5, 2, 2, 3)),
    hnp.arrays(np.uint8, (3, 2, 2, 3)),
    hnp.arrays(np.int64, 5, elements=st.integers(-1, 2)),
    st.sampled_from([0.0, 0.03125, 0.1, 0.25, 1.0]),
)
def test_every_image_gets_its_own_clients_noise(images, sources, client_of, rho):
    result = add_feature_noise(images, client_of, sources, rho)
    for image, client, after in zip(images, client_of, result, strict=True):
        noise = rho * sources[client].astype(float) if client >= 0 else 0.0
        expected = np.clip(np.trunc(image - noise), 0, 255)
        np.testing.assert_array_equal(after, expected)


def test_blocks_do_not_show():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (5000, 1, 1, 3), dtype=np.uint8)
    sources = rng.integers(0, 256, (2, 1, 1, 3), dtype=np.uint8)
    client_of = rng.integers(0, 2, 5000)
    result = add_feature_noise(images, client_of, sources, 0.5, "wrap")
    expected = np.trunc(images - 0.5 * sources[client_of]) % 256
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 1.5}, r"rho is 1.5; it must be in \[0, 1\]"),
        ({"rho": float("nan")}, "rho is nan"),
        ({"mode": "modulo"}, "mode is 'modulo'; it must be 'clip' or 'wrap'"),
        ({"images": np.zeros((2, 4, 4, 3))}, "images has dtype float64; it must be uint8"),
        ({"source_images": np.zeros((2, 4, 4), np.uint8)}, "must agree in all but the first axis"),
        (
            {"client_of": np.array([0, 2])},
            r"client_of has values in 0\.\.2; they must be in -1\.\.1",
        ),
        ({"client_of": np.array([0])}, r"client_of has shape \(1,\); it must be \(2,\)"),
    ],
)
def test_bad_input(change, message):
    images = np.zeros((2, 4, 4, 3), dtype=np.uint8)
    good = {"images": images, "client_of": np.array([0, 1]), "source_images": images, "rho": 0.5}
    with pytest.raises(ValueError, match=message):
        add_feature_noise(**(good | change))
