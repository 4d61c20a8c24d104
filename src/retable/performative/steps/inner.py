"""The error of LearnModel against its number of steps."""

import math
from pathlib import Path

import numpy as np

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.performative.config import Inner
from retable.performative.environments import BernoulliSquare, Blind
from retable.performative.learn_model import learn_model
from retable.performative.steps.run import generator


def inner(rows: Path, *, d: int, seeds: Seeds, settings: Inner) -> None:
    """Write inner_error (x: steps S): root mean square of ‖φ(θ̂) - φ*‖ over the repetitions."""
    env = BernoulliSquare(d)
    target, theta0 = np.full(d, settings.target), np.full(d, settings.theta0)
    out = []
    for seed in seeds:
        for steps in settings.steps:
            models = [
                learn_model(
                    Blind(env),
                    target,
                    theta0,
                    steps=steps,
                    n_kl=settings.n_kl,
                    delta=settings.c_in * (d / steps) ** 0.25,
                    step_size=settings.c_step / math.sqrt(d),
                    rng=generator(seed, "inner", d, steps, repetition),
                ).theta
                for repetition in range(settings.repetitions)
            ]
            error = env.distribution_map(np.array(models)) - target
            out.append(
                {
                    "experiment": "inner",
                    "dataset": f"bernoulli_d{d}",
                    "method": "learn_model",
                    "seed": seed,
                    "metric": "inner_error",
                    "x": steps,
                    "value": float(np.sqrt(np.mean(np.sum(error**2, axis=1)))),
                }
            )
    write_metrics(out, rows)
