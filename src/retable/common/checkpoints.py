"""Checkpoints of one job: atomic, checked, and only ever used for the job that wrote them."""

import hashlib
import io
import logging
import pickle
import time
from pathlib import Path
from typing import Any

from retable.common.files import remove_partial, whole

logger = logging.getLogger("retable")


class Checkpoints:
    """The newest state of a job, in `folder/<name>.pt`.

    Args:
        folder: of this job alone; made when the first checkpoint is written.
        identity: what the job's result depends on; a checkpoint with another one is discarded.
        seconds: time between two periodic checkpoints.
    """

    def __init__(self, folder: Path, identity: str, seconds: float = 60.0) -> None:
        self.folder = folder
        self.identity = identity
        self.seconds = seconds
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for the next periodic checkpoint."""
        return time.monotonic() - self._last >= self.seconds

    def save(self, state: dict[str, Any], name: str = "state") -> None:
        """Replace the checkpoint `name` by `state` (tensors, numbers, text, lists, dicts)."""
        import torch

        buffer = io.BytesIO()
        torch.save({"identity": self.identity, "state": state}, buffer)
        content = buffer.getvalue()
        path = self._path(name)
        with whole(path) as part:
            part.write_bytes(hashlib.sha256(content).digest() + content)
        self._last = time.monotonic()

    def load(self, name: str = "state") -> dict[str, Any] | None:
        """The state to go on from, or None: none is there, it is damaged, or it is another job's.

        The reason for discarding one stands in the log.
        """
        import torch

        path = self._path(name)
        remove_partial(path)
        if not path.exists():
            return None
        raw = path.read_bytes()
        digest, content = raw[:32], raw[32:]
        if hashlib.sha256(content).digest() != digest:
            logger.warning("%s: the checkpoint is damaged; starting anew", path)
            path.unlink(missing_ok=True)
            return None
        try:
            found = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
        except (pickle.UnpicklingError, RuntimeError) as error:
            reason = str(error).partition("\n")[0]
            logger.warning("%s: the checkpoint cannot be read (%s); starting anew", path, reason)
            path.unlink(missing_ok=True)
            return None
        if found["identity"] != self.identity:
            logger.warning("%s: settings, code or data have changed; starting anew", path)
            path.unlink(missing_ok=True)
            return None
        logger.info("going on from the checkpoint %s", path)
        return found["state"]

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.pt"
