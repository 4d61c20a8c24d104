"""Encoders on the synthetic stream, one pass in order (section 4.1.1 and figure 7's question)."""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import save_arrays
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.common.training import train as run_training
from retable.hstu.config import StreamSettings
from retable.hstu.cost import attention_flops, training_flops
from retable.hstu.losses import full_softmax, sampled_softmax
from retable.hstu.metrics import target_rank
from retable.hstu.models import SequenceEncoder
from retable.hstu.runs import build_encoder, device, save_runs
from retable.hstu.synthetic import DirichletStream

TEST_BATCH = 64


def stream(
    model: Path,
    ranks: Path,
    curve: Path,
    *,
    experiment: str,
    seeds: Seeds,
    settings: StreamSettings,
    checkpoints: Checkpoints,
) -> None:
    """Train the job's methods once over the stream of each seed and test them on its last tenth.

    Writes the weights, the ranks of the test targets (records, slots), and a curve over training
    compute (x, floating-point operations): test loss minus the oracle's, in nats, full softmax.
    The oracle's own loss and hit rates stand there too.
    """
    kept, ranked, rows = {}, {}, []
    for seed in seeds:
        source = DirichletStream(
            settings.n_items,
            settings.n_categories,
            settings.n_records,
            settings.length,
            settings.alpha,
            initial_fraction=settings.initial_fraction,
            seed=seed,
        )
        oracle = {
            "HR@10": source.oracle_hit_rate(10),
            "HR@50": source.oracle_hit_rate(50),
            "NDCG@10": source.oracle_ndcg(10),
            "loss": source.oracle_loss(),
            "guess": math.log(settings.n_items),
        }
        rows += [_row(experiment, "oracle", seed, metric, v) for metric, v in oracle.items()]
        for method, sizes in settings.methods.items():
            torch.manual_seed(seed)
            encoder = build_encoder(sizes, settings.n_items, settings.length)
            segments = _segments(source, settings)

            def loss(net, batch):
                ids, available = batch
                states, items = net(ids[:, :-1])
                # Records are never padded: every slot but the last has a next item.
                return sampled_softmax(
                    states.flatten(0, 1),
                    ids[:, 1:].flatten() - 1,
                    items,
                    settings.optimizer.n_negatives,
                    settings.optimizer.temperature,
                    candidates=torch.arange(int(available), device=ids.device),
                )

            trained = run_training(
                encoder,
                torch.optim.AdamW(
                    encoder.parameters(),
                    lr=settings.optimizer.lr,
                    betas=settings.optimizer.betas,
                    weight_decay=0.0,
                ),
                loss,
                segments.__getitem__,
                epochs=len(segments),
                after_epoch=lambda _, net=encoder, source=source: {
                    "test": _test(net, source, settings)[0]
                },
                checkpoints=checkpoints,
                name=f"{method}-seed{seed}",
            )
            records = np.cumsum([sum(len(ids) for ids, _ in part) for part in segments])
            rows += [
                _row(
                    experiment,
                    method,
                    seed,
                    "excess loss",
                    past["test"] - oracle["loss"],
                    _flops(encoder, sizes, int(n), settings),
                )
                for n, past in zip(records, trained.history, strict=True)
            ]
            kept[f"{method}/{seed}"] = encoder.state_dict()
            ranked[f"{method}/{seed}"] = _test(encoder, source, settings)[1]
    save_runs(model, kept, settings.model_dump(mode="json"))
    save_arrays(ranks, ranked)
    write_metrics(rows, curve)


def _row(experiment, method, seed, metric, value, x=None):
    return {
        "experiment": experiment,
        "dataset": "dirichlet",
        "method": method,
        "seed": seed,
        "metric": metric,
        "x": x,
        "value": value,
    }


def _segments(
    source: DirichletStream, settings: StreamSettings
) -> list[list[tuple[Tensor, Tensor]]]:
    """The training part of the stream in order, cut at log-spaced points where it is tested.

    Each batch carries the largest id on offer at its last record: negatives come from there.
    """
    n = source.first_test_record
    if settings.max_tokens is not None:
        n = min(n, settings.max_tokens // settings.length)
    starts = np.arange(0, n, settings.batch_size)
    batches = [
        (
            torch.from_numpy(source.records[start : min(start + settings.batch_size, n)]),
            torch.tensor(source.available(min(start + settings.batch_size, n) - 1)),
        )
        for start in starts
    ]
    # From a fiftieth of the pass on; before that all models still guess.
    share = np.geomspace(0.02, 1, settings.checkpoints) if settings.checkpoints > 1 else [1.0]
    ends = np.unique(np.maximum(1, np.round(np.asarray(share) * len(batches))).astype(int))
    return [batches[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]


@torch.no_grad()
def _test(
    encoder: SequenceEncoder, source: DirichletStream, settings: StreamSettings
) -> tuple[float, np.ndarray]:
    """Mean full-softmax loss in nats and ranks of all test targets; all V items compete."""
    was_training = encoder.training
    encoder.eval()
    place = device()
    encoder.to(place)
    slots = torch.from_numpy(np.flatnonzero(source.test_slots)).to(place)
    items = encoder.item_vectors()
    losses, ranks = [], []
    for part in torch.from_numpy(source.records[source.first_test_record :]).split(TEST_BATCH):
        part = part.to(place)
        states = encoder.encode(part[:, :-1])[:, slots - 1].flatten(0, 1)
        target = part[:, slots].flatten() - 1
        value = full_softmax(states, target, items, settings.optimizer.temperature)
        losses.append(value.item() * len(part))
        ranks.append(target_rank(states @ items.T, target).view(len(part), -1).cpu())
    encoder.train(was_training)
    return sum(losses) / sum(map(len, ranks)), torch.cat(ranks).numpy()


def _flops(encoder, sizes, records: int, settings: StreamSettings) -> int:
    """Operations of training on so many records: 6 (weights + d V) a token, and attention."""
    tables = (encoder.item_embedding.weight.numel(), encoder.position.numel())
    weights = sum(p.numel() for p in encoder.parameters()) - sum(tables)
    tokens = records * (settings.length - 1)
    width_qk = sizes.d_qk if sizes.kind == "hstu" else sizes.d_model // sizes.n_heads
    width_v = sizes.d_v if sizes.kind == "hstu" else sizes.d_model // sizes.n_heads
    attention = (
        records
        * sizes.n_blocks
        * attention_flops(settings.length - 1, sizes.n_heads, width_qk, width_v)
    )
    return training_flops(weights + sizes.d_model * settings.n_items, tokens, attention)
