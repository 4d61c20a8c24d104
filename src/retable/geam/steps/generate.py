"""Run the methods on one task."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rdkit.Chem import Mol
from safetensors.torch import load_file

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.errors import InputError
from retable.common.metrics import write_csv
from retable.common.seeds import Seeds
from retable.geam.baselines import SmilesLSTM, graph_ga, random_library, reinvent
from retable.geam.config import ABLATIONS, BASELINES, GenerateSettings, GenerationConfig
from retable.geam.docking import DOCKING_TARGETS
from retable.geam.fgib import FGIB
from retable.geam.generation import GenerationResult, run_geam
from retable.geam.library import Library
from retable.geam.tasks import make_oracle
from retable.geam.vocabulary import Vocabulary

logger = logging.getLogger("retable")


def generate(
    library: Path,
    labels: Path,
    models: Path,
    scores: Path,
    prior: Path,
    receptors: list[Path],
    molecules: Path,
    progress: Path,
    vocabulary: Path,
    *,
    dataset: str,
    methods: str,
    seeds: Seeds,
    settings: GenerateSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write all molecules, the progress of the runs, and the vocabularies.

    `vocabulary` has the fragments of the first vocabulary with calls 0 and each later one with the
    calls after which it first joined.
    """
    if dataset in DOCKING_TARGETS:
        settings = settings.model_copy(update={"generation": settings.docking})
    source = Library.load(library)
    y = load_arrays(labels)["y"]
    table = pd.read_csv(scores)
    weights = load_file(models)
    oracle = make_oracle(dataset, receptors, checkpoints.folder, settings.exhaustiveness)
    tables, progresses, vocabularies = [], [], []
    for seed in seeds:
        own = table[table["seed"] == seed].set_index("fragment")
        mine = {
            name.removeprefix(f"seed{seed}."): value
            for name, value in weights.items()
            if name.startswith(f"seed{seed}.")
        }
        fgib = FGIB()
        fgib.load_state_dict(mine)
        fgib.eval()
        for name in methods.split("+"):
            method = name.replace(".", "/")
            keeping = {"checkpoints": checkpoints, "name": f"{name}-seed{seed}"}
            if method in BASELINES:
                result = _baseline(method, oracle, source, prior, settings, seed, keeping)
            else:
                large = method == "geam_static_large"
                size = settings.large_vocabulary if large else settings.vocabulary
                first = _vocabulary(method, own, size, seed, scores)
                result = _assembly(method, oracle, first, fgib, source, y, settings, seed, keeping)
            best = result.table.drop_duplicates("smiles")["score"].nlargest(100).mean()
            logger.info("%s, seed %d: mean of the 100 best %.3f", method, seed, best)
            key = {"dataset": dataset, "method": method, "seed": seed}
            tables.append(result.table.assign(**key))
            progresses.append(result.progress.assign(**key))
            vocabularies.append(_joined(result).assign(**key))
    columns = ["dataset", "method", "seed"]
    for frames, path in (
        (tables, molecules), (progresses, progress), (vocabularies, vocabulary)
    ):  # fmt: skip
        # Baselines have no vocabulary, some no progress: their files have no rows.
        filled = [part for part in frames if len(part)] or frames[:1]
        frame = pd.concat(filled, ignore_index=True)
        rest = [name for name in frame.columns if name not in columns]
        write_csv(frame[[*columns, *rest]], path)


def _vocabulary(method: str, scores: pd.DataFrame, size: int, seed: int, path: Path) -> Vocabulary:
    """The first vocabulary: the best by a score, or random ones."""
    kind = method.split("/")[1] if "/" in method else "fgib"
    if size > len(scores):
        raise InputError(
            f"{path}: vocabulary is {size}; there are {len(scores)} distinct attachable fragments"
        )
    if kind == "random":
        rows = np.random.default_rng((seed, 1)).permutation(len(scores))[:size]
        return Vocabulary(dict.fromkeys(scores.index[np.sort(rows)], 0.0), size)
    return Vocabulary(scores[kind].to_dict(), size)


def _assembly(
    method: str,
    oracle: Callable[[Mol], float],
    vocabulary: Vocabulary,
    fgib: FGIB,
    library: Library,
    y: np.ndarray,
    settings: GenerateSettings,
    seed: int,
    keeping: dict[str, Any],
) -> GenerationResult:
    """GEAM, an ablation, or random assembly from one vocabulary."""
    config = settings.generation
    if method.startswith("assembly/"):
        changes = {
            "assembly": "random", "modification": False, "dynamic": False,
            "budget": settings.vocabulary_budget, "max_molecules": settings.vocabulary_budget,
            "population": min(config.population, settings.vocabulary_budget),
        }  # fmt: skip
    else:
        changes = ABLATIONS[method]
    config = GenerationConfig.model_validate(config.model_dump() | changes)
    start = None
    if config.assembly == "none":
        best = np.argsort(-np.nan_to_num(y, nan=-1.0), kind="stable")[: config.population]
        start = {library.smiles[k]: float(y[k]) for k in best if not np.isnan(y[k])}
    return run_geam(oracle, vocabulary, fgib, config, seed, start=start, **keeping)


def _baseline(
    method: str,
    oracle: Callable[[Mol], float],
    library: Library,
    prior: Path,
    settings: GenerateSettings,
    seed: int,
    keeping: dict[str, Any],
) -> GenerationResult:
    """A baseline with the same budget."""
    budget = settings.generation.budget
    if method == "random_library":
        return random_library(oracle, library.test, budget=budget, seed=seed, **keeping)
    if method == "reinvent":
        options = settings.reinvent.model_dump() | keeping
        return reinvent(oracle, SmilesLSTM.load(prior), budget=budget, seed=seed, **options)
    population = settings.generation.population
    order = np.random.default_rng((seed, 2)).permutation(len(library.smiles))[:population]
    return graph_ga(
        oracle,
        [library.smiles[k] for k in order],
        budget=budget,
        population=population,
        offspring=settings.ga_offspring,
        seed=seed,
        **keeping,
    )


def _joined(result: GenerationResult) -> pd.DataFrame:
    first: dict[str, int] = {}
    for calls, fragments in result.vocabulary_history:
        for fragment in fragments:
            first.setdefault(fragment, calls)
    return pd.DataFrame({"calls": list(first.values()), "fragment": list(first)})
