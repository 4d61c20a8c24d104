"""Judge the generated molecules: rows of the table, curves, and the claims' measures."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem

from retable.common.data.arrays import load_arrays
from retable.common.metrics import write_csv, write_measures, write_metrics
from retable.geam.config import BASELINES, EvaluateSettings
from retable.geam.docking import DOCKING_TARGETS, HIT_THRESHOLDS
from retable.geam.fragments import brics_fragments
from retable.geam.library import Library
from retable.geam.metrics import (
    auc_top_k,
    fingerprints,
    largest_similarity,
    n_circles,
    novel_hit_ratio,
    novel_top_fraction,
    top_k_curve,
    uniqueness,
)
from retable.geam.oracles import qed, sa_score

_NOVEL = 0.4
_BEST = 100
_DRAWN = 8
Row = dict[str, object]
Values = dict[tuple[str, str, int, str], float]  # (task, method, seed, metric) -> value


def evaluate(
    library: Path,
    labels: list[Path],
    histories: list[Path],
    scores: list[Path],
    molecules: list[Path],
    progress: list[Path],
    vocabulary: list[Path],
    rows: Path,
    measures: Path,
    fragments: Path,
    *,
    settings: EvaluateSettings,
) -> None:
    """Write tidy rows, the measures of the claims, and the best fragments of each task."""
    source = Library.load(library)
    y = {path.stem: load_arrays(path)["y"] for path in labels}
    table = _read(molecules)
    first = _read(vocabulary)
    out: list[Row] = []
    values: Values = {}
    judged = _Judge(source, table["smiles"].unique())
    budget = _budget(table)
    for (task, method, seed), run in table.groupby(["dataset", "method", "seed"], sort=False):
        own = first[
            (first["dataset"] == task) & (first["method"] == method) & (first["seed"] == seed)
        ]
        initial = set(own.loc[own["calls"] == 0, "fragment"]) if len(own) else None
        if method.startswith("assembly/"):
            experiment, found = "vocabulary", _vocabulary_metrics(run, initial)
        else:
            experiment = "docking" if task in DOCKING_TARGETS else "generation"
            used = 0 if method in BASELINES else int((~np.isnan(y[task])).sum())
            found = judged.metrics(run, _threshold(task, y[task], settings), budget, initial)
            found |= {"labels_used": used, "calls": int(run["call"].max())}
            out += _curve(run, task, method, seed, budget)
        key = {"dataset": task, "method": method, "seed": int(seed)}
        for metric, value in found.items():
            out.append({"experiment": experiment, **key, "metric": metric, "value": value})
            values[(task, method, int(seed), metric)] = value
    out += _progress_rows(_read(progress)) + _fit_rows(histories)
    write_metrics(out, rows)
    write_measures(_measures(values), measures)
    write_csv(_best_fragments(scores), fragments)


def docking(
    library: Path,
    labels: list[Path],
    histories: list[Path],
    scores: list[Path],
    molecules: list[Path],
    progress: list[Path],
    vocabulary: list[Path],
    rows: Path,
    measures: Path,
    fragments: Path,
    *,
    settings: EvaluateSettings,
) -> None:
    """The same for docking targets; no claim of the laptop scale rests on them."""
    evaluate(
        library, labels, histories, scores, molecules, progress, vocabulary,
        rows, measures, fragments, settings=settings,
    )  # fmt: skip
    write_measures([], measures)


def _read(paths: list[Path]) -> pd.DataFrame:
    frames = [pd.read_csv(path) for path in paths]
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def _budget(table: pd.DataFrame) -> int:
    runs = table[~table["method"].str.startswith("assembly/")]
    return int(runs["call"].max())


def _threshold(task: str, y: np.ndarray, settings: EvaluateSettings) -> float:
    """The score of a hit: the library's quantile for MPO tasks; docking has its own measure."""
    return float(np.nanquantile(y, settings.hit_quantile))


class _Judge:
    """Novelty and fingerprints of all distinct molecules, made once."""

    def __init__(self, library: Library, smiles: np.ndarray):
        self._row = {text: k for k, text in enumerate(smiles)}
        self._fps = fingerprints(list(smiles))
        self._similar = largest_similarity(self._fps, fingerprints(list(library.smiles)))

    def metrics(
        self, run: pd.DataFrame, threshold: float, budget: int, initial: set[str] | None
    ) -> dict[str, float]:
        """All metrics of one run."""
        distinct = run.drop_duplicates("smiles").sort_values("call")
        where = np.array([self._row[text] for text in distinct["smiles"]])
        novel = self._similar[where] < _NOVEL
        scores = distinct["score"].to_numpy()
        task = str(run["dataset"].iloc[0])
        if task in DOCKING_TARGETS:
            mols = [Chem.MolFromSmiles(text) for text in distinct["smiles"]]
            q, sa = np.array([qed(mol) for mol in mols]), np.array([sa_score(mol) for mol in mols])
            able = (q > 0.5) & (sa < 5)
            # Y = DS/20 QED (10 - SA)/9 gives the docking score back where it was positive.
            ds = scores * 20 * 9 / np.maximum(q * (10 - sa), 1e-9)
            hit = able & (ds > HIT_THRESHOLDS[task])
        else:
            able = np.ones(len(distinct), bool)
            ds, hit = scores, scores >= threshold
        everything = np.array([self._row[text] for text in run["smiles"]])
        top = np.sort(scores)[::-1]
        found = {
            "auc_top100": auc_top_k(scores, _BEST, budget),
            "top100": float(top[:_BEST].mean()),
            "top10": float(top[:10].mean()),
            "novel_hit_ratio": novel_hit_ratio(
                distinct["smiles"].tolist(), scores, novel, hit, len(run)
            ),
            "novelty": float((self._similar[everything] < _NOVEL).mean()),
            "n_circles": n_circles(self._fps[where[hit]]),
            "uniqueness": uniqueness(run["smiles"].tolist()),
        }
        if (novel & able).any():
            found["novel_top5pct"] = novel_top_fraction(ds[novel & able], len(run))
        if initial:
            found["new_fragments_top100"] = _new_share(distinct, initial)
        return {name: value for name, value in found.items() if not np.isnan(value)}


def _new_share(distinct: pd.DataFrame, initial: set[str]) -> float:
    """Share of the distinct BRICS fragments of the 100 best that the first vocabulary lacks."""
    best = distinct.nlargest(_BEST, "score", keep="first")["smiles"]
    pieces = {fragment for text in best for fragment in brics_fragments(text)}
    return len(pieces - initial) / len(pieces) if pieces else 0.0


def _vocabulary_metrics(run: pd.DataFrame, initial: set[str] | None) -> dict[str, float]:
    distinct = run.drop_duplicates("smiles")
    sizes = [Chem.MolFromSmiles(fragment).GetNumHeavyAtoms() for fragment in initial or ()]
    return {
        "top100": float(distinct["score"].nlargest(_BEST).mean()),
        "mean_score": float(run["score"].mean()),
        "fragment_atoms": float(np.mean(sizes)),
    }


def _curve(run: pd.DataFrame, task: str, method: str, seed: int, budget: int) -> list[Row]:
    """Mean of the 100 best against calls."""
    scores = run.drop_duplicates("smiles").sort_values("call")["score"].to_numpy()
    calls, means = top_k_curve(scores, _BEST, budget, max(1, budget // 20))
    key = {"experiment": "curves", "dataset": task, "method": method, "seed": int(seed)}
    return [
        {**key, "metric": "top100", "x": int(x), "value": float(value)}
        for x, value in zip(calls, means, strict=True)
    ]


def _progress_rows(progress: pd.DataFrame) -> list[Row]:
    """What the runs logged: scores of assembled molecules, entropy, vocabulary; validity."""
    out: list[Row] = []
    names = ("mean_score_assembled", "entropy", "episode_length", "vocabulary", "new_fragments")
    for (task, method, seed), run in progress.groupby(["dataset", "method", "seed"], sort=False):
        key = {"dataset": task, "method": method, "seed": int(seed)}
        if method == "reinvent":
            share = float(np.average(run["validity"], weights=run["strings"]))
            experiment = "docking" if task in DOCKING_TARGETS else "generation"
            out.append({"experiment": experiment, **key, "metric": "validity", "value": share})
            continue
        if method.startswith("assembly/"):
            continue
        for name in names:
            for x, value in zip(run["calls"], run[name], strict=True):
                if not np.isnan(value):
                    row = {"experiment": "progress", **key, "metric": name}
                    out.append({**row, "x": int(x), "value": float(value)})
        phases = run[run["phase"] == "sac"]
        for label, part in (("random", run[run["phase"] == "random"]), ("last", phases[-6:])):
            mean = part["mean_score_assembled"].mean()
            if not np.isnan(mean):
                metric = f"mean_score_{label}"
                out.append({"experiment": "learning", **key, "metric": metric, "value": mean})
    # A curve's point may be logged twice where a batch had no new call: the later one counts.
    seen = {(r["experiment"], r["dataset"], r["method"], r["seed"], r["metric"], r.get("x")): r
            for r in out}  # fmt: skip
    return list(seen.values())


def _fit_rows(histories: list[Path]) -> list[Row]:
    """The bottleneck's squared error over the variance of the property."""
    return [
        {"experiment": "vocabulary", "dataset": path.parent.name, "method": "fgib_fit",
         "seed": int(row.seed), "metric": "error_ratio", "value": row.error_ratio}
        for path in histories
        for row in pd.read_csv(path).itertuples()
    ]  # fmt: skip


def _best_fragments(scores: list[Path]) -> pd.DataFrame:
    """The best fragments of each task's first seed."""
    frames = []
    for path in scores:
        frame = pd.read_csv(path)
        frame = frame[frame["seed"] == frame["seed"].min()].nlargest(_DRAWN, "fgib", keep="first")
        frames.append(frame[["fragment", "fgib"]].assign(dataset=path.parent.name))
    return pd.concat(frames).drop_duplicates(["dataset", "fragment"])


def _measures(values: Mapping[tuple[str, str, int, str], float]) -> list[Row]:
    """The claims' measures, one a seed."""
    tasks = list(dict.fromkeys(key[0] for key in values if key[0] not in DOCKING_TARGETS))
    seeds = sorted({key[2] for key in values})
    found: list[Row] = []

    def difference(check: str, metric: str, first: str, second: str) -> None:
        for seed in seeds:
            pairs = [
                (values.get((task, first, seed, metric)), values.get((task, second, seed, metric)))
                for task in tasks
            ]
            if pairs and all(None not in pair for pair in pairs):
                value = float(np.mean([a - b for a, b in pairs]))
                found.append({"check": check, "seed": seed, "value": value})

    difference("geam-1", "top100", "assembly/fgib", "assembly/random")
    difference("geam-2a", "top100", "assembly/fgib", "assembly/property")
    difference("geam-2b", "top100", "assembly/fgib", "assembly/property_size")
    gaps = _gaps(values, tasks, seeds)
    for seed, gap in gaps.items():
        found.append({"check": "geam-3", "seed": seed, "value": gap[0]})
    difference("geam-4a", "new_fragments_top100", "geam", "geam_wo_modification")
    difference("geam-4b", "novel_hit_ratio", "geam", "geam_wo_modification")
    difference("geam-5a", "novelty", "geam", "geam_static")
    difference("geam-5b", "n_circles", "geam", "geam_static")
    difference("geam-5c", "auc_top100", "geam", "geam_static")
    for seed, gap in gaps.items():
        found.append({"check": "geam-6", "seed": seed, "value": gap[1]})
    return found


def _gaps(values: Mapping, tasks: list[str], seeds: list[int]) -> dict[int, tuple[float, float]]:
    """By seed: GEAM's novel hit ratio minus that of the best baseline, mean and median over tasks.

    The mean compares with the baseline that is best on average; the median with the best of each
    task, so that it is above 0 where GEAM is best on more than half of the tasks.
    """
    gaps = {}
    for seed in seeds:
        own = [values.get((task, "geam", seed, "novel_hit_ratio")) for task in tasks]
        others = [
            [values.get((task, method, seed, "novel_hit_ratio")) for task in tasks]
            for method in BASELINES
        ]
        others = [row for row in others if None not in row]
        if None in own or not others:
            continue
        ratios = np.array(others)
        mean = float(np.mean(own) - ratios.mean(1).max())
        gaps[seed] = (mean, float(np.median(np.array(own) - ratios.max(0))))
    return gaps
