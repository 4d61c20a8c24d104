"""Settings of the experiments on graph entropy maximisation."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from retable.common.settings import PaperConfig, Settings, StepSettings

Readout = Literal["sum", "mean"]
# Objectives that train the encoder; a name may go on with the switch of an ablation.
OBJECTIVES = (
    *("untrained", "gemax", "infograph", "graphcl", "graphcl_gemax"),
    *("autogcl", "autogcl_gemax"),
)
ABLATIONS = ("gemax_mu0", "gemax_gamma0", "gemax_gcn")
KERNELS = ("wl", "graphlet")
METHODS = (*OBJECTIVES, *ABLATIONS, *KERNELS, "histogram")


class TrainConfig(StepSettings):
    """The encoder and its training without labels."""

    hidden: int = Field(32, ge=1, description="width of a layer")
    layers: int = Field(3, ge=1, description="message-passing layers")
    dim: int = Field(64, ge=1, description="entries of vertex and graph vectors")
    normalize: bool = Field(True, description="give vertex and graph vectors unit length")
    dropout: float = Field(0.0, ge=0, lt=1, description="after each layer")
    epochs: int = Field(60, ge=1, description="passes over the graphs")
    batch: int = Field(100, ge=2, description="graphs a batch")
    lr: float = Field(1e-3, gt=0, description="Adam's learning rate of the encoder")
    lr_weights: float = Field(1e-2, gt=0, description="Adam's learning rate of the weights a")
    mu: float = Field(0.1, ge=0, description="weight of L_orth")
    gamma: float = Field(0.5, ge=0, description="weight of L_svp")
    self_loops_in_mask: bool = Field(
        False, description="take self-loops into A, as the authors' code does: norms are free"
    )
    conv: Literal["gin", "gcn"] = Field("gin", description="kind of message passing")
    vertex_vectors: Literal["concat", "last"] = Field(
        "concat", description="from all layers, or the last layer itself (the authors' code)"
    )
    methods_per_job: int = Field(1, ge=1, exclude=True, description="methods that share a job")


class PrepareSettings(Settings):
    """Which graphs of which source."""

    source: str = Field(description="name of the shared data set")
    n: int | None = Field(None, ge=2, description="stratified sample of so many; none: all")
    seed: int = Field(0, ge=0, description="of the sample")
    smallest: int = Field(1, ge=1, description="vertices that a graph must have")


class KernelSettings(Settings):
    """Graph kernels for a support vector machine."""

    methods: tuple[Literal["wl", "graphlet"], ...] = Field((), description="which kernels")
    iterations: int = Field(5, ge=1, description="of Weisfeiler and Lehman's refinement")
    graphlet_sizes: tuple[Annotated[int, Field(ge=3)], ...] = Field(
        (3, 4), min_length=1, description="vertices of a graphlet"
    )
    graphlet_samples: int = Field(100, ge=1, description="sampled graphlets of a size and graph")


class AccuracySettings(Settings):
    """Cross-validated accuracy of a support vector machine."""

    readout: Readout = Field("sum", description="of the layers over the vertices")
    folds: int = Field(10, ge=2, description="outer folds")
    c: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        (0.01, 0.1, 1, 10, 100), min_length=1, description="candidates of the SVC's C"
    )
    inner_folds: int = Field(3, ge=2, description="folds within the training folds, to choose C")


class SemiSettings(StepSettings):
    """Fine-tuning on few labels."""

    shares: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field(
        (0.1,), min_length=1, description="of the training graphs that are labelled"
    )
    folds: int = Field(10, ge=2, description="folds; one is tested")
    epochs: int = Field(60, ge=1, description="of fine-tuning; the last one counts")
    lr: float = Field(1e-3, gt=0, description="Adam's learning rate")
    batch: int = Field(100, ge=2, description="graphs a batch")
    readout: Readout = Field("sum", description="of the layers over the vertices")
    methods: tuple[str, ...] = Field(
        ("untrained", "gemax", "infograph"), description="pretraining; untrained: from scratch"
    )


class EdgesSettings(StepSettings):
    """Telling edges from other pairs within graphs that were not trained on."""

    share: float = Field(0.8, gt=0, lt=1, description="of the graphs that is trained on")
    methods: tuple[Literal[(*OBJECTIVES, "lgae")], ...] = Field(
        ("untrained", "gemax", "infograph"),
        description="objectives; lgae: linear graph autoencoder",
    )
    train: TrainConfig = TrainConfig()


class EntropySettings(Settings):
    """Exact against learned entropy."""

    tolerance: float = Field(1e-5, gt=0, description="nats")
    weight_steps: int = Field(1500, ge=1, description="of the weights alone, the encoder fixed")
    lr_weights: float = Field(1e-2, gt=0, description="Adam's learning rate of these steps")
    gamma: float = Field(0.5, ge=0, description="weight of L_svp")
    max_sets: int = Field(200_000, ge=1, description="maximal stable sets of a graph")


class SpeedSettings(StepSettings):
    """Training time of the objectives, one against another."""

    dataset: str = Field("mutag", description="its graphs and its settings of training")
    rounds: int = Field(5, ge=1, description="timings of each, in alternation")
    epochs: int = Field(5, ge=2, description="of a timing, from which that of one is taken")
    base: str = Field("infograph", description="what the ratios are to")


class Config(PaperConfig):
    """All experiments at one scale."""

    methods: dict[str, tuple[str, ...]] = Field(min_length=1, description="by data set")
    prepare: dict[str, PrepareSettings]
    train: dict[str, TrainConfig]
    kernels: dict[str, KernelSettings]
    accuracy: dict[str, AccuracySettings]
    semi: dict[str, SemiSettings] = Field(default_factory=dict)
    edges: dict[str, EdgesSettings] = Field(default_factory=dict)
    entropy: dict[str, EntropySettings] = Field(
        min_length=1, description="by data set; the figure shows the first"
    )
    speed: SpeedSettings = SpeedSettings()

    @model_validator(mode="after")
    def _consistent(self) -> "Config":
        for dataset, methods in self.methods.items():
            for method in methods:
                if method not in METHODS:
                    raise ValueError(f"methods: {dataset}: '{method}': must be of {METHODS}")
            for section in ("prepare", "train", "kernels", "accuracy"):
                if dataset not in getattr(self, section):
                    raise ValueError(f"{section}: has no settings for the data set '{dataset}'")
        for section in ("semi", "edges", "entropy"):
            for dataset in getattr(self, section):
                if dataset not in self.methods:
                    raise ValueError(f"{section}: '{dataset}' is no data set of `methods`")
        for dataset, methods in self.methods.items():
            asked = sorted(set(methods) & set(KERNELS))
            made = sorted(self.kernels[dataset].methods)
            if asked != made:
                raise ValueError(f"kernels: {dataset}: methods are {made}, `methods` has {asked}")
        for dataset in self.entropy:
            missing = {"untrained", "gemax"} - set(self.methods[dataset])
            if missing:
                raise ValueError(
                    f"entropy: {dataset}: needs {sorted(missing)} among the data set's `methods`"
                )
        timed = self.trained(self.speed.dataset) if self.speed.dataset in self.methods else []
        if self.speed.base not in timed:
            raise ValueError(
                f"speed: '{self.speed.base}' is no trained method of '{self.speed.dataset}'"
            )
        first, last = self.seeds[0], self.seeds[-1]
        if tuple(self.seeds) != tuple(range(first, last + 1)):
            raise ValueError(f"seeds: {list(self.seeds)}, must rise by one")
        for dataset, semi in self.semi.items():
            if semi.readout != self.accuracy[dataset].readout:
                raise ValueError(f"semi: {dataset}: readout must be that of `accuracy`")
            missing = set(semi.methods) - set(self.trained(dataset))
            if missing:
                raise ValueError(
                    f"semi: {dataset}: {sorted(missing)} are not in `methods` or have no encoder"
                )
        return self

    def trained(self, dataset: str) -> list[str]:
        """The methods of a data set that have an encoder."""
        return [name for name in self.methods[dataset] if name in OBJECTIVES + ABLATIONS]

    def method_groups(self, dataset: str) -> list[str]:
        """The `methods` wildcards of training: names that share a job, joined by +."""
        names, size = self.trained(dataset), self.train[dataset].methods_per_job
        return ["+".join(names[i : i + size]) for i in range(0, len(names), size)]
