"""Train encoders without labels: every method of the job, every seed."""

from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.torch import save_file

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.metrics import write_metrics
from retable.common.seeds import Seeds
from retable.gemax.config import OBJECTIVES, TrainConfig
from retable.gemax.data import GraphSet
from retable.gemax.model import GeMaxEncoder
from retable.gemax.train import embed, fit


def objective_of(method: str, settings: TrainConfig) -> tuple[str, TrainConfig]:
    """The objective of a method, and the settings with what an ablation switches off."""
    if method in OBJECTIVES:
        return method, settings
    objective, _, switch = method.partition("_")
    changes = {"mu0": {"mu": 0.0}, "gamma0": {"gamma": 0.0}, "gcn": {"conv": "gcn"}}
    return objective, settings.model_copy(update=changes[switch])


def train(
    graphs: Path,
    model: Path,
    embeddings: Path,
    history: Path,
    *,
    dataset: str,
    methods: str,
    seeds: Seeds,
    settings: TrainConfig,
    checkpoints: Checkpoints,
) -> None:
    """Write weights, embeddings and the history of each method and seed.

    Names: `<method>.<seed>.encoder.<parameter>`, `<method>.<seed>.weights` (all graphs' packing
    weights, one after the other); `<method>.<seed>.sum` and `.mean`, the two readouts.
    """
    data = GraphSet.of_arrays(load_arrays(graphs))
    tensors, arrays, rows = {}, {}, []
    for method in methods.split("+"):
        objective, config = objective_of(method, settings)
        for seed in seeds:
            name = f"{method}.{seed}"
            result = fit(
                data,
                objective,
                config,
                seed,
                checkpoints=checkpoints,
                name=f"{method}-seed{seed}",
            )
            tensors |= {
                f"{name}.encoder.{key}": value.contiguous()
                for key, value in result.encoder.state_dict().items()
            }
            if result.weights:
                arrays[f"{name}.weights"] = np.concatenate(result.weights)
            for readout in ("sum", "mean"):
                arrays[f"{name}.{readout}"] = embed(result.encoder, data, readout)
            rows += [
                {
                    "experiment": "training",
                    "dataset": dataset,
                    "method": method,
                    "seed": seed,
                    "metric": metric,
                    "x": row["epoch"],
                    "value": value,
                }
                for row in result.history
                for metric, value in row.items()
                if metric != "epoch"
            ]
    about = {"settings": settings.model_dump_json(), "in_features": str(data.features[0].shape[1])}
    save_file(tensors, model, metadata=about)
    save_arrays(embeddings, arrays)
    write_metrics(rows, history)


def load_encoder(paths: list[Path], method: str, seed: int) -> GeMaxEncoder:
    """The encoder of a method and seed, in evaluation mode, from the files that `train` wrote."""
    prefix = f"{method}.{seed}.encoder."
    for path in paths:
        # The folder's name tells the methods; files of others are not opened.
        if method not in path.parent.name.split("+"):
            continue
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
            if not names:
                continue
            about = file.metadata()
            _, config = objective_of(method, TrainConfig.model_validate_json(about["settings"]))
            encoder = GeMaxEncoder(int(about["in_features"]), config)
            encoder.load_state_dict(
                {name.removeprefix(prefix): file.get_tensor(name) for name in names}
            )
            return encoder.eval()
    raise ValueError(f"none of {len(paths)} files holds {method}, seed {seed}")
