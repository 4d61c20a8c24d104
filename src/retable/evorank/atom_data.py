"""Environments of atoms on disk: files that are mapped into memory, read a batch at a time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from torch import Tensor

from retable.common.errors import InputError

TRAINING, HELD_OUT = 0, 1
_OF_ATOMS = ("element", "charge", "point_area", "xyz")
_AREA = 10.0  # square Angstrom: surfaces enter the network in this unit


@dataclass(frozen=True)
class AtomBatch:
    """Environments of B residues, as the network takes them.

    Attributes:
        element: (B, A) int64; mask: (B, A) bool, False beyond an environment's last atom.
        properties: (B, A, 2) float32, partial charge and surface in 10 square Angstrom.
        xyz: (B, A, 3) float32 in Angstrom, from the CA.
        wildtype: (B,) int64; p: (B, 20) float32, of uniform rows where there is no alignment.
    """

    element: Tensor
    properties: Tensor
    xyz: Tensor
    mask: Tensor
    wildtype: Tensor
    p: Tensor

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.element, self.properties, self.xyz, self.mask

    def to(self, device: torch.device) -> "AtomBatch":
        return AtomBatch(*(part.to(device) for part in vars(self).values()))

    def emptied(self) -> "AtomBatch":
        """The same residues without any atom around them."""
        return replace(
            self,
            element=self.element[:, :1],
            properties=self.properties[:, :1],
            xyz=self.xyz[:, :1],
            mask=torch.zeros_like(self.mask[:, :1]),
        )


def save_environments(path: Path, tables: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Write the environments of several proteins, by name.

    Each table is that of `environment_table`; it may hold `p` (N, 20), and `split` (N,), 0 for
    training and 1 for held out. Without proteins the file has no positions.
    """
    arrays: dict[str, list[np.ndarray]] = {}
    shift = 0
    for number, table in enumerate(tables.values()):
        count = len(table["wildtype"])
        own = dict(table)
        own["atoms"] = np.where(own["atoms"] < 0, -1, own["atoms"] + shift).astype(np.int32)
        own["protein"] = np.full(count, number, dtype=np.int32)
        own["p"] = np.asarray(own.get("p", np.full((count, 20), 0.05)), dtype=np.float32)
        own["split"] = np.asarray(own.get("split", np.zeros(count)), dtype=np.uint8)
        for key, array in own.items():
            arrays.setdefault(key, []).append(array)
        shift += len(own["element"])
    joined = {key: np.ascontiguousarray(np.concatenate(parts)) for key, parts in arrays.items()}
    save_file(joined, path, metadata={"proteins": json.dumps(list(tables))})


class AtomPositions:
    """The positions of some files, as one sequence; `positions.batch(index)` reads some.

    Args:
        paths: what `save_environments` wrote, in this order; they are mapped, not read.
        split: 0 or 1 for the positions of that split alone.
        most: positions at most, spread evenly over all; None for all.
    """

    def __init__(
        self, paths: Sequence[Path], split: int | None = None, most: int | None = None
    ) -> None:
        self.files: list[dict[str, Tensor]] = []
        self.proteins: list[str] = []  # of all files
        files, rows, proteins = [], [], []
        for number, path in enumerate(paths):
            with safe_open(path, framework="pt") as file:
                names = json.loads(file.metadata()["proteins"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            self.files.append(tensors)
            if names:
                found = torch.arange(len(tensors["wildtype"]))
                if split is not None:
                    found = found[tensors["split"] == split]
                files.append(torch.full_like(found, number))
                rows.append(found)
                proteins.append(tensors["protein"][found].long() + len(self.proteins))
            self.proteins += names
        if not rows or not sum(map(len, rows)):
            kind = {None: "", TRAINING: "training ", HELD_OUT: "held-out "}[split]
            raise InputError(f"{paths[0]} and the files beside it: there are no {kind}positions")
        self._file, self._row, self.protein = map(torch.cat, (files, rows, proteins))
        if most is not None and most < len(self._row):
            kept = torch.from_numpy(np.linspace(0, len(self._row) - 1, most).round().astype(int))
            self._file, self._row = self._file[kept], self._row[kept]
            self.protein = self.protein[kept]

    def __len__(self) -> int:
        return len(self._row)

    @property
    def wildtype(self) -> Tensor:
        """(N,) int64."""
        return self._of_positions("wildtype").long()

    @property
    def p(self) -> Tensor:
        """(N, 20) float32."""
        return self._of_positions("p")

    def _of_positions(self, name: str) -> Tensor:
        parts = [
            tensors[name][self._row[self._file == number]]
            for number, tensors in enumerate(self.files)
            if name in tensors
        ]
        return torch.cat(parts)

    def batch(self, index: Tensor) -> AtomBatch:
        """Environments of some positions, in their order; as wide as the largest of them."""
        index = torch.as_tensor(index).cpu()
        files, rows = self._file[index], self._row[index]
        order, parts = [], []
        for number in files.unique().tolist():
            here = (files == number).nonzero()[:, 0]
            order.append(here)
            parts.append(_gather(self.files[number], rows[here]))
        back = torch.cat(order).argsort()
        joined = [torch.cat([vars(part)[name] for part in parts])[back] for name in vars(parts[0])]
        found = AtomBatch(*joined)
        width = max(1, int(found.mask.sum(1).max()))
        return replace(
            found,
            element=found.element[:, :width],
            properties=found.properties[:, :width],
            xyz=found.xyz[:, :width],
            mask=found.mask[:, :width],
        )


def _gather(tensors: Mapping[str, Tensor], rows: Tensor) -> AtomBatch:
    atoms = tensors["atoms"][rows].long()
    mask = atoms >= 0
    element, charge, area, xyz = (tensors[name][atoms.clamp(min=0)] for name in _OF_ATOMS)
    surface = tensors["exposed"][rows] * area / _AREA
    properties = torch.stack([charge, surface], dim=-1)
    around = xyz - tensors["ca"][rows][:, None]
    return AtomBatch(
        element.long().masked_fill(~mask, 0),
        properties.masked_fill(~mask[..., None], 0),
        around.masked_fill(~mask[..., None], 0),
        mask,
        tensors["wildtype"][rows].long(),
        tensors["p"][rows],
    )
