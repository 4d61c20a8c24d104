"""How good an embedding is: cross-validated classifiers, few labels, edges, effective rank."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from retable.common.training import minibatches
from retable.common.training import train as run_training
from retable.gemax.classify import (
    check_labels,
    cross_validated_accuracy,
    effective_rank,
    kernel_accuracy,
)
from retable.gemax.data import GraphBatches, GraphSet
from retable.gemax.model import GeMaxEncoder

__all__ = [
    "check_labels",
    "cross_validated_accuracy",
    "edge_auc",
    "edge_aucs",
    "effective_rank",
    "kernel_accuracy",
    "semi_supervised_accuracy",
]


def semi_supervised_accuracy(
    encoder: GeMaxEncoder,
    graphs: GraphSet,
    seed: int,
    *,
    share: float = 0.1,
    folds: int = 10,
    epochs: int = 60,
    lr: float = 1e-3,
    batch: int = 100,
    readout: str = "sum",
) -> float:
    """Test accuracy after fine-tuning an encoder on a few labels, the mean over folds.

    Of each fold's training graphs a stratified `share` is labelled; a linear head on the readout is
    trained with the encoder by Adam, and the last epoch counts. The encoder that is given stays as
    it is.

    Raises:
        ValueError: one class, a class smaller than the folds, or a share with fewer graphs than
            classes.
    """
    from sklearn.model_selection import StratifiedKFold, train_test_split

    if readout not in ("sum", "mean"):
        raise ValueError(f"readout: '{readout}', must be sum or mean")
    if not 0 < share < 1:
        raise ValueError(f"share: {share}, must be within (0, 1)")
    y = check_labels(graphs.labels, folds)
    targets = torch.from_numpy(np.unique(y, return_inverse=True)[1])
    classes = int(targets.max()) + 1
    if share * len(y) * (folds - 1) / folds < classes:
        raise ValueError(f"share: {share} of {len(y)} graphs is less than one of each class")
    batches = GraphBatches(graphs)
    start = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    width = sum(encoder.gin.widths)
    scores = []
    outer = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for fold, (others, test) in enumerate(outer.split(y, y)):
        labelled, _ = train_test_split(
            others, train_size=share, stratify=y[others], random_state=seed
        )
        torch.manual_seed(seed * folds + fold)
        tuned = GeMaxEncoder(graphs.features[0].shape[1], encoder.config)
        tuned.load_state_dict(start)
        model = _Classifier(tuned, width, classes, readout)
        index = torch.from_numpy(labelled)

        def loss(model: nn.Module, part: Tensor, index: Tensor = index) -> Tensor:
            chosen = index[part.cpu()]
            scores = model(*batches(chosen, part.device))
            return cross_entropy(scores, targets[chosen].to(part.device))

        run_training(
            model,
            torch.optim.Adam(model.parameters(), lr=lr),
            loss,
            minibatches(len(labelled), batch, seed),
            epochs=epochs,
        )
        model.cpu().eval()
        with torch.no_grad():
            parts = [model(*batches(part)).argmax(1) for part in batches.chunks(test)]
        predicted = torch.cat(parts)
        scores.append((predicted == targets[test]).double().mean().item())
    return float(np.mean(scores))


class _Classifier(nn.Module):
    """A linear head on the readout of an encoder's layers."""

    def __init__(self, encoder: GeMaxEncoder, width: int, classes: int, readout: str) -> None:
        super().__init__()
        self.encoder, self.readout = encoder, readout
        self.head = nn.Linear(width, classes)

    def forward(self, adj: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        layers, _, _ = self.encoder(adj, x, mask)
        total = layers.masked_fill(~mask[..., None], 0).sum(1)
        if self.readout == "mean":
            total = total / mask.sum(1, keepdim=True)
        return self.head(total)


def edge_auc(z: Tensor, adj: Tensor, mask: Tensor) -> float:
    """AUROC of |z_i . z_j| for edges among the vertex pairs of a graph, the mean over graphs.

    Args:
        z: (B, N, d); adj: (B, N, N); mask: (B, N) bool.

    Graphs without edges, or with all of them, rank nothing and are left out; ValueError when none
    is left.
    """
    found = edge_aucs(z, adj, mask)
    if not found:
        raise ValueError("adj: no graph has both edges and other pairs")
    return float(np.mean(found))


def edge_aucs(z: Tensor, adj: Tensor, mask: Tensor, *, signed: bool = False) -> list[float]:
    """As `edge_auc`, one value for each graph that has both edges and other pairs.

    signed: score pairs by z_i . z_j, as an inner-product decoder does.
    """
    scores = z @ z.mT if signed else (z @ z.mT).abs()
    found = []
    for number, size in enumerate(mask.sum(1).tolist()):
        upper = tuple(np.triu_indices(size, 1))
        edges = adj[number][upper] > 0
        if edges.any() and not edges.all():
            values = scores[number][upper]
            found.append(_auc(values[edges].numpy(), values[~edges].numpy()))
    return found


def _auc(positive: np.ndarray, negative: np.ndarray) -> float:
    """Share of the pairs in which the positive scores higher; a tie counts one half."""
    negative = np.sort(negative)
    below = np.searchsorted(negative, positive, "left")
    not_above = np.searchsorted(negative, positive, "right")
    return float((below + not_above).sum() / (2 * len(positive) * len(negative)))
