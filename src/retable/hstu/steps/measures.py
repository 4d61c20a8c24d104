"""All rows of the table and the figure in one file, and the measures of the claims."""

from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.data.arrays import load_arrays
from retable.common.metrics import read_measures, read_metrics, write_measures, write_metrics
from retable.common.statistics import bootstrap_mean
from retable.hstu.config import MeasuresSettings


def measures(
    users: list[Path],
    rows: list[Path],
    checks: list[Path],
    histories: list[Path],
    ranks: list[Path],
    curves: list[Path],
    times: Path,
    all_rows: Path,
    measures: Path,
    *,
    settings: MeasuresSettings,
) -> None:
    """Write every tidy row and what each check needs; the first data set serves the claims."""
    history = read_metrics(histories)
    # Jobs on one stream repeat what its oracle reaches.
    curve = read_metrics(curves).drop_duplicates()
    stream = pd.DataFrame([row for path in ranks for row in _stream_rows(path)])
    fits = pd.DataFrame([row for part in _by_seed(curve) for row in _fit_rows(*part)])
    last = curve[curve["metric"] == "excess loss"].groupby(["experiment", "method", "seed"])
    final = curve.loc[last["x"].idxmax().sort_values()].assign(metric="final excess loss (nats)")
    spent = final.assign(metric="training operations", value=final["x"])
    everything = pd.concat(
        [
            read_metrics(rows),
            stream,
            # The scaling experiment's own rows of the oracle stand among its curve below.
            curve[(curve["experiment"] == "stream") & (curve["method"] == "oracle")],
            *(frame.assign(x=np.nan) for frame in (final, spent)),
            fits,
            history,
            curve[curve["experiment"] == "scaling"],
        ],
        ignore_index=True,
    )
    write_metrics(_records(everything), all_rows)
    dataset = users[0].parent.name
    found = [row for path in checks[:1] for row in _records(read_measures(path))]
    found += _bootstrap_measures(load_arrays(users[0]), settings)
    found += _early_measures(history[history["dataset"] == dataset], settings)
    found += _stream_measures(stream)
    found += [
        {"check": check, "seed": int(row["seed"]), "value": row["value"]}
        for row in _records(fits)
        for check, metric in FIT_CHECKS.items()
        if row["metric"] == metric
    ]
    found += _length_measures(load_arrays(users[0]))
    found += _speed_measures(read_metrics(times), settings)
    write_measures(found, measures)


FIT_CHECKS = {
    "hstu-6a": "span of the fit (decades)",
    "hstu-6b": "R^2 of the fit",
    "hstu-6c": "slope of the fit",
}


def _records(frame: pd.DataFrame) -> list[dict]:
    """Rows as plain dictionaries, with None where a value is missing."""
    return [
        {key: None if pd.isna(value) else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _stream_rows(path: Path) -> list[dict]:
    """Hit rates and NDCG of the models on one job's stream."""
    experiment = path.parts[-3]
    rows = []
    for run, found in load_arrays(path).items():
        method, seed = run.split("/")
        gains = np.where(found <= 10, 1 / np.log2(found + 1.0), 0)
        values = {
            "HR@10": (found <= 10).mean(),
            "HR@50": (found <= 50).mean(),
            "NDCG@10": gains.mean(),
        }
        rows += [
            {
                "experiment": experiment,
                "dataset": "dirichlet",
                "method": method,
                "seed": int(seed),
                "metric": metric,
                "value": float(value),
            }
            for metric, value in values.items()
            if experiment == "stream"
        ]
    return rows


def _by_seed(curve: pd.DataFrame):
    scaling = curve[curve["experiment"] == "scaling"]
    for seed, part in scaling.groupby("seed"):
        yield int(seed), part


def _fit_rows(seed: int, curve: pd.DataFrame) -> list[dict]:
    """Power law excess loss = c FLOPs^slope on the lower envelope of what beats guessing.

    A point is on the envelope when no cheaper one is as good. Points at or above ln V, the loss
    of guessing, are start-up and left out; fewer than three points give no fit.
    """
    fixed = curve[curve["x"].isna()].set_index("metric")["value"]
    points = curve[curve["metric"] == "excess loss"].sort_values("x")
    points = points[points["value"] + fixed["loss"] < fixed["guess"]]
    best = points["value"].cummin().shift(fill_value=np.inf)
    points = points[(points["value"] < best) & (points["value"] > 0)]
    if len(points) < 3:
        return []
    x, y = np.log10(points["x"].to_numpy()), np.log10(points["value"].to_numpy())
    slope, intercept = np.polyfit(x, y, 1)
    residual = ((y - slope * x - intercept) ** 2).sum()
    values = {
        "span of the fit (decades)": x.max() - x.min(),
        "R^2 of the fit": 1 - residual / ((y - y.mean()) ** 2).sum(),
        "slope of the fit": slope,
        "intercept of the fit": intercept,
    }
    return [
        {
            "experiment": "scaling",
            "dataset": "dirichlet",
            "method": "envelope",
            "seed": seed,
            "metric": metric,
            "value": float(value),
        }
        for metric, value in values.items()
    ]


def _bootstrap_measures(users: dict[str, np.ndarray], settings: MeasuresSettings) -> list[dict]:
    """Paired differences over users, averaged over the seeds."""
    out = []
    for claim, better, worse in (("hstu-4", "hstu", "sasrec"), ("hstu-4c", "hstu-large", "hstu")):
        for check, metric in (("ndcg", "NDCG@10"), ("hr", "HR@10")):
            gains = {m: _mean_over_seeds(users, m, metric) for m in (better, worse)}
            interval = bootstrap_mean(
                gains[better] - gains[worse], seed=0, repeats=settings.bootstrap_repeats
            )
            relative = interval.value / gains[worse].mean()
            out.append(
                {
                    "check": f"{claim}-{check}",
                    "value": interval.value,
                    "ci_low": interval.low,
                    "ci_high": interval.high,
                    "n": interval.n,
                    "note": f"relative difference {100 * relative:+.1f} %",
                }
            )
    return out


def _mean_over_seeds(users: dict[str, np.ndarray], method: str, metric: str) -> np.ndarray:
    found = [
        gains
        for key, gains in users.items()
        if key.startswith(f"public/{method}/") and key.endswith(f"/{metric}")
    ]
    return np.mean(found, axis=0)


def _early_measures(history: pd.DataFrame, settings: MeasuresSettings) -> list[dict]:
    """Ratio of validation NDCG@10 after an early epoch, HSTU over SASRec, seed by seed."""
    ndcg = history[
        (history["experiment"] == "public")
        & (history["metric"] == "validation NDCG@10")
        & (history["x"] == settings.early_epoch)
    ].pivot(index="seed", columns="method", values="value")
    return _seed_measures("hstu-4b", ndcg["hstu"] / ndcg["sasrec"])


def _seed_measures(check: str, values: pd.Series) -> list[dict]:
    return [{"check": check, "seed": int(s), "value": float(v)} for s, v in values.items()]


def _stream_measures(stream: pd.DataFrame) -> list[dict]:
    """Differences of HR@10 on the stream, seed by seed, and their ratio as a note."""
    hits = stream[stream["metric"] == "HR@10"].pivot(index="seed", columns="method", values="value")
    out = []
    for check, other in (("hstu-2", "transformer"), ("hstu-3", "hstu-softmax")):
        rows = _seed_measures(check, hits["hstu"] - hits[other])
        ratio = hits["hstu"].mean() / hits[other].mean()
        rows[0]["note"] = f"ratio of the means {ratio:.3f}"
        out += rows
    return out


def _length_measures(users: dict[str, np.ndarray]) -> list[dict]:
    """NDCG@10 with Stochastic Length over NDCG@10 with all events, seed by seed."""
    runs = {key: gains.mean() for key, gains in users.items() if key.endswith("/NDCG@10")}
    by_alpha: dict[float, dict[int, float]] = {}
    for key, value in runs.items():
        experiment, method, seed, _ = key.split("/")
        if experiment == "sl":
            by_alpha.setdefault(float(method.split("alpha")[1]), {})[int(seed)] = float(value)
    cut, whole = (by_alpha[alpha] for alpha in (min(by_alpha), max(by_alpha)))
    return [
        {"check": "hstu-9b", "seed": seed, "value": cut[seed] / whole[seed]} for seed in sorted(cut)
    ]


def _speed_measures(times: pd.DataFrame, settings: MeasuresSettings) -> list[dict]:
    """Ratios of processor times, one a repeat."""
    cpu = times[times["metric"] == "cpu time ratio"]
    ratio = cpu.pivot_table(index="seed", columns=["dataset", "method"], values="value")
    with_sl = ratio.xs("transformer / hstu with SL", axis=1, level="method")
    lengths = sorted(with_sl.columns, key=lambda name: int(name.removeprefix("n=")))
    longest = with_sl[lengths[-1]]
    reference = with_sl[f"n={settings.reference_length}"]
    return [
        *_seed_measures("hstu-5a", longest),
        *_seed_measures("hstu-5b", longest / reference),
        *_seed_measures("hstu-1b", _only(ratio, "impression-level / generative")),
        *_seed_measures("hstu-10b", _only(ratio, "one by one / M-FALCON")),
    ]


def _only(ratio: pd.DataFrame, method: str) -> pd.Series:
    return ratio.xs(method, axis=1, level="method").iloc[:, 0]
