"""Runs of generation that are killed and go on where they were.

A run's state is saved between its parts (a step of the episodes, a batch of oracle calls, an
update) whenever a checkpoint is due. While the oracle works nothing but its values changes, so that
the state may be saved there too.
"""

import json
import logging
import signal
import threading
from collections.abc import Callable, Iterable
from random import Random
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np

from retable.common.checkpoints import Checkpoints
from retable.geam.oracles import OracleStopped

logger = logging.getLogger("retable")
EXIT_TERMINATED = 128 + signal.SIGTERM
State = Callable[[], dict[str, Any]]


class Keeper:
    """Keeps the state of one run; within it SIGTERM saves the state and ends the process.

    Args:
        checkpoints: where to save; None keeps nothing.
        name: tells apart the runs of one job.

    Raises:
        SystemExit: 143 after SIGTERM, with the state in a checkpoint.
    """

    def __init__(self, checkpoints: Checkpoints | None, name: str):
        self._checkpoints = checkpoints
        self._name = name
        self._asked = False
        self._earlier: Any = None

    def __enter__(self) -> Self:
        # Signals come to the main thread alone (a notebook's worker has none to handle).
        self._handles = (
            self._checkpoints is not None and threading.current_thread() is threading.main_thread()
        )
        if self._handles:
            self._earlier = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handles:
            # The process ends: a repeated request must not cut that short.
            ends = kind is not None and issubclass(kind, SystemExit)
            signal.signal(signal.SIGTERM, signal.SIG_IGN if ends else self._earlier)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def load(self) -> dict[str, Any] | None:
        """The state to go on from; None at the start."""
        return None if self._checkpoints is None else self._checkpoints.load(self._name)

    def __call__(self, state: State) -> None:
        """Save the state if that is due, or if the process was asked to end."""
        if self._checkpoints is not None and (self._asked or self._checkpoints.due()):
            self.save(state)

    def save(self, state: State) -> None:
        """Save the state now; end the process if it was asked to."""
        if self._checkpoints is None:
            return
        self._checkpoints.save(state(), self._name)
        if self._asked:
            logger.warning("%s: asked to stop; the next attempt goes on here", self._name)
            raise SystemExit(EXIT_TERMINATED)

    def evaluate(self, ahead: Iterable[None], state: State) -> None:
        """Let the oracle work ahead; the state is what it was before, but for the values."""
        try:
            for _ in ahead:
                self(state)
        except OracleStopped:
            # A request to end may go to the docking engine too.
            if self._asked:
                self.save(state)
            raise


def numpy_state(rng: np.random.Generator) -> str:
    """The state of a generator of numpy as text."""
    return json.dumps(rng.bit_generator.state)


def set_numpy_state(rng: np.random.Generator, text: str) -> None:
    """Put a generator into a state that `numpy_state` gave."""
    rng.bit_generator.state = json.loads(text)


def python_state(rng: Random) -> str:
    """The state of a generator of the standard library as text."""
    return json.dumps(rng.getstate())


def python_random(text: str) -> Random:
    """A generator of the standard library in a state that `python_state` gave."""
    version, internal, gauss = json.loads(text)
    rng = Random()
    rng.setstate((version, tuple(internal), gauss))
    return rng
