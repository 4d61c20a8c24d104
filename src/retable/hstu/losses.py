"""Sampled and full softmax over cosine scores (section 4.1)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

# Logit of a negative that is the positive itself: its softmax weight is 0 in float32.
COLLISION_LOGIT = -5e4
# One (T, V) product beats gathering (T, R, d) item vectors up to about this V / (1 + R).
DENSE_RATIO = 32


def sampled_softmax(
    query: Float[Tensor, "T d"],
    positive: Int[Tensor, "T"],
    item_vectors: Float[Tensor, "V d"],
    n_negatives: int,
    temperature: float = 0.05,
    candidates: Int[Tensor, "C"] | None = None,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Mean over positions of -log softmax of the positive among itself and R = n_negatives draws.

    query, item_vectors: unit vectors, logits are their cosines over the temperature. Negatives
    are uniform, with replacement, from candidates (default: all rows of item_vectors); one that
    equals the positive gets logit -5e4. positive and candidates are row indices; row i is item
    id i + 1.
    """
    if n_negatives < 1:
        raise ValueError(f"n_negatives must be at least 1, got {n_negatives}")
    if candidates is not None:
        if len(candidates) == 0:
            raise ValueError("candidates is empty, pass at least one row index or None")
        _check_rows("candidates", candidates, item_vectors)
    _check(query, positive, item_vectors, temperature)
    n_rows = len(item_vectors)
    pool = n_rows if candidates is None else len(candidates)
    negative = torch.randint(
        pool, (len(query), n_negatives), generator=generator, device=query.device
    )
    if candidates is not None:
        negative = candidates[negative]
    if n_rows <= DENSE_RATIO * (1 + n_negatives):
        scores = query @ item_vectors.T
        true = scores.gather(1, positive.unsqueeze(1))
        false = scores.gather(1, negative)
    else:
        true = (query * item_vectors[positive]).sum(-1, keepdim=True)
        false = torch.einsum("td,trd->tr", query, item_vectors[negative])
    false = (false / temperature).masked_fill(negative == positive.unsqueeze(1), COLLISION_LOGIT)
    logits = torch.cat([true / temperature, false], dim=1)
    return -F.log_softmax(logits, dim=1)[:, 0].mean()


def full_softmax(
    query: Float[Tensor, "T d"],
    positive: Int[Tensor, "T"],
    item_vectors: Float[Tensor, "V d"],
    temperature: float = 0.05,
) -> Float[Tensor, ""]:
    """Mean over positions of -log softmax of the positive among all items; as `sampled_softmax`."""
    _check(query, positive, item_vectors, temperature)
    return F.cross_entropy(query @ item_vectors.T / temperature, positive)


def _check(query: Tensor, positive: Tensor, item_vectors: Tensor, temperature: float) -> None:
    if temperature <= 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    if len(query) == 0 or len(query) != len(positive):
        raise ValueError(
            f"query and positive must be equally long and not empty, got {len(query)} and "
            f"{len(positive)}"
        )
    _check_rows("positive", positive, item_vectors)


def _check_rows(name: str, rows: Tensor, item_vectors: Tensor) -> None:
    low, high = (int(x) for x in rows.aminmax())
    if low < 0 or high >= len(item_vectors):
        wrong = low if low < 0 else high
        raise ValueError(f"{name} must lie in 0..{len(item_vectors) - 1}, got {wrong}")
