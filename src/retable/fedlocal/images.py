"""CIFAR-10 as the networks take it."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

_MEAN = (0.4914, 0.4822, 0.4465)
_STD = (0.2470, 0.2435, 0.2616)


def network_input(
    images: UInt8[Tensor, "n 3 pixels pixels"], side: int
) -> Float[Tensor, "n 3 side side"]:
    """Images scaled to [0, 1], normalised by CIFAR-10's mean and spread, average-pooled to `side`.

    Raises ValueError for images that are not uint8 and for a side that does not divide theirs.
    """
    if images.dtype != torch.uint8:
        raise ValueError(f"images has dtype {images.dtype}; it must be uint8")
    pixels = images.shape[-1]
    if side < 1 or pixels % side:
        raise ValueError(f"side is {side}; it must divide the images' {pixels} pixels")
    mean = torch.tensor(_MEAN, device=images.device)[:, None, None]
    std = torch.tensor(_STD, device=images.device)[:, None, None]
    normalised = (images / 255 - mean) / std
    return (
        torch.nn.functional.avg_pool2d(normalised, pixels // side) if side < pixels else normalised
    )


def augment(
    images: UInt8[Tensor, "n 3 pixels pixels"], generator: torch.Generator, padding: int = 4
) -> UInt8[Tensor, "n 3 pixels pixels"]:
    """Each image flipped with probability ½ and cropped at random from a black border.

    The draws come from `generator`, a CPU one, whatever device the images are on.
    """
    n, channels, pixels, _ = images.shape
    device = images.device
    flip = torch.rand(n, generator=generator).to(device) < 0.5
    images = torch.where(flip[:, None, None, None], images.flip(-1), images)
    padded = torch.nn.functional.pad(images, (padding,) * 4)
    corner = torch.randint(0, 2 * padding + 1, (2, n, 1), generator=generator).to(device)
    rows, columns = corner + torch.arange(pixels, device=device)
    sample = torch.arange(n, device=device)[:, None, None, None]
    channel = torch.arange(channels, device=device)[:, None, None]
    return padded[sample, channel, rows[:, None, :, None], columns[:, None, None, :]]
