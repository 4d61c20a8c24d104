"""Trained networks on disk, each with the settings of its training."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from retable.evorank.config import TrainSettings
from retable.evorank.model import MutationScorer
from retable.evorank.training import new_scorer


def save_scorers(
    path: Path, scorers: Mapping[int, MutationScorer], settings: TrainSettings
) -> None:
    """Write the weights of each seed (`<seed>.<parameter>`)."""
    tensors = {
        f"{seed}.{name}": tensor.contiguous()
        for seed, scorer in scorers.items()
        for name, tensor in scorer.state_dict().items()
    }
    seeds = " ".join(map(str, scorers))
    save_file(tensors, path, metadata={"settings": settings.model_dump_json(), "seeds": seeds})


def load_scorers(path: Path) -> dict[int, MutationScorer]:
    """The networks of a file by seed, in evaluation mode."""
    found = {}
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
        settings = TrainSettings.model_validate_json(about["settings"])
        names = list(file.keys())
        for seed in map(int, about["seeds"].split()):
            prefix = f"{seed}."
            scorer = new_scorer(settings, seed)
            scorer.load_state_dict(
                {
                    name.removeprefix(prefix): file.get_tensor(name)
                    for name in names
                    if name.startswith(prefix)
                }
            )
            found[seed] = scorer.eval()
    return found


def embeddings(scorer: MutationScorer, environments) -> torch.Tensor:
    """e (N, width) in evaluation mode, in batches."""
    scorer.eval()
    with torch.no_grad():
        parts = [
            scorer.embed(environments[index])
            for index in torch.arange(len(environments)).split(1024)
        ]
    return torch.cat(parts)
