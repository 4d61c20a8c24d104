"""The toy of Appendix H: both methods from the paper's starts and from the non-convex region."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retable.common.metrics import write_metrics
from retable.performative.config import Toy
from retable.performative.toy import toy_direct, toy_reparameterized, toy_risk

Path2 = NDArray[np.float64]


def toy(rows: Path, *, settings: Toy) -> None:
    """Write risk (x: iteration) of the deployed models; a start takes the place of a seed.

    toy_paper lets the direct method start at θ_0 = φ_0², as the authors' notebook does although
    φ = θ²; toy_matched at the model that induces φ_0; toy_nonconvex starts both where PR is not
    convex. risk_phi is PR†(φ_t), the curve that the notebook draws.
    """
    out: list[dict[str, Any]] = []
    for dataset, method, metric, curve in curves(settings):
        out += [
            {
                "experiment": "toy",
                "dataset": dataset,
                "method": method,
                "seed": start,
                "metric": metric,
                "x": iteration,
                "value": float(value),
            }
            for start, values in enumerate(curve.T)
            for iteration, value in enumerate(values)
        ]
    write_metrics(out, rows)


def curves(settings: Toy) -> Iterator[tuple[str, str, str, Path2]]:
    """(dataset, method, metric, values (iterations + 1, starts)) of all curves."""
    steps = {"step": settings.step, "delta": settings.delta}
    inner = {
        "inner_steps": settings.inner_steps,
        "inner_step": settings.inner_step,
        "inner_delta": settings.inner_delta,
    }
    paper = np.clip(np.linspace(*settings.starts.paper), *settings.limits)
    nonconvex = np.linspace(*settings.starts.nonconvex)
    sets = [
        # dataset, φ_0, start of direct search, limits of φ, iterations
        ("toy_paper", paper, paper**2, settings.limits, settings.iterations),
        ("toy_matched", paper, np.sqrt(paper), settings.limits, settings.iterations),
        ("toy_nonconvex", nonconvex**2, nonconvex, None, settings.iterations),
    ]
    if settings.single is not None:
        phi = np.array([settings.single.phi])
        length = settings.single.iterations
        sets += [
            ("toy_single_paper", phi, phi**2, settings.limits, length),
            ("toy_single_matched", phi, np.sqrt(phi), settings.limits, length),
        ]
    for dataset, phi, theta_direct, limits, iterations in sets:
        for method, kind in (("reparam", "learned"), ("reparam_exact_inner", "exact")):
            thetas, phis = toy_reparameterized(
                np.sqrt(phi), iterations=iterations, inner=kind, limits=limits, **steps, **inner
            )
            yield dataset, method, "risk", toy_risk(thetas)
            yield dataset, method, "risk_phi", toy_risk(np.sqrt(phis))
        yield (
            dataset,
            "direct",
            "risk",
            toy_risk(toy_direct(theta_direct, iterations=iterations, **steps)),
        )
