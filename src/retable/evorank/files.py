"""Backbones and alignments as plain arrays, and the user's own files."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays
from retable.common.errors import InputError
from retable.evorank.alphabet import decode, encode
from retable.evorank.structure import Backbone


def backbone_arrays(backbones: Mapping[str, Backbone]) -> dict[str, np.ndarray]:
    """`<name>.sequence` (codes), `.numbers`, `.coords`, `.chain` of each structure."""
    arrays = {}
    for name, backbone in backbones.items():
        arrays |= {
            f"{name}.sequence": encode(backbone.sequence),
            f"{name}.numbers": backbone.residue_numbers,
            f"{name}.coords": backbone.coords,
            f"{name}.chain": np.array(backbone.chain),
        }
    return arrays


def load_backbones(path: Path) -> dict[str, Backbone]:
    """The structures that `backbone_arrays` laid out, in their order."""
    arrays = load_arrays(path)
    names = [name.removesuffix(".sequence") for name in arrays if name.endswith(".sequence")]
    return {
        name: Backbone(
            decode(arrays[f"{name}.sequence"]),
            arrays[f"{name}.numbers"],
            str(arrays[f"{name}.chain"]),
            arrays[f"{name}.coords"],
        )
        for name in names
    }


def load_alignments(paths: Iterable[Path]) -> dict[str, np.ndarray]:
    """Alignments (R, L) by name, of all parts."""
    return {name: msa for path in paths for name, msa in load_arrays(path).items()}


def own_path(value: str | None, key: str, what: str) -> Path:
    """The file or folder that the configuration names under `own: key`.

    Raises:
        InputError: none is named, or it is not there; the line says what it must be.
    """
    place = f"config/evorank.yaml, own: {key}"
    if value is None:
        raise InputError(f"{place}: nothing is named; it must be {what}")
    path = Path(value).expanduser()
    if not path.exists():
        raise InputError(f"{place}: {path}: no such file; it must be {what}")
    return path
