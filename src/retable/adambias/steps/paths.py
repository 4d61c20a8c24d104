"""Trajectories of Adam and of its flows on the bilinear problem."""

from pathlib import Path

import numpy as np
import torch

from retable.adambias.config import PathsSettings
from retable.adambias.flow import adam_trajectory, gradient_graph, modified_flow
from retable.adambias.problems import bilinear
from retable.common.data.arrays import save_arrays


def paths(arrays: Path, *, settings: PathsSettings) -> None:
    """Write adam, plain, corrected, setting (β, ρ, ε, h), each with its case's number, and a map.

    The map of the one-norm: theta1 (G,), theta2 (G,), and one_norm (G, G), theta2 first.
    """
    loss = bilinear()
    start = torch.tensor(settings.start, dtype=torch.float64)
    out: dict[str, np.ndarray] = {}
    for number, case in enumerate(settings.cases):
        arguments = case.model_dump()
        out[f"adam{number}"] = adam_trajectory(loss, start, **arguments).numpy()
        out[f"setting{number}"] = np.array([case.beta, case.rho, case.eps, case.h])
        for order, name in ((1, "plain"), (2, "corrected")):
            flow = modified_flow(loss, start, order=order, **arguments)
            out[f"{name}{number}"] = flow.numpy()
    theta1, theta2 = (
        np.linspace(low, high, settings.grid)
        for low, high in zip(settings.low, settings.high, strict=True)
    )
    points = torch.from_numpy(np.stack(np.meshgrid(theta1, theta2)).reshape(2, -1))
    # The loss of all points at once: their gradients do not mix.
    _, gradient = gradient_graph(lambda flat: loss(flat.view(2, -1)).sum(), points.flatten())
    one_norm = gradient.detach().view(2, -1).abs().sum(0).view(settings.grid, settings.grid)
    save_arrays(arrays, out | {"theta1": theta1, "theta2": theta2, "one_norm": one_norm.numpy()})
