"""Decode the test split with every decoder, and measure the collapse of the trained networks."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState
from scipy.special import expit, softmax

from retable.common.data.arrays import save_arrays
from retable.common.metrics import write_metrics
from retable.mlabnc.config import EvaluateSettings
from retable.mlabnc.data import MLabArrays
from retable.mlabnc.decode import OneNearestLabelSet, threshold_decode, tune_threshold
from retable.mlabnc.evaluate import exact_match, micro_f1, multiplicity_f1, set_iou, soft_iou
from retable.mlabnc.metrics import group_angle_ratio, label_set_means, nc_metrics, tag_average
from retable.mlabnc.models import count_trainable
from retable.mlabnc.networks import load_network
from retable.mlabnc.prepared import load_prepared
from retable.mlabnc.train import Normalise, outputs

_SET_METRICS = (exact_match, set_iou, micro_f1, multiplicity_f1)
# Decoder name -> prototypes and metric of the nearest-prototype decoder.
_NEAREST = {
    "onn": ("empirical", "cosine"),
    "onn-euclidean": ("empirical", "euclidean"),
    "onn-tagwise": ("tagwise", "cosine"),
}


def evaluate(
    data: list[Path],
    models: list[Path],
    rows: Path,
    cosines: Path,
    *,
    dataset: str,
    settings: EvaluateSettings,
) -> None:
    """Write tidy rows of all methods and seeds of one data set.

    Files are `.../<dataset>/data_s<seed>.npz` and `.../<dataset>/<method>/s<seed>.safetensors`.
    `cosines` gets, for each method's first seed, the cosines between the centred means of all label
    sets, and the sets.
    """
    splits_of = {_seed(path): load_prepared(path) for path in data}
    found, pictures = [], {}
    for path in models:
        method, seed = path.parent.name, _seed(path)
        splits = splits_of[seed]
        model, trained_with = load_network(path, splits["train"])
        model.to(PartialState().device)
        passed = {name: _outputs(model, split) for name, split in splits.items()}
        _, features = passed["train"]
        targets = splits["train"].y
        key = {"dataset": dataset, "seed": seed}
        measured = {
            ("collapse", method): _collapse(features, targets, model, trained_with.fixed_etf),
            ("size", method): {"trainable_parameters": count_trainable(model)},
        }
        score = expit if trained_with.loss == "bce" else lambda z: softmax(z, axis=1)
        for decoder, values in _decoded(passed, splits, score, settings):
            measured["test", f"{method}/{decoder}"] = values
        if trained_with.loss == "pal":
            logits, _ = passed["test"]
            measured["test", method] = {"soft_iou": soft_iou(logits, splits["test"].y)}
        found += [
            {"experiment": experiment, "method": name, "metric": metric, "value": value} | key
            for (experiment, name), values in measured.items()
            for metric, value in values.items()
        ]
        if f"{method}_sets" not in pictures:
            pictures |= _picture(method, features, targets)
    write_metrics(found, rows)
    save_arrays(cosines, pictures)


def _seed(path: Path) -> int:
    return int(path.stem.rpartition("s")[2])


def _outputs(model, split: MLabArrays) -> tuple[np.ndarray, np.ndarray]:
    x = torch.from_numpy(split.x).to(PartialState().device)
    return outputs(model, x, Normalise(split))


def _collapse(features, targets, model, fixed_etf: bool) -> dict[str, float]:
    """Collapse of the training features; with a frozen frame nc2_w is zero by construction."""
    weight = model.head.weight
    values = nc_metrics(features, targets, weight)
    raw = nc_metrics(features, targets, weight, center=False)
    values |= {f"{name}_raw": raw[name] for name in ("nc2_h", "nc3", "angle_deg", "angle_ratio")}
    if fixed_etf:
        del values["nc2_w"]
    means = label_set_means(features, targets)
    counts = {s: n for s, n in zip(means.sets, means.counts.tolist(), strict=True) if len(s) == 2}
    if len(set(counts.values())) > 1:
        tags = tag_average(features, targets)
        for count in sorted(set(counts.values()), reverse=True):
            group = [labels for labels, n in counts.items() if n == count]
            values[f"angle_ratio_of_{count}"] = group_angle_ratio(tags, group)
    return values


def _decoded(passed, splits, score, settings) -> Iterator[tuple[str, dict[str, float]]]:
    """Quality of each decoder on the test split; theta is chosen on the validation split."""
    (_, train_features), (test_logits, test_features) = passed["train"], passed["test"]
    train_targets, test_targets = splits["train"].y, splits["test"].y
    grid = np.arange(1, settings.thresholds + 1) / (settings.thresholds + 1)
    theta = tune_threshold(score(passed["validation"][0]), splits["validation"].y, grid)
    predicted = threshold_decode(score(test_logits), theta)
    yield "threshold", _quality(predicted, test_targets) | {"theta": theta}
    multiplicities = sorted(set(train_targets.sum(axis=1).tolist()))
    for name, (prototypes, metric) in _NEAREST.items():
        decoder = OneNearestLabelSet(prototypes, metric, multiplicities)
        predicted = decoder.fit(train_features, train_targets).predict(test_features)
        yield name, _quality(predicted, test_targets)


def _quality(predicted: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    return {metric.__name__: metric(predicted, targets) for metric in _SET_METRICS}


def _picture(method: str, features: np.ndarray, targets: np.ndarray) -> dict[str, np.ndarray]:
    means = label_set_means(features, targets)
    centred = means.means - means.means[: targets.shape[1]].mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    sets = np.zeros((len(means.sets), targets.shape[1]), dtype=np.uint8)
    for row, labels in enumerate(means.sets):
        sets[row, list(labels)] = 1
    return {f"{method}_cosines": unit @ unit.T, f"{method}_sets": sets}
