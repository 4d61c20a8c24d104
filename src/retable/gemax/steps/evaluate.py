"""All rows of the paper, and the measures of its claims."""

from collections import defaultdict
from pathlib import Path

from retable.common.metrics import read_metrics, write_measures, write_metrics

Values = dict[tuple[str, str, str], dict[int, float]]  # (dataset, method, metric) -> seed -> value


def evaluate(parts: list[Path], rows: Path, measures: Path) -> None:
    """Join the rows of all steps; write the claims' measures, one a seed."""
    frame = read_metrics(parts)
    write_metrics(
        (
            {key: (None if value != value else value) for key, value in row.items()}
            for row in frame.to_dict("records")
        ),
        rows,
    )
    values: Values = defaultdict(dict)
    for row in frame[frame["x"].isna()].itertuples():
        values[row.dataset, row.method, row.metric][int(row.seed)] = row.value
    found = {
        "gemax-1": _difference(values, "entropy_exact", "gemax", "untrained"),
        "gemax-2a": _mean(values, "gemax", "entropy_spearman"),
        "gemax-3": _ratio(values, "effective_rank", "gemax", "untrained", "mutag"),
        "gemax-4a": _difference(values, "accuracy", "gemax", "untrained"),
        "gemax-4b": _difference(values, "accuracy", "gemax", "infograph"),
        "gemax-4c": _difference(values, "accuracy", "gemax", "graphcl"),
        "gemax-4d": _difference(values, "accuracy", "gemax", "wl"),
        "gemax-5a": _difference(values, "accuracy_semi10", "gemax", "untrained"),
        "gemax-5b": _difference(values, "accuracy_semi10", "gemax", "infograph"),
        "gemax-6": _difference(values, "edge_auc", "gemax", "infograph"),
    }
    write_measures(
        (
            {"check": check, "seed": seed, "value": value}
            for check, measured in found.items()
            for seed, value in sorted(measured.items())
        ),
        measures,
    )


def _over_datasets(parts: list[dict[int, float]]) -> dict[int, float]:
    """The mean over data sets, of the seeds that all of them have."""
    if not parts:
        return {}
    seeds = set.intersection(*(set(part) for part in parts))
    return {seed: sum(part[seed] for part in parts) / len(parts) for seed in seeds}


def _difference(values: Values, metric: str, more: str, less: str) -> dict[int, float]:
    parts = []
    for dataset, method, name in sorted(values):
        other = values.get((dataset, less, metric))
        if (method, name) == (more, metric) and other:
            own = values[dataset, method, name]
            parts.append({seed: own[seed] - other[seed] for seed in own if seed in other})
    return _over_datasets(parts)


def _mean(values: Values, method: str, metric: str) -> dict[int, float]:
    return _over_datasets(
        [found for (_, m, name), found in sorted(values.items()) if (m, name) == (method, metric)]
    )


def _ratio(values: Values, metric: str, over: str, under: str, dataset: str) -> dict[int, float]:
    above, below = values.get((dataset, over, metric), {}), values.get((dataset, under, metric), {})
    return {seed: above[seed] / below[seed] for seed in above if seed in below}
