"""Simultaneous gradient descent with a guarded step (the algorithm that the theory follows)."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# A rise of the loss below this share of its value is rounding.
_RISE = 1e-10
_MOST_HALVINGS = 20

Objective = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray, np.ndarray]]


class ConvergenceError(RuntimeError):
    """The descent left the finite numbers, or no step lowered the loss."""


class Descent(NamedTuple):
    """Where a descent ended, and one entry of `history` per point that it visited."""

    x: np.ndarray
    y: np.ndarray
    converged: bool
    n_iter: int
    history: dict[str, np.ndarray]


def check_descent(*, init_scale: float, step: float, max_iter: int, tol: float) -> None:
    """Raise ValueError for settings that no descent can have."""
    if not 0 < init_scale < math.inf:
        raise ValueError(
            f"init_scale must be positive, got {init_scale}; zero is a stationary point"
        )
    if not 0 < step < math.inf:
        raise ValueError(f"step must be positive, got {step}")
    if not max_iter >= 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter}")
    if not tol >= 0:
        raise ValueError(f"tol must be >= 0, got {tol}")


def rms(values: np.ndarray) -> float:
    """Root mean square of all entries."""
    return math.sqrt(np.vdot(values, values) / values.size)


def descend(
    objective: Objective,
    x: np.ndarray,
    y: np.ndarray,
    *,
    step: float,
    max_iter: int,
    tol: float,
    stop_at_rms: float | None = None,
    watch: Callable[[int, np.ndarray, np.ndarray], dict[str, float]] | None = None,
) -> Descent:
    """x -= step dL/dx and y -= step dL/dy, both at the old point, until both gradients vanish.

    objective: (x, y) -> (loss, dL/dx, dL/dy). Stops when the root mean square of both gradients is
    below tol, or below tol times that of the vectors while these are shorter than 1 (converged);
    after max_iter steps; or when that of x reaches stop_at_rms. A step that
    raises the loss is taken back and the step size halved for good: high-degree nodes make the
    loss steep, and a fixed step can diverge. `watch(t, x, y)` sees every point and may return
    further numbers to record. Raises ConvergenceError if a value is not finite or 20 halvings of
    one step do not help.
    """
    records: list[dict[str, float]] = []
    loss, grad_x, grad_y = objective(x, y)
    while True:
        t = len(records)
        steep_x, steep_y = rms(grad_x), rms(grad_y)
        records.append(
            {
                "loss": loss,
                "grad_rms": max(steep_x, steep_y),
                "grad_rms_x": steep_x,
                "grad_rms_y": steep_y,
                "x_rms": rms(x),
                "y_rms": rms(y),
                "step": step,
            }
        )
        if not math.isfinite(sum(records[-1].values())):
            raise ConvergenceError(
                f"loss, gradient or embedding is not finite after {t} steps: "
                "start shorter (init_scale) or take a smaller step"
            )
        if watch is not None:
            records[-1].update(watch(t, x, y))
        # At 0 the gradient vanishes too, but no faster than the vectors: measured by their length,
        # it is small only where the descent really rests.
        length = min(1.0, max(records[-1]["x_rms"], records[-1]["y_rms"]))
        converged = records[-1]["grad_rms"] < tol * length
        long_enough = stop_at_rms is not None and records[-1]["x_rms"] >= stop_at_rms
        if converged or long_enough or t == max_iter:
            history = {name: np.array([row[name] for row in records]) for name in records[0]}
            return Descent(x, y, converged, t, history)

        halvings = 0
        while True:
            trial_x, trial_y = x - step * grad_x, y - step * grad_y
            trial = objective(trial_x, trial_y)
            if not trial[0] > loss + _RISE * abs(loss):
                break
            if halvings == _MOST_HALVINGS:
                raise ConvergenceError(
                    f"the loss still rises after {halvings} halvings of step {t + 1}"
                )
            halvings += 1
            step /= 2
        x, y = trial_x, trial_y
        loss, grad_x, grad_y = trial
