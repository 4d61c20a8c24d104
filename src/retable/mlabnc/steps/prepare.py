"""Compose a multi-label data set: train, validation and test, without a shared source image."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays
from retable.common.errors import InputError
from retable.mlabnc.config import ComposeSettings, HouseNumberSettings
from retable.mlabnc.data import (
    MLabArrays,
    compose,
    compose_imbalanced,
    split_sources,
    svhn_label_sets,
)
from retable.mlabnc.prepared import save_prepared


def prepare(
    images: Path,
    data: Path,
    *,
    seed: int,
    settings: ComposeSettings | HouseNumberSettings,
) -> None:
    """Write the three splits of one draw; train and validation come from the train images alone."""
    arrays = load_arrays(images)
    if isinstance(settings, HouseNumberSettings):
        splits = _house_numbers(arrays, seed, settings)
    else:
        try:
            splits = _composed(arrays, seed, settings)
        except ValueError as error:
            raise InputError(f"config/mlabnc.yaml, prepare: {error}") from None
    save_prepared(data, splits, {"seed": seed, "settings": settings.model_dump(mode="json")})


def _composed(
    arrays: Mapping[str, np.ndarray], seed: int, settings: ComposeSettings
) -> dict[str, MLabArrays]:
    train_images, train_labels = arrays["train_images"], arrays["train_labels"]
    kept, held = split_sources(train_labels, settings.validation, seed)
    share = settings.validation

    def part(counts: Mapping[int, int], pairs: tuple[int, ...], candidates) -> MLabArrays:
        if not pairs:
            return compose(
                train_images, train_labels, counts, settings.source, seed,
                pool=settings.pool, candidates=candidates,
            )  # fmt: skip
        return compose_imbalanced(
            train_images, train_labels, counts[1], settings.source, seed,
            pair_counts=pairs, pool=settings.pool, candidates=candidates,
        )  # fmt: skip

    few = {m: _share(n, share) for m, n in settings.train.items()}
    return {
        "train": part(settings.train, settings.pair_counts, kept),
        "validation": part(few, tuple(_share(n, share) for n in settings.pair_counts), held),
        "test": compose(
            arrays["test_images"],
            arrays["test_labels"],
            settings.test,
            settings.source,
            seed,
            pool=settings.pool,
        ),
    }


def _share(count: int, share: float) -> int:
    return max(1, round(share * count))


def _house_numbers(
    arrays: Mapping[str, np.ndarray], seed: int, settings: HouseNumberSettings
) -> dict[str, MLabArrays]:
    def part(split: str, index: np.ndarray, y: np.ndarray) -> MLabArrays:
        x = np.ascontiguousarray(arrays[f"{split}_images"][index].transpose(0, 3, 1, 2))
        source = np.stack([index, np.full_like(index, -1)], axis=1).astype(np.int32)
        return MLabArrays(x, y, source, settings.mean, settings.std)

    chosen = {
        split: svhn_label_sets(
            [row[row >= 0].tolist() for row in arrays[f"{split}_digits"]], settings.max_single
        )
        for split in ("train", "test")
    }
    index, y = chosen["train"]
    order = np.random.default_rng(seed).permutation(len(index))
    cut = round(settings.validation * len(index))
    held, kept = np.sort(order[:cut]), np.sort(order[cut:])
    return {
        "train": part("train", index[kept], y[kept]),
        "validation": part("train", index[held], y[held]),
        "test": part("test", *chosen["test"]),
    }
