"""Prepared images as tensors, and the small network on them that the flows are compared on."""

from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from retable.adambias.models import mlp
from retable.adambias.problems import Loss, flat_classifier
from retable.common.data.arrays import load_arrays


class Split(NamedTuple):
    """One seed's images, normalised, and labels."""

    x: Float[Tensor, "n c h w"]
    y: Int[Tensor, "n"]
    x_test: Float[Tensor, "m c h w"]
    y_test: Int[Tensor, "m"]


def load_split(data: Path, index: int) -> Split:
    """Read one seed's images from a prepared file; `index` is the seed's place in it."""
    arrays = {name: torch.from_numpy(array) for name, array in load_arrays(data).items()}
    mean, std = (arrays[name][index][:, None, None] for name in ("mean", "std"))
    return Split(
        (arrays["x"][index] - mean) / std,
        arrays["y"][index],
        (arrays["x_test"] - mean) / std,
        arrays["y_test"],
    )


def small_network(data: Path, index: int, seed: int, hidden: int) -> tuple[Loss, Tensor]:
    """Cross-entropy of a tanh network on the images of one seed, and a random start; float64.

    `index` is the seed's place in the prepared file; `seed` draws the start.
    """
    split = load_split(data, index)
    images = split.x.double()
    classes = int(split.y_test.max()) + 1
    model = mlp(images[0].numel(), hidden, classes).double()
    return flat_classifier(model, images, split.y, torch.Generator().manual_seed(seed))
