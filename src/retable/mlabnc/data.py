"""Multi-label images composed of single-label ones (section 5 of the paper).

A sample with label set S shows one source image of every class in S, placed in opposite quadrants
of a canvas twice as large as a source image, overlaid by the pixelwise maximum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int, UInt8

from retable.mlabnc.label_sets import all_label_sets, members

Style = Literal["mnist", "cifar10"]

# Shifts are uniform over 0..6 pixels for the digits and 0..7 for the photographs.
_SHIFTS = {"mnist": 7, "cifar10": 8}


@dataclass(frozen=True)
class MLabArrays:
    """Composed images with their labels.

    `x` [N, C, H, W] uint8 in 0..255, `y` [N, K] uint8 multi-hot, `source` [N, slots] int32: the
    indices of the source images of a sample, in the order of its labels, -1 where there is none.
    `mean` and `std`, one number for all channels or one each, are of the pixels in [0, 1]: networks
    see (x / 255 - mean) / std.
    """

    x: UInt8[np.ndarray, "N C H W"]
    y: UInt8[np.ndarray, "N K"]
    source: Int[np.ndarray, "N slots"]
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


def compose(
    images: UInt8[np.ndarray, "n size size *channels"],
    labels: Int[np.ndarray, " n"],
    per_set: Mapping[int, int],
    style: Style,
    seed: int,
    *,
    pool: int = 1,
    candidates: Int[np.ndarray, " c"] | None = None,
) -> MLabArrays:
    """Compose per_set[m] samples of every set of m labels, for m in 1, 2, 3.

    `images` are uint8, square, grey [n, size, size] or coloured [n, size, size, C]; `labels` the
    classes 0..K-1. Source images are drawn without replacement within a label set and may occur in
    several sets. Style "mnist": quadrant top-left or bottom-right, then a circular shift right and
    one down, each uniform in 0..6; single images stand bottom-right, others on sides chosen by a
    fair coin. Style "cifar10": shift p uniform in 0..7, the same on both axes, towards the middle
    of the canvas; every image's side by a fair coin. With several labels the first image stands on
    one side and the others on the opposite one. `pool` averages blocks of pool x pool pixels (2
    gives the size of the sources); `candidates` restricts the sources to these indices.

    The samples are ordered by label set, and the same arguments give the same bytes. Raises
    ValueError for images or labels of a wrong shape or type, multiplicities outside 1..3 or
    above K, and counts above the number of images of a class.
    """
    num_classes = _check_images(images, labels, style)
    counts = {}
    for m, n in sorted(per_set.items()):
        if not 1 <= m <= min(3, num_classes):
            raise ValueError(
                f"per_set must have multiplicities in 1..{min(3, num_classes)}, got {m}"
            )
        counts |= {members(row): n for row in all_label_sets(num_classes, m)}
    rng = np.random.default_rng(seed)
    return _compose(images, labels, num_classes, counts, "per_set", style, rng, pool, candidates)


def compose_imbalanced(
    images: UInt8[np.ndarray, "n size size *channels"],
    labels: Int[np.ndarray, " n"],
    single: int,
    style: Style,
    seed: int,
    *,
    pair_counts: Sequence[int] = (500, 50, 5),
    pool: int = 1,
    candidates: Int[np.ndarray, " c"] | None = None,
) -> MLabArrays:
    """Compose `single` samples of each class, and pairs of labels in unequal numbers.

    The pairs are put in an order drawn from `seed` and cut into len(pair_counts) groups of equal
    size (the first ones larger by one if need be); each pair of a group gets that group's count.
    The order depends on the seed and the number of classes alone. Everything else as in `compose`.
    """
    num_classes = _check_images(images, labels, style)
    if not pair_counts:
        raise ValueError("pair_counts must hold at least one count, got none")
    rng = np.random.default_rng(seed)
    pairs = [members(row) for row in all_label_sets(num_classes, 2)]
    groups = np.array_split(rng.permutation(len(pairs)), len(pair_counts))
    count_of = {p: n for group, n in zip(groups, pair_counts, strict=True) for p in group.tolist()}
    counts = {(k,): single for k in range(num_classes)}
    counts |= {pair: count_of[p] for p, pair in enumerate(pairs)}
    return _compose(
        images, labels, num_classes, counts, "single/pair_counts", style, rng, pool, candidates
    )


def split_sources(
    labels: Int[np.ndarray, " n"], fraction: float, seed: int
) -> tuple[Int[np.ndarray, " kept"], Int[np.ndarray, " held"]]:
    """Indices of source images to train on and to hold out: `fraction` of every class.

    Splitting before composing keeps a source image from standing in both parts. Both index arrays
    are sorted. Raises ValueError unless 0 < fraction < 1 leaves images of every class in both.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be in (0, 1), got {fraction}")
    rng = np.random.default_rng(seed)
    held = []
    for k in np.unique(labels):
        own = np.flatnonzero(labels == k)
        size = round(fraction * len(own))
        if not 0 < size < len(own):
            raise ValueError(
                f"fraction must leave images of every class in both parts, got {fraction} "
                f"with {len(own)} images of class {k}"
            )
        held.append(rng.choice(own, size, replace=False))
    held = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(labels)), held, assume_unique=True), held


def svhn_label_sets(
    digits: Sequence[Sequence[int]], max_single: int = 543
) -> tuple[Int[np.ndarray, " M"], UInt8[np.ndarray, "M 9"]]:
    """Choose the street-view house numbers to use, and their label sets over the digits 1..9.

    `digits` holds the digits of each image, 0 written as 0 or as 10 (SVHN format 1). An image is
    dropped when it has a zero or more than 3 distinct digits; of the images with one distinct digit
    the first `max_single` of each class are kept. Returns the indices of the kept images and their
    multi-hot labels, column k for digit k + 1. Raises ValueError for a digit outside 0..10 or an
    image without digits.
    """
    present = np.zeros((len(digits), 11), dtype=bool)
    lengths = np.array([len(number) for number in digits], dtype=np.int64)
    if (lengths == 0).any():
        raise ValueError(f"digits must name a digit per image, image {lengths.argmin()} has none")
    owner = np.repeat(np.arange(len(digits)), lengths)
    flat = np.concatenate([np.asarray(number, dtype=np.int64) for number in digits])
    if (wrong := (flat < 0) | (flat > 10)).any():
        raise ValueError(
            f"digits must be in 0..10 (10 is zero), got {flat[wrong][0]} in image {owner[wrong][0]}"
        )
    present[owner, flat] = True
    zero = present[:, 0] | present[:, 10]
    labels = present[:, 1:10]
    multiplicity = labels.sum(axis=1)
    kept = ~zero & (multiplicity <= 3)
    single = labels & (kept & (multiplicity == 1))[:, None]
    # The place of each single-digit image among those of its class, counted from 1.
    place = (np.cumsum(single, axis=0) * single).max(axis=1)
    index = np.flatnonzero(kept & (place <= max_single))
    return index, labels[index].astype(np.uint8)


def _compose(
    images: np.ndarray,
    labels: np.ndarray,
    num_classes: int,
    counts: Mapping[tuple[int, ...], int],
    argument: str,
    style: Style,
    rng: np.random.Generator,
    pool: int,
    candidates: np.ndarray | None,
) -> MLabArrays:
    size = images.shape[1]
    if pool < 1 or 2 * size % pool:
        raise ValueError(f"pool must divide the canvas of {2 * size} pixels, got {pool}")
    if not counts:
        raise ValueError(f"{argument} must ask for at least one label set, got none")
    candidates = np.arange(len(images)) if candidates is None else candidates
    own = [candidates[labels[candidates] == k] for k in range(num_classes)]
    for label_set, n in counts.items():
        available = {k: len(own[k]) for k in label_set}
        fewest = min(available, key=available.get)
        if not 1 <= n <= available[fewest]:
            raise ValueError(
                f"{argument} must ask for 1 to {available[fewest]} samples of label set "
                f"{label_set} (class {fewest} has {available[fewest]} images), got {n}"
            )
    slots = max(2, *(len(label_set) for label_set in counts))
    total = sum(counts.values())
    source = np.full((total, slots), -1, dtype=np.int32)
    y = np.zeros((total, num_classes), dtype=np.uint8)
    start = 0
    for label_set, n in counts.items():
        rows = slice(start, start + n)
        y[rows, list(label_set)] = 1
        for slot, k in enumerate(label_set):
            source[rows, slot] = rng.choice(own[k], n, replace=False)
        start += n
    return MLabArrays(_overlay(images, source, style, rng, pool), y, source)


def _overlay(
    images: np.ndarray, source: np.ndarray, style: Style, rng: np.random.Generator, pool: int
) -> np.ndarray:
    """Place the source images on their canvases: uint8 [N, C, H, W]."""
    images = images[..., None] if images.ndim == 3 else images
    size, channels = images.shape[1], images.shape[3]
    canvas_size = 2 * size
    rows, columns = _corners(source >= 0, style, size, rng)
    x = np.zeros((len(source), canvas_size, canvas_size, channels), dtype=np.uint8)
    pixels = np.arange(size)
    for slot in range(source.shape[1]):
        used = np.flatnonzero(source[:, slot] >= 0)
        down = (rows[used, slot, None] + pixels) % canvas_size
        right = (columns[used, slot, None] + pixels) % canvas_size
        place = (used[:, None, None], down[:, :, None], right[:, None, :])
        x[place] = np.maximum(x[place], images[source[used, slot]])
    if pool > 1:
        side = canvas_size // pool
        blocks = x.reshape(len(x), side, pool, side, pool, channels)
        sums = blocks.sum(axis=(2, 4), dtype=np.uint32)
        x = ((sums + pool**2 // 2) // pool**2).astype(np.uint8)  # mean, halves rounded up
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def _corners(
    used: Bool[np.ndarray, "N slots"], style: Style, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of the top-left corner of every source image on its canvas."""
    first_right = rng.random(len(used)) < 0.5
    # The first image on one side, the others on the opposite one.
    bottom_right = np.where(
        np.arange(used.shape[1]) == 0, first_right[:, None], ~first_right[:, None]
    )
    shape = used.shape
    if style == "mnist":
        bottom_right = bottom_right | (used.sum(axis=1) == 1)[:, None]
        corner = np.where(bottom_right, size, 0)
        return (
            corner + rng.integers(_SHIFTS[style], size=shape),
            corner + rng.integers(_SHIFTS[style], size=shape),
        )
    shift = rng.integers(_SHIFTS[style], size=shape)
    corner = np.where(bottom_right, size - shift, shift)
    return corner, corner


def _check_images(images: np.ndarray, labels: np.ndarray, style: str) -> int:
    """The number of classes; ValueError for images or labels that cannot be composed."""
    if style not in _SHIFTS:
        raise ValueError(f'style must be "mnist" or "cifar10", got {style!r}')
    square = images.ndim in (3, 4) and images.shape[1] == images.shape[2]
    if images.dtype != np.uint8 or not square:
        raise ValueError(
            f"images must be uint8 [n, size, size] or [n, size, size, channels], "
            f"got {images.dtype} {images.shape}"
        )
    if labels.shape != images.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"labels must be {len(images)} integers, one per image, "
            f"got {labels.dtype} {labels.shape}"
        )
    if len(labels) == 0 or labels.min() < 0:
        raise ValueError("labels must not be empty and must be classes 0, 1, ..., K-1")
    if (num_classes := int(labels.max()) + 1) < 2:
        raise ValueError(f"labels must have at least 2 classes, got {num_classes}")
    return num_classes
