"""The models of the configuration: what every paper's `config.py` builds on."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[str, ...] = get_args(Scale)


class Settings(BaseModel):
    """Base of every settings model: unknown keys are refused, values are fixed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Resources(Settings):
    """What one job of a step asks of a cluster."""

    mem_mb: int = Field(2000, ge=100, description="memory in MB")
    runtime: int = Field(60, ge=1, description="time limit in minutes")
    gpu: int = Field(0, ge=0, description="GPUs")


class StepSettings(Settings):
    """Base of one step's settings: everything that can change the step's result.

    Seeds, methods and data sets are wildcards and have no place here: a third seed must not
    retrain the first two.
    """

    seeds_per_job: int = Field(
        1, ge=1, exclude=True, description="seeds that share a job; does not change any result"
    )


class PaperConfig(Settings):
    """Base of a paper's `Config`: what every paper has; the paper adds one field a step."""

    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        min_length=1, description="seeds of every experiment"
    )
    resources: dict[str, Resources] = Field(
        default_factory=dict, description="per step; a step that is not named gets the defaults"
    )
