"""Scores of all substitutions at the positions of a benchmark, by trained networks."""

from pathlib import Path

from accelerate import Accelerator

from retable.common.data.arrays import save_arrays
from retable.evorank.atom_data import AtomPositions
from retable.evorank.atom_networks import load_atom_networks
from retable.evorank.atom_training import score_atom_positions
from retable.evorank.config import AtomScoreSettings


def atom_score(positions: Path, model: Path, scores: Path, *, settings: AtomScoreSettings) -> None:
    """Write `<seed>` (N, 20) float32 of each network, higher = more tolerated."""
    networks, about, mutations = load_atom_networks(model)
    data, device = AtomPositions([positions]), Accelerator().device
    save_arrays(
        scores,
        {
            str(seed): score_atom_positions(
                network.to(device),
                data,
                mutations=mutations,
                environment=about.method.environment,
                batch=settings.batch,
            )
            for seed, network in networks.items()
        },
    )
