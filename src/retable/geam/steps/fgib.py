"""Train the bottleneck of a task and score the library's fragments."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays
from retable.common.metrics import write_csv
from retable.common.seeds import Seeds
from retable.geam.config import FGIBSettings
from retable.geam.fgib import noisy_error, score_fragments, train_fgib
from retable.geam.library import Library


def fgib(
    library: Path,
    labels: Path,
    models: Path,
    scores: Path,
    history: Path,
    *,
    seeds: Seeds,
    settings: FGIBSettings,
    checkpoints: Checkpoints,
) -> None:
    """Write the models (`seed<n>.` in front of each weight), scores, and training errors."""
    graphs, y = Library.load(library).labelled(load_arrays(labels)["y"])
    weights: dict[str, torch.Tensor] = {}
    frames, errors = [], []
    for seed in seeds:
        model = train_fgib(graphs, y, settings.model, seed, checkpoints=checkpoints)
        weights |= {f"seed{seed}.{name}": value for name, value in model.state_dict().items()}
        found = {
            how: score_fragments(model, graphs, y, how=how)
            for how in ("fgib", "property", "property_size")
        }
        frame = pd.DataFrame(found).rename_axis("fragment").reset_index()
        frame.insert(0, "seed", seed)
        frames.append(frame)
        error = noisy_error(model, graphs, y, seed)
        errors.append({"seed": seed, "error_ratio": error / float(np.var(y))})
    save_file(weights, models)
    write_csv(pd.concat(frames), scores)
    write_csv(pd.DataFrame(errors), history)
