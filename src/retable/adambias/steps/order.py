"""Distance between iterates and flows at several step sizes."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from retable.adambias.analysis import global_error
from retable.adambias.config import NetworkOrder, ToyCase, ToyOrder
from retable.adambias.data import small_network
from retable.adambias.flow import (
    adam_trajectory,
    gd_modified_flow,
    gd_trajectory,
    minibatch_flow,
    minibatch_trajectory,
    modified_flow,
)
from retable.adambias.problems import bilinear, log_cosh_batches
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds

# The claims look at the first experiment alone; the other shows where the order does not show yet.
COUNTED = {True: "order", False: "order_shown"}
FLOWS = {1: "error_plain", 2: "error_corrected"}
BATCH_START = (1.0, -2.0, 0.5)


def _errors(
    iterates: Callable[..., Tensor], flow: Callable[..., Tensor], time: float, steps: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """One row a step size and flow: metric, x = h, value = the distance."""
    for count in steps:
        h = time / count
        trajectory = iterates(h=h, steps=count)
        for order, metric in FLOWS.items():
            value = global_error(trajectory, flow(h=h, steps=count, order=order))
            yield {"metric": metric, "x": h, "value": value}


def _toy_errors(case: ToyCase, start: tuple[float, float]) -> Iterator[dict[str, Any]]:
    settings: dict[str, Any] = {
        "beta": case.beta,
        "rho": case.rho,
        "eps": case.eps,
        "eps_placement": case.eps_placement,
    }
    if case.problem == "bilinear" and case.bias_correction:
        arguments: tuple[Any, ...] = (bilinear(), torch.tensor(start, dtype=torch.float64))
        iterates: Callable[..., Tensor] = adam_trajectory
        flow: Callable[..., Tensor] = modified_flow
    else:
        losses, place = (
            (log_cosh_batches(), BATCH_START)
            if case.problem == "batches"
            else ([bilinear()], start)
        )
        schedule = [k % len(losses) for k in range(max(case.steps))]
        arguments = (losses, schedule, torch.tensor(place, dtype=torch.float64))
        iterates, flow = minibatch_trajectory, minibatch_flow
        settings["bias_correction"] = case.bias_correction
    return _errors(
        partial(iterates, *arguments, **settings),
        partial(flow, *arguments, substeps=case.substeps, **settings),
        case.time,
        case.steps,
    )


def toy(rows: Path, *, settings: ToyOrder) -> None:
    """Write the errors of both flows of each toy case; nothing is random."""
    write_metrics(
        [
            {
                "experiment": COUNTED[case.counts],
                "dataset": case.problem,
                "method": case.name,
                **row,
            }
            for case in settings.cases
            for row in _toy_errors(case, settings.start)
        ],
        rows,
    )


def network(data: Path, rows: Path, *, seeds: Seeds, settings: NetworkOrder) -> None:
    """Write the errors of both flows on the network, for each case and for gradient descent."""
    found = []
    for index, seed in enumerate(seeds):
        loss, start = small_network(data, index, seed, settings.hidden)
        runs = [
            (
                COUNTED[case.counts],
                case.name,
                partial(adam_trajectory, loss, start, **case.arguments()),
                partial(modified_flow, loss, start, substeps=case.substeps, **case.arguments()),
            )
            for case in settings.cases
        ]
        gd = partial(gd_trajectory, loss, start), partial(gd_modified_flow, loss, start)
        runs.append((COUNTED[True], "gd", *gd))
        found += [
            {"experiment": experiment, "dataset": "mnist49", "method": name, "seed": seed, **row}
            for experiment, name, iterates, flow in runs
            for row in _errors(iterates, flow, settings.time, settings.steps)
        ]
    write_metrics(found, rows)
