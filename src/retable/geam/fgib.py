"""The fragment-wise graph information bottleneck (section 3.1 of the paper)."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from rdkit import Chem
from torch import Tensor, nn
from torch.nn import functional

from retable.common.checkpoints import Checkpoints
from retable.common.training import train
from retable.geam.config import FGIBConfig
from retable.geam.fragments import (
    ATOM_FEATURES,
    BOND_FEATURES,
    MolBatch,
    MolGraph,
    collate,
    is_attachable,
)

_SIGMA_FLOOR = 1e-7
_SCORING_BATCH = 512


class FGIBOutput(NamedTuple):
    """Prediction (B,), KL (scalar) and importance of each fragment (F,)."""

    prediction: Tensor
    kl: Tensor
    importance: Tensor


def _segment_mean(values: Tensor, segment: Tensor, count: int) -> Tensor:
    total = values.new_zeros(count, values.shape[1]).index_add_(0, segment, values)
    size = torch.bincount(segment, minlength=count).clamp(min=1)
    return total / size[:, None]


def _moments(embedding: Tensor, frag2mol: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation over each molecule's fragments, (F, d) each, detached."""
    values = embedding.detach()
    count = int(frag2mol.max()) + 1
    mean = _segment_mean(values, frag2mol, count)[frag2mol]
    squares = values.new_zeros(count, values.shape[1])
    squares.index_add_(0, frag2mol, (values - mean) ** 2)
    size = torch.bincount(frag2mol, minlength=count)
    return mean, (squares / (size - 1).clamp(min=1)[:, None]).sqrt()[frag2mol]


def bottleneck_kl(
    embedding: Tensor,
    importance: Tensor,
    frag2mol: Tensor,
    kind: Literal["official", "exact"] = "official",
) -> Tensor:
    """The information that noisy fragments keep, mean over molecules."""
    mean, sigma = _moments(embedding, frag2mol)
    count = int(frag2mol.max()) + 1
    w = importance[:, None]
    if kind == "official":
        safe = sigma + _SIGMA_FLOOR
        spread = 0.5 * ((1 - w) ** 2 * sigma**2 / safe**2).mean(1)
        shift = (w * (embedding - mean) / safe) ** 2
        total = shift.new_zeros(count, shift.shape[1]).index_add_(0, frag2mol, shift)
        spreads = spread.new_zeros(count).index_add_(0, frag2mol, spread)
        return (spreads[:, None] + total).mean()
    known = sigma >= 1e-6
    safe = torch.where(known, sigma, torch.ones_like(sigma))
    rest = (1 - w).clamp(min=1e-6)
    kl = -torch.log(rest) + (rest**2 + (w * (embedding - mean) / safe) ** 2) / 2 - 0.5
    return (kl * known).mean(1).sum() / count


class FGIB(nn.Module):
    """Encoder, importance head and predictor."""

    def __init__(
        self, width: int = 44, steps: int = 3, kl: Literal["official", "exact"] = "official"
    ):
        super().__init__()
        if width != ATOM_FEATURES:
            raise ValueError(f"width is {width}; the residual needs that of the atoms, 44")
        self.width, self.steps, self.kl = width, steps, kl
        self.inputs = nn.Linear(ATOM_FEATURES, width)
        self.edge = nn.Sequential(
            nn.Linear(BOND_FEATURES, 10), nn.ReLU(), nn.Linear(10, width * width)
        )
        self.root = nn.Linear(width, width)
        self.message = nn.Linear(2 * width, width)
        self.head = nn.Sequential(
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 1)
        )
        self.predictor = nn.Sequential(
            nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
        )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def _embed(self, batch: MolBatch) -> Tensor:
        """Embeddings (F, d) of fragments."""
        codes = (
            batch.edge_attr @ (2.0 ** torch.arange(BOND_FEATURES, device=batch.x.device))
        ).long()
        kinds, kind = torch.unique(codes, return_inverse=True)
        features = (
            kinds[:, None] >> torch.arange(BOND_FEATURES, device=batch.x.device) & 1
        ).float()
        theta = self.edge(features).view(len(kinds), self.width, self.width)
        # (N, types, d) at once: few distinct bonds, so never a matrix an edge.
        matrix = theta.permute(2, 0, 1).reshape(self.width, -1)
        source, target = batch.edge_index
        h = torch.relu(self.inputs(batch.x))
        for _ in range(self.steps):
            rows = (h @ matrix).view(len(h), len(kinds), self.width)
            m = self.root(h).index_add(0, target, rows[source, kind])
            h = self.message(torch.cat([torch.relu(m), h], dim=1))
        atoms = functional.normalize(h + batch.x, dim=1)
        return _segment_mean(atoms, batch.node2frag, len(batch.frag2mol))

    def _importance(self, embedding: Tensor) -> Tensor:
        return torch.sigmoid(self.head(embedding).squeeze(-1))

    def importance(self, batch: MolBatch) -> Tensor:
        """w (F,) of each fragment, in (0, 1)."""
        return self._importance(self._embed(batch))

    def _predict(
        self, embedding: Tensor, w: Tensor, batch: MolBatch, noise: Tensor | None
    ) -> Tensor:
        """Y^ (B,) from e~ = w e + (1 - w) mu + (1 - w) sigma eps; no noise: eps = 0."""
        mean, sigma = _moments(embedding, batch.frag2mol)
        rest = 1 - w[:, None]
        blurred = w[:, None] * embedding + rest * mean
        if noise is not None:
            blurred = blurred + rest * sigma * noise
        whole = _segment_mean(blurred, batch.frag2mol, len(batch))
        return torch.sigmoid(self.predictor(whole).squeeze(-1))

    def predict(self, batch: MolBatch, generator: torch.Generator) -> Tensor:
        """Y^ (B,) from noisy fragments, in any mode."""
        embedding = self._embed(batch)
        noise = torch.randn(embedding.shape, generator=generator)
        return self._predict(embedding, self._importance(embedding), batch, noise)

    def forward(self, batch: MolBatch) -> FGIBOutput:
        """Prediction, KL and importance; in training mode the fragments are noisy."""
        embedding = self._embed(batch)
        w = self._importance(embedding)
        noise = torch.randn_like(embedding) if self.training else None
        prediction = self._predict(embedding, w, batch, noise)
        return FGIBOutput(prediction, bottleneck_kl(embedding, w, batch.frag2mol, self.kl), w)


def _check(y: Sequence[float]) -> Tensor:
    values = torch.as_tensor(np.asarray(y), dtype=torch.float32)
    bad = torch.nonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        k = int(bad[0])
        raise ValueError(f"y[{k}] is {float(values[k])}; it must lie in [0, 1]")
    return values


def train_fgib(
    graphs: Sequence[MolGraph],
    y: Sequence[float],
    config: FGIBConfig,
    seed: int,
    *,
    checkpoints: Checkpoints | None = None,
) -> FGIB:
    """Train the bottleneck on labelled molecules: MSE + beta KL, Adam.

    Args:
        y: the property of each molecule, in [0, 1].

    Raises:
        ValueError: a property outside [0, 1] or NaN, with its index.
    """
    values = _check(y)
    torch.manual_seed(seed)
    model = FGIB(config.width, config.steps, config.kl)

    def batches(epoch: int) -> Iterator[tuple[MolBatch, Tensor]]:
        order = np.random.default_rng((seed, epoch)).permutation(len(graphs))
        for start in range(0, len(order), config.batch):
            rows = order[start : start + config.batch]
            yield collate([graphs[k] for k in rows]), values[torch.from_numpy(rows)]

    def loss(network: FGIB, item: tuple[MolBatch, Tensor]) -> Tensor:
        batch, target = item
        output = network(batch)
        return ((output.prediction - target) ** 2).mean() + config.beta * output.kl

    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    train(
        model,
        optimizer,
        loss,
        batches,
        epochs=config.epochs,
        checkpoints=checkpoints,
        name=f"fgib-seed{seed}",
    )
    return model.cpu().eval()


@torch.no_grad()
def noisy_error(model: FGIB, graphs: Sequence[MolGraph], y: Sequence[float], seed: int) -> float:
    """Mean squared error of the prediction from noisy fragments (batch norm as in scoring)."""
    values = _check(y)
    generator = torch.Generator().manual_seed(seed)
    total = 0.0
    for start in range(0, len(graphs), _SCORING_BATCH):
        rows = slice(start, start + _SCORING_BATCH)
        prediction = model.predict(collate(graphs[rows]), generator)
        total += float(((prediction - values[rows]) ** 2).sum())
    return total / len(graphs)


def score_fragments(
    model: FGIB | None,
    graphs: Sequence[MolGraph],
    y: Sequence[float],
    how: Literal["fgib", "property", "property_size"] = "fgib",
) -> dict[str, float]:
    """Scores of attachable fragments: mean over occurrences of w Y / sqrt(atoms)."""
    values = _check(y).numpy()
    names = [fragment for graph in graphs for fragment in graph.fragments]
    counts = [len(graph.fragments) for graph in graphs]
    score = np.repeat(values, counts).astype(np.float64)
    distinct = sorted(set(names))
    number = {name: k for k, name in enumerate(distinct)}
    if how == "fgib":
        if model is None:
            raise ValueError("model is None; how='fgib' needs a model")
        mode = model.training
        model.eval()
        with torch.no_grad():
            starts = range(0, len(graphs), _SCORING_BATCH)
            parts = [model.importance(collate(graphs[k : k + _SCORING_BATCH])) for k in starts]
        model.train(mode)
        score *= torch.cat(parts).double().numpy()
    if how != "property":
        sizes = np.array([Chem.MolFromSmiles(name).GetNumAtoms() for name in distinct])
        score /= np.sqrt(sizes)[[number[name] for name in names]]
    index = np.array([number[name] for name in names])
    mean = np.bincount(index, score) / np.bincount(index)
    return {name: float(mean[k]) for name, k in number.items() if is_attachable(name)}
