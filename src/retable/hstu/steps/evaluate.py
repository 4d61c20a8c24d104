"""Held-out ranks, ranking quality and exactness checks on one data set (tables 4 and 5)."""

from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.metrics import write_measures, write_metrics
from retable.hstu.config import EvaluateSettings, RankingSettings
from retable.hstu.data import Sequence, Split, collate, leave_last, unpack_sequences
from retable.hstu.evaluation import held_out_ranks
from retable.hstu.impressions import impressions, pad_windows
from retable.hstu.inference import History, m_falcon
from retable.hstu.metrics import hit_rate, ndcg, ndcg_gains, normalized_entropy
from retable.hstu.models import Popularity, PopularityConfig, SequenceEncoder
from retable.hstu.runs import device, load_encoder, load_runs
from retable.hstu.sampling import sparsity, stochastic_length
from retable.hstu.steps.ranking import (
    build_dlrm,
    build_ranker,
    score_impressions,
    score_windows,
    training_counts,
)
from retable.hstu.steps.speed import score_one_by_one


def evaluate(
    sequences: Path,
    models: list[Path],
    rankers: list[Path],
    users: Path,
    rows: Path,
    checks: Path,
    *,
    dataset: str,
    settings: EvaluateSettings,
) -> None:
    """Test every trained model of the data set.

    Writes users (per run the ranks, and per user the mean NDCG@10 and HR@10 gains), tidy rows,
    and the measures of the checks that are exact.
    """
    arrays = load_arrays(sequences)
    seqs = unpack_sequences(arrays)
    n_items = len(arrays["item_id_map"])
    found: list[dict] = []
    per_user: dict[str, np.ndarray] = {}
    exact: list[dict] = []

    def note(experiment: str, method: str, seed: int | None, ranks: np.ndarray) -> None:
        run = f"{experiment}/{method}/{seed}"
        hits = (ranks <= 10).mean(1)
        gains = ndcg_gains(torch.from_numpy(ranks), 10).mean(1).numpy()
        per_user.update({f"{run}/ranks": ranks, f"{run}/HR@10": hits, f"{run}/NDCG@10": gains})
        for suffix, part in (("", ranks), (" (last event)", ranks[:, -1:])):
            if suffix and ranks.shape[1] == 1:
                continue
            values = {
                f"{name}@{k}{suffix}": metric(torch.from_numpy(part), k)
                for name, metric in (("HR", hit_rate), ("NDCG", ndcg))
                for k in settings.ks
            }
            found.extend(_rows(experiment, dataset, method, seed, values))

    for path in models:
        runs, about = load_runs(path)
        split = leave_last(seqs, about["n_valid"], about["n_test"])
        experiment = path.parts[-4]
        for run, state in runs.items():
            method, seed = run.split("/")
            model = load_encoder(
                state,
                about["methods"][method],
                n_items,
                about["max_len"] + about["spare_len"],
            ).to(device())
            ranks = _ranks(model, split, about, settings)
            note(experiment, method, int(seed), ranks)
            if experiment == "public" and method == "hstu" and not exact:
                exact.append(_one_pass_difference(model, split.test, about["max_len"]))
    # Popularity needs no training run: it counts the training events of the public split.
    popular = Popularity(PopularityConfig(n_items)).fit(
        torch.from_numpy(np.concatenate([seq.items for seq in split.train]))
    )
    note("public", "popularity", None, _ranks(popular, split, about, settings))

    for path in rankers:
        metrics, check = _ranking(path, seqs, with_check=not any(
            c["check"] == "hstu-10a" for c in exact
        ))  # fmt: skip
        exact += check
        for (method, seed), values in metrics.items():
            found += _rows("ranking", dataset, method, seed, values)

    lengths = np.array([len(seq) for seq in seqs])
    for alpha in settings.sparsity_alphas:
        expected, drawn = sparsity(lengths, alpha), _drawn_sparsity(seqs, alpha, settings)
        values = {f"{kind} sparsity (%)": 100 * expected[kind] for kind in expected}
        found += _rows("sl", dataset, f"lengths-alpha{alpha}", None, values)
        if alpha == settings.sparsity_alphas[0]:
            worst = max(abs(100 * (drawn[kind] - expected[kind])) for kind in expected)
            exact.append({"check": "hstu-9a", "value": worst, "n": 1})
    save_arrays(users, per_user)
    write_metrics(found, rows)
    write_measures(exact, checks)


def _rows(experiment, dataset, method, seed, values):
    return [
        {
            "experiment": experiment,
            "dataset": dataset,
            "method": method,
            "seed": seed,
            "metric": metric,
            "value": value,
        }
        for metric, value in values.items()
    ]


def _ranks(model: SequenceEncoder | Popularity, split: Split, about, settings) -> np.ndarray:
    return held_out_ranks(
        model,
        split.test,
        split.n_test,
        about["max_len"],
        settings.batch_size,
        device() if isinstance(model, SequenceEncoder) else "cpu",
    )


@torch.no_grad()
def _one_pass_difference(model: SequenceEncoder, seqs: list[Sequence], max_len: int) -> dict:
    """Largest difference between one causal pass and a pass for every prefix, one user."""
    model.cpu()
    batch = collate([max(seqs, key=len)], max_len)
    args = (batch.ids, batch.timestamps, batch.target_timestamps)
    whole = model.encode(*args)[0]
    prefixes = torch.stack(
        [model.encode(*(x[:, : n + 1] for x in args))[0, n] for n in range(len(whole))]
    )
    return {"check": "hstu-1a", "value": (whole - prefixes).abs().max().item(), "n": 1}


def _ranking(path: Path, seqs: list[Sequence], with_check: bool):
    """NE and AUC of both rankers on the test events, and M-FALCON's difference on the first."""
    runs, about = load_runs(path)
    settings = RankingSettings.model_validate(about["settings"])
    split = leave_last(seqs, settings.n_valid, settings.n_test)
    shown = np.concatenate([seq.ratings for seq in split.train]) >= settings.positive_rating
    windows = pad_windows([seq[-settings.max_events - 1 :] for seq in split.test])
    cases = impressions(
        split.test,
        settings.n_test,
        settings.max_events,
        settings.positive_rating,
        training_counts(split, about["n_items"]),
    )
    metrics, check = {}, []
    for run, state in runs.items():
        method, seed = run.split("/")
        if method == "gr":
            net = build_ranker(settings, about["n_items"], about["n_actions"])
            net.load_state_dict(state)
            logits, labels = score_windows(net.eval(), windows, settings.n_test, settings)
            if with_check and not check:
                check.append(_m_falcon_difference(net.cpu(), split.test, settings))
        else:
            net = build_dlrm(settings, about["n_items"], about["n_users"])
            net.load_state_dict(state)
            logits, labels = score_impressions(net.eval(), cases), cases.labels
        metrics[method, int(seed)] = {
            "NE": normalized_entropy(logits, labels, float(shown.mean())),
            "AUC": float(roc_auc_score(labels.numpy(), logits.numpy())),
        }
    return metrics, check


@torch.no_grad()
def _m_falcon_difference(net, seqs: list[Sequence], settings: RankingSettings) -> dict:
    """Largest difference of logits between M-FALCON and one pass a candidate, one user."""
    seq = max(seqs, key=len)
    past = seq[-settings.max_events - 1 : -1]
    history = History(
        torch.from_numpy(past.items),
        torch.from_numpy(past.ratings).long(),
        torch.from_numpy(past.timestamps),
        int(seq.timestamps[-1]),
    )
    wanted = torch.arange(1, min(settings.candidates, net.n_items) + 1)
    once = m_falcon(net, history, wanted, settings.microbatch)
    difference = (once - score_one_by_one(net, history, wanted)).abs().max().item()
    return {"check": "hstu-10a", "value": difference, "n": 1}


def _drawn_sparsity(
    seqs: list[Sequence], alpha: float, settings: EvaluateSettings
) -> dict[str, float]:
    """Token and attention sparsity of simulated draws over all users."""
    generator = torch.Generator().manual_seed(0)
    times = [torch.from_numpy(seq.timestamps) for seq in seqs]
    lengths = np.array([len(t) for t in times])
    kept = np.array(
        [
            [
                len(stochastic_length(t, int(lengths.max()), alpha, generator=generator))
                for t in times
            ]
            for _ in range(settings.sparsity_draws)
        ]
    )
    return {
        "token": 1 - kept.sum(1).mean() / lengths.sum(),
        "attention": 1 - (kept**2).sum(1).mean() / (lengths**2).sum(),
    }
