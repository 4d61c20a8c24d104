"""The training loop of every paper: a paper supplies the model, the loss and the batches.

Hugging Face accelerate chooses the device, the precision and the number of processes. The state
(model, optimiser, schedule, random generators, position in the data, history) is checkpointed,
so that a run that was killed at any moment and started again ends with the same bytes.
"""

import contextlib
import itertools
import logging
import math
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tqdm import tqdm

from retable.common.checkpoints import Checkpoints
from retable.common.errors import InputError

logger = logging.getLogger("retable")
EXIT_TERMINATED = 143
_SECONDS_BETWEEN_LINES = 10.0
_STEPS_BETWEEN_VOTES = 16

Batches = Callable[[int], Iterable[Any]]
Loss = Callable[[nn.Module, Any], Tensor]


@dataclass
class Trained:
    """What a training run leaves besides the model's weights.

    Attributes:
        history: one row an epoch: `epoch` (from 1), `loss` (mean over its steps) and what
            `after_epoch` returned.
        best_epoch: epoch with the largest value of the metric that was asked for (`best`).
        best_state: the model's weights after that epoch, on the CPU.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int | None = None
    best_state: dict[str, Tensor] | None = None


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    batches: Batches,
    *,
    epochs: int,
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
    schedule_per: Literal["step", "epoch"] = "epoch",
    clip_norm: float | None = None,
    after_step: Callable[[int], None] | None = None,
    after_epoch: Callable[[int], dict[str, Any] | None] | None = None,
    best: str | None = None,
    checkpoints: Checkpoints | None = None,
    name: str = "state",
    mixed_precision: Literal["no", "fp16", "bf16"] = "no",
) -> Trained:
    """Train `model` in place and return its history.

    Args:
        model: moved to the device that accelerate chooses.
        optimizer: over the model's parameters.
        loss: `loss(model, batch)` gives the scalar to minimise.
        batches: `batches(epoch)` gives the batches of one epoch (counted from 0). It must depend
            on nothing but the epoch: after a restart it is called again and the batches that
            were already used are passed over.
        epochs: number of epochs.
        schedule: learning-rate schedule over `optimizer`, advanced once a `schedule_per`.
        clip_norm: largest 2-norm of the gradient; None leaves it.
        after_step: called with the number of steps done (from 1), after the optimiser's step.
        after_epoch: called with the number of epochs done (from 1); what it returns joins the
            epoch's row of the history. The model may be put into evaluation mode there.
        best: name of a metric in the history's rows; the weights after the epoch where it is
            largest are kept (the first of equals). ValueError where the first row lacks it.
        checkpoints: where to save the state; None trains without.
        name: tells apart the training runs of one job (a job with three seeds has three).
        mixed_precision: as accelerate names it.

    Raises:
        InputError: the loss became NaN or infinite; a second attempt would end the same way.
        SystemExit: 143 after SIGTERM, with the state in a checkpoint.
    """
    accelerator = Accelerator(mixed_precision=mixed_precision)
    prepared = accelerator.prepare(model)
    if accelerator.scaler is not None:
        # It scales the loss of half precision. Elsewhere the optimiser steps by itself:
        # accelerate's wrapper looks for another optimiser's package at every step.
        optimizer = accelerator.prepare(optimizer)
    loop = _Loop(accelerator, model, optimizer, schedule, name)
    if checkpoints is not None:
        loop.load(checkpoints)
    with _termination() as asked_to_stop, _progress(name, loop, epochs) as progress:
        for epoch in range(loop.epoch, epochs):
            prepared.train()
            for batch in loop.remaining(batches(epoch)):
                batch = send_to_device(_share(accelerator, batch), accelerator.device)
                optimizer.zero_grad()
                with accelerator.autocast():
                    value = loss(prepared, batch)
                accelerator.backward(value)
                if clip_norm is not None:
                    accelerator.clip_grad_norm_(prepared.parameters(), clip_norm)
                optimizer.step()
                loop.count(value)
                if schedule is not None and schedule_per == "step":
                    schedule.step()
                if after_step is not None:
                    after_step(loop.steps)
                progress()
                due = checkpoints is not None and checkpoints.due()
                stop, save = loop.agreed(asked_to_stop(), due, every=_STEPS_BETWEEN_VOTES)
                if stop:
                    loop.stop(checkpoints)
                if save:
                    loop.save(checkpoints)
            if schedule is not None and schedule_per == "epoch":
                schedule.step()
            loop.end_epoch(after_epoch, best)
            (stop,) = loop.agreed(asked_to_stop())
            if stop:
                loop.stop(checkpoints)
        if checkpoints is not None:
            # A later part of the same job may be killed: this part is not trained again.
            loop.save(checkpoints)
            (stop,) = loop.agreed(asked_to_stop())
            if stop:
                loop.stop(None)
    return loop.trained


class _Loop:
    """The state of a training run, and how it is saved."""

    def __init__(
        self,
        accelerator: Accelerator,
        model: nn.Module,
        optimizer: Any,
        schedule: torch.optim.lr_scheduler.LRScheduler | None,
        name: str,
    ) -> None:
        self.accelerator = accelerator
        self.model = model
        self.optimizer = optimizer
        self.schedule = schedule
        self.name = name
        self.epoch = 0  # epochs that are complete
        self.position = 0  # batches of the current epoch that were used
        self.steps = 0
        self.epoch_steps: int | None = None  # where the batches of an epoch can be counted
        self.total = torch.zeros((), dtype=torch.float64, device=accelerator.device)
        self.trained = Trained()
        self._generators: dict[str, Any] | None = None

    def remaining(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches of an epoch that were not used before the restart."""
        start = self.position
        self.epoch_steps = len(batches) if isinstance(batches, Sized) else None
        if start and isinstance(batches, DataLoader):
            batches = skip_first_batches(batches, start)
            start = 0
        iterator = iter(batches)
        # What making the used batches draws comes before the state that was saved after them.
        next(itertools.islice(iterator, start, start), None)
        if self._generators is not None:
            _restore_generators(self._generators)
            self._generators = None
        yield from iterator

    def agreed(self, *flags: bool, every: int = 1) -> tuple[bool, ...]:
        """What at least one of the processes says; they must stop and save at the same step.

        With several processes they exchange it only at every `every`-th step.
        """
        if self.accelerator.num_processes == 1:
            return flags
        if self.steps % every:
            return (False,) * len(flags)
        votes = torch.tensor(flags, dtype=torch.float32, device=self.accelerator.device)
        return tuple(vote > 0 for vote in self.accelerator.reduce(votes, "sum").tolist())

    def count(self, value: Tensor) -> None:
        self.steps += 1
        self.position += 1
        self.total += value.detach()
        # Reading the value waits for an accelerator, so there it is looked at now and then.
        if self.accelerator.device.type == "cpu" or self.steps % 16 == 0:
            self._check_finite()

    def _check_finite(self) -> None:
        if not math.isfinite(self.total.item()):
            raise InputError(
                f"{self.name}: the loss is not finite in epoch {self.epoch + 1}, step "
                f"{self.position}: lower the learning rate or check the data"
            )

    def end_epoch(
        self, after_epoch: Callable[[int], dict[str, Any] | None] | None, best: str | None
    ) -> None:
        self._check_finite()
        if not self.position:
            raise InputError(f"{self.name}: epoch {self.epoch + 1} has no batches")
        # With several processes each one has seen its share of the batches.
        total = self.accelerator.reduce(self.total.clone(), "mean")
        row = {"epoch": self.epoch + 1, "loss": total.item() / self.position}
        if after_epoch is not None:
            measured = after_epoch(self.epoch + 1) or {}
            # Numbers of numpy and torch become plain ones: a checkpoint is read without pickle.
            row |= {
                key: value.item() if isinstance(value, np.generic | Tensor) else value
                for key, value in measured.items()
            }
        trained = self.trained
        if best is not None:
            if best not in row:
                raise ValueError(f"{self.name}: best: there is no '{best}' among {', '.join(row)}")
            earlier = [past[best] for past in trained.history]
            if not earlier or row[best] > max(earlier):
                trained.best_epoch = self.epoch + 1
                trained.best_state = {
                    key: tensor.detach().cpu().clone()
                    for key, tensor in self.model.state_dict().items()
                }
        trained.history.append(row)
        self.epoch += 1
        self.position = 0
        self.total.zero_()

    def stop(self, checkpoints: Checkpoints | None) -> None:
        if checkpoints is not None:
            self.save(checkpoints)
        logger.warning("asked to stop after step %d; the next attempt goes on there", self.steps)
        raise SystemExit(EXIT_TERMINATED)

    def _file(self, rank: int) -> str:
        return self.name if rank == 0 else f"{self.name}-process{rank}"

    def save(self, checkpoints: Checkpoints) -> None:
        self._check_finite()
        rank = self.accelerator.process_index
        state: dict[str, Any] = {
            "generators": _generators(),
            "steps": self.steps,
            "total": self.total,
        }
        if rank == 0:
            scaler = self.accelerator.scaler
            state |= {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict() if self.schedule is not None else None,
                "scaler": scaler.state_dict() if scaler is not None else None,
                "epoch": self.epoch,
                "position": self.position,
                "training": self.model.training,
                "history": self.trained.history,
                "best_epoch": self.trained.best_epoch,
                "best_state": self.trained.best_state,
            }
        checkpoints.save(state, self._file(rank))

    def load(self, checkpoints: Checkpoints) -> None:
        rank = self.accelerator.process_index
        state = checkpoints.load(self._file(0))
        own = state if rank == 0 else checkpoints.load(self._file(rank))
        unusable = state is None or own is None or own["steps"] != state["steps"]
        (differ,) = self.agreed(unusable)
        if state is None or own is None:
            return
        if differ:
            # Killed between the files of two processes: the generators do not belong together.
            logger.warning("%s: the processes' checkpoints differ in age; starting anew", self.name)
            return
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        self.epoch, self.position, self.steps = (
            state[key] for key in ("epoch", "position", "steps")
        )
        # A training run that is complete leaves the model in the mode in which it ended.
        self.model.train(state["training"])
        self.total.copy_(own["total"])
        self.trained = Trained(state["history"], state["best_epoch"], state["best_state"])
        self._generators = own["generators"]
        if not self.position:
            _restore_generators(self._generators)


def _generators() -> dict[str, Any]:
    kind, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return {
        "python": random.getstate(),
        "numpy": [kind, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, gauss],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def _restore_generators(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])


def _share(accelerator: Accelerator, batch: Any) -> Any:
    """This process's part of a batch: every n-th row of each tensor, with n processes."""
    count = accelerator.num_processes
    if count == 1:
        return batch
    if isinstance(batch, Tensor):
        return batch[accelerator.process_index :: count] if batch.ndim else batch
    if isinstance(batch, dict):
        return {key: _share(accelerator, value) for key, value in batch.items()}
    if isinstance(batch, list | tuple):
        return type(batch)(_share(accelerator, value) for value in batch)
    return batch


@contextlib.contextmanager
def _termination() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM set a flag and nothing else; the earlier handler comes back after training."""
    asked = False

    def note(signum: int, frame: Any) -> None:
        nonlocal asked
        asked = True

    try:
        earlier = signal.signal(signal.SIGTERM, note)
    except ValueError:  # not the main thread (a notebook's worker): signals do not come here
        yield lambda: False
        return
    ended = False
    try:
        yield lambda: asked
    except SystemExit:
        ended = True
        raise
    finally:
        # The state is saved and the process ends: a repeated request must not cut that short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN if ended else earlier)


@contextlib.contextmanager
def _progress(name: str, loop: _Loop, epochs: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, and a line in the log every few seconds: rate and time left."""
    first = loop.steps
    started = last = time.monotonic()
    bar = tqdm(
        total=None,
        initial=first,
        desc=name,
        unit="step",
        disable=not (sys.stderr.isatty() and loop.accelerator.is_main_process),
    )

    def step() -> None:
        nonlocal last
        bar.update()
        now = time.monotonic()
        if now - last < _SECONDS_BETWEEN_LINES:
            return
        last = now
        rate = (loop.steps - first) / (now - started)
        left = "unknown time"
        if loop.epoch_steps:
            bar.total = loop.epoch_steps * epochs
            left = f"{(bar.total - loop.steps) / rate:.0f} s"
        logger.info(
            "%s: epoch %d of %d, step %d, %.3g steps/s, %s left, mean loss %.6g",
            name,
            loop.epoch + 1,
            epochs,
            loop.steps,
            rate,
            left,
            loop.total.item() / max(1, loop.position),
        )

    try:
        yield step
    finally:
        bar.close()


def minibatches(
    count: int, size: int, seed: int, *, drop_last: bool = False
) -> Callable[[int], list[Tensor]]:
    """Index batches in an order that depends on `seed` and the epoch alone.

    Args:
        count: number of samples.
        size: samples a batch, >= 1; the last batch may be smaller unless `drop_last`.
        seed: of the order.

    Returns:
        a function from the epoch (from 0) to its list of int64 index tensors, for `train`.
    """
    if size < 1 or count < 1:
        raise ValueError(f"minibatches: count and size must be >= 1, got {count} and {size}")

    def of_epoch(epoch: int) -> list[Tensor]:
        (mixed,) = np.random.SeedSequence((seed, epoch)).generate_state(1)
        generator = torch.Generator().manual_seed(int(mixed))
        order = torch.randperm(count, generator=generator)
        parts = list(order.split(size))
        return parts[:-1] if drop_last and len(parts[-1]) < size and len(parts) > 1 else parts

    return of_epoch
