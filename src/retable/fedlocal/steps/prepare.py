"""CIFAR-10 for the clients: a subset, its partition, feature noise."""

from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.errors import InputError
from retable.common.seeds import Seeds
from retable.fedlocal.config import PrepareSettings
from retable.fedlocal.noise import add_feature_noise
from retable.fedlocal.partition import feature_heterogeneity


def prepare(cifar: Path, subset: Path, *, seeds: Seeds, settings: PrepareSettings) -> None:
    """Write `<seed>.<array>` for each seed.

    For `kind` train and test: `<kind>_images` uint8 (N, 32, 32, 3) with the noise in them,
    `<kind>_classes` int64 in 0..9, `<kind>_binary` int64 (class mod 2), and the clients' index
    lists: client k has `<kind>_values[<kind>_offsets[k] : <kind>_offsets[k + 1]]`. Without noise
    the test images are cut into equal runs; with noise they follow the clients' law, and each
    client is tested under its own noise. `noise_sources` (clients,) are the training images that
    are subtracted, as they were before any noise, empty without noise; `dataset` is a name that
    holds h and rho.
    """
    data = load_arrays(cifar)
    arrays = {}
    for seed in seeds:
        try:
            prepared = _prepare(data, np.random.default_rng([seed, 0]), settings)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{cifar}, seed {seed}: {error}") from None
        arrays |= {f"{seed}.{name}": value for name, value in prepared.items()}
    save_arrays(subset, arrays)


def _prepare(
    data: dict[str, np.ndarray], rng: np.random.Generator, settings: PrepareSettings
) -> dict[str, np.ndarray]:
    chosen = rng.permutation(len(data["train_labels"]))[: settings.n_train]
    images = {"train": data["train_images"][chosen], "test": data["test_images"][: settings.n_test]}
    classes = {
        "train": data["train_labels"][chosen],
        "test": data["test_labels"][: settings.n_test],
    }
    binary = {kind: values % 2 for kind, values in classes.items()}
    k = settings.clients
    parts = {
        "train": feature_heterogeneity(classes["train"], binary["train"], settings.h, k, rng),
        "test": np.array_split(np.arange(settings.n_test), k),
    }
    sources = np.zeros(0, dtype=np.int64)
    if settings.rho > 0:
        parts["test"] = feature_heterogeneity(classes["test"], binary["test"], settings.h, k, rng)
        # Another client: skip one's own number among the k - 1 others.
        others = rng.integers(0, k - 1, size=k)
        others += others >= np.arange(k)
        sources = np.array([rng.choice(parts["train"][other]) for other in others])
        noise = images["train"][sources]
        for kind in images:
            client_of = np.full(len(images[kind]), -1)
            client_of[np.concatenate(parts[kind])] = np.repeat(
                np.arange(k), [len(part) for part in parts[kind]]
            )
            images[kind] = add_feature_noise(
                images[kind], client_of, noise, settings.rho, settings.noise_mode
            )
    name = f"cifar10_h{settings.h:g}_rho{settings.rho:g}"
    prepared = {"noise_sources": sources, "dataset": np.array(name)}
    for kind in images:
        prepared |= {
            f"{kind}_images": images[kind],
            f"{kind}_classes": classes[kind],
            f"{kind}_binary": binary[kind],
            f"{kind}_values": np.concatenate(parts[kind]),
            f"{kind}_offsets": np.cumsum([0, *(len(part) for part in parts[kind])]),
        }
    return prepared
