"""From interactions to users' sequences."""

from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays
from retable.hstu.config import PrepareSettings
from retable.hstu.events import (
    Interactions,
    build_sequences,
    keep_core,
    pack_sequences,
    relabel_items,
)


def prepare(interactions: Path, sequences: Path, *, settings: PrepareSettings) -> None:
    """Write every user's events in time order, items numbered 1..V."""
    arrays = load_arrays(interactions)
    inter = Interactions(*(arrays[name] for name in Interactions.__dataclass_fields__))
    if settings.five_core:
        inter = keep_core(inter)
    if settings.max_users is not None:
        keep = np.isin(inter.user, np.unique(inter.user)[: settings.max_users])
        inter = Interactions(*(getattr(inter, n)[keep] for n in Interactions.__dataclass_fields__))
    inter, item_id_map = relabel_items(inter)
    save_arrays(sequences, pack_sequences(build_sequences(inter), item_id_map))
