"""A task's oracle by its name: a docking target or a multi-property task."""

import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rdkit.Chem import Mol

from retable.common.data.bundles import read_bundle
from retable.common.errors import InputError
from retable.geam.docking import DOCKING_TARGETS, DockingProperty, VinaEngine, docking_target
from retable.geam.oracles import mpo

_BINARIES = {"linux": "vina_linux", "darwin": "vina_mac_catalina"}


def make_oracle(
    name: str, receptors: Sequence[Path], folder: Path, exhaustiveness: int = 1
) -> Callable[[Mol], float]:
    """The property of a task.

    Args:
        receptors: the bundle of receptors and engine, for docking targets.
        folder: of this job alone; receptor, engine and the cache of docking scores go there.

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
    for file in (binary, f"{name.upper()}_target.pdbqt"):
        if file not in files:
            raise InputError(f"{receptors[0]}: no {file}, which docking target {name!r} needs")
        (folder / file).write_bytes(files[file])
    engine = folder / binary
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    receptor, box = docking_target(name, folder)
    cache = folder / f"docking_{name}.tsv"
    return DockingProperty(
        VinaEngine(receptor, box, cache=cache, binary=engine, exhaustiveness=exhaustiveness)
    )
