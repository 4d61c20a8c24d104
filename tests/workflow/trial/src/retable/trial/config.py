"""Settings of the trial paper."""

from pydantic import Field

from retable.common.settings import PaperConfig, Settings, StepSettings


class TrainSettings(StepSettings):
    """How the linear layer is trained."""

    epochs: int = Field(ge=1)
    lr: float = Field(gt=0, le=10)
    pause: float = Field(0.0, ge=0, description="seconds of sleep a step, so that tests can kill")


class FigureSettings(Settings):
    """How the figure is drawn."""

    width: float = Field(4.0, gt=0)


class Config(PaperConfig):
    """The trial paper's configuration."""

    methods: tuple[str, ...]
    train: TrainSettings
    figure: FigureSettings = FigureSettings()
