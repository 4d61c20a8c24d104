"""The coefficient of the O(h) term, measured from Adam's own steps."""

from pathlib import Path

import torch

from retable.adambias.analysis import defect_coefficient
from retable.adambias.config import NetworkDefect, ToyDefect, method_name
from retable.adambias.data import small_network
from retable.adambias.problems import bilinear
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds


def toy(rows: Path, *, settings: ToyDefect) -> None:
    """Write the fits on the bilinear problem, one a case; nothing is random.

    The fit on the predicted field is left out for β = ρ, where the prediction is 0 up to ε.
    """
    start = torch.tensor(settings.start, dtype=torch.float64)
    found = []
    for beta, rho, eps in settings.cases:
        fit = defect_coefficient(
            bilinear(),
            start,
            h=settings.h,
            steps=settings.steps,
            start=settings.first,
            beta=beta,
            rho=rho,
            eps=eps,
        )
        names = ["kappa", "kappa_theory"] + ["scale", "r2_predicted"] * (beta != rho)
        found += [
            {
                "experiment": "defect",
                "dataset": "bilinear",
                "method": method_name(beta, rho, eps),
                "metric": name,
                "value": getattr(fit, name),
            }
            for name in names
        ]
    write_metrics(found, rows)


def network(data: Path, rows: Path, *, seeds: Seeds, settings: NetworkDefect) -> None:
    """Write the fits on the network: factor and R² of the predicted field, R² of the two-norm's."""
    beta, rho, eps = settings.case
    found = []
    for index, seed in enumerate(seeds):
        loss, start = small_network(data, index, seed, settings.hidden)
        fit = defect_coefficient(
            loss,
            start,
            h=settings.h,
            steps=settings.steps,
            start=settings.first,
            beta=beta,
            rho=rho,
            eps=eps,
        )
        found += [
            {
                "experiment": "defect",
                "dataset": "mnist49",
                "method": method_name(beta, rho, eps),
                "seed": seed,
                "metric": name,
                "value": getattr(fit, name),
            }
            for name in ("scale", "r2_predicted", "r2_two_norm")
        ]
    write_metrics(found, rows)
