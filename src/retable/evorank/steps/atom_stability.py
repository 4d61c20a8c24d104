"""Measured changes of stability on their structures, as environments of atoms."""

import logging
from collections import defaultdict
from pathlib import Path

import numpy as np

from retable.common.data.bundles import read_bundle
from retable.common.errors import InputError
from retable.evorank.alphabet import AMINO_ACIDS
from retable.evorank.atom_data import save_environments
from retable.evorank.atoms import environment_table, read_atoms
from retable.evorank.benchmarks import StabilityChange, read_stability
from retable.evorank.config import AtomStabilitySettings
from retable.evorank.files import own_path
from retable.evorank.own_files import structure_file
from retable.evorank.placing import MOST_DISAGREEMENT
from retable.evorank.variants import Variants, save_variants

logger = logging.getLogger("retable")


def atom_stability(
    changes: list[Path],
    positions: Path,
    variants: Path,
    *,
    dataset: str,
    settings: AtomStabilitySettings,
) -> None:
    """Write the environments of all positions of T2837 or C2878, and their mutants.

    The structures are the user's, by PDB code; a change is placed by chain, residue number and the
    wild type. The score of a mutant is -ddG: higher is more stable.
    """
    folder = own_path(
        settings.structures,
        "stability_structures",
        "a folder with the structures of T2837 and C2878, named by PDB code",
    )
    if dataset == "t2837":
        content = read_bundle(changes[0])["T2837.csv"]
    else:
        content = own_path(settings.changes, "finetuning", "the file C2878.csv").read_bytes()
    try:
        found = read_stability(content, dataset)
    except ValueError as error:
        raise InputError(str(error)) from None
    by_chain: dict[tuple[str, str], list[StabilityChange]] = defaultdict(list)
    for change in found:
        by_chain[change.structure, change.chain].append(change)
    tables, sequences, placed, count = {}, [], [], 0
    for (code, chain), own in sorted(by_chain.items()):
        try:
            structure = read_atoms(structure_file(folder, code), chain)
        except ValueError as error:
            raise InputError(str(error)) from None
        places: dict[tuple[int, str], int] = {}
        for index, number in enumerate(structure.residue_numbers.tolist()):
            # Of residues that only an insertion code tells apart the first counts.
            places.setdefault((number, structure.sequence[index]), index)
        kept = [change for change in own if (change.position, change.wildtype) in places]
        if len(kept) < len(own):
            logger.warning("%s %s: %d changes have no place", code, chain, len(own) - len(kept))
        if not kept:
            continue
        used = sorted({places[change.position, change.wildtype] for change in kept})
        rows = {index: count + k for k, index in enumerate(used)}
        placed += [(change, rows[places[change.position, change.wildtype]]) for change in kept]
        tables[f"{code}_{chain}"] = environment_table(
            structure, used, settings.atoms, settings.points
        )
        sequences.append(structure.sequence)
        count += len(used)
    if len(placed) < (1 - MOST_DISAGREEMENT) * len(found) or not placed:
        raise InputError(
            f"{dataset}: only {len(placed)} of {len(found)} changes lie on the structures of "
            f"{folder}; at least {100 * (1 - MOST_DISAGREEMENT):.0f} % must"
        )
    save_environments(positions, tables)
    total = np.arange(len(placed))
    save_variants(
        variants,
        Variants(
            assays=(dataset,),
            sequences=tuple(sequences),
            mutants=tuple(
                f"{c.structure}_{c.chain}:{c.wildtype}{c.position}{c.mutant}" for c, _ in placed
            ),
            scores=np.array([-change.ddg for change, _ in placed]),
            assay=np.zeros(len(placed), dtype=np.int64),
            variant=total,
            position=np.array([row for _, row in placed]),
            wild=np.array([AMINO_ACIDS.index(change.wildtype) for change, _ in placed]),
            letter=np.array([AMINO_ACIDS.index(change.mutant) for change, _ in placed]),
        ),
    )
