"""Stochastic Length: train on subsequences of long histories (section 3.3, equation 4)."""

import torch
from jaxtyping import Int
from torch import Tensor

from retable.hstu.lengths import keep_probability, short_length, sparsity

__all__ = ["keep_probability", "short_length", "sparsity", "stochastic_length"]

STRATEGIES = ("greedy", "random", "weighted")


def stochastic_length(
    timestamps: Int[Tensor, "n"],
    n_max: int,
    alpha: float,
    strategy: str = "weighted",
    generator: torch.Generator | None = None,
) -> Int[Tensor, "kept"]:
    """Indices, ascending, of the events that training keeps of a history of n <= n_max events.

    A history longer than L is kept whole with `keep_probability`, else L of its events are chosen:
    "greedy" the last L; "random" uniformly; "weighted" without replacement with weights
    1 - f_i / sum_j f_j, f_i = t_n - t_i the age of event i (equal weights when all ages are 0).
    Draws come from generator, or from torch's global one.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {list(STRATEGIES)}, got {strategy!r}")
    n = len(timestamps)
    probability = keep_probability(n, n_max, alpha)
    device = timestamps.device
    if torch.rand((), dtype=torch.float64, generator=generator, device=device) < probability:
        return torch.arange(n, device=device)
    short = short_length(n_max, alpha)
    if strategy == "greedy":
        return torch.arange(n - short, n, device=device)
    weights = torch.ones(n, dtype=torch.float64, device=device)
    if strategy == "weighted":
        age = (timestamps[-1] - timestamps).double()
        total = age.sum()
        if total > 0:
            weights = 1 - age / total
    chosen = torch.multinomial(weights, short, replacement=False, generator=generator)
    return chosen.sort().values
