"""Block models by name: how the configuration and the tables call their graphs."""

import math
import re
from typing import NamedTuple, Self

from retable.common.errors import InputError

_NAME = re.compile(r"sbm_log_a([\d.]+)_b([\d.]+)_n(\d+)(?:_k(\d+))?")


class BlockModel(NamedTuple):
    """A block model with p = a ln(n)/n inside and q = b ln(n)/n between k communities."""

    a: float
    b: float
    n: int
    k: int = 2

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read a name such as `sbm_log_a6_b1_n4000` or `sbm_log_a8_b1_n1000_k3`."""
        found = _NAME.fullmatch(name)
        if found is None:
            raise InputError(
                f"config/deepwalk.yaml: datasets: '{name}' is no block model; "
                "write sbm_log_a<number>_b<number>_n<nodes>, with _k<communities> for more than 2"
            )
        return cls(float(found[1]), float(found[2]), int(found[3]), int(found[4] or 2))

    def __str__(self) -> str:
        tail = "" if self.k == 2 else f"_k{self.k}"
        return f"sbm_log_a{self.a:g}_b{self.b:g}_n{self.n}{tail}"

    @property
    def p(self) -> float:
        """Edge probability inside a community."""
        return self.a * math.log(self.n) / self.n

    @property
    def q(self) -> float:
        """Edge probability between two communities."""
        return self.b * math.log(self.n) / self.n
