"""Composition of multi-label images: counts, places, overlays, and that sources do not leak."""

import itertools

import numpy as np
import pytest

from retable.mlabnc import compose, compose_imbalanced, split_sources, svhn_label_sets

CLASSES = 4


def solid_images(size, channels=None, per_class=12):
    """Image i of all pixels i + 1: its place and its index can be read off the canvas."""
    count = CLASSES * per_class
    labels = np.arange(count) % CLASSES
    shape = (count, size, size) if channels is None else (count, size, size, channels)
    images = np.empty(shape, dtype=np.uint8)
    images[...] = np.arange(1, count + 1).reshape(-1, *[1] * (len(shape) - 1))
    return images, labels


def pasted(image, canvas, row, column):
    rows, columns = np.ix_(
        (row + np.arange(len(image))) % len(canvas), (column + np.arange(len(image))) % len(canvas)
    )
    canvas[rows, columns] = np.maximum(canvas[rows, columns], image)


def test_every_set_gets_its_count_and_sources_of_its_classes():
    images, labels = solid_images(8)
    data = compose(images, labels, {1: 5, 2: 3, 3: 2}, "mnist", seed=0)
    assert data.x.shape == (4 * 5 + 6 * 3 + 4 * 2, 1, 16, 16)
    assert data.x.dtype == data.y.dtype == np.uint8
    assert data.source.dtype == np.int32
    sets, counts = np.unique(data.y, axis=0, return_counts=True)
    assert sorted(zip(sets.sum(axis=1).tolist(), counts.tolist(), strict=True)) == sorted(
        [(1, 5)] * 4 + [(2, 3)] * 6 + [(3, 2)] * 4
    )
    for y, source in zip(data.y, data.source, strict=True):
        used = source[source >= 0]
        assert labels[used].tolist() == np.flatnonzero(y).tolist()
    for label_set in sets:
        own = data.source[(data.y == label_set).all(axis=1)]
        for column in own.T:
            used = column[column >= 0]
            assert len(np.unique(used)) == len(used)


@pytest.mark.parametrize("style", ["mnist", "cifar10"])
def test_canvas_is_the_maximum_of_images_placed_as_the_style_says(style):
    size = 16  # top-left and bottom-right corners are then all different
    rng = np.random.default_rng(0)
    images = rng.integers(1, 256, size=(48, size, size, 3), dtype=np.uint8)
    labels = np.arange(48) % CLASSES
    data = compose(images, labels, {1: 6, 2: 6}, style, seed=1)
    if style == "mnist":
        shifts = list(itertools.product(range(7), repeat=2))
        corners = {side: [(side * size + r, side * size + c) for r, c in shifts] for side in (0, 1)}
    else:
        corners = {0: [(p, p) for p in range(8)], 1: [(size - p, size - p) for p in range(8)]}
    sides_of_singles, first_sides = set(), set()
    for x, source in zip(data.x, data.source, strict=True):
        used = source[source >= 0]
        found = []
        for sides in itertools.product((0, 1), repeat=len(used)):
            for places in itertools.product(*[corners[side] for side in sides]):
                canvas = np.zeros((2 * size, 2 * size, 3), dtype=np.uint8)
                for image, (row, column) in zip(images[used], places, strict=True):
                    # The first pixels decide at once whether a place can be right.
                    if (x[:, row % (2 * size), column % (2 * size)] < image[0, 0]).any():
                        break
                    pasted(image, canvas, row, column)
                else:
                    if (canvas == x.transpose(1, 2, 0)).all():
                        found.append(sides)
        assert len(found) == 1
        if len(used) == 1:
            sides_of_singles.add(found[0][0])
        else:
            assert found[0] in {(0, 1), (1, 0)}
            first_sides.add(found[0][0])
    assert first_sides == {0, 1}
    assert sides_of_singles == ({1} if style == "mnist" else {0, 1})


def test_triples_put_two_images_opposite_the_first():
    images, labels = solid_images(16)
    data = compose(images, labels, {3: 12}, "cifar10", seed=0)
    first_at_the_top = set()
    for canvas, (first, *others) in zip(data.x[:, 0], data.source + 1, strict=True):
        # Pixels that all images of one corner cover and no image of the other, whatever the shift.
        corners = canvas[7:9, 7:9], canvas[23:25, 23:25]
        shown = tuple(corner.max() for corner in corners)
        assert all((corner == corner.max()).all() for corner in corners)
        assert shown in {(first, max(others)), (max(others), first)}
        first_at_the_top.add(shown[0] == first)
    assert first_at_the_top == {True, False}


def test_pooling_averages_blocks_and_rounds_halves_up():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(40, 28, 28), dtype=np.uint8)
    labels = np.arange(40) % CLASSES
    full = compose(images, labels, {1: 2, 2: 2}, "mnist", seed=3)
    pooled = compose(images, labels, {1: 2, 2: 2}, "mnist", seed=3, pool=2)
    assert pooled.x.shape == (20, 1, 28, 28)
    blocks = full.x.reshape(20, 1, 28, 2, 28, 2).astype(np.float64).mean(axis=(3, 5))
    np.testing.assert_array_equal(pooled.x, np.floor(blocks + 0.5))
    np.testing.assert_array_equal(pooled.source, full.source)


def test_same_seed_same_bytes_another_seed_another_draw():
    images, labels = solid_images(8)
    first, again, other = (compose(images, labels, {1: 4, 2: 4}, "mnist", s) for s in (0, 0, 1))
    assert first.x.tobytes() == again.x.tobytes()
    assert first.source.tobytes() == again.source.tobytes()
    assert first.source.tobytes() != other.source.tobytes()


def test_imbalanced_pairs_come_in_equal_groups():
    images, labels = solid_images(8)
    data = compose_imbalanced(images, labels, 7, "mnist", seed=0, pair_counts=(9, 4, 1))
    sets, counts = np.unique(data.y, axis=0, return_counts=True)
    pairs = sets.sum(axis=1) == 2
    assert counts[~pairs].tolist() == [7] * 4
    assert sorted(counts[pairs].tolist()) == [1, 1, 4, 4, 9, 9]
    scaled = compose_imbalanced(images, labels, 3, "mnist", seed=0, pair_counts=(3, 2, 1))
    for label_set, count in zip(sets[pairs], counts[pairs], strict=True):
        found = (scaled.y == label_set).all(axis=1).sum()
        assert found == {9: 3, 4: 2, 1: 1}[count]
    orders = set()
    for seed in range(6):
        y = compose_imbalanced(images, labels, 7, "mnist", seed, pair_counts=(9, 4, 1)).y
        sets, counts = np.unique(y, axis=0, return_counts=True)
        orders.add(tuple(counts.tolist()))
    assert len(orders) > 1


def test_held_out_sources_never_meet_the_others():
    images, labels = solid_images(8, per_class=20)
    kept, held = split_sources(labels, 0.1, seed=0)
    assert np.bincount(labels[held]).tolist() == [2] * CLASSES
    np.testing.assert_array_equal(np.sort(np.r_[kept, held]), np.arange(len(labels)))
    train = compose(images, labels, {1: 18, 2: 18}, "mnist", seed=0, candidates=kept)
    validation = compose(images, labels, {1: 2, 2: 2}, "mnist", seed=0, candidates=held)
    used = [set(np.unique(part.source)) - {-1} for part in (train, validation)]
    assert used[0] <= set(kept.tolist())
    assert used[1] == set(held.tolist())
    again = split_sources(labels, 0.1, seed=0)[1]
    np.testing.assert_array_equal(held, again)
    assert (split_sources(labels, 0.1, seed=1)[1] != held).any()


def test_house_numbers():
    digits = [[1], [5, 5], [1, 10], [0, 2], [1, 2, 3], [1, 2, 3, 4], [9, 1, 9], [1, 1], [1], [5]]
    index, y = svhn_label_sets(digits, max_single=2)
    assert index.tolist() == [0, 1, 4, 6, 7, 9]
    assert [np.flatnonzero(row).tolist() for row in y] == [[0], [4], [0, 1, 2], [0, 8], [0], [4]]
    assert y.shape == (6, 9)
    assert y.dtype == np.uint8
    with pytest.raises(ValueError, match=r"in 0\.\.10 \(10 is zero\), got 11 in image 1"):
        svhn_label_sets([[1], [3, 11]])
    with pytest.raises(ValueError, match="image 1 has none"):
        svhn_label_sets([[1], []])


@pytest.mark.parametrize(
    ("per_set", "message"),
    [
        ({1: 13}, r"samples of label set \(0,\) \(class 0 has 12 images\), got 13"),
        ({1: 2, 2: 20}, r"label set \(0, 1\) \(class 0 has 12 images\), got 20"),
        ({2: 0}, r"per_set must ask for 1 to 12 samples .* got 0"),
        ({4: 1}, r"multiplicities in 1\.\.3, got 4"),
        ({}, "per_set must ask for at least one label set"),
    ],
)
def test_bad_counts(per_set, message):
    images, labels = solid_images(8)
    with pytest.raises(ValueError, match=message):
        compose(images, labels, per_set, "mnist", seed=0)


def test_bad_images():
    images, labels = solid_images(8)
    with pytest.raises(ValueError, match='style must be "mnist" or "cifar10", got \'svhn\''):
        compose(images, labels, {1: 1}, "svhn", seed=0)
    with pytest.raises(ValueError, match=r"images must be uint8 .* got float64"):
        compose(images / 255, labels, {1: 1}, "mnist", seed=0)
    with pytest.raises(ValueError, match=r"images must be uint8 .* \(48, 8, 7\)"):
        compose(images[:, :, 1:], labels, {1: 1}, "mnist", seed=0)
    with pytest.raises(ValueError, match="labels must be 48 integers, one per image"):
        compose(images, labels[1:], {1: 1}, "mnist", seed=0)
    with pytest.raises(ValueError, match="at least 2 classes, got 1"):
        compose(images, 0 * labels, {1: 1}, "mnist", seed=0)
    with pytest.raises(ValueError, match="must be classes 0, 1"):
        compose(images, labels - 1, {1: 1}, "mnist", seed=0)
    with pytest.raises(ValueError, match="pool must divide the canvas of 16 pixels, got 3"):
        compose(images, labels, {1: 1}, "mnist", seed=0, pool=3)
    with pytest.raises(ValueError, match="pair_counts must hold at least one count"):
        compose_imbalanced(images, labels, 1, "mnist", seed=0, pair_counts=())
    for fraction in (0, 1, 0.01):
        with pytest.raises(ValueError, match="fraction must"):
            split_sources(labels, fraction, seed=0)
