"""Choose each seed's images, make them small and normalise them."""

from pathlib import Path

import numpy as np

from retable.adambias.config import PrepareSettings
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.errors import InputError
from retable.common.seeds import Seeds


def average_pool(images: np.ndarray, side: int) -> np.ndarray:
    """Mean over squares of `side` pixels: (N, H, W) or (N, H, W, C) to float32 (N, C, H', W').

    uint8 pixels become values in [0, 1]. ValueError when `side` does not divide H and W.
    """
    if images.ndim == 3:
        images = images[..., None]
    count, height, width, channels = images.shape
    if height % side or width % side:
        raise ValueError(f"pool is {side}, allowed: divisors of the image's {height}×{width}")
    squares = images.reshape(count, height // side, side, width // side, side, channels)
    means = squares.mean(axis=(2, 4), dtype=np.float64) / 255.0
    return np.ascontiguousarray(means.transpose(0, 3, 1, 2), dtype=np.float32)


def _split(source: dict[str, np.ndarray], seed: int = 42, share: float = 0.8) -> dict:
    """Training and test images of a set that has no split of its own: torch's random order."""
    import torch  # the order is torch's; other data sets do without

    order = torch.randperm(len(source["labels"]), generator=torch.Generator().manual_seed(seed))
    count = int(share * len(order))
    parts = {"train": order[:count].numpy(), "test": order[count:].numpy()}
    return {
        f"{split}_{name}": source[name][part]
        for split, part in parts.items()
        for name in ("images", "labels")
    }


def prepare(images: Path, data: Path, *, seeds: Seeds, settings: PrepareSettings) -> None:
    """Write x (S, n, C, H, W) and y (S, n) of S seeds, x_test (m, C, H, W) and y_test (m,).

    Seed s takes the first n of a permutation by `numpy.random.default_rng(s)`; the test images are
    the first m of the test file (a set without one is split 80/20 first). Pixels lie in [0, 1];
    mean and std (S, C), those given or those of the seed's training images, are written beside
    them, and `data.load_split` applies them.
    """
    source = load_arrays(images)
    if "images" in source:
        source = _split(source)
    total = len(source["train_images"])
    n = total if settings.n is None else settings.n
    place = f"config/adambias.yaml: prepare: {settings.source}"
    if n > total:
        raise InputError(f"{place}: n is {n}, allowed: at most {total} training images")
    if settings.n_test > len(source["test_images"]):
        raise InputError(
            f"{place}: n_test is {settings.n_test}, allowed: at most "
            f"{len(source['test_images'])} test images"
        )
    arrays: dict[str, list[np.ndarray]] = {name: [] for name in ("x", "y", "mean", "std")}
    for seed in seeds:
        chosen = np.random.default_rng(seed).permutation(total)[:n]
        labels = source["train_labels"][chosen]
        if len(np.unique(labels)) < 2:
            raise InputError(f"{place}: seed {seed}: the data set needs at least 2 classes")
        pixels = average_pool(source["train_images"][chosen], settings.pool)
        mean = pixels.mean((0, 2, 3), dtype=np.float64) if settings.mean is None else settings.mean
        std = pixels.std((0, 2, 3), dtype=np.float64) if settings.std is None else settings.std
        mean, std = (np.asarray(value, np.float32) for value in (mean, std))
        if mean.shape != std.shape or len(mean) != pixels.shape[1] or not (std > 0).all():
            raise InputError(
                f"{place}: mean {mean.tolist()} and std {std.tolist()}, allowed: one value for "
                f"each of {pixels.shape[1]} channels, std > 0"
            )
        for name, value in (("x", pixels), ("y", labels), ("mean", mean), ("std", std)):
            arrays[name].append(value)
    tests = {
        "x_test": average_pool(source["test_images"][: settings.n_test], settings.pool),
        "y_test": source["test_labels"][: settings.n_test],
    }
    save_arrays(data, {name: np.stack(parts) for name, parts in arrays.items()} | tests)
