"""The measures of the claims' checks, from what was found at either level."""

from collections import defaultdict
from collections.abc import Iterable

# Data sets in the rows of an evaluation that are no assays.
MEAN, HELD_OUT = "mean", "held_out"

Found = list[tuple[str, str, int | None, str, float]]  # dataset, method, seed, metric, value


def misalignment(found: Found) -> float | None:
    """Spearman correlation of masked accuracy with mean zero-shot correlation over trainings.

    Over all methods and seeds that have both; None for fewer than three, or where one is constant.
    """
    from scipy.stats import spearmanr

    both: dict[tuple[str, int | None], dict[str, float]] = defaultdict(dict)
    for dataset, method, seed, metric, value in found:
        if (dataset, metric) in ((HELD_OUT, "masked_accuracy"), (MEAN, "spearman")):
            both[method, seed][metric] = value
    pairs = [tuple(own[name] for name in sorted(own)) for own in both.values() if len(own) == 2]
    accuracy, spearman = zip(*pairs, strict=True) if pairs else ((), ())
    if len(pairs) < 3 or len(set(accuracy)) == 1 or len(set(spearman)) == 1:
        return None
    return float(spearmanr(accuracy, spearman).statistic)


def claim_measures(found: Found, assays: Iterable[str], finetuned_on: str = MEAN) -> list[dict]:
    """Rows for `write_measures`, one a check and seed; methods are compared seed by seed.

    Args:
        found: Spearman correlations of each assay and of their mean, and what the representations
            hold of the held-out positions.
        assays: the data sets that are counted.
        finetuned_on: where the fine-tuned reference is compared.
    """
    values: dict[tuple[str, str, str], dict[int | None, float]] = defaultdict(dict)
    for dataset, method, seed, metric, value in found:
        values[dataset, method, metric][seed] = value
    measures = []

    def compare(
        check: str, dataset: str, metric: str, more: str, less: str, *, ratio: bool = False
    ) -> None:
        above, below = values[dataset, more, metric], values[dataset, less, metric]
        for seed in sorted(set(above) & set(below) - {None}):
            value = above[seed] / below[seed] if ratio else above[seed] - below[seed]
            measures.append({"check": check, "seed": seed, "value": value})

    compare("evorank-1a", HELD_OUT, "masked_accuracy", "wildtype", "evorank")
    compare("evorank-1b", MEAN, "spearman", "evorank", "wildtype")
    compare("evorank-2", HELD_OUT, "participation_ratio", "evorank", "wildtype", ratio=True)
    compare("evorank-3a", HELD_OUT, "pair_accuracy", "evorank", "wildtype")
    compare("evorank-3b", HELD_OUT, "pair_accuracy_no_wildtype", "evorank", "wildtype")
    compare("evorank-4", MEAN, "spearman", "evorank", "wildtype")
    wins: dict[int | None, list[bool]] = defaultdict(list)
    for assay in assays:
        below = values[assay, "wildtype", "spearman"]
        for seed, value in values[assay, "evorank", "spearman"].items():
            wins[seed].append(value > below[seed])
    # Of 8 assays: a share of another number of them counts as so many eighths.
    measures += [
        {"check": "evorank-5", "seed": seed, "value": 8 * sum(own) / len(own)}
        for seed, own in sorted(wins.items())
    ]
    compare("evorank-6", finetuned_on, "spearman", "evorank", "finetuned")
    together = misalignment(found)
    if together is not None:
        note = f"correlation of accuracy and ranking over all trainings: {together:.2f}"
        for row in measures:
            if row["check"] in ("evorank-1a", "evorank-1b"):
                row["note"] = note
    return measures
