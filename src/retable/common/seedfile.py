"""`seeds/<paper>.yaml`: what a reproduction grows from: citation, claims, reported numbers."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from retable.common.errors import InputError
from retable.common.settings import Settings
from retable.common.yaml_files import read_yaml

_THRESHOLD = re.compile(r"(>=|>|<=|<)\s*(-?\d+(\.\d+)?([eE][-+]?\d+)?)")


class Check(Settings):
    """One measurable part of a claim."""

    id: str
    measure: str = Field(description="what is measured, with its unit")
    threshold: str | None = Field(None, description="`>= 10`: one of >=, >, <=, < and a number")
    rule: Literal["interval", "every_seed"] | None = None
    interval: Literal["t", "bootstrap", "exact"] = "t"
    timed: bool = Field(False, description="the measure is a time: its bytes are not promised")
    needs_paper_scale: str | None = Field(None, description="why a smaller scale cannot decide")

    @field_validator("threshold")
    @classmethod
    def _readable(cls, threshold: str | None) -> str | None:
        if threshold is not None and not _THRESHOLD.fullmatch(threshold):
            raise ValueError("must be one of >=, >, <=, < and a number, as in '>= 10'")
        return threshold

    @model_validator(mode="after")
    def _decidable(self) -> "Check":
        if (self.threshold is None) != (self.rule is None):
            raise ValueError("threshold and rule go together")
        if self.threshold is None and self.needs_paper_scale is None:
            raise ValueError("needs a threshold and a rule, or needs_paper_scale with the reason")
        return self

    def bound(self) -> tuple[str, float]:
        """The comparison and the number of the threshold."""
        found = _THRESHOLD.fullmatch(self.threshold or "")
        if found is None:
            raise ValueError(f"check {self.id} has no threshold")
        return found[1], float(found[2])


class Claim(Settings):
    """A claim of the abstract in our own words."""

    id: str
    statement: str
    checks: tuple[Check, ...] = Field(min_length=1)
    extension: bool = Field(False, description="our own analysis, not the paper's claim")


class Reported(Settings):
    """A number that the paper reports."""

    experiment: str
    dataset: str
    method: str
    metric: str
    value: float
    source: str = Field(description="which table or figure of the paper")


class SeedFile(Settings):
    """The content of `seeds/<paper>.yaml`."""

    paper: str
    title: str
    authors: tuple[str, ...]
    venue: str
    links: dict[str, str] = Field(default_factory=dict)
    basis: str
    claims: tuple[Claim, ...] = Field(min_length=1)
    reported: tuple[Reported, ...] = ()
    captions: dict[str, str] = Field(
        default_factory=dict,
        description="what the report says of a file: table, figure, table_<topic>",
    )

    @model_validator(mode="after")
    def _unique(self) -> "SeedFile":
        ids = [claim.id for claim in self.claims]
        checks = [check.id for claim in self.claims for check in claim.checks]
        for kind, names in (("claim", ids), ("check", checks)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"the {kind} {twice[0]} stands there twice")
        for name in ids + checks:
            if not name.startswith(f"{self.paper}-"):
                raise ValueError(f"'{name}' must begin with '{self.paper}-'")
        numbers = [(r.experiment, r.dataset, r.method, r.metric) for r in self.reported]
        for number in numbers:
            if numbers.count(number) > 1:
                raise ValueError(f"reported: {', '.join(number)} stands there twice")
        return self


def read_seed_file(path: Path) -> SeedFile:
    """Read and check `seeds/<paper>.yaml`; InputError names the file, the key and the value."""
    content = read_yaml(path)
    try:
        return SeedFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(top level)"
        value = first["input"]
        # The whole file as a value would bury what is wrong.
        got = "" if isinstance(value, dict) and value is content else f", got {value!r}"
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}: {key}: {message}{got}") from None
