"""Train a network on the clients' images: every method of the job, every seed."""

import logging
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.seeds import Seeds
from retable.fedlocal.config import TrainSettings, local_steps
from retable.fedlocal.federated import History, federated_sgd, parallel_sgd
from retable.fedlocal.images import augment, network_input
from retable.fedlocal.models import resnet18, small_cnn

logger = logging.getLogger("retable")


def train(
    subset: Path,
    model: Path,
    history: Path,
    *,
    methods: str,
    seeds: Seeds,
    settings: TrainSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write each run's weights (`<method>.<seed>.<parameter>`) and history (`....<quantity>`).

    Quantities: those of `History`; `rounds`, the communication rounds; `dataset`, its name. The
    seed decides data and initial weights, so the methods share them.
    """
    data = load_arrays(subset)
    weights, arrays = {}, {}
    for method in methods.split("+"):
        for seed in seeds:
            net, measured, rounds = _run(data, method, seed, settings, checkpoints)
            logger.info(
                "%s, seed %d: %d rounds, test accuracy %.4f, test loss %.4f",
                method,
                seed,
                rounds,
                measured.test_accuracy[-1].mean(),
                measured.test_loss[-1].mean(),
            )
            name = f"{method}.{seed}"
            weights |= {f"{name}.{key}": value for key, value in net.state_dict().items()}
            arrays |= {
                f"{name}.rounds": np.array(rounds),
                f"{name}.dataset": data[f"{seed}.dataset"],
            }
            for key, value in asdict(measured).items():
                if value:
                    arrays[f"{name}.{key}"] = np.array(value)
    save_file(weights, model)
    save_arrays(history, arrays)


def _network(settings: TrainSettings) -> nn.Module:
    if settings.model == "resnet18":
        return resnet18(settings.num_outputs)
    return small_cnn(settings.image, settings.num_outputs)


def _clients(data: dict[str, np.ndarray], seed: int, kind: str) -> list[tuple[Tensor, Tensor]]:
    """Each client's images (n_k, 3, 32, 32) and binary labels."""
    images = torch.from_numpy(data[f"{seed}.{kind}_images"]).permute(0, 3, 1, 2).contiguous()
    labels = torch.from_numpy(data[f"{seed}.{kind}_binary"])
    parts = np.split(data[f"{seed}.{kind}_values"], data[f"{seed}.{kind}_offsets"][1:-1])
    return [(images[part], labels[part]) for part in parts]


def _transform(images: Tensor, generator: torch.Generator | None, *, side: int) -> Tensor:
    return network_input(images if generator is None else augment(images, generator), side)


def _run(
    data: dict[str, np.ndarray],
    method: str,
    seed: int,
    settings: TrainSettings,
    checkpoints: Checkpoints,
) -> tuple[nn.Module, History, int]:
    clients, test = (_clients(data, seed, kind) for kind in ("train", "test"))
    transform = None
    if settings.augment:
        transform = partial(_transform, side=settings.image)
    else:
        # Nothing changes from step to step: prepare the images once.
        clients, test = (
            [(network_input(x, settings.image), y) for x, y in pairs] for pairs in (clients, test)
        )
    torch.manual_seed(seed)
    net = _network(settings)
    steps = settings.steps
    if method == "parallel_rounds":
        steps = -(-steps // settings.round_steps)
    common = {
        "lr": settings.lr,
        "milestones": (steps // 2, 3 * steps // 4),
        "weight_decay": settings.weight_decay,
        "rng": np.random.default_rng([seed, 1]),
        "test": test,
        "transform": transform,
        "checkpoints": checkpoints,
        "name": f"{method}-seed{seed}",
    }
    if method.startswith("parallel"):
        history = parallel_sgd(
            net,
            clients,
            steps=steps,
            batch_size=len(clients) * settings.batch,
            eval_every=max(1, round(steps / settings.evaluations)),
            **common,
        )
        return net, history, steps
    length = local_steps(method, steps)
    rounds = -(-steps // length)
    history = federated_sgd(
        net,
        clients,
        rounds=rounds,
        local_steps=length,
        steps=steps,
        batch_size=settings.batch,
        average_buffers=settings.average_buffers,
        eval_every=max(1, round(rounds / settings.evaluations)),
        **common,
    )
    return net, history, rounds
