"""Settings of the multi-label neural collapse experiments."""

from typing import Literal

from pydantic import Field, model_validator

from retable.common.settings import PaperConfig, Settings, StepSettings

Network = Literal["convnet", "resnet18", "resnet50", "vgg16", "vgg19"]


class ComposeSettings(StepSettings):
    """A multi-label data set composed of the images of a single-label one."""

    source: Literal["mnist", "cifar10"]
    train: dict[int, int] = Field(
        min_length=1, description="samples of every label set, by the number of its labels"
    )
    test: dict[int, int] = Field(min_length=1, description="the same for the test split")
    pair_counts: tuple[int, ...] = Field(
        (), description="samples of a pair of labels in each group of pairs; empty: as in train"
    )
    pool: int = Field(2, ge=1, description="canvas pixels a side that are averaged into one")
    validation: float = Field(
        0.1, gt=0, lt=1, description="share of the source images, and of the counts, held out"
    )

    @model_validator(mode="after")
    def _pairs_once(self) -> "ComposeSettings":
        if self.pair_counts and set(self.train) != {1}:
            raise ValueError("train must have multiplicity 1 alone where pair_counts gives pairs")
        return self


class HouseNumberSettings(StepSettings):
    """Street-view house numbers, whose images have several labels by themselves."""

    source: Literal["svhn"]
    max_single: int = Field(543, ge=1, description="images with one distinct digit, per class")
    validation: float = Field(0.1, gt=0, lt=1, description="share of the images held out")
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)


class TrainConfig(Settings):
    """How a network is trained: SGD with momentum, learning rate on a cosine to lr/1000."""

    loss: Literal["pal", "bce"] = Field(
        "pal", description="pick-all-label cross entropy, or binary cross entropy summed over K"
    )
    per_label: Literal["sum", "mean"] = Field(
        "mean", description="pal: add up over the labels of a sample, or average"
    )
    epochs: int = Field(ge=1)
    lr: float = Field(0.1, gt=0, description="initial learning rate")
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0, description="on all trainable parameters")
    lam_h: float = Field(
        1e-4, ge=0, description="weight of the squared features, summed over the batch"
    )
    batch_size: int = Field(128, ge=2)
    nc_every: int | tuple[int, ...] = Field(
        (1, 5, 15, 30),
        description="epochs at which collapse is measured, or the distance between them; the "
        "first and the last epoch are always among them",
    )
    iou_every: int = Field(
        1, ge=1, description="epochs between two measurements of soft IoU on the training images"
    )
    mixed_precision: Literal["no", "fp16", "bf16"] = "no"

    def measured_epochs(self) -> frozenset[int]:
        """The epochs (from 1) after which collapse is measured."""
        every = self.nc_every
        chosen = range(every, self.epochs, every) if isinstance(every, int) else every
        return frozenset({1, *chosen, self.epochs})

    @model_validator(mode="after")
    def _positive(self) -> "TrainConfig":
        every = self.nc_every
        if min((every,) if isinstance(every, int) else every, default=1) < 1:
            raise ValueError(f"nc_every must be at least 1, got {every}")
        return self


class TrainSettings(StepSettings, TrainConfig):
    """One method: a network, its classifier and how it is trained."""

    network: Network = "convnet"
    feature_dim: int | None = Field(None, ge=1, description="d; empty: the network's own width")
    fixed_etf: bool = Field(False, description="freeze the classifier to a simplex ETF")
    feature_relu: bool = Field(False, description="ReLU on the features")

    @model_validator(mode="after")
    def _width(self) -> "TrainSettings":
        if self.network == "convnet" and self.feature_dim is None:
            raise ValueError("feature_dim must be given for the network convnet")
        return self


class ProblemSettings(Settings):
    """An instance of the unconstrained feature model."""

    num_classes: int = Field(ge=2, description="K")
    dim: int = Field(ge=1, description="d, at least K - 1")
    counts: dict[int, int] = Field(min_length=1, description="n_m, samples of a set of m labels")

    @model_validator(mode="after")
    def _within_the_theorem(self) -> "ProblemSettings":
        if self.dim < self.num_classes - 1:
            raise ValueError(f"dim must be at least K-1 = {self.num_classes - 1}, got {self.dim}")
        for m, n in self.counts.items():
            if not 1 <= m < self.num_classes or n < 1:
                raise ValueError(
                    f"counts must have multiplicities 1 to {self.num_classes - 1} and positive "
                    f"values, got {m}: {n}"
                )
        if self.counts.get(1, 0) < 2:
            raise ValueError("counts must have at least 2 samples of multiplicity 1")
        return self


class UFMSettings(StepSettings):
    """Free optimisation of features and classifier, from random starts."""

    problems: dict[str, ProblemSettings] = Field(min_length=1)
    starts: int = Field(ge=1, description="random starts of each problem, seeded 0, 1, ...")
    lam_w: float = Field(5e-3, gt=0)
    lam_h: float = Field(5e-4, gt=0)
    lam_b: float = Field(1e-2, ge=0)
    max_iter: int = Field(3000, ge=1, description="iterations of L-BFGS")
    shown: str = Field(description="the problem with d = 2 whose path the figure shows")
    shown_iterations: tuple[int, int, int] = (0, 5, 3000)

    @model_validator(mode="after")
    def _drawable(self) -> "UFMSettings":
        if self.shown not in self.problems or self.problems[self.shown].dim != 2:
            planar = [name for name, problem in self.problems.items() if problem.dim == 2]
            raise ValueError(f"shown must be a problem with dim 2 ({planar}), got {self.shown!r}")
        return self


class EvaluateSettings(StepSettings):
    """Decoding on the test split."""

    thresholds: int = Field(99, ge=1, description="candidates for theta, evenly spread in (0, 1)")


class SizeSettings(StepSettings):
    """Networks whose parameters are counted with a learned and with a fixed classifier."""

    networks: tuple[Network, ...] = ("resnet18", "resnet50", "vgg16", "vgg19")
    num_classes: int = Field(10, ge=2)


class SpeedSettings(StepSettings):
    """Training time with a fixed classifier against a learned one."""

    rounds: int = Field(5, ge=1, description="epochs of each, in alternation")


class RoleSettings(StepSettings):
    """Which methods the claims are about."""

    learned: str = Field("pal", description="trained classifier, pick-all-label loss")
    fixed: str = Field("pal_etf", description="classifier fixed to a simplex ETF, d = K")


class FigureSettings(StepSettings):
    """What the figure shows."""

    curves: tuple[str, ...] = Field(("pal", "pal_etf"), description="methods in panels (b)")
    bars: tuple[str, ...] = Field(("pal", "pal_etf", "bce"), description="methods in panel (c)")
    heat_map: str = Field("pal", description="method in panel (d)")
    datasets: tuple[str, ...] = Field(("mnist", "cifar10"), description="in panels (b) and (c)")


class Config(PaperConfig):
    """The configuration of the paper."""

    methods: dict[str, tuple[str, ...]] = Field(description="methods that run on each data set")
    prepare: dict[str, ComposeSettings | HouseNumberSettings]
    train: dict[str, dict[str, TrainSettings]]
    ufm: UFMSettings
    evaluate: EvaluateSettings = EvaluateSettings()
    size: SizeSettings = SizeSettings()
    speed: SpeedSettings = SpeedSettings()
    measures: RoleSettings = RoleSettings()
    figure: FigureSettings = FigureSettings()

    @model_validator(mode="after")
    def _all_described(self) -> "Config":
        for dataset, methods in self.methods.items():
            if dataset not in self.prepare:
                raise ValueError(f"prepare must describe {dataset}, which methods names")
            for method in methods:
                if method not in self.train.get(dataset, {}):
                    raise ValueError(f"train.{dataset} must describe the method {method}")
        for method in (self.measures.learned, self.measures.fixed, self.figure.heat_map):
            if method not in self.methods.get("mnist", ()):
                raise ValueError(f"methods.mnist must have {method}, which claims or figure need")
        return self
