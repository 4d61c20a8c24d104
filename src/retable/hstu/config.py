"""Settings of the HSTU experiments; what their numbers mean stands beside them."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from retable.common.settings import PaperConfig, Settings, StepSettings


class HSTUSettings(Settings):
    """Sizes of an HSTU encoder."""

    kind: Literal["hstu"]
    d_model: int = Field(ge=1, description="width of embeddings and states")
    n_blocks: int = Field(ge=1)
    n_heads: int = Field(ge=1)
    d_qk: int = Field(ge=1, description="width of queries and keys per head")
    d_v: int = Field(ge=1, description="width of values per head")
    dropout: float = Field(ge=0, lt=1)
    attention: Literal["silu", "softmax"] = "silu"
    bias: Literal["position+time", "position"] | None = "position+time"


class SASRecSettings(Settings):
    """Sizes of a SASRec encoder; d_ff = 4 d_model without dropout is the plain Transformer."""

    kind: Literal["sasrec"]
    d_model: int = Field(ge=1)
    n_blocks: int = Field(ge=1)
    n_heads: int = Field(ge=1)
    d_ff: int = Field(ge=1, description="width of the feed-forward layer")
    dropout: float = Field(ge=0, lt=1)


class GRU4RecSettings(Settings):
    """Sizes of a GRU4Rec encoder."""

    kind: Literal["gru4rec"]
    d_model: int = Field(ge=1)
    n_blocks: int = Field(1, ge=1)
    dropout: float = Field(ge=0, lt=1)


Encoder = Annotated[HSTUSettings | SASRecSettings | GRU4RecSettings, Field(discriminator="kind")]


class PrepareSettings(StepSettings):
    """Which users are kept."""

    max_users: int | None = Field(None, ge=1, description="first users by id; None: all")
    five_core: bool = Field(
        False, description="keep items and users with >= 5 ratings (Amazon Books)"
    )


class OptimizerSettings(Settings):
    """AdamW without weight decay or warm-up, and the sampled softmax."""

    lr: float = Field(1e-3, gt=0, description="learning rate")
    betas: tuple[float, float] = (0.9, 0.98)
    n_negatives: int = Field(128, ge=1, description="R, negatives a position")
    temperature: float = Field(0.05, gt=0)


class TrainSettings(StepSettings):
    """One job of the public experiments: one or several methods on one data set."""

    max_len: int = Field(ge=1, description="N, events of history that a model sees")
    spare_len: int = Field(
        0, ge=0, description="positions beyond max_len that the official encoder reserves"
    )
    n_valid: int = Field(ge=1, description="validation events a user")
    n_test: int = Field(ge=1, description="test events a user, the last ones")
    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1, description="users a batch")
    optimizer: OptimizerSettings = OptimizerSettings()
    alphas: dict[str, float] = Field(
        default_factory=dict,
        description="method -> alpha of Stochastic Length, in (1, 2]; others keep all events",
    )
    tf32: bool = Field(False, description="TensorFloat-32 products on a GPU")
    methods: dict[str, Encoder] = Field(min_length=1)

    @model_validator(mode="after")
    def _alphas_belong_to_methods(self) -> "TrainSettings":
        for method, alpha in self.alphas.items():
            if method not in self.methods:
                raise ValueError(f"alphas: there is no method '{method}' in {list(self.methods)}")
            if not 1 < alpha <= 2:
                raise ValueError(f"alphas: {method}: alpha must lie in (1, 2], got {alpha}")
        return self


class StreamSettings(StepSettings):
    """One job on a synthetic stream: one or several encoders, one pass."""

    n_items: int = Field(ge=1, description="V")
    n_categories: int = Field(ge=1, description="C")
    n_records: int = Field(ge=10, description="R; the last tenth is the test set")
    length: int = Field(ge=2, description="n, items a record")
    alpha: tuple[float, float] = Field(description="range of the concentration")
    initial_fraction: float = Field(0.4, gt=0, le=1, description="ids on offer at the start")
    batch_size: int = Field(ge=1, description="records a batch")
    max_tokens: int | None = Field(None, ge=1, description="tokens to train on; None: all")
    checkpoints: int = Field(1, ge=1, description="log-spaced points where the model is tested")
    optimizer: OptimizerSettings = OptimizerSettings()
    methods: dict[str, Annotated[HSTUSettings | SASRecSettings, Field(discriminator="kind")]] = (
        Field(min_length=1)
    )


class RankingSettings(StepSettings):
    """The generative ranker and the impression-level DLRM on one data set."""

    max_events: int = Field(ge=2, description="events of history")
    n_valid: int = Field(ge=1)
    n_test: int = Field(ge=1)
    positive_rating: float = Field(4.0, description="smallest rating of a positive action")
    lr: float = Field(1e-3, gt=0)
    ranker_epochs: int = Field(ge=1)
    ranker_batch_size: int = Field(ge=1, description="windows of max_events events a batch")
    d_model: int = Field(ge=1)
    n_blocks: int = Field(ge=1)
    n_heads: int = Field(ge=1)
    dropout: float = Field(ge=0, lt=1)
    dlrm_epochs: int = Field(ge=1)
    dlrm_batch_size: int = Field(ge=1, description="impressions a batch")
    d_embedding: int = Field(ge=1)
    hidden: tuple[int, ...] = Field(min_length=1)
    candidates: int = Field(ge=1, description="candidates of the M-FALCON check")
    microbatch: int = Field(ge=1)


class SpeedSettings(StepSettings):
    """What is timed, side by side and in alternation."""

    lengths: tuple[int, ...] = Field(min_length=2, description="tokens of one user, ascending")
    d_model: int = Field(ge=1)
    n_heads: int = Field(ge=1)
    block_size: int = Field(ge=1, description="rows of a tile of the SiLU attention")
    alpha: float = Field(gt=1, le=2, description="Stochastic Length")
    repeats: int = Field(ge=2)
    generative_length: int = Field(ge=2, description="n of the impression-level comparison")
    candidates: int = Field(ge=1, description="m of M-FALCON")
    microbatch: int = Field(ge=1, description="candidates a pass of M-FALCON")
    history_tokens: int = Field(ge=2, description="n of M-FALCON, items and actions")

    @model_validator(mode="after")
    def _ordered(self) -> "SpeedSettings":
        if list(self.lengths) != sorted(set(self.lengths)):
            raise ValueError(f"lengths must ascend, got {list(self.lengths)}")
        return self


class EvaluateSettings(StepSettings):
    """What is reported of the held-out ranks."""

    ks: tuple[int, ...] = Field((10, 50, 200), min_length=1, description="cut-offs of HR, NDCG")
    batch_size: int = Field(128, ge=1, description="users a batch")
    sparsity_draws: int = Field(200, ge=1, description="simulated draws of Stochastic Length")
    sparsity_alphas: tuple[float, ...] = (1.6, 1.4)


class MeasuresSettings(StepSettings):
    """How the claims' measures are taken."""

    early_epoch: int = Field(ge=1, description="epoch of the data-efficiency ratio")
    reference_length: int = Field(
        ge=1, description="the speed ratio at the longest length must beat the one at this length"
    )
    bootstrap_repeats: int = Field(10_000, ge=100)


class FigureSettings(StepSettings):
    """The layer whose operations are counted in the figure."""

    d_model: int = Field(128, ge=1)
    n_heads: int = Field(4, ge=1)


class Config(PaperConfig):
    """The configuration of the paper at one scale.

    `train` goes experiment -> data set -> job, `stream` experiment -> job, `ranking` by data set;
    a job holds one method or several small ones.
    """

    datasets: tuple[str, ...] = Field(min_length=1, description="the first one serves the claims")
    experiment_seeds: dict[str, tuple[int, ...]] = Field(
        default_factory=dict, description="seeds of an experiment that differ from `seeds`"
    )
    prepare: dict[str, PrepareSettings]
    train: dict[str, dict[str, dict[str, TrainSettings]]]
    stream: dict[str, dict[str, StreamSettings]]
    ranking: dict[str, RankingSettings]
    speed: SpeedSettings
    evaluate: EvaluateSettings = EvaluateSettings()
    measures: MeasuresSettings
    figure: FigureSettings = FigureSettings()

    @model_validator(mode="after")
    def _datasets_are_prepared(self) -> "Config":
        for dataset in self.datasets:
            if dataset not in self.prepare:
                raise ValueError(f"prepare: no settings for the data set '{dataset}'")
        if self.measures.reference_length not in self.speed.lengths[:-1]:
            raise ValueError(
                f"measures: reference_length must be one of {list(self.speed.lengths[:-1])}, got "
                f"{self.measures.reference_length}"
            )
        used = {d for by_dataset in self.train.values() for d in by_dataset} | set(self.ranking)
        unknown = sorted(used - set(self.datasets))
        if unknown:
            raise ValueError(f"datasets: '{unknown[0]}' is used but not listed")
        return self
