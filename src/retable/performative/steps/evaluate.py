"""From runs to results: exponents, convexity, and what the claims' checks measure."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from retable.common.metrics import read_metrics, write_measures, write_metrics
from retable.performative.config import EvaluateSettings
from retable.performative.datasets import OPTIMAL_TOY_RISK, dimension
from retable.performative.environments import BernoulliSquare
from retable.performative.regret import growth_exponent
from retable.performative.steps.run import World, environment, generator

Row = dict[str, Any]

CURVES = ("excess_by_iteration", "excess_by_samples", "risk", "risk_phi")


def evaluate(
    runs: list[Path],
    inner: list[Path],
    toy: Path,
    demand: Path,
    rows: Path,
    curves: Path,
    measures: Path,
    *,
    settings: EvaluateSettings,
) -> None:
    """Write the table's rows, the figure's curves, and one measure a seed for every check."""
    measured = read_metrics(runs)
    horizons = measured[~measured["metric"].isin(CURVES)]
    errors = read_metrics(inner)
    paths = read_metrics(toy)
    seeds = [int(s) for s in horizons.loc[horizons["experiment"] == "regret", "seed"].unique()]
    prices, _ = environment(settings.prices, [demand])
    worlds: dict[str, World] = {"bernoulli_d2": BernoulliSquare(2), "movielens": prices}

    convexity = list(_convexity(worlds, sorted(seeds), settings.points))
    exponents = list(_growth_exponents(horizons))
    slopes = list(_inner_exponents(errors))
    dimension = list(_dimension_exponents(horizons, settings.budget))
    deployments = list(_deployment_exponents(horizons, settings.budget))
    toy_rows = list(_toy(paths))

    table = [
        *toy_rows,
        *convexity,
        *_at(horizons[horizons["experiment"] == "regret"]),
        *exponents,
        *dimension,
        *deployments,
        *_at(errors),
        *slopes,
        *_at(horizons[horizons["experiment"] != "regret"]),
    ]
    write_metrics(table, rows)
    drawn = pd.concat([measured[measured["metric"].isin(CURVES)], paths], ignore_index=True)
    write_metrics(_records(drawn), curves)
    write_measures(
        _measures(pd.DataFrame(table), horizons, convexity, exponents, settings), measures
    )


def second_differences(env: World, theta: NDArray, h: float = 1e-3) -> NDArray:
    """The Hessian of PR at θ (k, d) by central second differences (k, d, d)."""
    steps = h * np.eye(env.d_theta)
    i, j = steps[:, None, :], steps[None, :, :]
    at = theta[:, None, None, :]
    corners = (
        env.risk(at + i + j) - env.risk(at + i - j) - env.risk(at - i + j) + env.risk(at - i - j)
    )
    return corners / (4 * h**2)


def _convexity(envs: dict[str, World], seeds: list[int], points: int) -> Iterator[Row]:
    for dataset, env in envs.items():
        for seed in seeds:
            rng = generator(seed, dataset, "convexity")
            theta = env.theta_set.sample(rng, points)
            phi, other = env.phi_set.sample(rng, points), env.phi_set.sample(rng, points)
            middle = env.risk_phi((phi + other) / 2)
            values = {
                "min_eig_theta": np.linalg.eigvalsh(env.risk_hessian(theta)).min(),
                "min_eig_theta_differences": np.linalg.eigvalsh(
                    second_differences(env, theta)
                ).min(),
                "min_eig_phi": np.linalg.eigvalsh(env.risk_phi_hessian(phi)).min(),
                "midpoint_gap": ((env.risk_phi(phi) + env.risk_phi(other)) / 2 - middle).min(),
            }
            for metric, value in values.items():
                yield _row("convexity", dataset, "closed_form", seed, metric, value)


def _growth_exponents(horizons: pd.DataFrame) -> Iterator[Row]:
    regrets = horizons[horizons["experiment"] == "regret"]
    for metric in ("regret", "regret_outer"):
        for (dataset, method, seed), group in _groups(regrets, metric):
            if len(group) > 1:
                value = growth_exponent(group["x"], group["value"])
                name = metric.replace("regret", "growth_exponent")
                yield _row("regret", dataset, method, seed, name, value)


def _dimension_exponents(horizons: pd.DataFrame, budget: int) -> Iterator[Row]:
    """The slope of log regret on log dimension at one budget."""
    at = horizons[(horizons["metric"] == "regret") & (horizons["x"] == budget)].copy()
    at["dim"] = at["dataset"].map(dimension).astype("Int64")
    for (method, seed), group in at.dropna(subset=["dim"]).groupby(["method", "seed"], sort=False):
        value = growth_exponent(group["dim"].to_numpy(float), group["value"])
        yield _row("regret", "bernoulli", method, seed, f"dim_exponent@{budget}", value)


def _deployment_exponents(horizons: pd.DataFrame, budget: int) -> Iterator[Row]:
    """The slope of log regret on log samples of a deployment, where there are several sizes."""
    at = horizons[(horizons["metric"] == "regret") & (horizons["x"] == budget)].copy()
    parts = at["dataset"].str.extract(r"^(bernoulli_d\d+)_nkl(\d+)$")
    at["base"], at["size"] = parts[0], parts[1].astype(float)
    for (dataset, method, seed), group in at.dropna(subset=["base"]).groupby(
        ["base", "method", "seed"], sort=False
    ):
        if len(group) > 1:
            value = growth_exponent(group["size"], group["value"])
            yield _row("regret", dataset, method, seed, f"n_kl_exponent@{budget}", value)


def _inner_exponents(errors: pd.DataFrame) -> Iterator[Row]:
    for (dataset, method, seed), group in _groups(errors, "inner_error"):
        value = growth_exponent(group["x"], group["value"])
        yield _row("inner", dataset, method, seed, "inner_exponent", value)


def _toy(paths: pd.DataFrame) -> Iterator[Row]:
    """Risks on the way, the area under the excess risk, and when 1 % of |PR*| is reached.

    iterations_to_1pct has no row for a start that does not get there: reached_1pct says how many
    do.
    """
    for (dataset, method, start), group in _groups(paths, "risk"):
        risk = group["value"].to_numpy()
        excess = risk - OPTIMAL_TOY_RISK
        last = len(risk) - 1
        near = np.flatnonzero(excess <= 0.01 * -OPTIMAL_TOY_RISK)
        values = {f"risk@{t}": risk[t] for t in (0, 1, last // 2, last)}
        values["area_excess"] = np.trapezoid(excess)
        values["reached_1pct"] = float(len(near) > 0)
        if len(near):
            values["iterations_to_1pct"] = near[0]
        for metric, value in values.items():
            yield _row("toy", dataset, method, start, metric, value)
    for (dataset, method, start), group in _groups(paths, "risk_phi"):
        risk = group["value"].to_numpy()
        for t in (1, len(risk) - 1):
            yield _row("toy", dataset, method, start, f"risk_phi@{t}", risk[t])


def _measures(
    table: pd.DataFrame,
    horizons: pd.DataFrame,
    convexity: list[Row],
    exponents: list[Row],
    settings: EvaluateSettings,
) -> Iterator[Row]:
    def check(name: str, values: pd.Series, note: str | None = None) -> Iterator[Row]:
        for seed, value in values.items():
            yield {"check": f"performative-{name}", "seed": seed, "value": value, "note": note}

    curved = pd.DataFrame(convexity).pivot(
        index=["seed", "dataset"], columns="metric", values="value"
    )
    by_seed = curved.groupby(level="seed")
    yield from check("1", by_seed["min_eig_theta"].max())
    yield from check("2a", by_seed["min_eig_phi"].min())
    yield from check("2b", by_seed["midpoint_gap"].min())

    def of(dataset: str, metric: str, method: str = "reparam") -> pd.Series:
        chosen = table[
            (table["dataset"] == dataset)
            & (table["metric"] == metric)
            & (table["method"] == method)
        ]
        return chosen.set_index("seed")["value"]

    yield from check("3", of("bernoulli_d1", f"excess_final@{settings.budget}"))
    *fewer, most = sorted(
        int(x) for x in horizons.loc[horizons["dataset"] == "movielens", "x"].unique()
    )
    means = [f"{n} samples: {of('movielens', f'excess_relative@{n}').mean():.3f}" for n in fewer]
    yield from check("4", of("movielens", f"excess_relative@{most}"), "; ".join(means) or None)
    yield from check("5", of("bernoulli_d1", "inner_exponent", "learn_model"))

    growth = pd.DataFrame(exponents)
    growth = growth[
        (growth["metric"] == "growth_exponent")
        & (growth["method"] == "reparam")
        & growth["dataset"].isin([f"bernoulli_d{d}" for d in settings.exponent_dims])
    ]
    worst = growth.groupby("seed")["value"].max()
    yield from check("6", worst, f"the paper's bound has exponent {5 / 6:.4f}")
    yield from check("7", of("bernoulli", f"dim_exponent@{settings.budget}"))

    for name, dataset in (("8", "toy_nonconvex"), ("9", "toy_matched")):
        areas = {m: of(dataset, "area_excess", m) for m in ("direct", "reparam_exact_inner")}
        yield from check(
            name, areas["direct"] - areas["reparam_exact_inner"], "a start in place of a seed"
        )


def _at(frame: pd.DataFrame) -> list[Row]:
    """Rows whose metric tells x: `regret@32768`."""
    named = frame.assign(metric=frame["metric"] + "@" + frame["x"].astype(int).astype(str), x=None)
    return _records(named)


def _records(frame: pd.DataFrame) -> list[Row]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _groups(frame: pd.DataFrame, metric: str) -> Iterator[tuple[tuple, pd.DataFrame]]:
    """(dataset, method, seed) and the rows of one metric, by rising x."""
    chosen = frame[frame["metric"] == metric].sort_values("x", kind="stable")
    yield from chosen.groupby(["dataset", "method", "seed"], sort=False)


def _row(experiment: str, dataset: str, method: str, seed: int, metric: str, value: float) -> Row:
    return {
        "experiment": experiment,
        "dataset": dataset,
        "method": method,
        "seed": int(seed),
        "metric": metric,
        "value": float(value),
    }
