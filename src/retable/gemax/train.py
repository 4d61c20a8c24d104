"""Training an encoder without labels, and the embeddings that come of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from retable.common.checkpoints import Checkpoints
from retable.common.training import minibatches
from retable.common.training import train as run_training
from retable.gemax.autogcl import LearnedViews, autogcl
from retable.gemax.config import OBJECTIVES, TrainConfig
from retable.gemax.data import GraphBatches, GraphSet
from retable.gemax.lgae import LinearGraphEncoder, reconstruction_loss
from retable.gemax.losses import LEAST_WEIGHT, packing_entropy, packing_loss
from retable.gemax.model import GeMaxEncoder
from retable.gemax.objectives import (
    EntropyMaximization,
    PackingWeights,
    graphcl,
    infograph,
    random_views,
)


@dataclass(frozen=True)
class FitResult:
    """What training leaves.

    Attributes:
        encoder: on the CPU, in evaluation mode.
        weights: the packing weights, one (n_j,) array a graph; empty but for `gemax` and the like.
        history: one row an epoch: epoch, loss and, for these, entropy (H_k, nats),
            orthogonality (L_orth), packing (L_svp), least_weight, largest_weight.
    """

    encoder: GeMaxEncoder | LinearGraphEncoder
    weights: list[np.ndarray] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


def new_encoder(in_features: int, config: TrainConfig, seed: int) -> GeMaxEncoder:
    """An encoder whose weights depend on the seed alone: the same for every objective."""
    torch.manual_seed(seed)
    return GeMaxEncoder(in_features, config)


def fit(
    graphs: GraphSet,
    objective: str,
    config: TrainConfig,
    seed: int,
    *,
    checkpoints: Checkpoints | None = None,
    name: str = "",
) -> FitResult:
    """Train an encoder on graphs, not on their labels.

    Args:
        objective: gemax, infograph, graphcl, autogcl, or untrained (random weights).
            graphcl_gemax, autogcl_gemax: the views of these methods, with J1 and J2 (means over
            both views) in place of their contrast. lgae: a linear graph autoencoder, with an
            encoder of its own.
        seed: of the initial weights, which all objectives share, and of the order of the batches.
        checkpoints, name: where and under which name the state is kept.

    The statistics of BatchNorm are those of one pass over the graphs at the end, for every
    objective alike: running ones would depend on how many passes an objective makes in a step.

    Raises:
        ValueError: an unknown objective; one graph for an objective that tells graphs apart.
        InputError: the loss became NaN or infinite.
    """
    if objective not in (*OBJECTIVES, "lgae"):
        known = ", ".join((*OBJECTIVES, "lgae"))
        raise ValueError(f"objective: '{objective}', must be one of {known}")
    if len(graphs) == 1 and objective in ("infograph", "graphcl", "autogcl"):
        raise ValueError(f"graphs: 1, {objective} tells graphs apart and needs at least 2")
    in_features = graphs.features[0].shape[1]
    encoder = new_encoder(in_features, config, seed)
    if objective == "lgae":
        encoder = LinearGraphEncoder(in_features, config.dim)
    batches = GraphBatches(graphs)
    size = min(config.batch, len(graphs))
    if objective == "untrained":
        _take_statistics(encoder, batches, size)
        return FitResult(encoder.eval())
    parts = {"encoder": encoder}
    if objective.startswith("autogcl"):
        parts["views"] = LearnedViews(in_features, config.hidden, config.layers)
    trainable = nn.ModuleList(parts.values()).parameters()
    if objective.endswith("gemax"):
        weights = PackingWeights(batches.sizes, config.lr_weights)
        parts["entropy"] = EntropyMaximization(
            weights, config.mu, config.gamma, config.self_loops_in_mask
        )
    model = nn.ModuleDict(parts)

    def loss(model: nn.Module, index: Tensor) -> Tensor:
        batch = batches(index, index.device)
        encoder = model["encoder"]
        match objective:
            case "gemax":
                return model["entropy"](encoder, (batch,), index)
            case "graphcl_gemax":
                return model["entropy"](encoder, random_views(batch), index)
            case "autogcl_gemax":
                views, likeness = model["views"](batch)
                return model["entropy"](encoder, views, index) + likeness
            case "autogcl":
                return autogcl(encoder, model["views"], batch)
        simple = {"infograph": infograph, "graphcl": graphcl, "lgae": reconstruction_loss}
        return simple[objective](encoder, batch)

    entropy = parts.get("entropy")
    trained = run_training(
        model,
        torch.optim.Adam(trainable, lr=config.lr),
        loss,
        # A last batch of one graph has no other graph to be told from.
        _no_single_graph(minibatches(len(graphs), size, seed)),
        epochs=config.epochs,
        after_step=(lambda _: entropy.weight_step()) if entropy is not None else None,
        after_epoch=(lambda _: entropy.epoch()) if entropy is not None else None,
        checkpoints=checkpoints,
        name=name or objective,
    )
    _take_statistics(encoder, batches, size)
    rows = [row.numpy() for row in entropy.weights.rows()] if entropy is not None else []
    return FitResult(encoder.cpu().eval(), rows, trained.history)


def embed(encoder: GeMaxEncoder, graphs: GraphSet, readout: str) -> np.ndarray:
    """Embed graphs by the sum or mean of the concatenated layers over their vertices.

    Returns (n_graphs, hidden * layers) float32; the encoder is put into evaluation mode.
    ValueError for another readout.
    """
    if readout not in ("sum", "mean"):
        raise ValueError(f"readout: '{readout}', must be sum or mean")
    found = []
    for (layers, _, _), (_, _, mask) in _passes(encoder, graphs):
        total = layers.masked_fill(~mask[..., None], 0).sum(1)
        found.append(total if readout == "sum" else total / mask.sum(1, keepdim=True))
    return torch.cat(found).numpy()


def vertex_vectors(encoder: GeMaxEncoder, graphs: GraphSet) -> Iterator[tuple[Tensor, ...]]:
    """Batch after batch: z (B, N, d), g (B, d), adj (B, N, N), mask (B, N), in evaluation mode."""
    for (_, z, g), (adj, _, mask) in _passes(encoder, graphs):
        yield z, g, adj, mask


def converge_weights(
    z: Tensor, p: Tensor, a: Tensor, mask: Tensor, gamma: float, steps: int, lr: float
) -> Tensor:
    """Weight steps alone, the encoder fixed: minimise J2 over a (B, N) by Adam, from `a` on."""
    a = a.clone().requires_grad_()
    optimizer = torch.optim.Adam([a], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        # Each graph has its own weights: the sum's gradient is each one's own.
        objective = packing_entropy(p, a, mask) + gamma * packing_loss(z, a, mask)
        objective.sum().backward()
        optimizer.step()
        with torch.no_grad():
            a.clamp_(LEAST_WEIGHT, 1)
    return a.detach()


def _passes(encoder: GeMaxEncoder, graphs: GraphSet) -> Iterator[tuple[Any, Any]]:
    encoder.eval()
    batches = GraphBatches(graphs)
    with torch.no_grad():
        for index in batches.chunks(range(len(graphs))):
            batch = batches(index)
            yield encoder(*batch), batch


def _no_single_graph(batches: Callable[[int], list[Tensor]]) -> Callable[[int], list[Tensor]]:
    def of_epoch(epoch: int) -> list[Tensor]:
        parts = batches(epoch)
        if len(parts) > 1 and len(parts[-1]) == 1:
            parts[-2:] = [torch.cat(parts[-2:])]
        return parts

    return of_epoch


@torch.no_grad()
def _take_statistics(encoder: nn.Module, batches: GraphBatches, size: int) -> None:
    """Give BatchNorm the statistics of one pass over all graphs."""
    device = next(encoder.parameters()).device
    parts = _no_single_graph(lambda _: list(torch.arange(len(batches.sizes)).split(size)))(0)
    with _one_pass_of_statistics(encoder):
        encoder.train()
        for index in parts:
            encoder(*batches(index, device))


@contextmanager
def _one_pass_of_statistics(encoder: nn.Module) -> Iterator[None]:
    """Within it BatchNorm averages over all batches alike, instead of forgetting the first ones."""
    norms = [m for m in encoder.modules() if isinstance(m, nn.BatchNorm1d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
    yield
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
