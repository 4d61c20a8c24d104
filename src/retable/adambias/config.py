"""Settings of the experiments on the implicit bias of Adam."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from retable.common.settings import PaperConfig, Settings, StepSettings

Decay = Annotated[float, Field(ge=0, lt=1)]
Eps = Annotated[float, Field(gt=0)]
Level = Annotated[float, Field(gt=0)]
Steps = Annotated[int, Field(ge=1)]
Pair = tuple[Decay, Decay]
Triple = tuple[Decay, Decay, Eps]


def method_name(beta: float, rho: float, eps: float | None = None) -> str:
    """Name of a method, `b0.9_r0.99`, with `_e1e-06` where ε is not the data set's own."""
    name = f"b{beta:g}_r{rho:g}"
    return name if eps is None else f"{name}_e{eps:g}"


def parse_method(name: str) -> tuple[float, float, float | None]:
    """β, ρ and ε (None: the data set's own) from a method's name."""
    parts = dict(zip("bre", (part[1:] for part in name.split("_")), strict=False))
    eps = float(parts["e"]) if "e" in parts else None
    return float(parts["b"]), float(parts["r"]), eps


class PrepareSettings(StepSettings):
    """Which images a data set holds, and how they are made small."""

    source: Literal["mnist", "cifar10", "cifar100", "eurosat"]
    n: int | None = Field(None, ge=2, description="training images; null: all of them")
    n_test: int = Field(ge=1, description="test images, the first of the test file")
    pool: int = Field(1, ge=1, description="side of the square of pixels that is averaged")
    mean: tuple[float, ...] | None = Field(None, description="per channel; null: of this set")
    std: tuple[float, ...] | None = Field(None, description="per channel; null: of this set")

    @model_validator(mode="after")
    def _both_or_none(self) -> "PrepareSettings":
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean and std go together")
        return self


class TrainSettings(StepSettings):
    """One full-batch training: a step of Adam an epoch."""

    model: Literal["mlp", "small_cnn", "cnn", "resnet50", "resnet101", "simple_vit"]
    hidden: int = Field(32, ge=1, description="units of the mlp")
    classes: int = Field(10, ge=2)
    lr: float = Field(gt=0, description="step size h")
    epochs: int = Field(ge=1, description="steps of Adam")
    eps: Eps = Field(description="ε, in the unit of a squared gradient where it stands inside")
    bias_correction: bool = True
    eps_placement: Literal["inside", "outside"] = "inside"
    loss: Literal["ce", "mse"] = Field("ce", description="cross-entropy, or squares on one-hot")
    physical_batch: int | None = Field(
        None, ge=1, description="images in memory at once; null: all of them"
    )
    augment: bool = Field(False, description="random flip and crop; the loss is then random")
    test_every: int = Field(10, ge=1, description="epochs between two tests")


class ToyCase(Settings):
    """One setting of Adam whose order is measured on a toy problem."""

    problem: Literal["bilinear", "batches"]
    beta: Decay
    rho: Decay
    eps: Eps
    bias_correction: bool = True
    eps_placement: Literal["inside", "outside"] = "inside"
    time: float = Field(gt=0, description="time horizon T")
    steps: tuple[Steps, ...] = Field(min_length=3, description="steps on T, rising; h = T / steps")
    substeps: int = Field(1, ge=1, description="Runge-Kutta steps of the flow on a step of Adam")
    counts: bool = Field(True, description="whether the claims look at it; the figure always does")

    @model_validator(mode="after")
    def _rising(self) -> "ToyCase":
        _check_rising(self.steps)
        return self

    @property
    def name(self) -> str:
        """Name of the case in the table."""
        kind = "rmsprop" if self.beta == 0 and not self.bias_correction else "adam"
        parts = [kind, method_name(self.beta, self.rho, self.eps)]
        parts += ["outside"] * (self.eps_placement == "outside")
        parts += ["minibatch"] * (self.problem == "batches")
        return "_".join(parts)


class NetworkCase(Settings):
    """One setting of Adam whose order is measured on the small network."""

    beta: Decay
    rho: Decay
    eps: Eps
    substeps: int = Field(1, ge=1, description="Runge-Kutta steps of the flow on a step of Adam")
    counts: bool = Field(True, description="whether the claims look at it; the figure always does")

    @property
    def name(self) -> str:
        """Name of the case in the table."""
        return f"adam_{method_name(self.beta, self.rho, self.eps)}"

    def arguments(self) -> dict[str, float]:
        """β, ρ and ε as the functions of `retable.adambias.flow` take them."""
        return {"beta": self.beta, "rho": self.rho, "eps": self.eps}


class ToyOrder(StepSettings):
    """Orders on the toy problems."""

    start: tuple[float, float] = Field(description="start on the bilinear problem")
    cases: tuple[ToyCase, ...] = Field(min_length=1)


class NetworkOrder(StepSettings):
    """Orders on a small network and real images."""

    hidden: int = Field(ge=1)
    time: float = Field(gt=0)
    steps: tuple[Steps, ...] = Field(min_length=3, description="steps on T, rising; h = T / steps")
    cases: tuple[NetworkCase, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rising(self) -> "NetworkOrder":
        _check_rising(self.steps)
        return self


class OrderSettings(Settings):
    """How the error of the flows falls with the step size."""

    toy: ToyOrder
    network: NetworkOrder | None = Field(None, description="null: left out")


class ToyDefect(StepSettings):
    """Measured coefficient κ on the bilinear problem."""

    start: tuple[float, float]
    h: float = Field(gt=0)
    steps: int = Field(ge=2)
    first: int = Field(ge=0, description="first step of the fit")
    cases: tuple[Triple, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _window(self) -> "ToyDefect":
        _check_window(self.first, self.steps)
        return self


class NetworkDefect(StepSettings):
    """Measured coefficient κ on the small network."""

    hidden: int = Field(ge=1)
    h: float = Field(gt=0)
    steps: int = Field(ge=2)
    first: int = Field(ge=0, description="first step of the fit")
    case: Triple

    @model_validator(mode="after")
    def _window(self) -> "NetworkDefect":
        _check_window(self.first, self.steps)
        return self


class DefectSettings(Settings):
    """The O(h) term, measured from Adam's own steps."""

    toy: ToyDefect
    network: NetworkDefect | None = Field(None, description="null: left out")


class PathCase(Settings):
    """One panel of trajectories on the bilinear problem."""

    beta: Decay
    rho: Decay
    eps: Eps
    h: float = Field(gt=0)
    steps: int = Field(ge=1)


class PathsSettings(StepSettings):
    """Trajectories on the bilinear problem, for the figure."""

    start: tuple[float, float]
    cases: tuple[PathCase, ...] = Field(min_length=1)
    low: tuple[float, float] = Field(description="lower corner of the region shown")
    high: tuple[float, float] = Field(description="upper corner of the region shown")
    grid: int = Field(120, ge=10, description="points a side of the map of the one-norm")


class EvaluateSettings(Settings):
    """At which losses the trainings are compared, and which of them the claims look at."""

    levels: dict[str, tuple[Level, ...]] = Field(description="training losses, by data set")
    sweep: str = Field(description="data set of the claims on norms")
    sweep_level: float = Field(gt=0, description="training loss of the claims on norms")
    beta: Decay = Field(description="β of the sweep over ρ")
    rho: Decay = Field(description="ρ of the sweep over β")
    stage: Triple = Field(description="training whose first and last tenth are compared")
    usual: Pair = Field(description="usual setting, for the share of negative coefficients")
    accuracy_levels: dict[str, Level] = Field(description="training losses of the last claim")
    large: tuple[str, ...] = Field((), description="data sets of the checks at paper scale")
    large_level: float = Field(0.1, gt=0, description="training loss of those checks")
    penalising: Triple = Field(description="case with β > ρ and small ε")
    impeding: Triple = Field(description="case with ρ > β and small ε")
    late: Triple = Field(description="case with large ε")


class FigureSettings(Settings):
    """Size of the figure."""

    width: float = Field(11.0, gt=0, description="inches")
    height: float = Field(12.2, gt=0, description="inches, of the four rows of panels")
    beta: Decay = Field(0.9, description="β of the sweep over ρ, MNIST")
    rho: Decay = Field(0.99, description="ρ of the sweep over β, MNIST")
    rho_cifar: Decay = Field(0.995, description="ρ of the sweep over β, CIFAR-10")


class Config(PaperConfig):
    """The paper's configuration at one scale."""

    methods: dict[str, tuple[Pair | Triple, ...]] = Field(
        description="trainings by data set: (β, ρ), or (β, ρ, ε)"
    )
    prepare: dict[str, PrepareSettings]
    train: dict[str, TrainSettings]
    order: OrderSettings
    defect: DefectSettings
    paths: PathsSettings
    evaluate: EvaluateSettings
    figure: FigureSettings = FigureSettings()

    @staticmethod
    def method(*setting: float) -> str:
        """Name of a method: the value of the wildcard."""
        return method_name(*setting)

    @model_validator(mode="after")
    def _complete(self) -> "Config":
        for dataset in self.methods:
            for section in ("prepare", "train"):
                if dataset not in getattr(self, section):
                    raise ValueError(f"methods names '{dataset}', which {section} does not")
        for dataset, settings in self.methods.items():
            names = [method_name(*setting) for setting in settings]
            for setting, name in zip(settings, names, strict=True):
                if parse_method(name)[: len(setting)] != setting or names.count(name) > 1:
                    raise ValueError(
                        f"methods.{dataset} holds {setting} twice or with more digits than its "
                        f"name '{name}' tells"
                    )
        self._check_claims()
        networks = [self.order.network, self.defect.network]
        if any(networks) and "mnist49" not in self.prepare:
            raise ValueError("order.network and defect.network need prepare.mnist49")
        return self

    def _check_claims(self) -> None:
        """The claims look at data sets that are trained, and at losses that are read off."""
        looked_at = self.evaluate
        for key, names in (
            ("levels", looked_at.levels),
            ("sweep", (looked_at.sweep,)),
            ("accuracy_levels", looked_at.accuracy_levels),
            ("large", looked_at.large),
        ):
            for name in names:
                if name not in self.methods:
                    raise ValueError(
                        f"evaluate.{key} names '{name}', allowed: {', '.join(self.methods)}"
                    )
        for key, name, level in (
            ("sweep_level", looked_at.sweep, looked_at.sweep_level),
            *(("accuracy_levels", *pair) for pair in looked_at.accuracy_levels.items()),
            *(("large_level", name, looked_at.large_level) for name in looked_at.large),
        ):
            levels = looked_at.levels.get(name, ())
            if level not in levels:
                raise ValueError(
                    f"evaluate.{key} is {level} for '{name}', allowed: evaluate.levels, {levels}"
                )


def _check_rising(steps: tuple[int, ...]) -> None:
    if sorted(set(steps)) != list(steps):
        raise ValueError(f"steps must rise, found {steps}")


def _check_window(first: int, steps: int) -> None:
    if first >= steps:
        raise ValueError(f"first must be < steps = {steps}, found {first}")
