"""One part of the training data: environments of atoms and what alignments say of them."""

import logging
from pathlib import Path

import numpy as np

from retable.common.errors import InputError
from retable.evorank.alphabet import BACKGROUND, decode
from retable.evorank.atom_data import HELD_OUT, TRAINING, save_environments
from retable.evorank.atoms import environment_table, read_atoms
from retable.evorank.config import AtomShardSettings
from retable.evorank.msa import read_alignment, site_distribution
from retable.evorank.own_files import Protein, held_out_families, own_proteins
from retable.evorank.placing import alike, place_sequence
from retable.evorank.variants import load_variants

logger = logging.getLogger("retable")


def atom_shard(
    own: list[Path],
    tests: list[Path],
    positions: Path,
    *,
    part: int,
    parts: int,
    settings: AtomShardSettings,
) -> None:
    """Write the environments of every `parts`-th of the user's proteins, from number `part` on.

    Left out, with a log line each, are proteins with few homologs, those like a tested one, and
    those whose alignment is of another sequence; positions that are shallow or have no residue in
    the structure are passed over. `own` is the list of the proteins, if it is a file.
    """
    proteins = own_proteins(settings.proteins)
    held_out = held_out_families(proteins, settings.held_out)
    tested = {sequence: sequence for path in tests for sequence in load_variants(path).sequences}
    tables = {}
    for protein in proteins[part::parts]:
        table = _table(protein, tested, settings)
        if table is not None:
            split = HELD_OUT if protein.family in held_out else TRAINING
            tables[protein.name] = table | {"split": np.full(len(table["wildtype"]), split)}
    count = sum(len(table["wildtype"]) for table in tables.values())
    logger.info("%d positions of %d proteins", count, len(tables))
    save_environments(positions, tables)


def _table(
    protein: Protein, tested: dict[str, str], settings: AtomShardSettings
) -> dict[str, np.ndarray] | None:
    try:
        structure = read_atoms(protein.structure, protein.chain or None)
        msa = read_alignment(protein.alignment, max_rows=settings.max_rows)
    except (ValueError, OSError) as error:
        raise InputError(str(error)) from None
    if len(msa) - 1 < settings.least_hits:
        logger.info("%s: left out, %d homologs", protein.name, len(msa) - 1)
        return None
    mapping, share = place_sequence(structure.sequence, decode(msa[0]))
    if not mapping:
        logger.warning(
            "%s: left out, %.0f %% of the structure disagree with its alignment",
            protein.name,
            100 * share,
        )
        return None
    if settings.identity is not None:
        like = alike(structure.sequence, tested, settings.identity, settings.aligned)
        if like:
            logger.info("%s: left out, like the tested %s...", protein.name, like[:20])
            return None
    p, depth = site_distribution(msa, BACKGROUND, settings.pseudocount)
    used = np.array([i for i, j in mapping.items() if depth[j] >= settings.least_depth], dtype=int)
    if not len(used):
        logger.info("%s: no position is deep enough", protein.name)
        return None
    if settings.positions is not None and len(used) > settings.positions:
        used = used[np.linspace(0, len(used) - 1, settings.positions).round().astype(int)]
    columns = [mapping[i] for i in used.tolist()]
    table = environment_table(structure, used, settings.atoms, settings.points)
    return table | {"p": p[columns].astype(np.float32)}
