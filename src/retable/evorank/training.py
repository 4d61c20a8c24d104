"""Training of one objective, and of the reference that sees experimental scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import huber_loss

from retable.common.checkpoints import Checkpoints
from retable.common.training import minibatches
from retable.common.training import train as run_training
from retable.evorank.config import FinetuneSettings, TrainSettings
from retable.evorank.losses import evorank_loss, soft_label_loss, wildtype_loss
from retable.evorank.model import EnvironmentEncoder, MutationHead, MutationScorer, ResidueHead
from retable.evorank.structure import Environments


@dataclass(frozen=True)
class Positions:
    """Positions to train on: environments of N residues, wild type (N,), distribution p (N, 20)."""

    environments: Environments
    wildtype: Tensor
    p: Tensor


def new_scorer(settings: TrainSettings, seed: int) -> MutationScorer:
    """A network of a method; the encoder's initial weights depend on the seed alone."""
    torch.manual_seed(seed)
    encoder = EnvironmentEncoder(settings.encoder)
    head = MutationHead if settings.method.objective == "evorank" else ResidueHead
    return MutationScorer(encoder, head(settings.encoder.width), settings.method.environment)


def train_scorer(
    positions: Positions,
    settings: TrainSettings,
    seed: int,
    *,
    checkpoints: Checkpoints | None = None,
    name: str = "",
) -> tuple[MutationScorer, list[dict]]:
    """Train a network on one objective; return it on the CPU in evaluation mode, and its history.

    All objectives have the same data, batches, steps, optimiser and encoder.
    """
    scorer = new_scorer(settings, seed)
    method = settings.method
    count = len(positions.wildtype)
    steps = settings.epochs * -(-count // settings.batch)

    def loss(scorer: nn.Module, index: Tensor) -> Tensor:
        environments = positions.environments[index.cpu()].to(index.device)
        wildtype, p = (
            part[index.cpu()].to(index.device) for part in (positions.wildtype, positions.p)
        )
        if method.objective == "wildtype":
            return wildtype_loss(scorer(environments), wildtype)
        if method.objective == "soft":
            return soft_label_loss(scorer(environments), p)
        if method.pairs == "wildtype":
            return evorank_loss(scorer(environments, wildtype), p, wildtype, method.label)
        # Letters drawn anew for each position: the mean over the pairs stays unbiased.
        drawn = torch.rand(len(index), 20).argsort(1)[:, : settings.from_letters].to(index.device)
        return evorank_loss(scorer(environments, drawn), p, wildtype, method.label, "all", drawn)

    optimizer = torch.optim.AdamW(
        scorer.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
    )
    trained = run_training(
        scorer,
        optimizer,
        loss,
        minibatches(count, settings.batch, seed),
        epochs=settings.epochs,
        schedule=torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            settings.lr,
            total_steps=steps + 1,
            # Two steps at least: the schedule divides by what lies between its first ones.
            pct_start=max(settings.warmup, 2.5 / (steps + 1)),
        ),
        schedule_per="step",
        clip_norm=settings.clip,
        checkpoints=checkpoints,
        name=name or method.objective,
    )
    return scorer.cpu().eval(), trained.history


@dataclass(frozen=True)
class Measured:
    """An assay on its structure, for fine-tuning.

    Attributes:
        name: of the assay.
        protein: the structure; assays of one protein are left out together.
        environments: of the structure's L residues.
        wildtype: (L,).
        places, letters: (M,) residue and new letter of each variant.
        ranks: (M,) fitness, rank-transformed to [-1, 1].
    """

    name: str
    protein: str
    environments: Environments
    wildtype: Tensor
    places: np.ndarray
    letters: np.ndarray
    ranks: np.ndarray


def rank_transform(values: np.ndarray) -> np.ndarray:
    """Ranks of values (M,), ties averaged, spread evenly over [-1, 1]."""
    from scipy.stats import rankdata

    return 2 * (rankdata(values) - 1) / max(1, len(values) - 1) - 1


class _Finetuned(nn.Module):
    """What is trained of a pretrained encoder: its last layer and norm, and a fresh head."""

    def __init__(self, encoder: EnvironmentEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        for parameter in self.encoder.parameters():
            parameter.requires_grad_(False)
        for module in (self.encoder.layers[-1], self.encoder.norm):
            for parameter in module.parameters():
                parameter.requires_grad_(True)
        self.head = MutationHead(encoder.config.width)

    def forward(self, tokens: Tensor, wildtype: Tensor) -> Tensor:
        return self.head(self.encoder.last(tokens), wildtype)


def finetune(
    encoder: EnvironmentEncoder,
    assays: Sequence[Measured],
    settings: FinetuneSettings,
    seed: int,
    *,
    checkpoints: Checkpoints | None = None,
    name: str = "finetune",
) -> MutationScorer:
    """Train on experimental scores of some proteins, for use on others.

    The last layer, the norm and a fresh mutation head learn the rank-transformed scores by the
    Huber loss, the mean over assays of their means over the measured mutants. The round is chosen
    by the rank correlation on held-out positions of the same assays. The layers before are frozen:
    they run once a structure.
    """
    torch.manual_seed(seed)
    model = _Finetuned(encoder)
    generator = np.random.default_rng([seed, 10])
    frozen, kept, held = [], [], []
    encoder.eval()
    with torch.no_grad():
        for assay in assays:
            tokens = encoder.tokens(assay.environments)
            for layer in encoder.layers[:-1]:
                tokens = layer(tokens)
            frozen.append(tokens)
            places = generator.permutation(np.unique(assay.places))
            count = max(1, round(settings.held_out * len(places)))
            held.append(places[:count])
            kept.append(places[count:])

    def batches(epoch: int) -> list[list[np.ndarray]]:
        drawn = np.random.default_rng([seed, epoch, 32])
        return [
            [drawn.choice(p, min(settings.positions, len(p)), replace=False) for p in kept]
            for _ in range(settings.steps)
        ]

    def predicted(net: nn.Module, number: int, chosen: np.ndarray) -> tuple[Tensor, Tensor]:
        assay = assays[number]
        here = np.isin(assay.places, chosen)
        order = np.sort(chosen)
        device = next(net.parameters()).device
        scores = net(frozen[number][order].to(device), assay.wildtype[order].to(device))
        rows = np.searchsorted(order, assay.places[here])
        target = torch.from_numpy(assay.ranks[here]).to(scores)
        return scores[rows, assay.letters[here]], target

    def loss(net: nn.Module, batch: list[np.ndarray]) -> Tensor:
        parts = [
            huber_loss(*predicted(net, number, chosen), delta=settings.beta)
            for number, chosen in enumerate(batch)
        ]
        return torch.stack(parts).mean()

    def correlation(epoch: int) -> dict[str, float]:
        from scipy.stats import spearmanr

        model.eval()
        with torch.no_grad():
            found = [predicted(model, number, chosen) for number, chosen in enumerate(held)]
        model.train()
        values = [spearmanr(a.cpu().numpy(), b.cpu().numpy()).statistic for a, b in found]
        return {"spearman": float(np.mean(values))}

    trained = run_training(
        model,
        torch.optim.AdamW(
            [p for p in model.parameters() if p.requires_grad],
            lr=settings.lr,
            weight_decay=settings.weight_decay,
        ),
        loss,
        batches,
        epochs=settings.rounds,
        after_epoch=correlation,
        best="spearman",
        checkpoints=checkpoints,
        name=name,
    )
    model.load_state_dict(trained.best_state)
    return MutationScorer(model.encoder, model.head).cpu().eval()
