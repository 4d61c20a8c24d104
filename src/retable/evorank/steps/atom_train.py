"""Train the atom-level network on one objective: every seed of the job."""

from pathlib import Path

from retable.common.checkpoints import Checkpoints
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.evorank.atom_data import TRAINING, AtomPositions
from retable.evorank.atom_networks import save_atom_networks
from retable.evorank.atom_training import train_atom_network
from retable.evorank.config import AtomTrainSettings


def atom_train(
    positions: list[Path],
    model: Path,
    history: Path,
    *,
    method: str,
    seeds: Seeds,
    settings: AtomTrainSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write the weights (`<seed>.<parameter>`) and the mean loss of each pass over the data."""
    data = AtomPositions(positions, TRAINING)
    networks, rows = {}, []
    for seed in seeds:
        networks[seed], found = train_atom_network(
            data, settings, seed, checkpoints=checkpoints, name=f"{method}-seed{seed}"
        )
        rows += [
            {
                "experiment": "training",
                "dataset": "training",
                "method": method,
                "seed": seed,
                "metric": "loss",
                "x": row["epoch"],
                "value": row["loss"],
            }
            for row in found
        ]
    save_atom_networks(model, networks, settings, mutations=settings.method.objective == "evorank")
    write_metrics(rows, history)
