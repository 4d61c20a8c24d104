"""ProteinGym's assays on their structures, as environments of atoms."""

import logging
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from retable.common.data.bundles import read_bundle
from retable.common.errors import InputError
from retable.evorank.alphabet import encode
from retable.evorank.atom_data import save_environments
from retable.evorank.atoms import AtomStructure, environment_table, parse_atoms
from retable.evorank.benchmarks import GymAssay, archive_files, read_proteingym_archive
from retable.evorank.config import AtomAssaysSettings
from retable.evorank.placing import place_sequence
from retable.evorank.variants import Variants, save_variants

logger = logging.getLogger("retable")
_ASSAYS, _STRUCTURES = "DMS_ProteinGym_substitutions.zip", "ProteinGym_AF2_structures.zip"
_RANGE = re.compile(r"_\d+-\d+$")
_LEAST_VARIANTS = 3


def atom_assays(
    data: Path, positions: Path, variants: Path, *, settings: AtomAssaysSettings
) -> None:
    """Write the environments of all positions that assays have, and the assays' mutants.

    An assay's structures are those whose name, without a range of residues, begins the assay's
    name; large proteins have several. A mutant counts where all of its positions are placed.
    """
    files = read_bundle(data)
    try:
        assays = list(islice(read_proteingym_archive(files[_ASSAYS]), settings.most))
        structures = {
            name: parse_atoms(content, ".pdb", f"{_STRUCTURES}: {name}")
            for name, content in archive_files(files[_STRUCTURES], ".pdb")
            if any(_fits(name, assay.name) for assay in assays)
        }
    except ValueError as error:
        raise InputError(str(error)) from None
    placed = [(assay, placements(assay, structures)) for assay in assays]
    rows: dict[tuple[str, int], int] = {}
    tables = {}
    for name, structure in structures.items():
        used = sorted({i for _, mapping in placed for s, i in mapping.values() if s == name})
        if used:
            rows |= {(name, index): len(rows) + k for k, index in enumerate(used)}
            tables[name] = environment_table(structure, used, settings.atoms, settings.points)
    save_environments(positions, tables)
    save_variants(variants, _variants(placed, rows))


def placements(assay: GymAssay, structures: dict[str, AtomStructure]) -> dict[int, tuple[str, int]]:
    """Position of the assay (from 0) -> structure and residue, of the first one that has it."""
    found: dict[int, tuple[str, int]] = {}
    for name, structure in structures.items():
        if not _fits(name, assay.name):
            continue
        mapping, share = place_sequence(assay.sequence, structure.sequence)
        if not mapping:
            logger.warning("%s: %.0f %% of %s disagree", assay.name, 100 * share, name)
        for position, index in mapping.items():
            found.setdefault(position, (name, index))
    return found


def _fits(structure: str, assay: str) -> bool:
    own = _RANGE.sub("", structure)
    return assay == own or assay.startswith(f"{own}_")


def _variants(
    placed: Iterable[tuple[GymAssay, dict[int, tuple[str, int]]]],
    rows: dict[tuple[str, int], int],
) -> Variants:
    names, sequences, mutants, parts = [], [], [], []
    for assay, mapping in placed:
        row = np.full(len(assay.sequence), -1)
        for position, place in mapping.items():
            row[position] = rows[place]
        missing = np.bincount(
            assay.variant, weights=row[assay.position] < 0, minlength=len(assay.scores)
        )
        kept = missing == 0
        if kept.sum() < _LEAST_VARIANTS:
            logger.warning("%s: left out, %d mutants lie on a structure", assay.name, kept.sum())
            continue
        if not kept.all():
            logger.warning("%s: %d mutants lie on no structure", assay.name, (~kept).sum())
        here = kept[assay.variant]
        number = np.cumsum(kept) - 1 + len(mutants)
        wild = encode(assay.sequence).astype(np.int64)
        parts.append(
            (
                assay.scores[kept],
                np.full(kept.sum(), len(names)),
                number[assay.variant[here]],
                row[assay.position[here]],
                wild[assay.position[here]],
                assay.letter[here],
            )
        )
        names.append(assay.name)
        sequences.append(assay.sequence)
        mutants += [m for m, counted in zip(assay.mutants, kept, strict=True) if counted]
    if not names:
        raise InputError(f"{_ASSAYS}: no assay lies on a structure of {_STRUCTURES}")
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Variants(tuple(names), tuple(dict.fromkeys(sequences)), tuple(mutants), *joined)
