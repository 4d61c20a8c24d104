"""From settings to encoders, and weights on disk that say what they are."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import torch
from pydantic import TypeAdapter
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from retable.common.settings import Settings
from retable.hstu.config import Encoder
from retable.hstu.models import (
    HSTU,
    GRU4Rec,
    GRU4RecConfig,
    HSTUConfig,
    SASRec,
    SASRecConfig,
    SequenceEncoder,
)

KINDS = {
    "hstu": (HSTU, HSTUConfig),
    "sasrec": (SASRec, SASRecConfig),
    "gru4rec": (GRU4Rec, GRU4RecConfig),
}
_ENCODER: TypeAdapter = TypeAdapter(Encoder)


def build_encoder(settings: Settings, n_items: int, max_len: int) -> SequenceEncoder:
    """The encoder that the settings describe, freshly initialised from torch's global seed."""
    model, config = KINDS[settings.kind]
    sizes = {f.name: getattr(settings, f.name) for f in fields(config) if hasattr(settings, f.name)}
    return model(config(n_items=n_items, max_len=max_len, **sizes))


def save_runs(path: Path, runs: Mapping[str, Mapping[str, Tensor]], about: Mapping) -> None:
    """Write the weights of several runs, named `method/seed`, and what is to be known of them.

    about: plain data; it travels in the file's header as JSON.
    """
    weights = {
        f"{run}/{name}": tensor.detach().cpu().contiguous()
        for run, state in runs.items()
        for name, tensor in state.items()
    }
    save_file(weights, path, metadata={"about": json.dumps(about, sort_keys=True)})


def load_runs(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict]:
    """Read what `save_runs` wrote: weights by run, and `about`."""
    runs: dict[str, dict[str, Tensor]] = {}
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        for key in sorted(file.keys()):
            method, seed, name = key.split("/", 2)
            runs.setdefault(f"{method}/{seed}", {})[name] = file.get_tensor(key)
    return runs, about


def load_encoder(
    state: Mapping[str, Tensor], settings: Mapping, n_items: int, max_len: int
) -> SequenceEncoder:
    """A trained encoder in eval mode, from a run's weights and its method's settings."""
    model = build_encoder(_ENCODER.validate_python(settings), n_items, max_len)
    model.load_state_dict(state)
    return model.eval()


def device() -> torch.device:
    """Where evaluation runs: the first GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
