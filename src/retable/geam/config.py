"""Settings of goal-aware fragments: the bottleneck, soft actor-critic, generation."""

from typing import Literal

from pydantic import Field, model_validator

from retable.common.settings import PaperConfig, Settings, StepSettings


class FGIBConfig(Settings):
    """The fragment-wise graph information bottleneck and its training."""

    width: int = Field(44, ge=1, description="width of the encoder; must be that of the atoms")
    steps: int = Field(3, ge=1, description="rounds of message passing")
    epochs: int = Field(12, ge=1)
    batch: int = Field(128, ge=1, description="molecules")
    lr: float = Field(1e-3, gt=0, description="learning rate")
    beta: float = Field(1e-5, ge=0, description="weight of the KL term")
    kl: Literal["official", "exact"] = "official"


class SACConfig(Settings):
    """Soft actor-critic; the defaults are those of a few hundred oracle calls."""

    width: int = Field(16, ge=2, description="m, half the size of a graph embedding")
    lr: float = Field(3e-3, gt=0, description="of policy and critics")
    weight_decay: float = Field(1e-4, ge=0)
    batch: int = Field(32, ge=1, description="transitions an update")
    update_every: int = Field(8, ge=1, description="steps between updates")
    updates: int = Field(1, ge=1, description="updates each time")
    update_after: int = Field(200, ge=0, description="steps before the first update")
    critic_updates: int = Field(
        100, ge=0, description="updates of the critics alone at the end of the random phase"
    )
    gamma: float = Field(0.99, ge=0, le=1, description="discount")
    polyak: float = Field(0.995, ge=0, lt=1, description="share of the target that stays")
    buffer: int = Field(1_000_000, ge=1, description="transitions")
    grad_norm: float = Field(5.0, gt=0, description="largest 2-norm of a gradient")
    stabilise: bool = Field(
        True, description="layer norm, uniform first policy, standardised property"
    )
    sampling: Literal["categorical", "official"] = "categorical"
    alpha: float = Field(0.3, gt=0, description="weight of the entropy at the start")
    alpha_lr: float = Field(5e-4, gt=0)
    alpha_min: float = Field(0.05, gt=0)
    alpha_max: float = Field(20.0, gt=0)
    alpha_steps: tuple[int, int] | None = Field(
        None, description="first step and end of the training of alpha; null keeps it fixed"
    )
    target_entropy: float = Field(1.0, description="nats")
    entropy_in_target: bool = False
    plateau_patience: int | None = Field(
        None, ge=1, description="updates without improvement before lr falls tenfold"
    )


class GenerationConfig(Settings):
    """The loop of assembly, modification and dynamic vocabulary."""

    budget: int = Field(500, ge=1, description="distinct oracle calls")
    max_molecules: int | None = Field(None, ge=1, description="rows; null: four times the budget")
    max_atoms: int = Field(30, ge=9, description="an episode ends above, dummy atoms included")
    population: int = Field(100, ge=1)
    vocabulary_limit: int = Field(1000, ge=1)
    max_update: int = Field(50, ge=1, description="fragments offered to the vocabulary at once")
    random_steps: int = Field(300, ge=0)
    oracle_every: int = Field(64, ge=1, description="steps between batches of oracle calls")
    episodes: int = Field(16, ge=1, description="parallel episodes")
    offspring: int = Field(1, ge=1, description="offspring an assembled molecule")
    mutation_rate: float = Field(0.1, ge=0, le=1)
    dynamic: bool = True
    modification: bool = True
    assembly: Literal["sac", "random", "none"] = "sac"
    sac: SACConfig = SACConfig()

    @model_validator(mode="after")
    def _consistent(self) -> "GenerationConfig":
        if self.budget < self.population:
            raise ValueError(
                f"budget is {self.budget}; it must be at least population = {self.population}"
            )
        return self


# The ablations of section 4.3 as changes of the generation's settings.
ABLATIONS: dict[str, dict[str, object]] = {
    "geam": {},
    "geam_static": {"dynamic": False},
    "geam_static_large": {"dynamic": False},  # from a larger first vocabulary
    "geam_random_assembly": {"assembly": "random"},
    "geam_wo_modification": {"modification": False, "dynamic": False},
    "geam_wo_assembly": {"assembly": "none", "dynamic": False},
}
BASELINES = ("graph_ga", "reinvent", "random_library")
Method = Literal[
    "geam",
    "geam_static",
    "geam_static_large",
    "geam_random_assembly",
    "geam_wo_modification",
    "geam_wo_assembly",
    "graph_ga",
    "reinvent",
    "random_library",
    "assembly/fgib",
    "assembly/property",
    "assembly/property_size",
    "assembly/random",
]


class PrepareSettings(StepSettings):
    """Which molecules are used."""

    library: int = Field(4000, ge=2, description="labelled molecules, the reference of novelty")
    test: int = Field(3000, ge=1, description="molecules that random_library draws from")
    prior: int = Field(20_000, ge=1, description="molecules of the language model's training")
    source: Literal["moses", "zinc250k"] = "moses"


class LabelSettings(StepSettings):
    """How the library is labelled and molecules are docked."""

    exhaustiveness: int = Field(1, ge=1, description="of the docking engine")
    docked: int = Field(400, ge=2, description="library molecules that are docked")


class FGIBSettings(StepSettings):
    """The bottleneck of each task and seed."""

    model: FGIBConfig = FGIBConfig()


class PriorSettings(StepSettings):
    """The language model that REINVENT begins with, one for all tasks."""

    embedding: int = Field(48, ge=1)
    width: int = Field(192, ge=1)
    epochs: int = Field(3, ge=1)
    lr: float = Field(3e-3, gt=0)
    batch: int = Field(128, ge=1)


class ReinventSettings(Settings):
    """REINVENT's reinforcement learning."""

    sigma: float = Field(60.0, gt=0, description="weight of the score")
    batch: int = Field(64, ge=1, description="strings a step")
    lr: float = Field(5e-4, gt=0)


class GenerateSettings(StepSettings):
    """The runs of all methods."""

    generation: GenerationConfig = GenerationConfig()
    docking: GenerationConfig = Field(GenerationConfig(budget=300), description="docking tasks")
    vocabulary: int = Field(300, ge=1, description="K, fragments of the first vocabulary")
    large_vocabulary: int = Field(1000, ge=1, description="K of geam_static_large")
    vocabulary_budget: int = Field(400, ge=1, description="molecules a vocabulary is judged by")
    ga_offspring: int = Field(50, ge=1, description="offspring a generation of graph_ga")
    reinvent: ReinventSettings = ReinventSettings()
    exhaustiveness: int = Field(1, ge=1, description="of the docking engine")
    methods_per_job: int = Field(1, ge=1, exclude=True, description="methods that share a job")


class EvaluateSettings(StepSettings):
    """What counts as a hit."""

    hit_quantile: float = Field(0.99, gt=0, lt=1, description="of the library's scores, MPO tasks")


class FigureSettings(StepSettings):
    """What the figure shows."""

    task: str = Field("osimertinib", description="whose fragments are drawn")


class Config(PaperConfig):
    """The experiment: tasks and methods are wildcards."""

    tasks: tuple[str, ...] = Field(min_length=1)
    docking: tuple[str, ...] = Field((), description="docking targets; an opt-in table")
    docking_methods: tuple[Method, ...] = ("geam", "geam_static", "graph_ga")
    docking_threads: int = Field(1, ge=1, description="molecules that a job docks side by side")
    methods: tuple[Method, ...] = Field(min_length=1)
    prepare: PrepareSettings = PrepareSettings()
    labels: LabelSettings = LabelSettings()
    fgib: FGIBSettings = FGIBSettings()
    prior: PriorSettings = PriorSettings()
    generate: GenerateSettings = GenerateSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    figure: FigureSettings = FigureSettings()

    def method_groups(self) -> list[str]:
        """The `methods` wildcards, one for each group that shares a job: names joined by +.

        Names in paths have no slash: `assembly/fgib` is `assembly.fgib` there.
        """
        size = self.generate.methods_per_job
        names = [method.replace("/", ".") for method in self.methods]
        return ["+".join(names[k : k + size]) for k in range(0, len(names), size)]
