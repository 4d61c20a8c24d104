"""Training of the atom-level network on one objective, or on measured stability; its scores."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import huber_loss

from retable.common.checkpoints import Checkpoints
from retable.common.training import minibatches
from retable.common.training import train as run_training
from retable.evorank.atom_data import AtomBatch, AtomPositions
from retable.evorank.config import AtomFinetuneSettings, AtomTrainSettings
from retable.evorank.losses import pair_loss, soft_label_loss, wildtype_loss
from retable.evorank.model import AtomGraphTransformer


def new_atom_network(settings: AtomTrainSettings, seed: int) -> AtomGraphTransformer:
    """A network of a method; its initial weights depend on the seed alone.

    What the objective does not use is fixed: several processes exchange the gradients of all
    parameters that are trained.
    """
    torch.manual_seed(seed)
    network = AtomGraphTransformer(settings.network)
    network.train_for(mutations=settings.method.objective == "evorank")
    return network


def train_atom_network(
    positions: AtomPositions,
    settings: AtomTrainSettings,
    seed: int,
    *,
    checkpoints: Checkpoints | None = None,
    name: str = "",
) -> tuple[AtomGraphTransformer, list[dict]]:
    """Train a network on one objective; return it on the CPU in evaluation mode, and its history.

    The ranking objective takes some pairs a position and step, drawn evenly: those of the wild type
    and `letters` others, or for the pairs `all` those among `letters` + 1.
    """
    network = new_atom_network(settings, seed)
    method = settings.method
    # Whole batches: each of several processes has its share of all of them.
    every = minibatches(len(positions), settings.batch, seed, drop_last=True)
    per_epoch = max(1, len(positions) // settings.batch)

    def batches(epoch: int) -> list[Tensor]:
        return every(epoch)[: settings.steps - epoch * per_epoch]

    def loss(network: nn.Module, index: Tensor) -> Tensor:
        batch = environments_of(positions, index, method.environment)
        if method.objective == "wildtype":
            return wildtype_loss(network(*batch.inputs), batch.wildtype)
        if method.objective == "soft":
            return soft_label_loss(network(*batch.inputs), batch.p)
        first, second = drawn_pairs(batch.wildtype, settings.letters, method.pairs)
        scores = network(*batch.inputs, first, second)
        return pair_loss(scores, batch.p, first, second, method.label)

    trained = run_training(
        network,
        torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=settings.lr),
        loss,
        batches,
        epochs=-(-settings.steps // per_epoch),
        checkpoints=checkpoints,
        name=name or method.objective,
    )
    return network.cpu().eval(), trained.history


def environments_of(positions: AtomPositions, index: Tensor, environment: bool = True) -> AtomBatch:
    """Positions on the device of their index; without atoms where the method sees none."""
    batch = positions.batch(index)
    return (batch if environment else batch.emptied()).to(index.device)


def drawn_pairs(wildtype: Tensor, letters: int, pairs: str) -> tuple[Tensor, Tensor]:
    """Letters from which and to which positions are mutated: (B, F) and (B, T).

    For the pairs `wildtype` these are the wild type and `letters` others; for `all` both are the
    same `letters` + 1.
    """
    # Drawn on the CPU: the same letters on every device.
    order = torch.rand(len(wildtype), 20)
    if pairs == "all":
        drawn = order.argsort(1)[:, : letters + 1].to(wildtype.device)
        return drawn, drawn
    order.scatter_(1, wildtype.cpu()[:, None], 2.0)
    return wildtype[:, None], order.argsort(1)[:, :letters].to(wildtype.device)


@dataclass(frozen=True)
class Stability:
    """Measured mutations for fine-tuning: (M,) positions, letters, values (higher = better)."""

    places: np.ndarray
    letters: np.ndarray
    values: np.ndarray


def finetune_atom_network(
    network: AtomGraphTransformer,
    positions: AtomPositions,
    measured: Stability,
    settings: AtomFinetuneSettings,
    seed: int,
    *,
    checkpoints: Checkpoints | None = None,
    name: str = "finetune",
) -> AtomGraphTransformer:
    """Train a pretrained network's mutation scores on measured stability, by the Huber loss.

    All of the network is trained but what only names residues. The epoch is chosen by the rank
    correlation on held-out proteins of the same set.
    """
    torch.manual_seed(seed)
    network.train_for(mutations=True)
    protein = positions.protein.numpy()[measured.places]
    names = np.random.default_rng([seed, 10]).permutation(np.unique(protein))
    held = np.isin(protein, names[: max(1, round(settings.held_out * len(names)))])
    if held.all():
        raise ValueError("measured: one protein only; at least two are needed")
    places, letters = torch.from_numpy(measured.places), torch.from_numpy(measured.letters)
    values = torch.from_numpy(measured.values).float()
    kept, chosen_by = torch.from_numpy(np.flatnonzero(~held)), np.flatnonzero(held)

    def scores(network: nn.Module, rows: Tensor) -> Tensor:
        batch = environments_of(positions, places[rows.cpu()].to(rows.device))
        return network(*batch.inputs, batch.wildtype, letters[rows.cpu()].to(rows.device))

    def loss(network: nn.Module, index: Tensor) -> Tensor:
        rows = kept.to(index.device)[index]
        target = values[rows.cpu()].to(index.device)
        return huber_loss(scores(network, rows), target, delta=settings.beta)

    def correlation(epoch: int) -> dict[str, float]:
        from scipy.stats import spearmanr

        network.eval()
        device = next(network.parameters()).device
        with torch.no_grad():
            found = [
                scores(network, part.to(device)).cpu()
                for part in torch.from_numpy(chosen_by).split(settings.batch)
            ]
        network.train()
        value = spearmanr(torch.cat(found).numpy(), values[chosen_by].numpy()).statistic
        return {"spearman": float(np.nan_to_num(value, nan=-1.0))}

    trained = run_training(
        network,
        torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=settings.lr),
        loss,
        # A batch of one mutation has no statistics to be normalised by.
        minibatches(len(kept), settings.batch, seed, drop_last=True),
        epochs=settings.epochs,
        after_epoch=correlation,
        best="spearman",
        checkpoints=checkpoints,
        name=name,
    )
    network.load_state_dict(trained.best_state)
    return network.cpu().eval()


def score_atom_positions(
    network: AtomGraphTransformer,
    positions: AtomPositions,
    *,
    mutations: bool,
    environment: bool = True,
    batch: int = 60,
) -> np.ndarray:
    """Scores of all substitutions of all positions: (N, 20) float32, 0 at the wild type.

    Args:
        mutations: scores of the mutation head; else logit_b - logit_y.
        environment: whether the network sees the atoms.
        batch: positions at once.
    """

    def of(found: AtomBatch) -> Tensor:
        own = found.wildtype[:, None]
        if mutations:
            every = torch.arange(20, device=own.device).expand(len(own), 20)
            scores = network(*found.inputs, own, every)[:, 0]
        else:
            logits = network(*found.inputs)
            scores = logits - logits.gather(1, own)
        return scores.scatter(1, own, 0.0)

    return _over(network, positions, environment, batch, of)


def atom_embeddings(
    network: AtomGraphTransformer,
    positions: AtomPositions,
    *,
    environment: bool = True,
    batch: int = 60,
) -> np.ndarray:
    """e (N, width) float32, the mean over the tokens within 8 Angstrom of the CA."""
    return _over(network, positions, environment, batch, lambda found: network.embed(*found.inputs))


def atom_logits(
    network: AtomGraphTransformer,
    positions: AtomPositions,
    *,
    environment: bool = True,
    batch: int = 60,
) -> np.ndarray:
    """Logits of the twenty amino acids: (N, 20) float32."""
    return _over(network, positions, environment, batch, lambda found: network(*found.inputs))


def _over(
    network: AtomGraphTransformer,
    positions: AtomPositions,
    environment: bool,
    batch: int,
    function: Callable[[AtomBatch], Tensor],
) -> np.ndarray:
    network.eval()
    device = next(network.parameters()).device
    with torch.no_grad():
        parts = [
            function(environments_of(positions, index.to(device), environment)).cpu()
            for index in torch.arange(len(positions)).split(batch)
        ]
    return torch.cat(parts).numpy()
