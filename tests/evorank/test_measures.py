"""The claims' measures from what was found."""

import pytest

from retable.evorank.measures import claim_measures, misalignment


def rows(assays=("a", "b", "c", "d")):
    """EvoRank above the wild type on three of four assays with seed 0, on all with seed 1."""
    found = []
    for seed in (0, 1):
        for number, assay in enumerate(assays):
            found.append((assay, "wildtype", seed, "spearman", 0.2))
            found.append((assay, "evorank", seed, "spearman", 0.1 if number > seed + 2 else 0.3))
        for method, mean, accuracy, ratio in (
            ("wildtype", 0.2, 0.5, 4.0),
            ("evorank", 0.3, 0.3, 6),
        ):
            found.append(("mean", method, seed, "spearman", mean + seed / 100))
            found.append(("held_out", method, seed, "masked_accuracy", accuracy))
            found.append(("held_out", method, seed, "participation_ratio", ratio))
            found.append(("held_out", method, seed, "pair_accuracy", mean * 2))
            found.append(("held_out", method, seed, "pair_accuracy_no_wildtype", 0.6))
        found.append(("mean", "finetuned", seed, "spearman", 0.35))
        found.append(("t2837", "finetuned", seed, "spearman", 0.5))
        found.append(("t2837", "evorank", seed, "spearman", 0.4))
    found.append(("mean", "blosum62", None, "spearman", 0.25))
    return found


def of(measures, check):
    return {row["seed"]: row["value"] for row in measures if row["check"] == check}


def test_measures_by_seed():
    found = rows()
    measures = claim_measures(found, "abcd")
    assert of(measures, "evorank-1a") == pytest.approx({0: 0.2, 1: 0.2})
    assert of(measures, "evorank-1b") == pytest.approx({0: 0.1, 1: 0.1})
    assert of(measures, "evorank-2") == {0: 1.5, 1: 1.5}
    assert of(measures, "evorank-3a") == pytest.approx({0: 0.2, 1: 0.2})
    assert of(measures, "evorank-3b") == {0: 0, 1: 0}
    assert of(measures, "evorank-4") == of(measures, "evorank-1b")
    # In eighths: three of four assays, and all.
    assert of(measures, "evorank-5") == {0: 6, 1: 8}
    assert of(measures, "evorank-6") == pytest.approx({0: -0.05, 1: -0.04})
    on_stability = claim_measures(found, "abcd", "t2837")
    assert of(on_stability, "evorank-6") == pytest.approx({0: -0.1, 1: -0.1})


def test_misalignment():
    # More accuracy, less correlation; methods without accuracy do not count.
    assert misalignment(rows()) == pytest.approx(-0.894427191)
    assert misalignment(rows()[:3]) is None
    notes = {row.get("note") for row in claim_measures(rows(), "abcd") if "-1" in row["check"]}
    assert notes == {"correlation of accuracy and ranking over all trainings: -0.89"}
