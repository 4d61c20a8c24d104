"""What a network is asked: the wild type, the distribution, or the ranking of amino acids.

Amino acids are int64 indices 0..19 (tensors or numpy arrays); p (B, 20) is the distribution that
the alignment induces at a position.
"""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, smooth_l1_loss, softplus

Label = Literal["difference", "log_ratio", "sign"]
Pairs = Literal["wildtype", "all"]
_BETAS = {"difference": 0.05, "log_ratio": 1.0}
_LEAST_DIFFERENCE = 1e-3  # of p, for a pair to have an order


def wildtype_loss(logits: Tensor, wildtype: Any) -> Tensor:
    """Cross-entropy of logits (B, 20) with the wild type (B,)."""
    return cross_entropy(_logits(logits), _index(wildtype, logits, "wildtype"))


def soft_label_loss(logits: Tensor, p: Any) -> Tensor:
    """Cross-entropy of logits (B, 20) with the distribution p (B, 20) as soft target."""
    return cross_entropy(_logits(logits), _distribution(p, logits))


def evorank_targets(p: Any, from_index: Any, label: Label) -> Tensor:
    """What the mutations a -> b of each position are worth: (B, 20) for from_index a (B,).

    `difference` (and `sign`, which uses its sign): p_b - p_a; `log_ratio`: log p_b - log p_a.
    """
    p = _distribution(p)
    index = _index(from_index, p, "from_index")
    values = _values(p, _checked(label))
    return values - values.gather(1, index[:, None])


def evorank_loss(
    scores: Tensor,
    p: Any,
    wildtype: Any,
    label: Label = "difference",
    pairs: Pairs = "wildtype",
    from_index: Any = None,
) -> Tensor:
    """The ranking loss over pairs (a -> b) with b != a, a scalar.

    For the labels `difference` (beta 0.05) and `log_ratio` (beta 1) it is the mean of the smooth L1
    loss of s_ab - t_ab, quadratic below beta, over beta; for `sign` the logistic loss
    softplus(-s_ab sign(t_ab)) on pairs that differ by more than 1e-3. The optimum orders amino
    acids as p does.

    Args:
        scores: (B, 20) for pairs `wildtype`, the mutations of the wild type; for `all`
            (B, 20, 20) [from, to], or (B, F, 20) with the letters from_index (B, F) drawn.
        p: (B, 20).
        wildtype: (B,).

    Raises:
        ValueError: shapes or indices that do not fit, NaN scores, p that does not sum to 1, an
            unknown label or kind of pairs.
    """
    _checked(label)
    p = _distribution(p, scores)
    count = len(p)
    if pairs == "wildtype":
        _shape(scores, (count, 20), "scores")
        origin = _index(wildtype, scores, "wildtype")[:, None]
        scores = scores[:, None]
    elif pairs == "all":
        if from_index is None:
            _shape(scores, (count, 20, 20), "scores")
            origin = torch.arange(20, device=scores.device).expand(count, 20)
        else:
            origin = _index(from_index, scores, "from_index", ndim=2)
            _shape(scores, (count, origin.shape[1], 20), "scores")
    else:
        raise ValueError(f"pairs: '{pairs}', must be wildtype or all")
    if torch.isnan(scores).any():
        raise ValueError("scores: hold NaN")
    values = _values(p, label)
    targets = values[:, None] - values.gather(1, origin)[..., None]
    counted = torch.arange(20, device=scores.device) != origin[..., None]
    return _mean_loss(scores, targets, counted, label)


def pair_loss(
    scores: Tensor, p: Any, from_index: Any, to_index: Any, label: Label = "difference"
) -> Tensor:
    """The ranking loss of `evorank_loss` over drawn pairs, a scalar; pairs a = b never count.

    Args:
        scores: (B, F, T) of the mutations from each letter of from_index (B, F) to each of
            to_index (B, T).
        p: (B, 20).

    Raises:
        ValueError: as `evorank_loss`.
    """
    _checked(label)
    p = _distribution(p, scores)
    origin = _index(from_index, scores, "from_index", ndim=2)
    target = _index(to_index, scores, "to_index", ndim=2)
    _shape(scores, (len(p), origin.shape[1], target.shape[1]), "scores")
    if torch.isnan(scores).any():
        raise ValueError("scores: hold NaN")
    values = _values(p, label)
    targets = values.gather(1, target)[:, None] - values.gather(1, origin)[..., None]
    return _mean_loss(scores, targets, target[:, None] != origin[..., None], label)


def _mean_loss(scores: Tensor, targets: Tensor, counted: Tensor, label: Label) -> Tensor:
    if label == "sign":
        counted = counted & (targets.abs() > _LEAST_DIFFERENCE)
        losses = softplus(-scores * targets.sign())
    else:
        beta = _BETAS[label]
        losses = smooth_l1_loss(scores, targets, reduction="none", beta=beta) / beta
    if not counted.any():
        raise ValueError("p: there is no pair of amino acids that counts")
    return losses[counted].mean()


def _values(p: Tensor, label: Label) -> Tensor:
    """What pairs are compared by: p, or its logarithm."""
    if label != "log_ratio":
        return p
    if not (p > 0).all():
        raise ValueError(f"p: smallest value {p.min().item()}, must be > 0 for log_ratio")
    return p.log()


def _logits(logits: Tensor) -> Tensor:
    if logits.ndim != 2 or logits.shape[1] != 20:
        raise ValueError(f"logits: shape {tuple(logits.shape)}, must be (B, 20)")
    if torch.isnan(logits).any():
        raise ValueError("logits: hold NaN")
    return logits


def _checked(label: str) -> str:
    if label not in ("difference", "log_ratio", "sign"):
        raise ValueError(f"label: '{label}', must be difference, log_ratio or sign")
    return label


def _shape(tensor: Tensor, shape: tuple[int, ...], name: str) -> None:
    if tensor.shape != shape:
        raise ValueError(f"{name}: shape {tuple(tensor.shape)}, must be {shape}")


def _distribution(p: Any, like: Tensor | None = None) -> Tensor:
    p = torch.as_tensor(p)
    if like is not None:
        p = p.to(like.device, like.dtype)
    if p.ndim != 2 or p.shape[1] != 20:
        raise ValueError(f"p: shape {tuple(p.shape)}, must be (B, 20)")
    off = (p.sum(1) - 1).abs()
    if not (off < 1e-4).all():
        row = int((~(off < 1e-4)).nonzero()[0, 0])
        raise ValueError(f"p: row {row} sums to {p[row].sum().item()}, must sum to 1")
    if (p < 0).any():
        raise ValueError(f"p: smallest value {p.min().item()}, must be >= 0")
    return p


def _index(index: Any, like: Tensor, name: str, ndim: int = 1) -> Tensor:
    index = torch.as_tensor(index, device=like.device)
    whole = not index.is_floating_point() and index.dtype != torch.bool
    if index.ndim != ndim or len(index) != len(like) or not whole:
        raise ValueError(
            f"{name}: {index.dtype} of shape {tuple(index.shape)}, must be {len(like)} integers"
        )
    if index.numel() and not (int(index.min()) >= 0 and int(index.max()) <= 19):
        raise ValueError(
            f"{name}: from {int(index.min())} to {int(index.max())}, must be within 0..19"
        )
    return index.long()
