"""Settings of the experiments on local steps."""

import re
from typing import Literal

from pydantic import Field, model_validator

from retable.common.seeds import group_seeds
from retable.common.settings import PaperConfig, Settings, StepSettings

_METHOD = re.compile(r"global|parallel|parallel_rounds|one_shot|local[1-9]\d*")


def local_steps(method: str, steps: int) -> int:
    """The number of local steps I between two averages of `method`, in a run of `steps` steps."""
    if method == "one_shot":
        return steps
    if method == "global":
        return 1
    return int(method.removeprefix("local"))


class _Runs(StepSettings):
    """Which runs there are: wildcards, no settings of any one of them."""

    methods: tuple[str, ...] = Field(
        (), exclude=True, description="global, local<I>, one_shot, ..."
    )
    seeds: tuple[int, ...] | None = Field(
        None, exclude=True, description="if they are not those of the paper's other experiments"
    )
    methods_per_job: int = Field(1, ge=1, exclude=True, description="methods that share a job")

    def method_groups(self) -> list[str]:
        """The `methods` wildcards, one for each group that shares jobs: names joined by +."""
        groups = range(0, len(self.methods), self.methods_per_job)
        return ["+".join(self.methods[i : i + self.methods_per_job]) for i in groups]


class SyntheticSettings(_Runs):
    """One setting of the feature-noise data model and of gradient descent on it."""

    n_major: int = Field(ge=1, description="clients whose features are safe")
    n_minor: int = Field(ge=1, description="clients whose features are noise to the major ones")
    alpha: float = Field(1.0, gt=0, description="strength of the signal")
    gamma: float = Field(gt=0, description="strength of the feature noise, below alpha")
    kappa: float = Field(gt=0, description="speed of memorising a client's samples / of its signal")
    n: int = Field(ge=1, description="training samples of a client")
    dim: int = Field(ge=1, description="entries of a patch")
    filters: int = Field(ge=1, description="filters of the network")
    init_std: float | dict[str, float] = Field(description="of the initial weights, or by method")
    lr: float = Field(gt=0, description="step size")
    steps: int = Field(ge=1, description="gradient steps")
    test_samples: int = Field(200, ge=1, description="test samples of a client")
    evaluations: int = Field(48, ge=1, description="about how many evaluations, at round ends")

    @model_validator(mode="after")
    def _consistent(self) -> "SyntheticSettings":
        if self.gamma >= self.alpha:
            raise ValueError(f"gamma is {self.gamma}; it must be below alpha = {self.alpha}")
        clients = self.n_major + self.n_minor
        if self.dim < clients * (1 + self.n):
            raise ValueError(f"dim is {self.dim}; it must be at least {clients * (1 + self.n)}")
        for method in self.methods:
            if not _METHOD.fullmatch(method) or method.startswith("parallel"):
                raise ValueError(f"method {method}: must be global, one_shot or local<I>")
            if local_steps(method, self.steps) > self.steps:
                raise ValueError(f"method {method}: there are only {self.steps} steps")
            if isinstance(self.init_std, dict) and method not in self.init_std:
                raise ValueError(f"method {method}: init_std has no value for it")
        values = self.init_std.values() if isinstance(self.init_std, dict) else [self.init_std]
        if not all(value > 0 for value in values):
            raise ValueError(f"init_std is {self.init_std}; it must be positive")
        return self

    def init_std_of(self, method: str) -> float:
        """The standard deviation of the initial weights for `method`."""
        return self.init_std[method] if isinstance(self.init_std, dict) else self.init_std


class PrepareSettings(StepSettings):
    """Which images of CIFAR-10 the clients get."""

    n_train: int = Field(ge=16, le=50_000, description="training images, drawn by seed")
    n_test: int = Field(10_000, ge=16, le=10_000, description="test images, the first ones")
    clients: int = Field(8, ge=2)
    h: float = Field(ge=0, le=1, description="share of the images that is split by class")
    rho: float = Field(0.0, ge=0, le=1, description="strength of the feature noise")
    noise_mode: Literal["clip", "wrap"] = Field("clip", description="wrap: as published")


class TrainSettings(_Runs):
    """How the clients' network is trained."""

    model: Literal["small_cnn", "resnet18"] = "small_cnn"
    num_outputs: int = Field(2, ge=2, le=1000)
    image: Literal[8, 16, 32] = Field(16, description="pixels a side, after average pooling")
    augment: bool = Field(False, description="random flips and crops")
    batch: int = Field(
        ge=1, description="images a client and step; parallel SGD takes all clients'"
    )
    lr: float = Field(gt=0, description="learning rate, halved at 1/2 and 3/4 of the steps")
    weight_decay: float = Field(0.0, ge=0)
    steps: int = Field(ge=4, description="gradient steps")
    round_steps: int = Field(
        64, ge=1, description="parallel_rounds gets as many steps as there are rounds of so many"
    )
    average_buffers: Literal["average", "local"] = "average"
    evaluations: int = Field(1, ge=1, description="about how many evaluations, at round ends")

    @model_validator(mode="after")
    def _consistent(self) -> "TrainSettings":
        for method in self.methods:
            if not _METHOD.fullmatch(method) or method == "global":
                raise ValueError(
                    f"method {method}: must be parallel, parallel_rounds, one_shot or local<I>"
                )
            if method.startswith("local") and local_steps(method, self.steps) > self.steps:
                raise ValueError(f"method {method}: there are only {self.steps} steps")
        return self


class EvaluateSettings(Settings):
    """When a feature counts, and where the claims look."""

    learned: float = Field(
        0.5, gt=0, description="a feature is learnt from this projection, times 1/alpha"
    )
    missed: float = Field(0.1, gt=0, description="a feature is missed below this projection")
    main: str = Field("r1", description="experiment on images that claims 1, 8 and 9 are about")
    overfitted: str = Field("r2", description="experiment on images that claim 10 is about")


class FigureSettings(Settings):
    """How the figure is drawn."""

    main: str = Field("r1", description="experiment on images whose filters are shown")
    local: str = Field("local8", description="method whose filters stand beside parallel SGD's")
    filter_gain: float = Field(
        20.0, gt=0, description="filters are shown as sigmoid(gain times weight)"
    )


class Config(PaperConfig):
    """The configuration of all experiments at one scale."""

    synthetic: dict[str, SyntheticSettings] = Field(min_length=1)
    prepare: dict[str, PrepareSettings] = Field(min_length=1)
    train: dict[str, TrainSettings] = Field(min_length=1)
    evaluate: EvaluateSettings = EvaluateSettings()
    figure: FigureSettings = FigureSettings()

    def files(self, step: Literal["synthetic", "train"], pattern: str) -> list[str]:
        """The files of all jobs of a step: `pattern` with {experiment}, {methods} and {seeds}."""
        return [
            pattern.format(experiment=name, methods=methods, seeds=seeds)
            for name, runs in getattr(self, step).items()
            for methods in runs.method_groups()
            for seeds in group_seeds(runs.seeds or self.seeds, runs.seeds_per_job)
        ]

    @model_validator(mode="after")
    def _consistent(self) -> "Config":
        if set(self.prepare) != set(self.train):
            raise ValueError(
                f"prepare has {', '.join(self.prepare)}, train {', '.join(self.train)}; "
                "both must name the same experiments"
            )
        for part in (self.synthetic, self.train):
            for name, runs in part.items():
                if not runs.methods:
                    raise ValueError(f"{name}: methods is empty")
        for name, train in self.train.items():
            if train.seeds_per_job != self.prepare[name].seeds_per_job or train.seeds is not None:
                raise ValueError(f"{name}: prepare and train must share seeds and seeds_per_job")
            # A client has at least this many images: each of three cuts drops less than one each.
            least = self.prepare[name].n_train // self.prepare[name].clients - 3
            if train.batch > least:
                raise ValueError(f"{name}: batch is {train.batch}; clients have {least} images")
        return self
