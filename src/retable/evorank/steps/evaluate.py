"""Rank correlations with the assays, what the representations hold, the claims' measures."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.data.bundles import read_bundle
from retable.common.errors import InputError
from retable.common.metrics import write_measures, write_metrics
from retable.evorank.alphabet import AMINO_ACIDS
from retable.evorank.baselines import blosum62
from retable.evorank.benchmarks import read_gb1
from retable.evorank.config import EvaluateSettings
from retable.evorank.dms import align_to_structure, load_assay, mapped, spearman
from retable.evorank.files import load_backbones
from retable.evorank.measures import HELD_OUT as HELD_OUT_ROWS
from retable.evorank.measures import MEAN, Found, claim_measures, misalignment
from retable.evorank.model import MutationHead
from retable.evorank.networks import embeddings, load_scorers
from retable.evorank.placing import place_sequence
from retable.evorank.representation import masked_accuracy, pair_accuracy, participation_ratio
from retable.evorank.steps.dataset import HELD_OUT, TRAINING
from retable.evorank.steps.train import load_positions
from retable.evorank.structure import Backbone


def evaluate(
    test: Path,
    assays: Path,
    data: Path,
    models: list[Path],
    scores: list[Path],
    doubles: list[Path],
    rows: Path,
    measures: Path,
    map: Path,
    *,
    names: list,
    settings: EvaluateSettings,
) -> None:
    """Write the rows, the claims' measures, and the matrices for the figure's heat map.

    The heat map shows the first assay: `experiment`, `evorank` and `wildtype` (20, positions), NaN
    where nothing was measured, and `positions`. `doubles` are GB1's double mutants, where the user
    has a structure of it; they are a data set of their own and no part of the mean.
    """
    matrices: dict[tuple[str, int | None, str], np.ndarray] = {}
    for path in scores:
        for name, matrix in load_arrays(path).items():
            method, seed, structure = name.split(".")
            matrices[method, int(seed) if seed else None, structure] = matrix
    backbones = load_backbones(test)
    found = _correlations(backbones, read_bundle(assays), names, matrices, map)
    for path in doubles:
        found += _on_doubles(read_bundle(path)["gb1_data.csv"], backbones["GB1"], matrices)
    found += _representations(data, models, settings)
    together = misalignment(found)
    if together is not None:
        found.append((MEAN, "all", None, "accuracy_against_spearman", together))
    write_metrics(
        (
            {
                "experiment": "held_out" if dataset == HELD_OUT_ROWS else "zero_shot",
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
    write_measures(claim_measures(found, names), measures)


def _correlations(backbones, files, names, matrices, heat_map: Path) -> Found:
    found: Found = []
    for number, name in enumerate(names):
        assay = load_assay(name, files)
        mapping = align_to_structure(assay, backbones[assay.structure])
        for (method, seed, structure), matrix in matrices.items():
            if structure != assay.structure:
                continue
            rho, count = spearman(assay, matrix, mapping)
            if method == "blosum62" and rho <= 0:
                raise ValueError(
                    f"{name}: BLOSUM62 correlates by {rho:.2f}: the assay's sign must be wrong"
                )
            found.append((name, method, seed, "spearman", rho))
            found.append((name, method, seed, "spearman_n", count))
        if number == 0:
            places, letters, values = mapped(assay, mapping)
            positions = np.unique(places)
            columns = np.searchsorted(positions, places)
            seed = min(s for m, s, _ in matrices if m == "evorank")
            shown = {"positions": positions}
            for method in ("evorank", "wildtype"):
                matrix = matrices[method, seed, assay.structure]
                shown[method] = matrix[positions].T
            experiment = np.full((len(AMINO_ACIDS), len(positions)), np.nan)
            experiment[letters, columns] = values
            numbers = backbones[assay.structure].residue_numbers[positions]
            save_arrays(
                heat_map,
                shown
                | {
                    "experiment": experiment,
                    "numbers": numbers,
                    "coords": backbones[assay.structure].coords,
                    "name": np.array(name),
                },
            )
    means = defaultdict(list)
    for _, method, seed, metric, value in found:
        if metric == "spearman":
            means[method, seed].append(value)
    return found + [
        (MEAN, method, seed, "spearman", float(np.mean(values)))
        for (method, seed), values in means.items()
    ]


def _on_doubles(content: bytes, backbone: Backbone, matrices) -> Found:
    from scipy.stats import spearmanr

    measured = read_gb1(content)
    mapping, share = place_sequence(measured.sequence, backbone.sequence)
    if not mapping:
        raise InputError(
            f"config/evorank.yaml, own: gb1: {100 * share:.0f} % of its residues differ from GB1's"
        )
    row = np.full(len(measured.sequence), -1)
    row[list(mapping)] = list(mapping.values())
    places = row[measured.position]
    count = len(measured.scores)
    kept = np.bincount(measured.variant, weights=places < 0, minlength=count) == 0
    found: Found = []
    for (method, seed, structure), matrix in matrices.items():
        if structure == "GB1":
            single = np.asarray(matrix, dtype=np.float64)[places, measured.letter]
            sums = np.bincount(measured.variant, weights=single, minlength=count)
            rho = float(spearmanr(sums[kept], measured.scores[kept]).statistic)
            found.append(("GB1", method, seed, "spearman", rho))
            found.append(("GB1", method, seed, "spearman_n", int(kept.sum())))
    return found


def _representations(data: Path, models: list[Path], settings: EvaluateSettings) -> Found:
    training, held = load_positions(data, TRAINING), load_positions(data, HELD_OUT)
    wildtype, p = held.wildtype.numpy(), held.p.numpy()
    found: Found = []

    def add(method: str, seed: int | None, metric: str, value: float) -> None:
        found.append((HELD_OUT_ROWS, method, seed, metric, value))

    def add_pairs(method: str, seed: int | None, scores: np.ndarray) -> None:
        both = pair_accuracy(scores, p, wildtype, settings.least_difference)
        for metric, value in zip(("pair_accuracy", "pair_accuracy_no_wildtype"), both, strict=True):
            add(method, seed, metric, value)

    for path in models:
        method = path.parent.name
        for seed, scorer in load_scorers(path).items():
            scores = scorer.score_matrix(held.environments, wildtype).numpy()
            add_pairs(method, seed, scores)
            e_held = embeddings(scorer, held.environments)
            if not isinstance(scorer.head, MutationHead):
                with torch.no_grad():
                    logits = scorer.head(e_held).numpy()
                add(method, seed, "own_accuracy", float((logits.argmax(1) == wildtype).mean()))
            if not scorer.uses_environment:
                continue  # one constant vector holds nothing of a position
            e_training = embeddings(scorer, training.environments)
            add(method, seed, "participation_ratio", participation_ratio(e_held.numpy()))
            accuracy = masked_accuracy(
                e_training.numpy(),
                training.wildtype.numpy(),
                e_held.numpy(),
                wildtype,
                settings.regression_steps,
            )
            add(method, seed, "masked_accuracy", accuracy)
    add_pairs("blosum62", None, blosum62()[wildtype])
    return found
