"""Reading and checking the configuration, before any job starts.

`config/<paper>.yaml` has `base` and one section a scale; a scale's section is merged over `base`
key by key. A paper's `config.py` describes the result (`retable.common.settings`).
"""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError

from retable.common.errors import InputError
from retable.common.settings import SCALES, PaperConfig, Scale, Settings
from retable.common.yaml_files import read_yaml

Model = TypeVar("Model", bound=BaseModel)


class ProjectConfig(Settings):
    """`config/config.yaml`: what the user chooses for all papers."""

    scale: Scale = "laptop"
    papers: Literal["all"] | tuple[str, ...] = "all"
    cache: str | None = Field(None, description="folder for downloads; empty: the user's cache")
    data: dict[str, str] = Field(
        default_factory=dict, description="data set -> the user's own file or folder"
    )
    checkpoint_seconds: float = Field(60.0, gt=0, description="time between two checkpoints")


def merge(base: Any, over: Any) -> Any:
    """Merge two YAML trees: mappings key by key, everything else is replaced."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {
            key: merge(base[key], over[key])
            if key in base and key in over
            else (over[key] if key in over else base[key])
            for key in [*base, *(k for k in over if k not in base)]
        }
    return over


def describe(error: ValidationError, place: str, model: type[BaseModel] | None = None) -> str:
    """Turn pydantic's errors into lines `place: key: what is wrong, the value, what is allowed`."""
    lines = []
    for item in error.errors():
        key = ".".join(str(part) for part in item["loc"]) or "(top level)"
        if item["type"] == "extra_forbidden":
            allowed = _keys_beside(model, item["loc"])
            hint = f"; allowed: {', '.join(allowed)}" if allowed else ""
            lines.append(f"{place}: {key}: unknown key{hint}")
        elif item["type"] == "missing":
            lines.append(f"{place}: {key}: is missing")
        else:
            message = item["msg"].removeprefix("Value error, ")
            lines.append(f"{place}: {key}: {message}, got {item['input']!r}")
    return "\n".join(lines)


def _keys_beside(model: type[BaseModel] | None, location: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed where an unknown key stands, as far as the models tell."""
    for part in location[:-1]:
        if model is None:
            return []
        field = model.model_fields.get(str(part))
        if field is None:
            # A step down into a mapping or a list keeps the model of its values.
            continue
        model = _inner_model(field.annotation)
    return list(model.model_fields) if model is not None else []


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = [found for arg in get_args(annotation) if (found := _inner_model(arg))]
    return models[0] if len(models) == 1 else None


def check(model: type[Model], values: Any, place: str) -> Model:
    """Validate `values`; InputError names the place, the key, the value and what is allowed."""
    try:
        return model.model_validate(values if values is not None else {})
    except ValidationError as error:
        raise InputError(describe(error, place, model)) from None


def load_project(values: Mapping[str, Any], place: str = "config/config.yaml") -> ProjectConfig:
    """Check the project's configuration (as Snakemake merged it from files and --config)."""
    return check(ProjectConfig, dict(values), place)


def known_papers(root: Path) -> list[str]:
    """The papers of a checkout: each has `config/<paper>.yaml` and `rules/<paper>.smk`."""
    return sorted(
        path.stem
        for path in (root / "config").glob("*.yaml")
        if (root / "rules" / f"{path.stem}.smk").exists()
    )


def selected_papers(project: ProjectConfig, root: Path) -> list[str]:
    """The papers that the user asked for; InputError for an unknown one."""
    known = known_papers(root)
    if project.papers == "all":
        return known
    for paper in project.papers:
        if paper not in known:
            raise InputError(
                f"config/config.yaml: papers: there is no paper '{paper}'; "
                f"known: {', '.join(known)}"
            )
    return list(project.papers)


def load_paper(paper: str, scale: str, root: Path) -> PaperConfig:
    """Read `config/<paper>.yaml` at one scale and check it with the paper's `Config` model."""
    place = f"config/{paper}.yaml"
    content = read_yaml(root / place, place)
    if not isinstance(content, Mapping):
        raise InputError(f"{place}: must be a mapping with base, {', '.join(SCALES)}")
    for key in content:
        if key not in ("base", *SCALES):
            raise InputError(f"{place}: {key}: unknown section; allowed: base, {', '.join(SCALES)}")
    if scale not in content:
        raise InputError(f"{place}: the section '{scale}' is missing")
    for key in ("base", scale):
        if not isinstance(content.get(key) or {}, Mapping):
            raise InputError(f"{place}: {key}: must be a mapping, got {content[key]!r}")
    values = merge(content.get("base") or {}, content[scale] or {})
    module = importlib.import_module(f"retable.{paper}.config")
    return check(module.Config, values, f"{place}, {scale}")


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
