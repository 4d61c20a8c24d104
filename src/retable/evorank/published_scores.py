"""Scores of published zero-shot models that come with ProteinGym, where the user has them."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from retable.common.errors import InputError

_NO_MODELS = {"mutant", "mutated_sequence", "DMS_score", "DMS_score_bin", "target_seq", "DMS_id"}
_ASSAY_COLUMNS = ("DMS ID", "DMS_id")


def published_correlations(path: Path) -> dict[tuple[str, str], float]:
    """Correlations as published, assay by assay: (assay, model) -> Spearman.

    The file is ProteinGym's `DMS_substitutions_Spearman_DMS_level.csv`: a column `DMS ID`, and one
    of each model. They are over all variants of an assay.
    """
    frame = pd.read_csv(path)
    names = [column for column in _ASSAY_COLUMNS if column in frame]
    if not names:
        raise InputError(f"{path}: there is no column '{_ASSAY_COLUMNS[0]}'")
    numbers = frame.select_dtypes("number")
    models = [str(name) for name in numbers if name != "Number of Mutants"]
    return {
        (str(assay), model): float(value)
        for model in models
        for assay, value in zip(frame[names[0]], numbers[model], strict=True)
        if np.isfinite(value)
    }


def published_scores(path: Path, assays: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Scores of each variant, of the assays that are there: a column a model, indexed by mutant.

    `path` is a folder or a zip with a CSV file an assay (`<assay>.csv`) that has the column
    `mutant`; every other column of numbers is a model's but ProteinGym's own.
    """
    for assay in assays:
        content = _file(path, f"{assay}.csv")
        if content is None:
            continue
        frame = pd.read_csv(io.BytesIO(content))
        if "mutant" not in frame:
            raise InputError(f"{path}: {assay}.csv: there is no column 'mutant'")
        kept = [
            column
            for column in frame.select_dtypes("number")
            if column not in _NO_MODELS and not str(column).startswith("Unnamed")
        ]
        yield assay, frame.drop_duplicates("mutant").set_index("mutant")[kept]


def correlations_on(
    scores: pd.DataFrame, fitness: Mapping[str, float]
) -> dict[str, tuple[float, int]]:
    """Spearman of each model on the mutants that all of `fitness` names, and their number.

    A model that lacks one of ten of the mutants or more is left out: it would be read on others.
    """
    from scipy.stats import spearmanr

    mutants = [mutant for mutant in fitness if mutant in scores.index]
    own = scores.loc[mutants]
    values = np.array([fitness[mutant] for mutant in mutants])
    found = {}
    for model in own:
        column = own[model].to_numpy(dtype=np.float64)
        known = np.isfinite(column)
        if known.sum() < 3 or known.sum() <= 0.9 * len(fitness):
            continue
        rho = float(spearmanr(column[known], values[known]).statistic)
        if np.isfinite(rho):
            found[str(model)] = (rho, int(known.sum()))
    return found


def _file(path: Path, name: str) -> bytes | None:
    if path.is_dir():
        file = next(iter(sorted(path.rglob(name))), None)
        return file.read_bytes() if file else None
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.namelist() if m.rpartition("/")[2] == name]
            return archive.read(members[0]) if members else None
    except zipfile.BadZipFile:
        raise InputError(f"{path}: must be a folder, a zip or a CSV file") from None
