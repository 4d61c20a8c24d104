"""Run all methods on one data set and account for their samples."""

import logging
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.performative.baselines import (
    direct,
    direct_one_point,
    known_map,
    repeated_gradient,
    tail_mean,
)
from retable.performative.config import BernoulliWorld, LogitWorld, Method, RunSettings
from retable.performative.environments import BernoulliSquare, Blind, LogitPricing
from retable.performative.log import Log
from retable.performative.regret import CHARGES, excess_risk, regret
from retable.performative.reparameterized import Result, Schedule, optimize
from retable.performative.steps.counts import read_counts

logger = logging.getLogger("retable")

World = BernoulliSquare | LogitPricing

EXPERIMENTS = {"bernoulli": "regret", "logit1": "plateau", "movielens": "pricing"}
CURVE_POINTS = 60


@dataclass(frozen=True)
class Horizon:
    """What a method had to show after `budget` samples."""

    budget: int
    theta: NDArray[np.float64]
    regrets: dict[str, float]


@dataclass(frozen=True)
class Curve:
    """Excess risk of the model around which outer step `iterations` looked, after `samples`."""

    iterations: NDArray[np.int64]
    samples: NDArray[np.int64]
    excess: NDArray[np.float64]


def run(
    demand: list[Path], rows: Path, *, dataset: str, seeds: Seeds, settings: RunSettings
) -> None:
    """Write tidy rows for every method and seed.

    At each budget (x): excess_final, regret, regret_outer, and for prices excess_relative, revenue
    and the prices themselves; along the longest run: excess_by_iteration, excess_by_samples.
    """
    env, products = environment(settings.world, demand)
    experiment = EXPERIMENTS[dataset.split("_")[0]]
    out: list[dict[str, Any]] = []
    for seed in seeds:
        for name, method in settings.methods.items():
            logger.info("%s: %s, seed %d", dataset, name, seed)
            horizons, curve = play(env, dataset, name, method, seed, settings)
            key = {"experiment": experiment, "dataset": dataset, "method": name, "seed": seed}
            for horizon in horizons:
                values = _values(env, horizon, products)
                out += [
                    {**key, "metric": metric, "x": horizon.budget, "value": value}
                    for metric, value in values.items()
                ]
            for metric, xs in (
                ("excess_by_iteration", curve.iterations),
                ("excess_by_samples", curve.samples),
            ):
                out += [
                    {**key, "metric": metric, "x": int(x), "value": float(value)}
                    for x, value in zip(xs, curve.excess, strict=True)
                ]
    write_metrics(out, rows)


def environment(world: BernoulliWorld | LogitWorld, demand: list[Path]) -> tuple[World, list[str]]:
    """The world of a data set, and the names of its products where it has prices."""
    if world.kind == "bernoulli_square":
        return BernoulliSquare(world.d), []
    options = {"theta_max": world.theta_max, "phi_min": world.phi_min, "phi_max": world.phi_max}
    if world.utility is not None:
        return LogitPricing([world.utility], world.sensitivity, **options), ["product"]
    (table,) = demand
    genres, bought, not_bought = read_counts(table)
    env = LogitPricing.from_counts(bought, not_bought, b=world.sensitivity, **options)
    return env, genres


def play(
    env: World,
    dataset: str,
    name: str,
    method: Method,
    seed: int,
    settings: RunSettings,
) -> tuple[list[Horizon], Curve]:
    """All horizons of one method and seed, and the curve of the longest run."""
    horizons = []
    for budgets, result in _results(env, dataset, name, method, seed, settings):
        log = result.log
        accounts = {charge: regret(log, env, charge) for charge in CHARGES}
        for budget in budgets:
            k = len(log.until(budget))
            horizons.append(
                Horizon(
                    budget,
                    _answer(result, method, log, k),
                    {charge: float(total[k - 1]) for charge, (_, total) in accounts.items()},
                )
            )
        curve = _curve(env, result)
    return horizons, curve


def _results(
    env: World,
    dataset: str,
    name: str,
    method: Method,
    seed: int,
    settings: RunSettings,
) -> Iterator[tuple[list[int], Result]]:
    """The runs of a method, each with the budgets that it answers, the longest last.

    The schedule of the reparametrised method depends on its budget: one run each. The baselines'
    steps do not: one run is the beginning of a longer one.
    """
    budgets = sorted(settings.budgets)
    theta0 = np.full(env.d_theta, settings.theta0)
    common = {"n_kl": settings.n_kl}
    if method.kind == "reparam":
        for budget in budgets:
            schedule = Schedule.from_budget(
                budget, settings.n_kl, env.d_theta, env.d_phi, **settings.schedule.model_dump()
            )
            rng = generator(seed, dataset, name, budget)
            yield (
                [budget],
                optimize(Blind(env), theta0, budget=budget, schedule=schedule, rng=rng, **common),
            )
        return
    common |= {"budget": budgets[-1], "step": method.step, "rng": generator(seed, dataset, name)}
    match method.kind:
        case "direct":
            result = direct(Blind(env), theta0, delta=method.delta, **common)
        case "direct_one_point":
            result = direct_one_point(Blind(env), theta0, delta=method.delta, **common)
        case "rgd":
            result = repeated_gradient(env, theta0, **common)
        case "known_map":
            result = known_map(env, theta0, **common)
    yield budgets, result


def generator(seed: int, *names: object) -> np.random.Generator:
    """The random numbers of one run: they depend on its own names and seed alone."""
    return np.random.default_rng([seed, zlib.crc32(" ".join(map(str, names)).encode())])


def _answer(result: Result, method: Method, log: Log, k: int) -> NDArray[np.float64]:
    """The model that a method would return after its first k deployments."""
    if method.kind == "reparam":
        return result.theta
    return tail_mean(result.thetas[: log.iteration[k - 1]])


def _curve(env: World, result: Result) -> Curve:
    steps = len(result.thetas)
    chosen = np.unique(np.geomspace(1, steps, CURVE_POINTS).round().astype(np.int64))
    # The last deployment of outer step t ends the samples that led to its model.
    ends = np.searchsorted(result.log.iteration, chosen, side="right") - 1
    return Curve(
        chosen,
        np.cumsum(result.log.n)[ends],
        excess_risk(result.thetas[chosen - 1], env),
    )


def _values(env: World, horizon: Horizon, products: list[str]) -> dict[str, float]:
    excess = float(excess_risk(horizon.theta, env))
    values = {
        "excess_final": excess,
        "regret": horizon.regrets["all"],
        "regret_outer": horizon.regrets["outer"],
    }
    if products:
        values |= {
            "excess_relative": excess / -env.optimal_risk,
            "revenue": -float(env.risk(horizon.theta)),
        }
        values |= {
            f"price_{product}": float(price)
            for product, price in zip(products, horizon.theta, strict=True)
        }
    return values
