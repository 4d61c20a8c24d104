"""How good an embedding is: cross-validated classifiers, few labels, edges, effective rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from retable.common.training import minibatches
from retable.common.training import train as run_training
from retable.gemax.data import GraphBatches, GraphSet
from retable.gemax.model import GeMaxEncoder

CANDIDATES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def cross_validated_accuracy(
    embeddings: Any,
    y: Any,
    seed: int,
    *,
    folds: int = 10,
    candidates: Sequence[float] = CANDIDATES,
    inner_folds: int = 5,
) -> float:
    """Accuracy of an RBF support vector machine, the mean over stratified folds.

    Standardisation is fitted on the training folds and C is chosen by cross-validation within them:
    the test fold plays no part in either.

    Args:
        embeddings: (n, d), finite.
        y: (n,) labels.
        seed: of the folds, outer and inner.

    Raises:
        ValueError: one class; a class smaller than the number of folds; values that are not finite.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    x, y = np.asarray(embeddings, dtype=np.float64), check_labels(y, folds)
    if x.ndim != 2 or len(x) != len(y) or not np.isfinite(x).all():
        raise ValueError(f"embeddings: shape {x.shape}, must be finite ({len(y)}, d)")
    machine = make_pipeline(StandardScaler(), SVC(kernel="rbf"))
    return _nested(machine, "svc__C", x, y, seed, folds, candidates, inner_folds)


def kernel_accuracy(
    K: Any,
    y: Any,
    seed: int,
    *,
    folds: int = 10,
    candidates: Sequence[float] = CANDIDATES,
    inner_folds: int = 5,
) -> float:
    """As `cross_validated_accuracy`, of a support vector machine on a kernel matrix K (n, n)."""
    from sklearn.svm import SVC

    kernel, y = np.asarray(K, dtype=np.float64), check_labels(y, folds)
    if kernel.shape != (len(y), len(y)) or not np.isfinite(kernel).all():
        raise ValueError(f"K: shape {kernel.shape}, must be finite ({len(y)}, {len(y)})")
    return _nested(SVC(kernel="precomputed"), "C", kernel, y, seed, folds, candidates, inner_folds)


def check_labels(y: Any, folds: int) -> np.ndarray:
    """The labels; ValueError for one class, or a class smaller than the number of folds."""
    y = np.asarray(y)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y: {len(classes)} class, at least 2 are needed")
    if counts.min() < folds:
        raise ValueError(
            f"y: class {classes[counts.argmin()]} has {counts.min()} graphs, {folds} folds need as "
            "many"
        )
    return y


def _nested(
    machine: Any,
    parameter: str,
    x: np.ndarray,
    y: np.ndarray,
    seed: int,
    folds: int,
    candidates: Sequence[float],
    inner_folds: int,
) -> float:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

    inner = StratifiedKFold(inner_folds, shuffle=True, random_state=seed)
    outer = StratifiedKFold(folds, shuffle=True, random_state=seed)
    search = GridSearchCV(machine, {parameter: list(candidates)}, cv=inner)
    return float(cross_val_score(search, x, y, cv=outer).mean())


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
    from sklearn.metrics import roc_auc_score

    scores = z @ z.mT if signed else (z @ z.mT).abs()
    found = []
    for number, size in enumerate(mask.sum(1).tolist()):
        upper = tuple(np.triu_indices(size, 1))
        edges = adj[number][upper] > 0
        if edges.any() and not edges.all():
            found.append(float(roc_auc_score(edges.numpy(), scores[number][upper].numpy())))
    return found


def effective_rank(embeddings: Any) -> float:
    """exp of the entropy of the normalised singular values of standardised embeddings (n, d).

    Columns that are constant are left out; ValueError where all are.
    """
    x = np.asarray(embeddings, dtype=np.float64)
    spread = x.std(0)
    x = x[:, spread > 1e-12]
    if not x.shape[1]:
        raise ValueError("embeddings: every column is constant")
    x = (x - x.mean(0)) / x.std(0)
    values = np.linalg.svd(x, compute_uv=False)
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))
