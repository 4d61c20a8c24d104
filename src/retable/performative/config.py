"""The configuration of the experiments, and the jobs that follow from it."""

from typing import Annotated, Literal

from pydantic import Field, computed_field, model_validator

from retable.common.seeds import group_seeds
from retable.common.settings import PaperConfig, Settings, StepSettings

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]

# 6S + 3 deployments pay one outer step; the schedule's S is at least 8.
LEAST_DEPLOYMENTS = 51


class Constants(Settings):
    """The constants of `Schedule.from_budget`, one set a family of problems."""

    c_delta: float = Field(gt=0, description="width of the perturbation of φ")
    c_eta: float = Field(gt=0, description="size of the outer steps")
    c_in: float = Field(gt=0, description="width of the perturbation of θ")
    c_step: float = Field(gt=0, description="size of the inner steps")


class Schedules(Settings):
    """The constants of each family of problems."""

    bernoulli_square: Constants
    plateau: Constants
    pricing: Constants


class Method(Settings):
    """One method: its kind, and for a baseline the constant of its steps c√d/√(t+1)."""

    kind: Literal["reparam", "direct", "direct_one_point", "rgd", "known_map"]
    step: Positive | None = None
    delta: Positive | None = Field(None, description="width of the perturbation of θ")

    @model_validator(mode="after")
    def _complete(self) -> "Method":
        needs_step = self.kind != "reparam"
        needs_delta = self.kind in ("direct", "direct_one_point")
        if (self.step is not None) != needs_step or (self.delta is not None) != needs_delta:
            raise ValueError(
                "reparam takes neither step nor delta (its schedule has them), direct and "
                "direct_one_point take both, rgd and known_map take step alone"
            )
        return self


class BernoulliWorld(Settings):
    """`BernoulliSquare(d)`."""

    kind: Literal["bernoulli_square"] = "bernoulli_square"
    d: Count


class LogitWorld(Settings):
    """`LogitPricing`: one product with a given utility, or real counts."""

    kind: Literal["logit"] = "logit"
    utility: float | None = Field(None, description="of the one product at price 0; null: counts")
    sensitivity: Positive
    theta_max: Positive | None = None
    phi_min: Positive
    phi_max: float = Field(gt=0, lt=1)


class RunSettings(StepSettings):
    """What the runs of one data set depend on."""

    world: Annotated[BernoulliWorld | LogitWorld, Field(discriminator="kind")]
    theta0: float = Field(ge=0, description="each coordinate of the first deployed model")
    n_kl: int = Field(ge=1, description="samples of each deployment")
    budgets: tuple[Count, ...] = Field(min_length=1, description="samples, one horizon each")
    schedule: Constants
    methods: dict[str, Method] = Field(min_length=1)


class Regret(StepSettings):
    """Regret against samples and dimension, on bits."""

    dims: tuple[Count, ...] = Field(min_length=2)
    theta0: float = Field(ge=0.05, le=0.95)
    budgets: tuple[Count, ...] = Field(min_length=2)
    methods: dict[str, Method] = Field(min_length=1)
    n_kl_sweep: tuple[Count, ...] = Field((), description="other sizes of a deployment, reparam")


class Pricing(StepSettings):
    """Prices of MovieLens genres."""

    genres: int = Field(ge=1, le=19)
    sensitivity: Positive
    theta_max: Positive
    theta0: float = Field(ge=0)
    budgets: tuple[Count, ...] = Field(min_length=1)
    n_kl: Count
    phi_min: Positive
    phi_max: float = Field(gt=0, lt=1)
    seeds: tuple[int, ...] = Field(min_length=1)
    methods: dict[str, Method] = Field(min_length=1)

    @model_validator(mode="after")
    def _not_empty(self) -> "Pricing":
        _check_shares(self.genres, self.phi_min, self.phi_max)
        if self.theta0 > self.theta_max:
            raise ValueError(f"theta0 must be <= theta_max={self.theta_max}, found {self.theta0}")
        return self


class Plateau(StepSettings):
    """One product, from a price at which nobody buys."""

    utility: float
    sensitivity: Positive
    theta0: float = Field(ge=0)
    budgets: tuple[Count, ...] = Field(min_length=1)
    n_kl: Count
    phi_min: Positive
    phi_max: float = Field(gt=0, lt=1)
    methods: dict[str, Method] = Field(min_length=1)

    @model_validator(mode="after")
    def _not_empty(self) -> "Plateau":
        _check_shares(1, self.phi_min, self.phi_max)
        if self.theta0 > 12 / self.sensitivity:
            raise ValueError(f"theta0 must be <= 12 / sensitivity, found {self.theta0}")
        return self


Linspace = tuple[float, float, Count]


class Starts(Settings):
    """Starts of the toy as (first, last, how many)."""

    paper: Linspace = Field(description="in φ, the paper's")
    nonconvex: Linspace = Field(description="in θ, where PR is not convex")


class Single(Settings):
    """One longer run of the toy."""

    phi: float = Field(ge=0.1, le=0.9)
    iterations: Count


class Toy(StepSettings):
    """The toy with exact oracles and constant steps."""

    iterations: int = Field(ge=1)
    step: Positive
    delta: Positive
    inner_steps: Count
    inner_step: Positive
    inner_delta: Positive
    limits: tuple[float, float] = Field(description="φ is clipped to them, paper's starts")
    starts: Starts
    single: Single | None = None

    @model_validator(mode="after")
    def _within(self) -> "Toy":
        low, high = self.limits
        if not 0 < low <= high < 1:
            raise ValueError(f"limits must be rising within (0, 1), found {low}, {high}")
        # φ and φ² (the notebook's start of direct search) are models too.
        for name, (first, last, _) in self.starts:
            if not (0.1 <= first <= 0.9 and 0.1 <= last <= 0.9):
                raise ValueError(f"starts.{name} must lie within [0.1, 0.9], found {first}, {last}")
        return self


class Inner(StepSettings):
    """The error of LearnModel against its steps."""

    steps: tuple[Count, ...] = Field(min_length=2)
    dims: tuple[Count, ...] = Field(min_length=1)
    n_kl: Count
    theta0: float = Field(ge=0.05, le=0.95)
    target: float = Field(ge=0.0025, le=0.9025)
    repetitions: Count
    c_in: Positive
    c_step: Positive


class Judge(Settings):
    """At which settings the claims are judged."""

    budget: Count = Field(description="samples, one of regret.budgets")
    exponent_dims: tuple[Count, ...] = Field(min_length=1, description="some of regret.dims")
    points: int = Field(ge=2, description="random points for each smallest eigenvalue")


class EvaluateSettings(StepSettings):
    """What the evaluation depends on."""

    budget: Count
    exponent_dims: tuple[Count, ...]
    points: int
    prices: LogitWorld


class CountsSettings(StepSettings):
    """How many genres are sold."""

    genres: int = Field(ge=1, le=19)


class Config(PaperConfig):
    """`config/performative.yaml` at one scale."""

    n_kl: Count
    schedule: Schedules
    toy: Toy
    regret: Regret
    inner: Inner
    pricing: Pricing
    plateau: Plateau | None = None
    judge: Judge

    @model_validator(mode="after")
    def _consistent(self) -> "Config":
        if self.judge.budget not in self.regret.budgets:
            raise ValueError(f"judge.budget must be one of {self.regret.budgets}")
        if not set(self.judge.exponent_dims) <= set(self.regret.dims):
            raise ValueError(f"judge.exponent_dims must be some of {self.regret.dims}")
        for name, run in self.run.items():
            least = LEAST_DEPLOYMENTS * run.n_kl
            if min(run.budgets) < least:
                raise ValueError(
                    f"budgets of {name} must be >= {least}, the cost of one outer step at "
                    f"n_kl={run.n_kl}, found {min(run.budgets)}"
                )
        return self

    @computed_field
    @property
    def counts(self) -> CountsSettings:
        """Settings of the step that counts MovieLens."""
        return CountsSettings(genres=self.pricing.genres)

    @computed_field
    @property
    def run(self) -> dict[str, RunSettings]:
        """Settings of the runs, by data set."""
        runs = {
            f"bernoulli_d{d}": self._bits(d, self.n_kl, self.regret.methods)
            for d in self.regret.dims
        }
        reparam = {name: m for name, m in self.regret.methods.items() if m.kind == "reparam"}
        runs |= {
            f"bernoulli_d{d}_nkl{n}": self._bits(d, n, reparam)
            for n in self.regret.n_kl_sweep
            for d in self.regret.dims
        }
        if self.plateau is not None:
            runs["logit1"] = RunSettings(
                world=LogitWorld(
                    utility=self.plateau.utility,
                    sensitivity=self.plateau.sensitivity,
                    phi_min=self.plateau.phi_min,
                    phi_max=self.plateau.phi_max,
                ),
                schedule=self.schedule.plateau,
                **_common(self.plateau),
            )
        runs["movielens"] = RunSettings(
            world=self._prices(),
            schedule=self.schedule.pricing,
            **_common(self.pricing),
        )
        return runs

    @computed_field
    @property
    def evaluate(self) -> EvaluateSettings:
        """Settings of the evaluation."""
        return EvaluateSettings(prices=self._prices(), **self.judge.model_dump())

    def _prices(self) -> LogitWorld:
        return LogitWorld(
            sensitivity=self.pricing.sensitivity,
            theta_max=self.pricing.theta_max,
            phi_min=self.pricing.phi_min,
            phi_max=self.pricing.phi_max,
        )

    def _bits(self, d: int, n_kl: int, methods: dict[str, Method]) -> RunSettings:
        return RunSettings(
            world=BernoulliWorld(d=d),
            theta0=self.regret.theta0,
            n_kl=n_kl,
            budgets=self.regret.budgets,
            schedule=self.schedule.bernoulli_square,
            methods=methods,
            seeds_per_job=self.regret.seeds_per_job,
        )

    def run_jobs(self) -> list[tuple[str, str]]:
        """(dataset, seeds) of each job of the step `run`."""
        return [
            (dataset, seeds)
            for dataset, settings in self.run.items()
            for seeds in group_seeds(
                self.pricing.seeds if dataset == "movielens" else self.seeds,
                settings.seeds_per_job,
            )
        ]

    def inner_jobs(self) -> list[tuple[int, str]]:
        """(d, seeds) of each job of the step `inner`."""
        return [
            (d, seeds)
            for d in self.inner.dims
            for seeds in group_seeds(self.seeds, self.inner.seeds_per_job)
        ]


def _check_shares(products: int, phi_min: float, phi_max: float) -> None:
    if products * phi_min > phi_max:
        raise ValueError(
            f"phi_max must be >= phi_min times {products} products, "
            f"found phi_min={phi_min}, phi_max={phi_max}"
        )


def _common(experiment: Pricing | Plateau) -> dict[str, object]:
    names = ("theta0", "n_kl", "budgets", "methods", "seeds_per_job")
    return {name: getattr(experiment, name) for name in names}
