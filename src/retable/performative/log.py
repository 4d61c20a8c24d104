"""What a run deployed: one entry for each deployment, in order."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = ("start", "inner", "outer", "final")


@dataclass(frozen=True)
class Log:
    """The k deployments of a run, in the order in which they were made.

    theta (k, d_Θ): the deployed models; n (k,): samples drawn at each; level (k,): "start" (the
    first look at the start), "inner" (within LearnModel), "outer" (the risk at a learned model;
    all deployments of the baselines) or "final" (the last LearnModel); iteration (k,): the outer
    iteration, 0 for "start"; loss_mean (k,): mean loss of the samples.
    """

    theta: NDArray[np.float64]
    n: NDArray[np.int64]
    level: NDArray[np.str_]
    iteration: NDArray[np.int32]
    loss_mean: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.n)

    def until(self, samples: int) -> "Log":
        """The deployments whose samples, all counted, do not exceed `samples`."""
        k = int(np.searchsorted(np.cumsum(self.n), samples, side="right"))
        return Log(**{field.name: getattr(self, field.name)[:k] for field in fields(self)})


class Deployments:
    """Deploys models of `env`, n samples each, and keeps the log; room for `capacity` of them."""

    def __init__(self, env: Any, n: int, samples: np.random.Generator, capacity: int) -> None:
        self.env = env
        self.n = n
        self._samples = samples
        self._theta = np.empty((capacity, env.d_theta))
        self._level = np.empty(capacity, dtype=np.int8)
        self._iteration = np.empty(capacity, dtype=np.int32)
        self._loss_mean = np.empty(capacity)
        self._k = 0

    def deploy(
        self, theta: NDArray[np.float64], level: str, iteration: int
    ) -> tuple[NDArray[Any], float]:
        """Samples z of the deployed model and their mean loss.

        ValueError when the mean loss is not finite.
        """
        z = self.env.sample(theta, self.n, self._samples)
        loss_mean = float(self.env.loss(z, theta).mean())
        if not np.isfinite(loss_mean):
            raise ValueError(
                f"loss at iteration {iteration} ({level} deployment) is {loss_mean}, "
                f"it must be finite; theta={theta.tolist()}"
            )
        k = self._k
        self._theta[k] = theta
        self._level[k] = LEVELS.index(level)
        self._iteration[k] = iteration
        self._loss_mean[k] = loss_mean
        self._k = k + 1
        return z, loss_mean

    def log(self) -> Log:
        """The log of all deployments so far."""
        k = self._k
        return Log(
            theta=self._theta[:k],
            n=np.full(k, self.n, dtype=np.int64),
            level=np.array(LEVELS)[self._level[:k]],
            iteration=self._iteration[:k],
            loss_mean=self._loss_mean[:k],
        )
