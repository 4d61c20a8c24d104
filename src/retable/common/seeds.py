"""Seeds as a wildcard: `3` or `0-4`, one job for each group of neighbouring seeds."""

import re
from collections.abc import Sequence

PATTERN = r"\d+(-\d+)?"


class Seeds(tuple[int, ...]):
    """The seeds of one job, in rising order; `str(Seeds)` is the wildcard's text."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Seeds":
        """Read `3` or `0-4` (both ends included); ValueError for anything else."""
        if not re.fullmatch(PATTERN, text):
            raise ValueError(f"seeds: '{text}' is neither a seed (3) nor a range (0-4)")
        first, _, last = text.partition("-")
        if last and int(last) <= int(first):
            raise ValueError(f"seeds: the range '{text}' must rise")
        return cls(range(int(first), int(last or first) + 1))

    def __str__(self) -> str:
        return str(self[0]) if len(self) == 1 else f"{self[0]}-{self[-1]}"


def group_seeds(seeds: Sequence[int], per_job: int) -> list[str]:
    """Split seeds into the wildcards of jobs that hold at most `per_job` seeds each.

    A group never crosses a multiple of `per_job`, so a seed that is added later starts or
    extends the last group alone and leaves every other job as it was.
    """
    if per_job < 1:
        raise ValueError(f"seeds_per_job must be >= 1, got {per_job}")
    groups: list[list[int]] = []
    for seed in sorted(set(seeds)):
        last = groups[-1] if groups else None
        if last and seed == last[-1] + 1 and seed // per_job == last[0] // per_job:
            last.append(seed)
        else:
            groups.append([seed])
    return [str(Seeds(group)) for group in groups]
