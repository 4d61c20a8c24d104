"""Several processes for one job, one a GPU, started by Hugging Face's `accelerate launch`."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

logger = logging.getLogger("retable")
_ON_CPU = "ACCELERATE_USE_CPU"


def count_processes(wanted: int) -> int:
    """How many processes a job gets that asked for so many GPUs: not more than there are GPUs.

    With accelerate's own variable ACCELERATE_USE_CPU they compute on the CPU, as many as wanted.
    """
    if wanted <= 1 or os.environ.get(_ON_CPU, "").lower() in ("1", "true", "yes"):
        return max(1, wanted)
    import torch

    there = torch.cuda.device_count()
    if there < wanted:
        logger.warning("%d GPUs asked for, %d are there", wanted, there)
    return max(1, min(wanted, there))


def launch(command: Sequence[str], description: bytes, processes: int, keep_open: int) -> int:
    """Run `command FILE` in so many processes that know of each other; return the exit status.

    FILE holds `description`; each process announces itself there (`announce`). SIGTERM is handed to
    the processes, which end by themselves; then SystemExit with 143 is raised.

    Args:
        command: script and first arguments.
        description: what the processes read.
        processes: >= 2.
        keep_open: file descriptor that is held as long as the processes run (the job's lock).
    """
    with tempfile.TemporaryDirectory(prefix="retable-") as place:
        file = Path(place) / "job.json"
        file.write_bytes(description)
        asked = False

        def hand_on(signum: int, frame: Any) -> None:
            nonlocal asked
            asked = True
            for process in Path(place).glob("*.pid"):
                with contextlib.suppress(ProcessLookupError, ValueError):
                    os.kill(int(process.read_text()), signal.SIGTERM)

        logger.info("%d processes", processes)
        earlier = signal.signal(signal.SIGTERM, hand_on)
        try:
            status = subprocess.run(
                [
                    *(sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"),
                    *("--num_processes", str(processes), "--num_machines", "1"),
                    *("--mixed_precision", "no", "--dynamo_backend", "no"),
                    *("--main_process_port", "0", *command, str(file)),
                ],
                # Slurm sends SIGTERM to everything at once. The launcher would give the processes
                # half a minute from then on: it ignores the signal and waits for them instead.
                env=os.environ | {"TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGINT"},
                preexec_fn=_ignore_sigterm,
                pass_fds=(keep_open,),
            ).returncode
        finally:
            signal.signal(signal.SIGTERM, earlier)
        if asked:
            raise SystemExit(128 + signal.SIGTERM)
        return status


def _ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def rank() -> int:
    """The number of this process among those of its job; 0 is the one whose outputs are kept."""
    return int(os.environ.get("RANK", "0"))


@contextlib.contextmanager
def announced(file: Path) -> Iterator[None]:
    """Within it this process gets the SIGTERM that its job gets."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    note = file.with_name(f"{rank()}.pid")
    note.write_text(str(os.getpid()))
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
