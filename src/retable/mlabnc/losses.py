"""The pick-all-label loss (section 2 of the paper)."""

from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor


def pick_all_label_loss(
    logits: Float[Tensor, "N K"],
    targets: Shaped[Tensor, "N K"],
    per_label: Literal["sum", "mean"] = "sum",
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor:
    """Cross entropy added up over all labels of a sample: L(z, S) = sum_{k in S} -log softmax(z)_k.

    `targets` is multi-hot (any dtype, values 0 and 1). `per_label="sum"` is the loss of the theory;
    `"mean"` divides it by m = |S|, which is cross entropy against the soft target y/m and what the
    networks are trained with. `reduction` acts over the N samples. With one label per sample both
    are the usual cross entropy.

    Raises ValueError for a shape mismatch, a target other than 0 or 1, a row without a label, fewer
    than 2 classes, or an unknown option.
    """
    if per_label not in ("sum", "mean"):
        raise ValueError(f'per_label must be "sum" or "mean", got {per_label!r}')
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'reduction must be "mean", "sum" or "none", got {reduction!r}')
    picked = check_target_tensor(logits, targets)
    # where, not a product: a logit of -inf outside the set must not turn into 0 * inf = NaN.
    losses = -torch.where(picked, logits.log_softmax(dim=1), 0).sum(dim=1)
    if per_label == "mean":
        losses = losses / picked.sum(dim=1)
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def check_target_tensor(logits: Tensor, targets: Tensor) -> Tensor:
    """The multi-hot targets as a boolean tensor; ValueError as in `pick_all_label_loss`."""
    if logits.ndim != 2 or logits.shape[0] == 0:
        raise ValueError(f"logits must be a non-empty [N, K] matrix, got {tuple(logits.shape)}")
    if logits.shape[1] < 2:
        raise ValueError(f"logits must have at least 2 classes (columns), got {logits.shape[1]}")
    if targets.shape != logits.shape:
        raise ValueError(
            f"targets must have the shape of logits {tuple(logits.shape)}, "
            f"got {tuple(targets.shape)}"
        )
    picked = targets == 1
    if not (allowed := picked | (targets == 0)).all():
        row, column = (~allowed).nonzero()[0].tolist()
        raise ValueError(
            f"targets must hold only 0 and 1, got {targets[row, column].item()} in row {row}, "
            f"column {column}"
        )
    if not (labelled := picked.any(dim=1)).all():
        row = (~labelled).nonzero()[0].item()
        raise ValueError(f"targets must have at least one label in every row, row {row} has none")
    return picked
