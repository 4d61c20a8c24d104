"""Retrieval models on public data: next-item prediction at every slot (section 4.1.2)."""

import logging
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.common.training import minibatches
from retable.common.training import train as run_training
from retable.hstu.config import TrainSettings
from retable.hstu.data import Sequence, collate, leave_last, unpack_sequences
from retable.hstu.evaluation import held_out_ranks
from retable.hstu.losses import sampled_softmax
from retable.hstu.metrics import ndcg
from retable.hstu.runs import build_encoder, device, save_runs
from retable.hstu.sampling import stochastic_length

logger = logging.getLogger("retable")


class TrainingSet:
    """Index batches of users, and the events that Stochastic Length leaves of them this epoch."""

    def __init__(
        self, seqs: list[Sequence], n_events: int, batch_size: int, alpha: float, seed: int
    ) -> None:
        self.whole = [seq[-n_events:] for seq in seqs]
        self.longest = max(map(len, self.whole))
        self.alpha, self.seed = alpha, seed
        self.order = minibatches(len(seqs), batch_size, seed)
        self.current = self.whole

    def __call__(self, epoch: int) -> list[Tensor]:
        """The epoch's batches; draws its subsequences, which depend on seed and epoch alone."""
        if self.alpha < 2:
            (mixed,) = np.random.SeedSequence((self.seed, epoch, 1)).generate_state(1)
            generator = torch.Generator().manual_seed(int(mixed))
            self.current = [self._shortened(seq, generator) for seq in self.whole]
        return self.order(epoch)

    def _shortened(self, seq: Sequence, generator: torch.Generator) -> Sequence:
        kept = stochastic_length(
            torch.from_numpy(seq.timestamps), self.longest, self.alpha, generator=generator
        )
        return seq[kept.numpy()]


def train(
    sequences: Path,
    model: Path,
    history: Path,
    *,
    experiment: str,
    dataset: str,
    seeds: Seeds,
    settings: TrainSettings,
    checkpoints: Checkpoints,
) -> None:
    """Train the job's methods; keep the epoch with the best validation NDCG@10.

    Writes the weights of every method and seed, and each epoch's loss and validation NDCG@10.
    """
    torch.backends.cuda.matmul.allow_tf32 = settings.tf32
    arrays = load_arrays(sequences)
    n_items = len(arrays["item_id_map"])
    split = leave_last(unpack_sequences(arrays), settings.n_valid, settings.n_test)
    kept, rows = {}, []
    for method, sizes in settings.methods.items():
        for seed in seeds:
            torch.manual_seed(seed)
            encoder = build_encoder(sizes, n_items, settings.max_len + settings.spare_len)
            data = TrainingSet(
                split.train,
                settings.max_len + 1,
                settings.batch_size,
                settings.alphas.get(method, 2.0),
                seed,
            )

            def loss(net, users, data=data):
                # Users are few numbers; their events are put together here, on their device.
                part = [data.current[i] for i in users.tolist()]
                batch = collate(part, settings.max_len).trimmed().to(users.device)
                states, items = net(batch.ids, batch.timestamps, batch.target_timestamps)
                valid = batch.target_ids != 0
                return sampled_softmax(
                    states[valid],
                    batch.target_ids[valid] - 1,
                    items,
                    settings.optimizer.n_negatives,
                    settings.optimizer.temperature,
                )

            def validate(epoch, encoder=encoder):
                ranks = held_out_ranks(
                    encoder, split.valid, settings.n_valid, settings.max_len, device=device()
                )
                return {"ndcg": ndcg(torch.from_numpy(ranks), 10)}

            trained = run_training(
                encoder,
                torch.optim.AdamW(
                    encoder.parameters(),
                    lr=settings.optimizer.lr,
                    betas=settings.optimizer.betas,
                    weight_decay=0.0,
                ),
                loss,
                data,
                epochs=settings.epochs,
                after_epoch=validate,
                best="ndcg",
                checkpoints=checkpoints,
                name=f"{method}-seed{seed}",
            )
            logger.info("%s, seed %d: best epoch %d", method, seed, trained.best_epoch)
            kept[f"{method}/{seed}"] = trained.best_state
            rows += [
                {
                    "experiment": experiment,
                    "dataset": dataset,
                    "method": method,
                    "seed": seed,
                    "metric": metric,
                    "x": row["epoch"],
                    "value": row[key],
                }
                for row in trained.history
                for metric, key in (("training loss", "loss"), ("validation NDCG@10", "ndcg"))
            ]
    save_runs(model, kept, {"n_items": n_items, **settings.model_dump(mode="json")})
    write_metrics(rows, history)
