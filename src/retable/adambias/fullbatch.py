"""Full-batch training: what is computed in a step of Adam, and what is recorded of it.

An epoch is one step. The gradient of the mean loss is accumulated over physical batches in a fixed
order; all numbers of an epoch's row belong to the parameters before the step.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from retable.adambias.data import Split
from retable.adambias.flow import bias_coefficient
from retable.adambias.norms import perturbed_one_norm
from retable.common.errors import InputError

DIVERGED = 10.0  # times the first loss
TEST_BATCH = 1000  # images; layers of more are slower on a CPU, whose cache they exceed


def augment(images: Tensor, pad: int = 4) -> Tensor:
    """Random horizontal flips, and crops of the padded images; (N, C, H, W), torch's generator."""
    count, _, height, width = images.shape
    flip = torch.rand(count, device=images.device) < 0.5
    images = torch.where(flip[:, None, None, None], images.flip(-1), images)
    padded = nn.functional.pad(images, (pad, pad, pad, pad))
    top, left = torch.randint(2 * pad + 1, (2, count, 1), device=images.device)
    rows = top + torch.arange(height, device=images.device)
    columns = left + torch.arange(width, device=images.device)
    picked = padded.permute(0, 2, 3, 1)[
        torch.arange(count, device=images.device)[:, None, None],
        rows[:, :, None],
        columns[:, None, :],
    ]
    return picked.permute(0, 3, 1, 2)


class Trainee(nn.Module):
    """A network and the first value of its training loss, which a checkpoint must keep too."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("first_loss", torch.tensor(math.nan, dtype=torch.float64))

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images)


class FullBatch:
    """Loss, batches and records of one training, in the form that the training loop takes.

    Parameters
    ----------
    trainee : the network that is trained.
    split : its images.
    label : names the run in errors (method, seed).
    beta, rho, eps, eps_placement, bias_correction : of the optimiser, for the share of negative κ,
        whose closed form holds with bias correction only.
    squares : squared error on one-hot labels in place of cross-entropy; sums over classes.
    physical_batch : images at once; None for all of them. BatchNorm takes its statistics from
        each of these batches, so that their order is fixed.
    augmented : random flips and crops; the loss is then no function of the parameters alone.
    test_every : epochs between two tests.
    """

    def __init__(
        self,
        trainee: Trainee,
        split: Split,
        label: str,
        *,
        beta: float,
        rho: float,
        eps: float,
        eps_placement: str = "inside",
        bias_correction: bool = True,
        squares: bool = False,
        physical_batch: int | None = None,
        augmented: bool = False,
        test_every: int = 10,
    ) -> None:
        self.trainee = trainee
        self.split = split
        self.label = label
        self.bias = {"beta": beta, "rho": rho, "eps": eps, "eps_placement": eps_placement}
        self.bias_correction = bias_correction
        self.squares = squares
        self.physical_batch = physical_batch
        self.augmented = augmented
        self.test_every = test_every
        self.row: dict[str, Any] = {}

    def batches(self, epoch: int) -> list[dict[str, Any]]:
        """The one batch of an epoch: all training images."""
        return [{"x": self.split.x, "y": self.split.y, "epoch": epoch}]

    def loss(self, model: nn.Module, batch: dict[str, Any]) -> Tensor:
        """Mean training loss; the gradients of all physical batches but the last are in place.

        Raises InputError when it is not finite, or above ten times its first value.
        """
        self.row = self._test() if batch["epoch"] % self.test_every == 0 else {}
        total = len(batch["x"])
        size = self.physical_batch or total
        done, right = 0.0, 0
        parts = list(zip(batch["x"].split(size), batch["y"].split(size), strict=True))
        for number, (images, labels) in enumerate(parts):
            logits = model(augment(images) if self.augmented else images)
            value = self._criterion(logits, labels, "sum") / total
            right += (logits.detach().argmax(1) == labels).sum()
            if number < len(parts) - 1:
                value.backward()
                done = done + value.detach()
        value = value + done
        self._watch(value.detach(), batch["epoch"])
        self.row["train_accuracy"] = float(right) / total
        return value

    def after_epoch(self, epoch: int) -> dict[str, Any]:
        """The epoch's row: accuracies, norms of the gradient, share of coordinates with κ < 0."""
        gradient = torch.cat(
            [p.grad.flatten() for p in self.trainee.parameters() if p.grad is not None]
        )
        sizes = gradient.abs()
        share = math.nan
        if self.bias_correction:
            kappa = bias_coefficient(gradient, n=epoch - 1, **self.bias)
            share = (kappa < 0).to(torch.float64).mean().item()
        return {
            "train_accuracy": self.row["train_accuracy"],
            "test_loss": self.row.get("test_loss", math.nan),
            "test_accuracy": self.row.get("test_accuracy", math.nan),
            "one_norm": sizes.sum().item(),
            "perturbed_one_norm": perturbed_one_norm(gradient, self.bias["eps"]).item(),
            "two_norm": gradient.square().sum().sqrt().item(),
            "mean_abs_grad": sizes.mean().item(),
            "std_abs_grad": sizes.std(correction=0).item(),
            "share_negative": share,
        }

    def _criterion(self, logits: Tensor, labels: Tensor, reduction: str) -> Tensor:
        if self.squares:
            target = nn.functional.one_hot(labels, logits.shape[1]).to(logits.dtype)
            return nn.functional.mse_loss(logits, target, reduction=reduction)
        return nn.functional.cross_entropy(logits, labels, reduction=reduction)

    @torch.no_grad()
    def _test(self) -> dict[str, float]:
        """Loss and accuracy on the test images, at the parameters before the step."""
        device = self.trainee.first_loss.device
        size = self.physical_batch or TEST_BATCH
        self.trainee.eval()
        loss, right = 0.0, 0
        for images, labels in zip(
            self.split.x_test.split(size), self.split.y_test.split(size), strict=True
        ):
            labels = labels.to(device)
            logits = self.trainee(images.to(device))
            loss += self._criterion(logits, labels, "sum").item()
            right += (logits.argmax(1) == labels).sum().item()
        self.trainee.train()
        count = len(self.split.y_test)
        return {"test_loss": loss / count, "test_accuracy": right / count}

    def _watch(self, value: Tensor, epoch: int) -> None:
        first = self.trainee.first_loss
        if first.isnan():
            first.copy_(value)
        if not value.isfinite() or value > DIVERGED * first:
            raise InputError(
                f"{self.label}: the training loss is {value.item():.6g} at step {epoch}, more than "
                f"{DIVERGED:g} times its first value {first.item():.6g} or not finite "
                f"(beta={self.bias['beta']:g}, rho={self.bias['rho']:g}): lower lr"
            )
