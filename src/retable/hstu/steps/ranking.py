"""The generative ranker and the impression-level DLRM on the same events (section 4.2)."""

import logging
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.common.training import minibatches
from retable.common.training import train as run_training
from retable.hstu.config import RankingSettings
from retable.hstu.data import Split, leave_last, unpack_sequences
from retable.hstu.impressions import (
    FEATURES,
    Impressions,
    Windows,
    impressions,
    last_slots,
    pad_windows,
    training_windows,
)
from retable.hstu.models import DLRM, DLRMConfig, GRRanker, GRRankerConfig
from retable.hstu.runs import device, save_runs

logger = logging.getLogger("retable")
EVALUATION_BATCH = 4096


def ranking(
    sequences: Path,
    model: Path,
    history: Path,
    *,
    dataset: str,
    seeds: Seeds,
    settings: RankingSettings,
    checkpoints: Checkpoints,
) -> None:
    """Train both rankers; keep the epoch with the smallest validation log loss.

    Both see every training event as a target once an epoch: the generative ranker in windows of
    events, one causal pass each, the DLRM one impression at a time.
    """
    arrays = load_arrays(sequences)
    n_items = len(arrays["item_id_map"])
    split = leave_last(unpack_sequences(arrays), settings.n_valid, settings.n_test)
    n_actions = int(max(seq.ratings.max() for seq in split.test))
    counts = training_counts(split, n_items)
    kept, rows = {}, []
    for seed in seeds:
        torch.manual_seed(seed)
        ranker = build_ranker(settings, n_items, n_actions)
        windows = pad_windows(training_windows(split.train, settings.max_events))
        valid = pad_windows([seq[-settings.max_events - 1 :] for seq in split.valid])

        def ranker_loss(net, batch, windows=windows):
            part = Windows(
                *(getattr(windows, n)[batch.cpu()].to(batch.device) for n in WINDOW_COLUMNS)
            )
            logits = net(part.ids, part.actions, part.timestamps)
            labels = (part.actions >= settings.positive_rating).float()
            seen = part.ids != 0
            return F.binary_cross_entropy_with_logits(logits[seen], labels[seen])

        def ranker_valid(_, ranker=ranker, valid=valid):
            logits, labels = score_windows(ranker, valid, settings.n_valid, settings)
            return {"score": -F.binary_cross_entropy_with_logits(logits, labels).item()}

        torch.manual_seed(seed)
        dlrm = build_dlrm(settings, n_items, len(split.train))
        shown = impressions(
            split.train, None, settings.max_events, settings.positive_rating, counts
        )
        held = impressions(
            split.valid, settings.n_valid, settings.max_events, settings.positive_rating, counts
        )

        def dlrm_loss(net, batch, shown=shown):
            index = batch.cpu()
            users, items, liked, features, labels = (
                getattr(shown, n)[index].to(batch.device) for n in IMPRESSION_COLUMNS
            )
            return F.binary_cross_entropy_with_logits(net(users, items, liked, features), labels)

        def dlrm_valid(_, dlrm=dlrm, held=held):
            logits = score_impressions(dlrm, held)
            return {"score": -F.binary_cross_entropy_with_logits(logits, held.labels).item()}

        for method, net, loss, after, count, size, epochs in (
            (
                *("gr", ranker, ranker_loss, ranker_valid, len(windows)),
                *(settings.ranker_batch_size, settings.ranker_epochs),
            ),
            (
                *("dlrm", dlrm, dlrm_loss, dlrm_valid, len(shown)),
                *(settings.dlrm_batch_size, settings.dlrm_epochs),
            ),
        ):
            torch.manual_seed(seed)
            trained = run_training(
                net,
                torch.optim.AdamW(net.parameters(), lr=settings.lr, weight_decay=0.0),
                loss,
                minibatches(count, size, seed),
                epochs=epochs,
                after_epoch=after,
                best="score",
                checkpoints=checkpoints,
                name=f"{method}-seed{seed}",
            )
            logger.info("%s, seed %d: best epoch %d", method, seed, trained.best_epoch)
            kept[f"{method}/{seed}"] = trained.best_state
            rows += [
                {
                    "experiment": "ranking",
                    "dataset": dataset,
                    "method": method,
                    "seed": seed,
                    "metric": "validation log loss",
                    "x": row["epoch"],
                    "value": -row["score"],
                }
                for row in trained.history
            ]
    about = {"n_items": n_items, "n_actions": n_actions, "n_users": len(split.train)}
    save_runs(model, kept, about | {"settings": settings.model_dump(mode="json")})
    write_metrics(rows, history)


WINDOW_COLUMNS = ("ids", "actions", "timestamps")
IMPRESSION_COLUMNS = ("users", "items", "liked", "features", "labels")


def training_counts(split: Split, n_items: int) -> np.ndarray:
    """Training events of every item, (V,)."""
    items = np.concatenate([seq.items for seq in split.train])
    return np.bincount(items - 1, minlength=n_items)


def build_ranker(settings: RankingSettings, n_items: int, n_actions: int) -> GRRanker:
    """The generative ranker of the settings."""
    width = settings.d_model // settings.n_heads
    return GRRanker(
        GRRankerConfig(
            n_items,
            n_actions,
            settings.max_events,
            settings.d_model,
            settings.n_blocks,
            settings.n_heads,
            width,
            width,
            settings.dropout,
        )
    )


def build_dlrm(settings: RankingSettings, n_items: int, n_users: int) -> DLRM:
    """The DLRM of the settings."""
    return DLRM(
        DLRMConfig(
            n_users, n_items, FEATURES, settings.d_embedding, settings.hidden, settings.dropout
        )
    )


@torch.no_grad()
def score_windows(
    ranker: GRRanker, windows: Windows, n_targets: int, settings: RankingSettings
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and labels of every window's last events, from one causal pass, users in order."""
    with _evaluating(ranker) as place:
        chosen = last_slots(windows, n_targets)
        logits = torch.cat(
            [
                ranker(*(getattr(windows, n)[rows].to(place) for n in WINDOW_COLUMNS)).cpu()
                for rows in torch.arange(len(windows)).split(128)
            ]
        )
    labels = (windows.actions >= settings.positive_rating).float()
    return logits[chosen], labels[chosen]


@torch.no_grad()
def score_impressions(dlrm: DLRM, cases: Impressions) -> torch.Tensor:
    """Logits of all impressions, in order."""
    with _evaluating(dlrm) as place:
        return torch.cat(
            [
                dlrm(*(getattr(cases, n)[rows].to(place) for n in IMPRESSION_COLUMNS[:-1])).cpu()
                for rows in torch.arange(len(cases)).split(EVALUATION_BATCH)
            ]
        )


class _evaluating:
    """Put a network into eval mode on the evaluation device, and back into its mode after."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net

    def __enter__(self) -> torch.device:
        self.mode = self.net.training
        self.net.eval().to(device())
        return device()

    def __exit__(self, *_: object) -> None:
        self.net.train(self.mode)
