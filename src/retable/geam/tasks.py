"""A task's oracle by its name: a docking target or a multi-property task."""

import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rdkit.Chem import Mol

from retable.common.data.bundles import read_bundle
from retable.common.environment import cache_folder
from retable.common.errors import InputError
from retable.geam.docking import DOCKING_TARGETS, DockingProperty, VinaEngine, docking_target
from retable.geam.oracles import mpo

_BINARIES = {"linux": "vina_linux", "darwin": "vina_mac_catalina"}


def make_oracle(
    name: str,
    receptors: Sequence[Path],
    folder: Path,
    exhaustiveness: int = 1,
) -> Callable[[Mol], float]:
    """The property of a task.

    Docking scores are kept in the user's cache (`docking/` there): all jobs of a target share
    them, and they outlive the results, since each is a measurement of some seconds. As many
    ligands are docked side by side as the job has threads; torch keeps one of them.

    Args:
        receptors: the bundle of receptors and engine, for docking targets.
        folder: of this job alone; receptor and engine go there.

    Raises:
        ValueError: unknown task.
        InputError: no engine for this platform, or a bundle without the engine or the receptor.
    """
    if name not in DOCKING_TARGETS:
        return mpo(name)
    if not receptors:
        raise InputError(f"docking target {name!r}: no bundle of receptors is given")
    binary = _BINARIES.get(sys.platform)
    if binary is None:
        raise InputError(f"no docking engine for {sys.platform}; there are {sorted(_BINARIES)}")
    files = read_bundle(receptors[0])
    folder.mkdir(parents=True, exist_ok=True)
    receptor = f"{name.upper()}_target.pdbqt"
    for file in (binary, receptor):
        if file not in files:
            raise InputError(
                f"{receptors[0]}: no {file}, which docking target {name!r} needs; name a folder "
                f"with your own {file} and the other files of dockstring in config/config.yaml "
                "(data: dockstring: /path)"
            )
        (folder / file).write_bytes(files[file])
    engine = folder / binary
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    cache = cache_folder() / "docking"
    cache.mkdir(parents=True, exist_ok=True)
    place, box = docking_target(name, folder)
    return DockingProperty(
        VinaEngine(
            place, box, cache=cache, binary=engine, exhaustiveness=exhaustiveness,
            threads=_threads_for_docking(),
        )
    )  # fmt: skip


def _threads_for_docking() -> int:
    """The job's threads; torch computes on one from now on, for which alone bytes are promised."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    return threads
