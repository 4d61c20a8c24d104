"""Backbones, alignments and data sets as plain arrays, and networks with their settings."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays
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
