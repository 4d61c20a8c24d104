"""Settings of the experiments on evolution-inspired losses."""

from typing import Literal

from pydantic import Field, model_validator

from retable.common.settings import PaperConfig, Settings, StepSettings

ASSAYS = (
    *("HRAS_RBD", "HRAS_GAPGEF", "bla", "SUMO1"),
    *("UBE2I", "KKA2", "HSP82", "UBI4"),
)


class EncoderConfig(Settings):
    """The encoder of microenvironments of residues."""

    width: int = Field(64, ge=1, description="entries of a token")
    layers: int = Field(2, ge=1, description="Transformer layers")
    heads: int = Field(4, ge=1, description="attention heads")
    feedforward: int = Field(128, ge=1, description="width of the feed-forward layers")
    dropout: float = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _divides(self) -> "EncoderConfig":
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads}, must divide width = {self.width}")
        return self


class AtomConfig(Settings):
    """The atom-level network of the paper's scale."""

    width: int = Field(128, ge=2, description="entries of a token")
    depth: int = Field(4, ge=1, description="blocks")
    heads: int = Field(8, ge=1, description="attention heads")
    atoms: int = Field(512, ge=1, description="atoms of an environment at most")


class Method(Settings):
    """What a network is trained for."""

    objective: Literal["wildtype", "soft", "evorank"]
    label: Literal["difference", "log_ratio", "sign"] = "difference"
    pairs: Literal["wildtype", "all"] = "wildtype"
    environment: bool = Field(True, description="false: a constant one, a substitution table")


class StructuresSettings(Settings):
    """Which structures are trained on."""

    proteins: tuple[str, ...] | None = Field(
        None, description="names of docking targets; none: all of them"
    )


class MsaSettings(Settings):
    """How alignments are made."""

    parts: int = Field(2, ge=1, exclude=True, description="jobs that share the proteins")
    e_value: float = Field(1e-3, gt=0, description="largest E-value of a hit")
    max_hits: int = Field(300, ge=1, description="rows at most")
    rounds: Literal[1, 2] = Field(2, description="of searching")
    database_sequences: int | None = Field(
        None, ge=1, description="sequences of the database that are searched; none: all"
    )


class DatasetSettings(Settings):
    """Which proteins and positions are used."""

    held_out: tuple[str, ...] = Field(description="proteins for the choice of models")
    excluded: tuple[str, ...] = Field((), description="proteins that are left out")
    least_hits: int = Field(5, ge=1, description="homologs that a protein must have")
    least_depth: float = Field(4, gt=0, description="effective depth of a position")
    pseudocount: float = Field(2, gt=0)
    identity: float = Field(0.3, gt=0, le=1, description="with a test protein, from which on ...")
    aligned: int = Field(80, ge=1, description="... over so many residues it is left out")


class TrainSettings(StepSettings):
    """Training of one method."""

    method: Method
    encoder: EncoderConfig = EncoderConfig()
    epochs: int = Field(6, ge=1)
    batch: int = Field(256, ge=1, description="positions a step")
    lr: float = Field(2e-3, gt=0, description="largest learning rate, one-cycle")
    warmup: float = Field(0.1, gt=0, lt=1, description="share of the steps")
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1, gt=0, description="norm of the gradient")
    from_letters: int = Field(3, ge=1, le=20, description="letters drawn for the pairs `all`")


class FinetuneSettings(StepSettings):
    """Training on experimental scores of other proteins."""

    rounds: int = Field(20, ge=1, description="epochs; the best one counts")
    steps: int = Field(4, ge=1, description="a round")
    positions: int = Field(32, ge=1, description="of every assay, a step")
    lr: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.01, ge=0)
    beta: float = Field(0.5, gt=0, description="of the Huber loss")
    held_out: float = Field(0.1, gt=0, lt=1, description="positions that choose the round")


class EvaluateSettings(Settings):
    """Reading of the representations."""

    least_difference: float = Field(0.05, gt=0, description="of p, for a pair to have an order")
    regression_steps: int = Field(1000, ge=1, description="of the logistic regression, at most")


class Config(PaperConfig):
    """All experiments at one scale."""

    methods: tuple[str, ...] = Field(min_length=1)
    assays: tuple[Literal[ASSAYS], ...] = Field(min_length=1)
    structures: StructuresSettings = StructuresSettings()
    msa: MsaSettings = MsaSettings()
    dataset: DatasetSettings
    train: dict[str, TrainSettings]
    finetune: FinetuneSettings = FinetuneSettings()
    evaluate: EvaluateSettings = EvaluateSettings()

    @model_validator(mode="after")
    def _known(self) -> "Config":
        for method in self.methods:
            if method not in self.train:
                raise ValueError(f"train: has no settings for the method '{method}'")
        if not {"wildtype", "evorank"} <= set(self.methods):
            raise ValueError("methods: must hold wildtype and evorank")
        return self
