"""Federated training: full-batch gradient descent and SGD with local steps, and parallel SGD.

R rounds; in each, every client takes I steps from the shared weights on its own loss, then the
weights are averaged. I = 1 is a global update in every step; one round is one-shot averaging.
Comparisons hold the number of gradient steps R·I equal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from accelerate import PartialState
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus
from torch.optim.lr_scheduler import MultiStepLR
from torch.optim.swa_utils import update_bn

from retable.common.checkpoints import Checkpoints
from retable.common.errors import InputError
from retable.common.training import train
from retable.fedlocal.client_stack import ClientStack, average_states
from retable.fedlocal.patch_cnn import PatchCNN

__all__ = [
    "ClientStack",
    "History",
    "average_states",
    "client_batches",
    "federated_sgd",
    "local_gd",
    "parallel_sgd",
    "round_lengths",
]

Samples = tuple[np.ndarray | Tensor, np.ndarray | Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]
Transform = Callable[[Tensor, torch.Generator | None], Tensor]

_EVALUATION_BATCH = 1024
_METRICS = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


@dataclass
class History:
    """What was measured during training, one entry per evaluation of the averaged model.

    `step` counts gradient steps. Losses and accuracies (shares in [0, 1]) are arrays (K,) with one
    entry per client, on its own training and test data; the test lists stay empty without test
    data, `projections` ((filters, features) arrays) without features. `average_buffers` says whose
    buffers were used: "average", "local", or None for a network that has none.
    """

    step: list[int] = field(default_factory=list)
    train_loss: list[np.ndarray] = field(default_factory=list)
    train_accuracy: list[np.ndarray] = field(default_factory=list)
    test_loss: list[np.ndarray] = field(default_factory=list)
    test_accuracy: list[np.ndarray] = field(default_factory=list)
    projections: list[np.ndarray] = field(default_factory=list)
    average_buffers: str | None = None


def round_lengths(rounds: int, local_steps: int, steps: int | None = None) -> list[int]:
    """The number of local steps in each round; the last is shorter if `steps` asks for it.

    `steps` is the total number of gradient steps, rounds·local_steps if None.
    """
    for name, value in (("rounds", rounds), ("local_steps", local_steps)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    before = (rounds - 1) * local_steps
    if steps is None:
        steps = rounds * local_steps
    if not before < steps <= before + local_steps:
        raise ValueError(
            f"steps is {steps}; {rounds} rounds of {local_steps} local steps hold "
            f"{before + 1}..{before + local_steps}"
        )
    return [local_steps] * (rounds - 1) + [steps - before]


def _check_lr(lr: float) -> None:
    if not 0 < lr < float("inf"):
        raise ValueError(f"lr is {lr}; it must be positive")


def _tensors(clients: Sequence[Samples], name: str, like: Tensor | None = None) -> list:
    """The clients' samples as tensors, checked; `like` gives a dtype and device for x and y."""
    if len(clients) == 0:
        raise ValueError(f"{name} is empty; it must hold at least one client")
    pairs = []
    for k, (x, y) in enumerate(clients):
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        if len(x) == 0:
            raise ValueError(f"{name}[{k}] has no samples; every client needs at least one")
        if y.ndim != 1 or len(y) != len(x):
            raise ValueError(
                f"{name}[{k}] has {len(x)} samples and labels of shape {tuple(y.shape)}; "
                f"labels must be ({len(x)},)"
            )
        if pairs and x.shape[1:] != pairs[0][0].shape[1:]:
            raise ValueError(
                f"{name}[{k}] has samples of shape {tuple(x.shape[1:])}, {name}[0] of "
                f"{tuple(pairs[0][0].shape[1:])}; all clients must agree"
            )
        pairs.append((x, y) if like is None else (x.to(like), y.to(like)))
    return pairs


def _check_test(test: Sequence[Samples], clients: Sequence[Samples]) -> None:
    """Test data are like the training data: as many clients, samples of the same shape."""
    if len(test) != len(clients):
        raise ValueError(f"test has {len(test)} clients; it must have {len(clients)}")
    found, wanted = np.shape(test[0][0])[1:], np.shape(clients[0][0])[1:]
    if found != wanted:
        raise ValueError(f"test has samples of shape {tuple(found)}; clients has {tuple(wanted)}")


class _FullBatch:
    """All clients' samples in one array; shorter clients are padded with samples of weight 0."""

    def __init__(self, clients: Sequence[Samples], name: str, model: PatchCNN) -> None:
        pairs = _tensors(clients, name, like=model.weight)
        n = max(len(x) for x, _ in pairs)
        x0 = pairs[0][0]
        if x0.ndim != 3 or x0.shape[-1] != model.weight.shape[1]:
            raise ValueError(
                f"{name}[0] has samples of shape {tuple(x0.shape[1:])}; they must be "
                f"(patches, {model.weight.shape[1]})"
            )
        for k, (_, y) in enumerate(pairs):
            if not (y.abs() == 1).all():
                raise ValueError(f"{name}[{k}] has labels other than -1 and 1")
        self.n_patches = x0.shape[1]
        # A sample without patches' content has output and gradient 0; its label does not matter.
        padded = nn.utils.rnn.pad_sequence([x for x, _ in pairs], batch_first=True)
        self.x = padded.flatten(1, 2)  # (K, nP, d)
        self.y = nn.utils.rnn.pad_sequence([y for _, y in pairs], batch_first=True)  # (K, n)
        sizes = torch.tensor([len(x) for x, _ in pairs], device=self.x.device)
        self.present = torch.arange(n, device=self.x.device) < sizes[:, None]  # (K, n)
        self.share = self.present.to(self.x.dtype) / sizes[:, None]  # sums to 1 for each client

    def outputs(self, projections: Float[Tensor, "k nP filters"]) -> Float[Tensor, "k n"]:
        """f for every sample from ⟨w_r, x_p⟩ for every patch and filter."""
        per_patch = projections.pow(3).sum(-1)
        return per_patch.unflatten(1, (-1, self.n_patches)).sum(-1)

    def measure(self, weight: Float[Tensor, "filters dim"]) -> tuple[np.ndarray, np.ndarray]:
        """Each client's loss and accuracy under one shared model."""
        margin = self.y * self.outputs(self.x @ weight.T)
        loss = (self.share * softplus(-margin)).sum(1)
        right = ((margin > 0) & self.present).sum(1)
        accuracy = right.double() / self.present.sum(1)
        return loss.double().cpu().numpy(), accuracy.cpu().numpy()


@torch.no_grad()
def local_gd(
    model: PatchCNN,
    clients: Sequence[Samples],
    *,
    rounds: int,
    local_steps: int,
    lr: float,
    test: Sequence[Samples] | None = None,
    features: np.ndarray | Tensor | None = None,
    steps: int | None = None,
    eval_every: int | None = None,
) -> History:
    """Full-batch gradient descent on each client's logistic loss, averaged every `local_steps`.

    Each step is ∇F_k(W)_r = -(1/n) Σ y S(-y f) 3 Σ_p ⟨w_r, x_p⟩² x_p, S the logistic function, for
    all clients at once. `clients` and `test` hold (x, y) for each client: patches (n_k, P, dim) and
    labels ±1. `local_steps=1` is the global update, `rounds=1` one-shot averaging. `steps` (total
    gradient steps, at most rounds·local_steps) shortens the last round. Trains `model` in place in
    its dtype; evaluates every `eval_every` rounds and after the last; records the projections on
    `features` (K, dim) if given. Raises ValueError for bad input, and its kind InputError with
    round and client (from 0) for weights that are no longer finite.
    """
    lengths = round_lengths(rounds, local_steps, steps)
    _check_lr(lr)
    _check_every(eval_every)
    train = _FullBatch(clients, "clients", model)
    held_out = None if test is None else _FullBatch(test, "test", model)
    if test is not None:
        _check_test(test, clients)
    if features is not None:
        features = torch.as_tensor(features)
        if features.ndim != 2 or features.shape[1] != model.weight.shape[1]:
            raise ValueError(
                f"features has shape {tuple(features.shape)}; "
                f"it must be (K, {model.weight.shape[1]})"
            )
    history = History()
    weight = model.weight.data
    step = 0
    for r, length in enumerate(lengths):
        copies = weight.expand(len(train.x), -1, -1)
        for _ in range(length):
            projections = train.x @ copies.mT
            f = train.outputs(projections)
            pull = 3 * train.share * train.y * torch.sigmoid(-train.y * f)
            pull = pull.repeat_interleave(train.n_patches, dim=1)[..., None]
            copies = torch.baddbmm(copies, (pull * projections.square()).mT, train.x, alpha=lr)
        weight = copies.mean(0)
        step += length
        if not weight.isfinite().all():
            client = int((~copies.isfinite().flatten(1).all(1)).int().argmax())
            raise InputError(
                f"round {r}, client {client}: weights are not finite; lower lr or check the data"
            )
        if _is_due(r, rounds, eval_every):
            history.step.append(step)
            _record(history.train_loss, history.train_accuracy, train.measure(weight))
            if held_out is not None:
                _record(history.test_loss, history.test_accuracy, held_out.measure(weight))
            if features is not None:
                model.weight.copy_(weight)
                history.projections.append(model.projections(features).cpu().numpy())
    model.weight.copy_(weight)
    return history


def _check_every(eval_every: int | None) -> None:
    if eval_every is not None and eval_every < 1:
        raise ValueError(f"eval_every is {eval_every}; it must be at least 1, or None")


def _is_due(r: int, rounds: int, eval_every: int | None) -> bool:
    return r == rounds - 1 or (eval_every is not None and (r + 1) % eval_every == 0)


def _record(losses: list, accuracies: list, measured: tuple[np.ndarray, np.ndarray]) -> None:
    losses.append(measured[0])
    accuracies.append(measured[1])


def client_batches(
    sizes: Sequence[int], batch_size: int, steps: int, rng: np.random.Generator
) -> Int[np.ndarray, "steps clients batch"]:
    """The sample numbers of every client's batch in every step, int32.

    A client's batches run through a fresh permutation of its samples; it is drawn again when fewer
    than `batch_size` remain, which are skipped (the published loader begins anew in each round and
    uses a smaller last batch). Each client draws from its own generator, spawned
    from `rng`, so its batches do not depend on the other clients.
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}; it must be at least 1")
    if batch_size < 1 or batch_size > min(sizes):
        raise ValueError(
            f"batch_size is {batch_size}; it must be in 1..{min(sizes)}, the smallest client's size"
        )
    batches = np.empty((steps, len(sizes), batch_size), dtype=np.int32)
    for k, (size, own) in enumerate(zip(sizes, rng.spawn(len(sizes)), strict=True)):
        per_epoch = size // batch_size
        epochs = np.tile(np.arange(size, dtype=np.int32), (-(-steps // per_epoch), 1))
        own.permuted(epochs, axis=1, out=epochs)
        used = epochs[:, : per_epoch * batch_size].reshape(-1, batch_size)
        batches[:, k] = used[:steps]
    return batches


def federated_sgd(
    model: nn.Module,
    clients: Sequence[Samples],
    *,
    rounds: int,
    local_steps: int,
    batch_size: int,
    lr: float,
    milestones: Sequence[int] = (),
    weight_decay: float = 0.0,
    average_buffers: str,
    rng: np.random.Generator,
    loss: Loss = cross_entropy,
    test: Sequence[Samples] | None = None,
    steps: int | None = None,
    eval_every: int | None = None,
    transform: Transform | None = None,
    checkpoints: Checkpoints | None = None,
    name: str = "state",
) -> History:
    """Local SGD: every client takes `local_steps` steps on its own batches, then all are averaged.

    `clients` and `test` hold (x, y) for each client. Plain SGD; the rate is halved when the number
    of steps taken reaches a milestone; `weight_decay` is added to the gradient of every parameter.
    `loss(outputs, targets)` is a mean over samples; a sample counts as right when its largest
    output is its target.

    `average_buffers` says what becomes of the statistics of batch normalisation. "average": they
    are measured again on all clients' training data, for the averaged parameters, before a test
    (the average of statistics belongs to no model); "local": each client keeps and is tested with
    its own, as in the published runs, and `model` ends with those of client 0.

    `transform(x, generator)` prepares a batch, at random when it gets a generator (training).
    `steps` (total gradient steps) shortens the last round. Evaluates every `eval_every` rounds and
    after the last. `checkpoints` and `name` are those of `retable.common.training.train`. Trains
    `model` in place. Raises ValueError for bad input, and its kind InputError with round and client
    (from 0) for a loss or weights that are no longer finite.
    """
    pairs = _tensors(clients, "clients")
    return _sgd(
        model,
        learners=pairs,
        clients=pairs,
        lengths=round_lengths(rounds, local_steps, steps),
        batch_size=batch_size,
        lr=lr,
        milestones=milestones,
        weight_decay=weight_decay,
        average_buffers=average_buffers,
        rng=rng,
        loss=loss,
        test=test,
        eval_every=eval_every,
        transform=transform,
        checkpoints=checkpoints,
        name=name,
    )


def parallel_sgd(
    model: nn.Module,
    clients: Sequence[Samples],
    *,
    steps: int,
    batch_size: int,
    lr: float,
    milestones: Sequence[int] = (),
    weight_decay: float = 0.0,
    rng: np.random.Generator,
    loss: Loss = cross_entropy,
    test: Sequence[Samples] | None = None,
    eval_every: int | None = None,
    transform: Transform | None = None,
    checkpoints: Checkpoints | None = None,
    name: str = "state",
) -> History:
    """Parallel SGD: one model, batches of `batch_size` from the union of the clients' samples.

    To compare with local SGD, take the number of clients times its batch size. The rest is as in
    `federated_sgd`; an evaluation, on each client's own data, comes every `eval_every` steps and
    after the last. The one model has one set of statistics of batch normalisation: its own.
    """
    pairs = _tensors(clients, "clients")
    _check_every(eval_every)
    # With one learner an average changes nothing: a round is what lies between evaluations.
    length = min(steps, eval_every or steps)
    return _sgd(
        model,
        learners=[(torch.cat([x for x, _ in pairs]), torch.cat([y for _, y in pairs]))],
        clients=pairs,
        lengths=round_lengths(-(-steps // max(length, 1)), max(length, 1), steps),
        batch_size=batch_size,
        lr=lr,
        milestones=milestones,
        weight_decay=weight_decay,
        average_buffers="local",
        rng=rng,
        loss=loss,
        test=test,
        eval_every=1,
        transform=transform,
        checkpoints=checkpoints,
        name=name,
    )


def _sgd(
    model: nn.Module,
    *,
    learners: list[tuple[Tensor, Tensor]],
    clients: list[tuple[Tensor, Tensor]],
    lengths: list[int],
    batch_size: int,
    lr: float,
    milestones: Sequence[int],
    weight_decay: float,
    average_buffers: str,
    rng: np.random.Generator,
    loss: Loss,
    test: Sequence[Samples] | None,
    eval_every: int | None,
    transform: Transform | None,
    checkpoints: Checkpoints | None,
    name: str,
) -> History:
    """One copy of the model for each of the `learners`, measured on the `clients`' own data."""
    _check_lr(lr)
    _check_every(eval_every)
    if not 0 <= weight_decay < float("inf"):
        raise ValueError(f"weight_decay is {weight_decay}; it must not be negative")
    if average_buffers not in ("average", "local"):
        raise ValueError(f"average_buffers is {average_buffers!r}; it must be 'average' or 'local'")
    held_out = None if test is None else _tensors(test, "test")
    if held_out is not None:
        _check_test(held_out, clients)
    most = 0
    for kind, data in (("clients", clients), ("test", held_out or [])):
        for k, (_, labels) in enumerate(data):
            if labels.is_floating_point() or labels.min() < 0:
                raise ValueError(f"{kind}[{k}] has labels other than integers ≥ 0")
            most = max(most, int(labels.max()))
    state = PartialState()
    if state.num_processes > 1:
        raise ValueError(f"one process trains all clients; there are {state.num_processes}")

    device = state.device
    sizes = [len(x) for x, _ in learners]
    indices = client_batches(sizes, batch_size, sum(lengths), rng)
    indices += np.cumsum([0, *sizes[:-1]], dtype=np.int32)[:, None]
    x = torch.cat([x for x, _ in learners]).to(device)
    y = torch.cat([y for _, y in learners]).to(device)
    random_key = int(rng.integers(2**31))
    starts = np.cumsum([0, *lengths])

    stack = ClientStack(model, len(learners))
    optimizer = torch.optim.SGD(stack.parameters(), lr=lr, weight_decay=weight_decay)

    def batches(r: int) -> list[tuple[int, Tensor]]:
        steps = range(starts[r], starts[r + 1])
        return list(zip(steps, torch.from_numpy(indices[starts[r] : starts[r + 1]]), strict=True))

    def losses(stack: ClientStack, batch: tuple[int, Tensor]) -> Tensor:
        step, index = batch
        index = index.long()
        inputs = x[index]
        if transform is not None:
            # A generator of its own in each step: a resumed run draws what the first one drew.
            generator = torch.Generator().manual_seed((random_key << 31) + step)
            inputs = transform(inputs.flatten(0, 1), generator).unflatten(0, index.shape)
        outputs = stack(inputs)
        if most >= outputs.shape[-1]:
            raise ValueError(f"labels reach {most}; the model has {outputs.shape[-1]} outputs")
        of_client = torch.vmap(loss)(outputs, y[index])
        if device.type == "cpu" or step % 16 == 0:  # reading a value waits for a GPU
            _check_finite(of_client.detach(), int(np.searchsorted(starts, step, "right")) - 1)
        # The gradient of the sum gives every copy the gradient of its own loss.
        return of_client.sum()

    def test_round(r: int) -> dict | None:
        bad = stack.nonfinite()
        if bad.any():
            _check_finite(torch.where(bad, torch.nan, 0.0), r - 1)
        stack.average(buffers=average_buffers == "average")
        if not _is_due(r - 1, len(lengths), eval_every):
            return None
        _load_average(model, stack, clients, transform, average_buffers)
        own = stack if average_buffers == "local" and stack.n_clients > 1 else None
        row = {"step": int(starts[r])}
        for kind, data in (("train", clients), ("test", held_out)):
            if data is not None:
                measured = _measure(model, data, loss, transform, device, own)
                row |= dict(zip((f"{kind}_loss", f"{kind}_accuracy"), measured, strict=True))
        return row

    home = next(model.parameters()).device
    model.to(device)
    trained = train(
        stack,
        optimizer,
        losses,
        batches,
        epochs=len(lengths),
        schedule=MultiStepLR(optimizer, sorted(milestones), gamma=0.5),
        schedule_per="step",
        after_epoch=test_round,
        checkpoints=checkpoints,
        name=name,
    )
    _load_average(model, stack, clients, transform, average_buffers)
    model.to(home)

    has_buffers = any(True for _ in model.buffers()) and stack.n_clients > 1
    history = History(average_buffers=average_buffers if has_buffers else None)
    for row in trained.history:
        if "step" in row:
            history.step.append(row["step"])
            for metric in _METRICS:
                if metric in row:
                    getattr(history, metric).append(np.array(row[metric]))
    return history


def _check_finite(of_client: Tensor, r: int) -> None:
    bad = (~of_client.isfinite()).nonzero()
    if len(bad):
        raise InputError(
            f"round {r}, client {int(bad[0])}: the loss is not finite; lower lr or check the data"
        )


def _prepared(x: Tensor, transform: Transform | None, device: torch.device) -> Iterator[Tensor]:
    """The samples in batches as the network takes them, nothing drawn at random."""
    for part in x.split(_EVALUATION_BATCH):
        part = part.to(device)
        yield part if transform is None else transform(part, None)


def _load_average(
    model: nn.Module,
    stack: ClientStack,
    clients: list[tuple[Tensor, Tensor]],
    transform: Transform | None,
    average_buffers: str,
) -> None:
    """Set `model` to the averaged weights, and to the statistics that a test needs."""
    model.load_state_dict(stack.state(0))
    if average_buffers == "average":
        device = next(model.parameters()).device
        update_bn((part for x, _ in clients for part in _prepared(x, transform, device)), model)


@torch.no_grad()
def _measure(
    model: nn.Module,
    data: list[tuple[Tensor, Tensor]],
    loss: Loss,
    transform: Transform | None,
    device: torch.device,
    own: ClientStack | None,
) -> tuple[list[float], list[float]]:
    """Each client's loss and accuracy under `model`, or under its copy in `own`."""
    was_training = model.training
    model.eval()
    losses, accuracies = [], []
    for k, (x, y) in enumerate(data):
        if own is not None:
            model.load_state_dict(own.state(k))
        outputs = torch.cat([model(part) for part in _prepared(x, transform, device)])
        targets = y.to(device)
        losses.append(loss(outputs, targets).item())
        accuracies.append((outputs.argmax(-1) == targets).double().mean().item())
    model.train(was_training)
    return losses, accuracies
