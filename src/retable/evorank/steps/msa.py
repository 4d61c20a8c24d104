"""Alignments of the proteins to their homologs in a sequence database."""

import logging
from pathlib import Path

from retable.common.data.arrays import save_arrays
from retable.common.data.bundles import read_bundle
from retable.evorank.config import MsaSettings
from retable.evorank.files import load_backbones
from retable.evorank.msa import build_msa, load_database

logger = logging.getLogger("retable")


def msa(
    training: Path,
    test: Path,
    sequences: Path,
    alignments: Path,
    *,
    part: int,
    parts: int,
    settings: MsaSettings,
) -> None:
    """Write the alignment (R, L) of every `parts`-th protein, from number `part` on."""
    backbones = load_backbones(training) | load_backbones(test)
    database = load_database(list(read_bundle(sequences).values()))
    if settings.database_sequences is not None:
        database = database[: settings.database_sequences]
    found = {}
    for name in list(backbones)[part::parts]:
        found[name] = build_msa(
            backbones[name].sequence,
            database,
            e_value=settings.e_value,
            max_hits=settings.max_hits,
            rounds=settings.rounds,
        )
        logger.info("%s: %d homologs", name, len(found[name]) - 1)
    save_arrays(alignments, found)
