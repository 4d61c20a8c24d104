"""Feature noise on images: each client's images minus a multiple of another client's image."""

import numpy as np

_BLOCK = 2048  # images at a time: the differences are floating-point copies


def add_feature_noise(
    images: np.ndarray,
    client_of: np.ndarray,
    source_images: np.ndarray,
    rho: float,
    mode: str = "clip",
) -> np.ndarray:
    """Images minus `rho` times their client's source image, uint8 of the same shape.

    `images` uint8 (N, ...), `client_of` int (N,) in -1..K-1 where -1 (no client) leaves an image as
    it is, `source_images` uint8 (K, ...), 0 ≤ rho ≤ 1. The floating-point difference of values in
    0..255 is truncated toward zero and then clipped to 0..255 (`mode="clip"`) or taken modulo 256
    (`"wrap"`). The published experiments write the difference into an 8-bit array, which wraps:
    dark pixels become bright.
    """
    images, source_images = np.asarray(images), np.asarray(source_images)
    client_of = np.asarray(client_of)
    for name, array in (("images", images), ("source_images", source_images)):
        if array.dtype != np.uint8:
            raise ValueError(f"{name} has dtype {array.dtype}; it must be uint8")
    if images.ndim < 2 or images.shape[1:] != source_images.shape[1:]:
        raise ValueError(
            f"images has shape {images.shape}, source_images {source_images.shape}; they must "
            "agree in all but the first axis"
        )
    if client_of.shape != images.shape[:1]:
        raise ValueError(f"client_of has shape {client_of.shape}; it must be ({len(images)},)")
    if client_of.size and not (client_of.min() >= -1 and client_of.max() < len(source_images)):
        raise ValueError(
            f"client_of has values in {client_of.min()}..{client_of.max()}; they must be in "
            f"-1..{len(source_images) - 1}"
        )
    if not 0 <= rho <= 1:
        raise ValueError(f"rho is {rho}; it must be in [0, 1]")
    if mode not in ("clip", "wrap"):
        raise ValueError(f"mode is {mode!r}; it must be 'clip' or 'wrap'")

    noise = rho * np.concatenate([source_images, np.zeros_like(source_images[:1])])
    noised = np.empty_like(images)
    for start in range(0, len(images), _BLOCK):
        block = slice(start, start + _BLOCK)
        # The appended row of zeros is what index -1 finds.
        difference = np.trunc(images[block] - noise[client_of[block]]).astype(np.int16)
        noised[block] = difference.clip(0, 255) if mode == "clip" else difference % 256
    return noised
