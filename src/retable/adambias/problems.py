"""Losses on flat parameter vectors: the toy problems, and a network on data."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from retable.adambias.checks import check_count

Loss = Callable[[Tensor], Tensor]


def bilinear(x: float = 2.0, y: float = 1.5) -> Loss:
    """E(θ) = ½ (y - x θ1 θ2)² on R²: a linear net with one hidden unit, fitted to one sample."""

    def loss(theta: Tensor) -> Tensor:
        return 0.5 * (y - x * theta[0] * theta[1]) ** 2

    return loss


def log_cosh_batches(count: int = 4, dim: int = 3, seed: int = 0) -> list[Loss]:
    """`count` smooth losses on R^dim, E_k(θ) = Σ log cosh(A_k θ - c_k) + .05 ‖θ‖² + .3 Σ θ.

    They play the mini-batches. A_k has entries .6 N(0, 1) and c_k entries 2 N(0, 1), drawn in this
    order from `numpy.random.default_rng(seed)`; float64.
    """
    check_count("count", count, 1)
    check_count("dim", dim, 1)
    rng = np.random.default_rng(seed)
    matrices = torch.from_numpy(0.6 * rng.standard_normal((count, dim, dim)))
    shifts = torch.from_numpy(2.0 * rng.standard_normal((count, dim)))

    def batch(matrix: Tensor, shift: Tensor) -> Loss:
        def loss(theta: Tensor) -> Tensor:
            u = matrix @ theta - shift
            # log cosh u = |u| + log(1 + e^{-2|u|}) - log 2, written so that nothing overflows and
            # the derivative at u = 0 is tanh(0).
            log_cosh = nn.functional.softplus(2.0 * u) - u - math.log(2.0)
            return log_cosh.sum() + 0.05 * theta.square().sum() + 0.3 * theta.sum()

        return loss

    return [batch(matrix, shift) for matrix, shift in zip(matrices, shifts, strict=True)]


def flat_classifier(
    model: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator
) -> tuple[Loss, Tensor]:
    """Mean cross-entropy of `model` as a function of one flat vector, and a random start.

    `images` (N, ...) and `labels` (N,) int64 are the whole training set. The start has weights
    N(0, 1/fan_in) and biases 0, drawn from `generator` in the order of `model.named_parameters()`,
    in the dtype of `images`. The model must have no buffers that a forward pass changes.
    Raises ValueError when fewer than 2 classes occur, or not one label an image.
    """
    if len(labels) != len(images):
        raise ValueError(f"labels has {len(labels)} entries, allowed: one an image, {len(images)}")
    if labels.unique().numel() < 2:
        raise ValueError("labels hold one class, allowed: needs at least 2 classes")
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    start = torch.cat(
        [
            torch.randn(shape, generator=generator, dtype=images.dtype).flatten()
            / math.sqrt(math.prod(shape[1:]))
            if len(shape) > 1
            else torch.zeros(shape, dtype=images.dtype)
            for shape in shapes.values()
        ]
    )
    sizes = [shape.numel() for shape in shapes.values()]

    def loss(theta: Tensor) -> Tensor:
        pieces = theta.split(sizes)
        state = {
            name: piece.view(shape)
            for (name, shape), piece in zip(shapes.items(), pieces, strict=True)
        }
        logits = torch.func.functional_call(model, state, (images,))
        return nn.functional.cross_entropy(logits, labels)

    return loss, start
