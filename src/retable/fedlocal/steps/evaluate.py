"""From histories to tidy rows and the measures of the claims."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors import safe_open

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.metrics import write_measures, write_metrics
from retable.fedlocal.config import EvaluateSettings
from retable.fedlocal.features import filter_concentration, learned, missed

Run = dict[str, np.ndarray]
# (experiment, method, metric) -> seed -> value
Values = dict[tuple[str, str, str], dict[int, float]]
# Metric -> value, or metric -> points (x, value) of a curve.
Found = dict[str, float | list[tuple[float, float]]]
_FIRST_LAYERS = ("conv1.weight", "0.weight")


def evaluate(
    synthetic: list[Path],
    histories: list[Path],
    models: list[Path],
    rows: Path,
    measures: Path,
    filters: Path,
    *,
    settings: EvaluateSettings,
) -> None:
    """Write metrics (curves have x), the claims' measures, and the first layers' filters.

    A history lies in a folder of its experiment's name; its arrays are
    `<method>.<seed>.<quantity>`.
    The filters are `<experiment>.<method>.<seed>`, (out, in, k, k).
    """
    tidy, kernels = [], {}
    timed: dict[int, list[Run]] = defaultdict(list)
    for path in synthetic:
        for method, seed, run in _runs(path):
            if _experiment(path) == "poly":
                timed[seed].append(run)
            found = _synthetic(run, settings)
            tidy += _rows(_experiment(path), "feature_noise", method, seed, found)
    for path, model in zip(histories, models, strict=True):
        with safe_open(model, framework="pt") as weights:
            names = set(weights.keys())
            for method, seed, run in _runs(path):
                layers = (f"{method}.{seed}.{layer}" for layer in _FIRST_LAYERS)
                first = weights.get_tensor(next(layer for layer in layers if layer in names))
                kernels[f"{_experiment(path)}.{method}.{seed}"] = first.numpy()
                found = _images(run)
                found["filter_concentration"] = filter_concentration(first).mean().item()
                tidy += _rows(_experiment(path), str(run["dataset"]), method, seed, found)
    write_metrics(tidy, rows)
    write_measures(_measures(tidy, timed, settings), measures)
    save_arrays(filters, kernels)


def _experiment(path: Path) -> str:
    return path.parent.parent.name


def _runs(path: Path) -> Iterator[tuple[str, int, Run]]:
    runs: dict[tuple[str, int], Run] = defaultdict(dict)
    for name, value in load_arrays(path).items():
        method, seed, quantity = name.split(".")
        runs[method, int(seed)][quantity] = value
    for (method, seed), run in runs.items():
        yield method, seed, run


def _rows(experiment: str, dataset: str, method: str, seed: int, found: Found) -> list[dict]:
    key = {"experiment": experiment, "dataset": dataset, "method": method, "seed": seed}
    rows = []
    for metric, value in found.items():
        points = value if isinstance(value, list) else [(None, value)]
        rows += [key | {"metric": metric, "x": x, "value": float(v)} for x, v in points]
    return rows


def _synthetic(run: Run, settings: EvaluateSettings) -> Found:
    """The metrics of one run on the data model."""
    n_major = int(run["n_major"])
    is_learned = _learned(run, settings)
    largest = run["projections"].max(1)
    accuracy = run["test_accuracy"][-1]
    alignment = run["alignment"]
    own = np.diagonal(alignment)[n_major:]
    found: Found = {
        "test_accuracy": accuracy.mean(),
        "test_accuracy_major": accuracy[:n_major].mean(),
        "test_accuracy_minor": accuracy[n_major:].mean(),
        "test_accuracy_worst": accuracy.min(),
        "test_loss": run["test_loss"][-1].mean(),
        "train_accuracy": run["train_accuracy"][-1].mean(),
        "train_accuracy_worst": run["train_accuracy"][-1].min(),
        "features_learned": is_learned[-1].sum(),
        "features_missed": missed(run["projections"][-1], settings.missed).sum(),
        "minor_features_missed": missed(run["projections"][-1], settings.missed)[n_major:].sum(),
        "min_projection": largest[-1].min(),
        "negative_noise_ratio": (-alignment[:n_major, n_major:].sum(0) / own).mean(),
        "rounds": run["rounds"],
    }
    if is_learned.all(1).any():
        found["steps_to_learn"] = run["step"][is_learned.all(1).argmax()]
    critical = run["critical_local_steps"]
    has_threshold = np.isfinite(critical) & (critical > 0)
    relative = run["local_steps"] / critical[has_threshold]
    step = [0, *run["step"]]
    curve = np.concatenate([run["initial_projections"].max(0)[None], largest])
    found |= {
        "curve_minor_projection": list(zip(step, curve[:, n_major:].min(1), strict=True)),
        "curve_major_projection": list(zip(step, curve[:, :n_major].min(1), strict=True)),
        "client_accuracy": list(enumerate(accuracy)),
        "minor_projection_by_relative_local_steps": list(
            zip(relative, largest[-1, n_major:][has_threshold], strict=True)
        ),
    }
    return found


def _learned(run: Run, settings: EvaluateSettings) -> np.ndarray:
    """Whether each feature is learnt, at each evaluation: (evaluations, K)."""
    threshold = settings.learned / float(run["alpha"])
    return np.array([learned(p, threshold) for p in run["projections"]])


def _images(run: Run) -> Found:
    """The metrics of one run on images, means over the clients' test images."""
    found: Found = {
        "test_accuracy": run["test_accuracy"][-1].mean(),
        "test_loss": run["test_loss"][-1].mean(),
        "train_accuracy": run["train_accuracy"][-1].mean(),
        "rounds": run["rounds"],
        "curve_test_accuracy": list(zip(run["step"], run["test_accuracy"].mean(1), strict=True)),
        "curve_test_loss": list(zip(run["step"], run["test_loss"].mean(1), strict=True)),
    }
    if not str(run["dataset"]).endswith("_rho0"):
        # Without noise the test images are dealt out at random: no client's are its own.
        found["test_accuracy_worst"] = run["test_accuracy"][-1].min()
    return found


def _measures(
    tidy: list[dict], timed: dict[int, list[Run]], settings: EvaluateSettings
) -> list[dict]:
    """The measures of all checks whose runs were made, one a seed."""
    values: Values = defaultdict(dict)
    for row in tidy:
        if row["x"] is None:
            values[row["experiment"], row["method"], row["metric"]][row["seed"]] = row["value"]

    def of(experiment: str, method: str, metric: str) -> dict[int, float]:
        return values.get((experiment, method, metric), {})

    def difference(more: tuple[str, str], less: tuple[str, str], metric: str) -> dict[int, float]:
        a, b = of(*more, metric), of(*less, metric)
        return {seed: a[seed] - b[seed] for seed in a if seed in b}

    local, globally = ("s1", "local100"), ("s1", "global")
    fits = of(*globally, "train_accuracy_worst")
    unlearned, slope = _polynomial_time(timed, settings)
    main, over = settings.main, settings.overfitted
    checks = {
        "fedlocal-1": difference((main, "local8"), (main, "parallel"), "filter_concentration"),
        "fedlocal-2": of(*globally, "negative_noise_ratio"),
        "fedlocal-3": {
            seed: count if fits[seed] == 1 else 0.0
            for seed, count in of(*globally, "minor_features_missed").items()
        },
        "fedlocal-4": of(*local, "min_projection"),
        "fedlocal-5a": unlearned,
        "fedlocal-5b": slope,
        "fedlocal-6a": difference(local, globally, "test_accuracy"),
        "fedlocal-6b": difference(local, globally, "test_accuracy_minor"),
        "fedlocal-7a": of("s3", "one_shot", "test_accuracy_worst"),
        "fedlocal-7b": of("s3", "one_shot", "features_missed"),
        "fedlocal-8": difference((main, "local8"), (main, "parallel"), "test_accuracy"),
        "fedlocal-9": difference((main, "local64"), (main, "parallel_rounds"), "test_accuracy"),
        "fedlocal-10": difference((over, "parallel"), (over, "local16"), "test_loss"),
    }
    return [
        {"check": check, "seed": seed, "value": value}
        for check, measured in checks.items()
        for seed, value in measured.items()
    ]


def _polynomial_time(
    timed: dict[int, list[Run]], settings: EvaluateSettings
) -> tuple[dict[int, float], dict[int, float]]:
    """Of each seed's runs from weights of different size: features not learnt; the time's exponent.

    A run that does not learn all features counts with all of its steps; then the first number says
    that the second is but a lower bound.
    """
    unlearned, slope = {}, {}
    for seed, runs in timed.items():
        learnt = [_learned(run, settings) for run in runs]
        unlearned[seed] = float(sum((~each[-1]).sum() for each in learnt))
        # From the first evaluation at which all are learnt; `argmax` of none is 0, so look.
        steps = [
            run["step"][each.all(1).argmax() if each.all(1).any() else -1]
            for run, each in zip(runs, learnt, strict=True)
        ]
        inverse = [1 / run["init_std"] for run in runs]
        slope[seed] = float(np.polyfit(np.log(inverse), np.log(steps), 1)[0])
    return unlearned, slope
