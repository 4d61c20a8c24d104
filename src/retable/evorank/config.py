"""Settings of the experiments on evolution-inspired losses."""

from typing import Any, Literal

from pydantic import Field, model_validator

from retable.common.settings import PaperConfig, Settings, StepSettings

ASSAYS = (
    *("HRAS_RBD", "HRAS_GAPGEF", "bla", "SUMO1"),
    *("UBE2I", "KKA2", "HSP82", "UBI4"),
)
EXTENDED_ASSAYS = ("MAPK1", "ADRB2")
# The kinases and G protein-coupled receptors among the docking targets, by the family that UniProt
# names for each of the 58: proteins of the families of `EXTENDED_ASSAYS`, most of them below 30 %
# identity with these two.
KINASES = (
    *("ABL1", "AKT1", "AKT2", "CDK2", "CSF1R", "EGFR", "FGFR1", "IGF1R", "JAK2", "KDR", "KIT"),
    *("LCK", "MAP2K1", "MAPK1", "MAPK14", "MAPKAPK2", "MET", "PLK1", "PTK2", "ROCK1", "SRC"),
)
GPCRS = ("ADORA2A", "ADRB1", "ADRB2", "DRD2", "DRD3")


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

    @model_validator(mode="after")
    def _divides(self) -> "AtomConfig":
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads}, must divide width = {self.width}")
        return self


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
    # The structure of HSP82's assay is a docking target; it is no training structure.
    tested: tuple[str, ...] = Field(
        ("HSP90AA1",), description="docking targets that assays are placed on"
    )
    gb1: str | None = Field(None, description="set from own: gb1")


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


class OwnFiles(Settings):
    """The user's own files, which the atom-level experiments and one more assay need."""

    proteins: str | None = Field(
        None, description="structures and alignments to train on: a CSV file or a folder"
    )
    stability_structures: str | None = Field(
        None, description="folder with the structures of T2837 and C2878, by PDB code"
    )
    finetuning: str | None = Field(None, description="C2878.csv, to fine-tune on")
    zero_shot: str | None = Field(
        None, description="scores of published models on ProteinGym: a CSV file, a folder, a zip"
    )
    gb1: str | None = Field(
        None, description="a structure of GB1: its double mutants are one more data set"
    )


class EnvironmentSettings(Settings):
    """How environments of atoms are made."""

    atoms: int = Field(512, ge=1, description="nearest to the CA, at most")
    points: int = Field(100, ge=1, le=255, description="of the surface of an atom")


class AtomAssaysSettings(EnvironmentSettings):
    """ProteinGym's assays on their structures."""

    most: int | None = Field(None, ge=1, description="assays, the first by name; none: all")


class AtomStabilitySettings(EnvironmentSettings):
    """Measured changes of stability on their structures."""

    structures: str | None = Field(None, description="set from own: stability_structures")
    changes: str | None = Field(None, description="set from own: finetuning")


class AtomShardSettings(EnvironmentSettings):
    """Which proteins and positions the atom-level network is trained on."""

    proteins: str | None = Field(None, description="set from own: proteins")
    parts: int = Field(200, ge=1, exclude=True, description="jobs that share the proteins")
    positions: int | None = Field(
        100, ge=1, description="of a protein at most, evenly spread; none: all"
    )
    held_out: float = Field(0.02, gt=0, lt=1, description="share of the families")
    max_rows: int | None = Field(5000, ge=2, description="of an alignment, the first ones")
    least_hits: int = Field(5, ge=1, description="homologs that a protein must have")
    least_depth: float = Field(4, gt=0, description="effective depth of a position")
    pseudocount: float = Field(2, gt=0)
    identity: float | None = Field(
        0.3, gt=0, le=1, description="with a test protein, from which on ...; none: all stay"
    )
    aligned: int = Field(80, ge=1, description="... over so many residues a protein is left out")


class AtomTrainSettings(StepSettings):
    """Training of one method at atom level."""

    method: Method
    network: AtomConfig = AtomConfig()
    steps: int = Field(200_000, ge=1)
    batch: int = Field(60, ge=2, description="positions a step, on all GPUs together")
    lr: float = Field(1e-4, gt=0, description="learning rate of Adam")
    letters: int = Field(
        4, ge=2, le=19, description="to which a position is mutated in a step, drawn"
    )


class AtomFinetuneSettings(StepSettings):
    """Training of the atom-level network on measured stability of other proteins."""

    epochs: int = Field(20, ge=1, description="the best one counts")
    batch: int = Field(60, ge=2, description="mutations a step, on all GPUs together")
    lr: float = Field(1e-4, gt=0, description="learning rate of Adam")
    beta: float = Field(1, gt=0, description="of the Huber loss, kcal/mol")
    held_out: float = Field(0.1, gt=0, lt=1, description="proteins that choose the epoch")


class AtomScoreSettings(Settings):
    """Scoring with trained atom-level networks."""

    batch: int = Field(60, ge=1, description="positions at once")


class AtomRepresentSettings(EvaluateSettings):
    """Reading of the atom-level representations."""

    batch: int = Field(60, ge=1, description="positions at once")
    positions: int = Field(20_000, ge=1, description="of either split at most, evenly spread")


class AtomEvaluateSettings(Settings):
    """Comparison with measurements and with published models."""

    zero_shot: str | None = Field(None, description="set from own: zero_shot")
    stabilising: float = Field(-0.5, description="ddG below it, kcal/mol")


class AtomFigureSettings(Settings):
    """What the figure shows."""

    assay: str = Field("RASH_HUMAN_Bandaru_2017", description="in full; else the first one")


class Config(PaperConfig):
    """All experiments at one scale."""

    level: Literal["residue", "atom"] = Field("residue", description="what environments are of")
    methods: tuple[str, ...] = Field(min_length=1)
    assays: tuple[Literal[ASSAYS], ...] = Field(min_length=1)
    extended: bool = Field(
        False, description="two more assays; all kinases and GPCRs leave the training set"
    )
    own: OwnFiles = OwnFiles()
    structures: StructuresSettings = StructuresSettings()
    msa: MsaSettings = MsaSettings()
    dataset: DatasetSettings
    train: dict[str, TrainSettings] = Field(default_factory=dict)
    finetune: FinetuneSettings = FinetuneSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    atom_assays: AtomAssaysSettings = AtomAssaysSettings()
    atom_stability: AtomStabilitySettings = AtomStabilitySettings()
    atom_shard: AtomShardSettings = AtomShardSettings()
    atom_train: dict[str, AtomTrainSettings] = Field(default_factory=dict)
    atom_finetune: AtomFinetuneSettings = AtomFinetuneSettings()
    atom_score: AtomScoreSettings = AtomScoreSettings()
    atom_represent: AtomRepresentSettings = AtomRepresentSettings()
    atom_evaluate: AtomEvaluateSettings = AtomEvaluateSettings()
    atom_figure: AtomFigureSettings = AtomFigureSettings()

    @model_validator(mode="before")
    @classmethod
    def _spread(cls, content: Any) -> Any:
        """Hand each step what it needs of the keys that concern several of them."""
        if not isinstance(content, dict):
            return content
        content = dict(content)

        def give(step: str, key: str, value: Any) -> None:
            section = content.get(step) or {}
            if isinstance(section, dict):
                content[step] = section | {key: value}

        own = content.get("own")
        for key, step, field in (
            ("proteins", "atom_shard", "proteins"),
            ("stability_structures", "atom_stability", "structures"),
            ("finetuning", "atom_stability", "changes"),
            ("zero_shot", "atom_evaluate", "zero_shot"),
            ("gb1", "structures", "gb1"),
        ):
            if isinstance(own, dict) and key in own:
                give(step, field, own[key])
        if content.get("extended") is True and isinstance(content.get("dataset"), dict):
            excluded = tuple(content["dataset"].get("excluded", ()))
            give("dataset", "excluded", (*excluded, *KINASES, *GPCRS))
            give("structures", "tested", ("HSP90AA1", *EXTENDED_ASSAYS))
        return content

    @model_validator(mode="after")
    def _known(self) -> "Config":
        step = "train" if self.level == "residue" else "atom_train"
        for method in self.methods:
            if method not in getattr(self, step):
                raise ValueError(f"{step}: has no settings for the method '{method}'")
        if not {"wildtype", "evorank"} <= set(self.methods):
            raise ValueError("methods: must hold wildtype and evorank")
        for method, settings in self.atom_train.items():
            if settings.network.atoms < self.atom_shard.atoms:
                raise ValueError(
                    f"atom_train: {method}: network: atoms: {settings.network.atoms}, must be at "
                    f"least atom_shard: atoms = {self.atom_shard.atoms}"
                )
        return self

    @property
    def assay_names(self) -> tuple[str, ...]:
        """The assays of the residue-level experiments."""
        return (*self.assays, *EXTENDED_ASSAYS) if self.extended else self.assays
