"""Trained atom-level networks on disk, each with its settings."""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file

from retable.evorank.atom_training import new_atom_network
from retable.evorank.config import AtomTrainSettings
from retable.evorank.model import AtomGraphTransformer


def save_atom_networks(
    path: Path,
    networks: Mapping[int, AtomGraphTransformer],
    settings: AtomTrainSettings,
    *,
    mutations: bool,
) -> None:
    """Write the weights of each seed (`<seed>.<parameter>`), and whether they score mutations."""
    tensors = {
        f"{seed}.{name}": tensor.detach().cpu().contiguous()
        for seed, network in networks.items()
        for name, tensor in network.state_dict().items()
    }
    about = {"settings": settings.model_dump(mode="json"), "mutations": mutations}
    about["seeds"] = list(networks)
    save_file(tensors, path, metadata={"about": json.dumps(about, sort_keys=True)})


def load_atom_networks(
    path: Path,
) -> tuple[dict[int, AtomGraphTransformer], AtomTrainSettings, bool]:
    """The networks of a file by seed, in evaluation mode; their settings; whether they score
    mutations."""
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    settings = AtomTrainSettings.model_validate(about["settings"])
    found = {}
    for seed in about["seeds"]:
        network = new_atom_network(settings, seed)
        prefix = f"{seed}."
        network.load_state_dict(
            {
                name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
        )
        found[seed] = network.eval()
    return found, settings, about["mutations"]
