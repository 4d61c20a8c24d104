"""Scores against measurements: correlations by data set, published models, the claims' measures."""

from collections import defaultdict
from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.metrics import read_metrics, write_measures, write_metrics
from retable.evorank.alphabet import AMINO_ACIDS
from retable.evorank.baselines import blosum62
from retable.evorank.config import AtomEvaluateSettings
from retable.evorank.dms import parse_variant
from retable.evorank.files import own_path
from retable.evorank.measures import HELD_OUT, MEAN, Found, claim_measures, misalignment
from retable.evorank.published_scores import (
    correlations_on,
    published_correlations,
    published_scores,
)
from retable.evorank.variants import Variants, load_variants

_STABILITY = "t2837"
# (method, seed) -> scores of all variants
Predictions = dict[tuple[str, int | None], np.ndarray]


def atom_evaluate(
    gym: Path,
    stability: Path,
    gym_scores: list[Path],
    stability_scores: list[Path],
    held_out: list[Path],
    own: list[Path],
    rows: Path,
    measures: Path,
    map: Path,
    *,
    assay: str,
    settings: AtomEvaluateSettings,
) -> None:
    """Write the rows, the claims' measures, and the matrices for the figure's heat map.

    Rows are by assay of ProteinGym, `mean` over these, and `t2837`. `own` are the user's scores of
    published models, if given; their rows are named `published/<model>` and have no seed. The heat
    map shows the assay `assay`, else the first one.
    """
    assays, changes = load_variants(gym), load_variants(stability)
    on_gym, on_stability = _predictions(assays, gym_scores), _predictions(changes, stability_scores)
    found = _on_assays(assays, on_gym)
    if settings.zero_shot is not None:
        found += _published(assays, own_path(settings.zero_shot, "zero_shot", "a file or a folder"))
    means: dict[tuple[str, int | None, str], list[float]] = defaultdict(list)
    for _, method, seed, metric, value in found:
        if metric in ("spearman", "pearson"):
            means[method, seed, metric].append(value)
    found += [
        (MEAN, method, seed, metric, float(np.mean(values)))
        for (method, seed, metric), values in means.items()
        # A published model that lacks assays has a mean over others: it has no row.
        if len(values) == len(assays.assays)
    ]
    found += _on_stability(changes, on_stability, settings.stabilising)
    read = read_metrics(held_out).drop_duplicates(["method", "seed", "metric"])
    found += [
        (
            row.dataset,
            row.method,
            None if np.isnan(row.seed) else int(row.seed),
            row.metric,
            row.value,
        )
        for row in read.astype({"seed": "float64"}).itertuples()
    ]
    together = misalignment(found)
    if together is not None:
        found.append((MEAN, "all", None, "accuracy_against_spearman", together))
    write_metrics(
        (
            {
                "experiment": "held_out" if dataset == HELD_OUT else "zero_shot",
                "dataset": dataset,
                "method": method,
                "seed": seed,
                "metric": metric,
                "value": value,
            }
            for dataset, method, seed, metric, value in found
        ),
        rows,
    )
    write_measures(claim_measures(found, assays.assays, _STABILITY), measures)
    shown = assay if assay in assays.assays else assays.assays[0]
    save_arrays(map, _heat_map(assays, on_gym, shown))


def _predictions(variants: Variants, paths: list[Path]) -> Predictions:
    found: Predictions = {("blosum62", None): variants.predicted_by_letters(blosum62())}
    for path in paths:
        for seed, scores in load_arrays(path).items():
            found[path.parent.name, int(seed)] = variants.predicted(scores)
    return found


def _on_assays(assays: Variants, predictions: Predictions) -> Found:
    found: Found = []
    for number, name in enumerate(assays.assays):
        here = assays.assay == number
        for (method, seed), values in predictions.items():
            for metric, value in _correlations(values[here], assays.scores[here]).items():
                found.append((name, method, seed, metric, value))
            found.append((name, method, seed, "spearman_n", float(here.sum())))
    return found


def _on_stability(changes: Variants, predictions: Predictions, stabilising: float) -> Found:
    from sklearn.metrics import roc_auc_score

    better = changes.scores > -stabilising
    found: Found = []
    for (method, seed), values in predictions.items():
        for metric, value in _correlations(values, changes.scores).items():
            found.append((_STABILITY, method, seed, metric, value))
        found.append((_STABILITY, method, seed, "spearman_n", float(len(values))))
        if better.any() and not better.all():
            auroc = float(roc_auc_score(better, values))
            found.append((_STABILITY, method, seed, "auroc", auroc))
    return found


def _correlations(predicted: np.ndarray, measured: np.ndarray) -> dict[str, float]:
    from scipy.stats import pearsonr, spearmanr

    return {
        "spearman": float(spearmanr(predicted, measured).statistic),
        "pearson": float(pearsonr(predicted, measured).statistic),
    }


def _published(assays: Variants, path: Path) -> Found:
    """Spearman of published models: as published, or on our variants where each one's score is."""
    if path.suffix == ".csv":
        return [
            (assay, f"published/{model}", None, "spearman", value)
            for (assay, model), value in published_correlations(path).items()
            if assay in assays.assays
        ]
    found: Found = []
    for name, scores in published_scores(path, list(assays.assays)):
        here = np.flatnonzero(assays.assay == assays.assays.index(name))
        fitness = {assays.mutants[i]: float(assays.scores[i]) for i in here}
        for model, (rho, count) in correlations_on(scores, fitness).items():
            found.append((name, f"published/{model}", None, "spearman", rho))
            found.append((name, f"published/{model}", None, "spearman_n", float(count)))
    return found


def _heat_map(assays: Variants, predictions: Predictions, name: str) -> dict[str, np.ndarray]:
    here = np.flatnonzero(assays.assay == assays.assays.index(name))
    singles = [i for i in here if ":" not in assays.mutants[i]]
    places, letters = (
        np.array([parse_variant(assays.mutants[i])[1:] for i in singles], dtype=np.int64)
        .reshape(-1, 2)
        .T
    )
    numbers, columns = np.unique(places, return_inverse=True)
    seed = min(s for m, s in predictions if m == "evorank" and s is not None)

    def matrix(values: np.ndarray) -> np.ndarray:
        filled = np.full((len(AMINO_ACIDS), len(numbers)), np.nan)
        filled[letters, columns] = values[singles]
        return filled

    return {
        "experiment": matrix(assays.scores),
        "evorank": matrix(predictions["evorank", seed]),
        "wildtype": matrix(predictions["wildtype", seed]),
        "numbers": numbers,
        "name": np.array(name),
    }
