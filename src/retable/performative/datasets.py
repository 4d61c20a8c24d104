"""What the names of data sets say."""

import re

# The least risk of the toy, at θ = 2/3.
OPTIMAL_TOY_RISK = -8 / 27


def dimension(dataset: str) -> int | None:
    """The number of bits of a data set `bernoulli_d<d>`; None for others."""
    found = re.fullmatch(r"bernoulli_d(\d+)", dataset)
    return int(found[1]) if found else None
