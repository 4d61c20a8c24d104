"""Train the patch network on the data model: every method of the job, every seed."""

import logging
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from retable.common.data.arrays import save_arrays
from retable.common.seeds import Seeds
from retable.fedlocal.config import SyntheticSettings, local_steps
from retable.fedlocal.data_model import FeatureNoiseModel, cubic_alignment
from retable.fedlocal.federated import local_gd
from retable.fedlocal.patch_cnn import PatchCNN
from retable.fedlocal.theory import critical_local_steps

logger = logging.getLogger("retable")


def synthetic(history: Path, *, methods: str, seeds: Seeds, settings: SyntheticSettings) -> None:
    """Write `<method>.<seed>.<quantity>` for each run.

    Quantities: those of `History`; `initial_projections` (filters, K); `rounds`; `local_steps` I;
    `init_std`; `n_major`; `alpha`; `alignment` (clients, features) of the drawn samples;
    `critical_local_steps` of each minor feature (infinite without a filter that starts on its
    positive side). The seed decides data and initial weights, so the methods share them.
    """
    model = FeatureNoiseModel(
        settings.n_major,
        settings.n_minor,
        settings.alpha,
        settings.gamma,
        settings.kappa,
        settings.n,
        settings.dim,
    )
    arrays = {}
    for method in methods.split("+"):
        for seed in seeds:
            run = _run(model, method, seed, settings)
            arrays |= {f"{method}.{seed}.{name}": value for name, value in run.items()}
    save_arrays(history, arrays)


def _run(
    model: FeatureNoiseModel, method: str, seed: int, settings: SyntheticSettings
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    clients = model.clients(rng)
    test = model.clients(rng, settings.test_samples)
    torch.manual_seed(seed)
    net = PatchCNN(settings.filters, settings.dim, settings.init_std_of(method))
    start = net.projections(model.features).numpy()
    length = local_steps(method, settings.steps)
    rounds = -(-settings.steps // length)
    history = local_gd(
        net,
        clients,
        rounds=rounds,
        local_steps=length,
        steps=settings.steps,
        lr=settings.lr,
        test=test,
        features=model.features,
        eval_every=max(1, round(rounds / settings.evaluations)),
    )
    logger.info(
        "%s, seed %d: %d rounds, test accuracy %.3f, smallest largest projection %.3f",
        method,
        seed,
        rounds,
        history.test_accuracy[-1].mean(),
        history.projections[-1].max(0).min(),
    )
    critical = [
        critical_local_steps(model.alpha, model.gamma, model.n_major, settings.lr, float(a))
        if a > 0
        else np.inf
        for a in start[:, model.n_major :].max(0)
    ]
    alignment = np.stack([cubic_alignment(x, y, model.features) for x, y in clients])
    measured = {name: value for name, value in asdict(history).items() if value}
    return {name: np.array(value) for name, value in measured.items()} | {
        "initial_projections": start,
        "rounds": np.array(rounds),
        "local_steps": np.array(length),
        "init_std": np.array(settings.init_std_of(method)),
        "n_major": np.array(model.n_major),
        "alpha": np.array(model.alpha),
        "alignment": alignment,
        "critical_local_steps": np.array(critical),
    }
