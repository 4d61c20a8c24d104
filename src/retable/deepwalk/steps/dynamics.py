"""The course of one descent: alignment, length, the linearised dynamics, and the fixed point."""

from functools import partial
from pathlib import Path

import numpy as np

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import DynamicsSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.embedding import LINEAR_RMS, linear_dynamics
from retable.deepwalk.experiments import block_signal, deepwalk, draw, row
from retable.deepwalk.theory import alignment_steps, fixed_point, leading_singular_values

_BINS = np.linspace(-2.5, 2.5, 51)


def dynamics(rows: Path, *, dataset: str, seeds: Seeds, settings: DynamicsSettings) -> None:
    """Write the course of descent on one graph a seed, what was predicted, and where it ended."""
    block = BlockModel.parse(dataset)
    found = []
    for seed in seeds:
        found += _course(block, dataset, seed, settings)
        found.append(_expected_matrix(seed, settings))
    write_metrics(found, rows)


def _course(block: BlockModel, dataset: str, seed: int, settings: DynamicsSettings) -> list[dict]:
    make = partial(row, "dynamics", dataset, "deepwalk", seed)
    graph = draw(block, seed)
    cooc = Cooccurrence(graph.adjacency, settings.descent.window)
    model = deepwalk(settings.descent, seed)
    linear_x, linear_y = model.start(block.n)
    cosines: list[float] = []

    def beside_linear(t: int, x: np.ndarray, y: np.ndarray) -> None:
        nonlocal linear_x, linear_y
        if t > 0:
            linear_x, linear_y = linear_dynamics(cooc, linear_x, linear_y, model.step, 1)
        lengths = np.linalg.norm(x) * np.linalg.norm(linear_x)
        cosines.append(float(np.sum(x * linear_x) / lengths))

    history = model.fit(cooc, graph.known, watch=beside_linear).history_
    curves = {
        "alignment": history["alignment"],
        "length": history["x_rms"],
        "loss_above_end": history["loss"] - history["loss"][-1],
        "cosine_to_linear": np.array(cosines),
    }
    rows = [make(name, v, t) for name, values in curves.items() for t, v in enumerate(values)]

    s, s2 = leading_singular_values(cooc, 2)
    z = 2.0 * graph.labels - 1
    # The step while the vectors are short, aligned, and not yet bent by the softmax.
    short = history["x_rms"] < LINEAR_RMS
    grown = history["alignment"] * history["x_rms"]
    steady = np.flatnonzero(short[1:] & (history["alignment"][:-1] > 0.9))
    values = {
        "smallest_cosine": np.min(np.array(cosines)[short]),
        "signal_predicted": block_signal(block, settings.descent.window),
        "signal_realised": z @ cooc.matvec(z) / block.n,
        "s": s,
        "s2": s2,
        "steps_predicted": alignment_steps(block.n, s, s2, model.step),
    }
    if steady.size:
        values["growth_measured"] = np.mean(grown[steady + 1] / grown[steady])
        values["growth_predicted"] = 1 + model.step * s
    aligned = np.flatnonzero(history["alignment"] >= 0.95)
    if aligned.size:
        values["steps_to_alignment"] = aligned[0]
    rows += [make(metric, value) for metric, value in values.items()]

    # The gauge x u, y / u is free: shown where both are equally long.
    x, y = model.embedding_[:, 0], model.context_[:, 0] - model.context_.mean()
    x = np.sign(x @ z) * np.sqrt(np.sqrt(np.mean(y**2) / np.mean(x**2))) * x
    for community in (0, 1):
        density = np.histogram(x[graph.labels == community], _BINS, density=True)[0]
        rows += [
            make(f"density_{community}", value, centre)
            for centre, value in zip((_BINS[1:] + _BINS[:-1]) / 2, density, strict=True)
        ]
    return rows


def _expected_matrix(seed: int, settings: DynamicsSettings) -> dict:
    """How far descent on the expected matrix ends from the predicted fixed point."""
    n, s = settings.expected_n, settings.expected_s
    z = np.repeat([1.0, -1.0], [n - n // 2, n // 2])
    cooc = Cooccurrence.from_matrix((1 + s * np.outer(z, z)) / n)
    model = deepwalk(settings.descent, seed, max_iter=settings.expected_steps, tol=0)
    model.fit(cooc)
    product = model.embedding_ * (model.context_ - model.context_.mean())
    gap = np.abs(product - fixed_point(s)).max()
    return row("dynamics", f"expected_n{n}_s{s:g}", "deepwalk", seed, "fixed_point_gap", gap)
