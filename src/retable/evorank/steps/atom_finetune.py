"""The reference that has seen experiments: the wild-type network trained on stability."""

from pathlib import Path

from retable.common.checkpoints import Checkpoints
from retable.common.seeds import Seeds
from retable.evorank.atom_data import AtomPositions
from retable.evorank.atom_networks import load_atom_networks, save_atom_networks
from retable.evorank.atom_training import Stability, finetune_atom_network
from retable.evorank.config import AtomFinetuneSettings
from retable.evorank.variants import load_variants


def atom_finetune(
    positions: Path,
    variants: Path,
    models: list[Path],
    model: Path,
    *,
    seeds: Seeds,
    settings: AtomFinetuneSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write the weights of each seed; the pretrained network is the wild-type one of that seed."""
    data, measured = AtomPositions([positions]), load_variants(variants)
    changes = Stability(measured.position, measured.letter, measured.scores)
    networks = {}
    for path in models:
        pretrained, about, _ = load_atom_networks(path)
        for seed in sorted(set(pretrained) & set(seeds)):
            networks[seed] = finetune_atom_network(
                pretrained[seed],
                data,
                changes,
                settings,
                seed,
                checkpoints=checkpoints,
                name=f"finetune-seed{seed}",
            )
    save_atom_networks(model, networks, about, mutations=True)
