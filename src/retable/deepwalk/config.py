"""Settings of the DeepWalk paper: the graphs of each experiment, and how they are embedded."""

from pydantic import Field

from retable.common.seeds import group_seeds
from retable.common.settings import PaperConfig, Settings, StepSettings


class Descent(Settings):
    """Gradient descent of DeepWalk."""

    window: int = Field(3, ge=1, description="largest distance in a walk that counts, in steps")
    init_scale: float = Field(1e-3, gt=0, description="standard deviation of the start")
    step: float = Field(1.0, gt=0, description="step size, for counts of mass n")
    max_iter: int = Field(500, ge=1, description="most gradient steps")
    tol: float = Field(1e-6, ge=0, description="root mean square of the gradient to stop at")


class Sampling(Settings):
    """Random walks from every node."""

    n_walks: int = Field(ge=1, description="walks from each node")
    walk_length: int = Field(ge=1, description="steps of a walk")


class GrowthSettings(StepSettings):
    """Recovery as the graph grows."""

    descent: Descent = Descent()


class PhaseSettings(StepSettings):
    """Accuracy over the plane of (a, b)."""

    a: tuple[float, ...] = Field(min_length=1, description="p = a ln(n)/n inside a community")
    b: tuple[float, ...] = Field(min_length=1, description="q = b ln(n)/n between two")
    descent: Descent = Descent()


class SparseSettings(StepSettings):
    """Windows on a sparse graph."""

    windows: tuple[int, ...] = Field(min_length=1, description="windows to compare, in steps")
    short_start: float = Field(
        1e-6, gt=0, description="standard deviation of a start that stays short for longer"
    )
    descent: Descent = Descent()


class DynamicsSettings(StepSettings):
    """The course of one descent, beside its linearisation and its predicted end."""

    descent: Descent = Descent()
    expected_n: int = Field(200, ge=4, description="nodes of the expected matrix")
    expected_s: float = Field(0.392, gt=0, lt=1, description="its signal s")
    expected_steps: int = Field(300, ge=1, description="steps on it")


class StartsSettings(StepSettings):
    """Many random starts on one graph."""

    n_starts: int = Field(ge=2, description="starts at each scale")
    scales: tuple[float, ...] = Field(min_length=1, description="standard deviations of the start")
    descent: Descent = Descent()


class WalksSettings(StepSettings):
    """Sampled walks beside their long-walk limit."""

    sampling: tuple[Sampling, ...] = Field(min_length=1)
    descent: Descent = Descent()


class RealSettings(StepSettings):
    """Windows and starts on a real graph."""

    windows: tuple[int, ...] = Field(min_length=1, description="windows to compare, in steps")
    dims: tuple[int, ...] = Field(min_length=1, description="dimensions of the embedding")
    n_starts: int = Field(ge=1, description="random starts")
    descent: Descent = Descent()


class DimsSettings(StepSettings):
    """K communities in K - 1 dimensions."""

    descent: Descent = Descent()


class PeersSettings(StepSettings):
    """DeepWalk as libraries compute it: word2vec on sampled walks."""

    sampling: Sampling
    window: int = Field(5, ge=1, description="largest distance that word2vec counts, in steps")
    epochs: int = Field(5, ge=1, description="passes of word2vec over the walks")
    dims: tuple[int, ...] = Field((1, 2), min_length=1, description="dimensions of the vectors")
    negative_sampling_n: int = Field(
        250, ge=2, description="largest graph for exact negative sampling (quadratic in n)"
    )
    descent: Descent = Descent()


class ScalingSettings(StepSettings):
    """Time and memory against the size of the graph."""

    nodes: tuple[int, ...] = Field(min_length=3, description="sizes to time side by side")
    repeats: int = Field(ge=1, description="rounds of which the median counts")
    softmax_n: int = Field(ge=200, description="nodes where the exact softmax is timed")
    fit_n: int = Field(ge=200, description="nodes where other methods are timed")
    sampling: Sampling
    descent: Descent = Descent()


class EvaluateSettings(Settings):
    """Which graphs a check looks at, where its text names sizes."""

    recovery_n: int = Field(ge=1, description="smallest graph that counts as large")
    slope_n: int = Field(ge=1, description="largest graph of the slope of the error")
    fixed_point_n: int = Field(ge=1, description="graph of the fixed point")


class FigureSettings(Settings):
    """What the figure shows."""

    width: float = Field(11.0, gt=0, description="inches")
    height: float = Field(9.6, gt=0, description="inches")


class Config(PaperConfig):
    """The configuration of the DeepWalk paper.

    `datasets` maps an experiment to its graphs, and each to the number of seeds it is drawn with
    (the first ones of `seeds`). `sbm_log_a6_b1_n4000` is a block model with p = 6 ln(n)/n and
    q = ln(n)/n, `_k3` at its end says that it has three communities.
    """

    datasets: dict[str, dict[str, int]]
    growth: GrowthSettings = GrowthSettings()
    phase: PhaseSettings
    sparse: dict[str, SparseSettings]
    dynamics: DynamicsSettings = DynamicsSettings()
    starts: StartsSettings
    walks: WalksSettings
    real: RealSettings
    dims: DimsSettings = DimsSettings()
    peers: PeersSettings
    scaling: ScalingSettings
    evaluate: EvaluateSettings
    figure: FigureSettings = FigureSettings()

    def jobs(self, experiment: str) -> list[tuple[str, str]]:
        """The jobs of an experiment: pairs of the wildcards `dataset` and `seeds`."""
        settings = getattr(self, experiment)
        return [
            (dataset, seeds)
            for dataset, count in self.datasets[experiment].items()
            for seeds in group_seeds(
                self.seeds[:count],
                (settings[dataset] if isinstance(settings, dict) else settings).seeds_per_job,
            )
        ]
