"""Minimise the unconstrained feature model from random starts and compare with the theorem."""

from pathlib import Path

import numpy as np
import torch

from retable.common.data.arrays import save_arrays
from retable.common.errors import InputError
from retable.common.metrics import write_metrics
from retable.mlabnc.config import ProblemSettings, UFMSettings
from retable.mlabnc.metrics import nc_metrics
from retable.mlabnc.ufm import balanced_label_sets, solve_ufm, ufm_optimum


def ufm(rows: Path, path: Path, *, settings: UFMSettings) -> None:
    """Write, for every problem and start, the gap to the optimum and all collapse metrics.

    Method `multi` has all label sets of the problem, `single` those of one label alone. The
    experiment is `ufm-unequal` where multiplicities have unequal counts n_m, else `ufm`.
    `path` gets the features of the shown problem at three points of one run, for the figure.
    """
    found = []
    for name, problem in settings.problems.items():
        variants = {"multi": problem.counts} if set(problem.counts) != {1} else {}
        variants["single"] = {1: problem.counts[1]}
        unequal = len(set(problem.counts.values())) > 1
        experiment = "ufm-unequal" if unequal else "ufm"
        for method, counts in variants.items():
            for start in range(settings.starts):
                for metric, value in _measure(problem, counts, start, settings).items():
                    found.append(
                        {
                            "experiment": experiment,
                            "dataset": name,
                            "method": method,
                            "seed": start,
                            "metric": metric,
                            "value": value,
                        }
                    )
    write_metrics(found, rows)
    save_arrays(path, _path(settings))


def _measure(
    problem: ProblemSettings, counts: dict[int, int], start: int, settings: UFMSettings
) -> dict[str, float]:
    lam_w, lam_h = settings.lam_w, settings.lam_h
    optimum = ufm_optimum(problem.num_classes, counts, lam_w, lam_h)
    if optimum.degenerate:
        raise InputError(
            f"config/mlabnc.yaml, ufm: lam_w {lam_w} and lam_h {lam_h} are so large that the "
            f"optimum for K = {problem.num_classes} is zero; they must be smaller"
        )
    targets = balanced_label_sets(problem.num_classes, counts)
    result = solve_ufm(
        targets, problem.dim, lam_w, lam_h, settings.lam_b, seed=start, max_iter=settings.max_iter
    )
    metrics = nc_metrics(result.H, targets, result.W)
    measured = {"gap": result.objective - optimum.objective, "grad_norm": result.grad_norm}
    measured |= {k: v for k, v in metrics.items() if not k.startswith("angle_deg")}
    for m in counts:
        if m > 1:
            kappa = metrics["kappa_mean" if m == 2 else f"kappa_mean_m{m}"]
            measured[f"kappa_error_m{m}"] = abs(kappa - optimum.kappa[m])
    return measured


def _path(settings: UFMSettings) -> dict[str, np.ndarray]:
    problem = settings.problems[settings.shown]
    targets = balanced_label_sets(problem.num_classes, problem.counts)
    points = [
        solve_ufm(targets, problem.dim, settings.lam_w, settings.lam_h, settings.lam_b, max_iter=i)
        for i in settings.shown_iterations
    ]
    return {
        "features": torch.stack([point.H for point in points]).numpy(),
        "weight": torch.stack([point.W for point in points]).numpy(),
        "targets": targets.numpy().astype(np.uint8),
        "iterations": np.array(settings.shown_iterations),
    }
