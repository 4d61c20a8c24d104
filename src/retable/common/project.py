"""What the rules ask of the library: settings, fingerprints and resources of each step.

Reads the code and the configuration from one folder (a run's own copy of them); imports nothing
heavy, so that building the graph of jobs stays fast.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from retable.common import environment
from retable.common.configuration import (
    canonical_json,
    load_paper,
    load_project,
    selected_papers,
)
from retable.common.data.catalogue import DATASETS
from retable.common.errors import InputError
from retable.common.files import whole
from retable.common.fingerprint import fingerprint
from retable.common.seedfile import read_seed_file
from retable.common.seeds import group_seeds
from retable.common.settings import SCALES, PaperConfig, Resources

_SCALE_IN_TARGET = re.compile(r"^results/([^/]+)/")
_PAPER_OF_FILE = re.compile(r"^(table|figure)_([a-z0-9]+)(?:_([a-z0-9_]+))?\.")
_SUMMARY_CAPTIONS = {
    "claims.csv": "Every claim of every paper: whether it was reproduced, by which measure, with"
    " which interval. A claim's row is that of its weakest check.",
    "claims_checks.csv": "Every check of every claim, one row a check.",
    "costs.csv": "CPU time, wall time and peak memory per paper and step, all attempts added.",
}
_TOP_FOLDERS = {"data", "logs", "costs", "locks", *SCALES}


class Project:
    """The configured project at one place.

    Attributes:
        root: folder of the code that this run uses.
        config: the user's choices.
        papers: ids of the papers asked for, in alphabetical order.
    """

    def __init__(
        self,
        root: Path,
        config: Mapping[str, Any],
        targets: Iterable[str] = (),
        fingerprints: Path | None = None,
    ) -> None:
        """`fingerprints` keeps those of code that never changes: a run's own copy."""
        self.root = root
        self._store = fingerprints
        self.config = load_project(config)
        self.papers = selected_papers(self.config, root)
        for name in self.config.data:
            if name not in DATASETS:
                raise InputError(
                    f"config/config.yaml: data: there is no data set '{name}'; "
                    f"known: {', '.join(DATASETS)}"
                )
            if not Path(self.own_data(name)).exists():
                raise InputError(
                    f"config/config.yaml: data: {name}: {self.own_data(name)}: no such file"
                )
        for paper in self.papers:
            for scale in SCALES:
                self.paper(paper, scale)
        for target in targets:
            self._check_target(str(target))

    def announce(self) -> None:
        """Hand to the jobs of this run what they read from the environment."""
        run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:8]}"
        environment.announce_run(run_id, self.config.cache, self.config.checkpoint_seconds)

    def rule_files(self) -> list[Path]:
        """The rules of the papers asked for, each after its input functions, if it has any."""
        files = [
            self.root / "rules" / name
            for paper in self.papers
            for name in (f"{paper}_inputs.smk", f"{paper}.smk")
        ]
        return [file for file in files if file.exists()]

    @property
    def script(self) -> str:
        """The script of every rule with real work."""
        return str(self.root / "workflow" / "scripts" / "step.py")

    @lru_cache  # noqa: B019 - one project lives as long as the process
    def paper(self, paper: str, scale: str) -> PaperConfig:
        """A paper's configuration at one scale."""
        return load_paper(paper, scale, self.root)

    @lru_cache  # noqa: B019
    def _dumped(self, paper: str, scale: str) -> dict[str, Any]:
        return self.paper(paper, scale).model_dump(mode="json")

    def step(
        self, paper: str, step: str, *, part: str = "", threads: int | None = None
    ) -> dict[str, Any]:
        """The params of a rule that runs `retable.<paper>.steps.<step>:<step>`.

        Args:
            paper: id of the paper, or `common`.
            step: name of the module and of its function.
            part: which part of the step's settings a job depends on, in terms of the wildcards:
                with `"{experiment}.{method}"` a job sees `settings[experiment][method]` alone.
            threads: threads that the job computes with, where it reserves more.
        """
        module, _, function = step.partition(":")
        runs = f"retable.{paper}.steps.{module}"
        params: dict[str, Any] = {
            "runs": f"{runs}:{function or module}",
            "code": self._fingerprint(runs),
        }
        if threads is not None:
            params["threads"] = threads
        if paper != "common":
            params["settings"] = self._settings(paper, module, part)
        return params

    @cached_property
    def _known_fingerprints(self) -> dict[str, str]:
        if self._store is None or not self._store.exists():
            return {}
        return json.loads(self._store.read_text(encoding="utf-8"))

    def _fingerprint(self, module: str) -> str:
        known = self._known_fingerprints
        if module not in known:
            known[module] = fingerprint(module, self.root / "src", [Path(self.script)])
            if self._store is not None:
                with whole(self._store) as part:
                    part.write_text(json.dumps(known), encoding="utf-8")
        return known[module]

    def _settings(self, paper: str, step: str, part: str) -> Callable[[Any], str]:
        def settings(wildcards: Any) -> str:
            section: Any = self._dumped(paper, wildcards.scale).get(step, {})
            place = f"config/{paper}.yaml, {wildcards.scale}: {step}"
            # Split before the wildcards are filled in: a data set's name may hold a dot.
            for field in part.split(".") if part else ():
                key = field.format(**dict(wildcards.items()))
                if not isinstance(section, dict) or key not in section:
                    known = ", ".join(section) if isinstance(section, dict) else "nothing"
                    raise InputError(f"{place}: no settings for '{key}'; there are: {known}")
                section = section[key]
                place = f"{place}.{key}"
            return canonical_json(section)

        return settings

    def compute(self, paper: str, step: str) -> dict[str, Callable[..., int]]:
        """The resources of a rule: memory (MB), time limit (minutes) and GPUs at each scale."""

        def ask(name: str) -> Callable[..., int]:
            def resource(wildcards: Any) -> int:
                steps = self.paper(paper, wildcards.scale).resources
                return getattr(steps.get(step, Resources()), name)

            return resource

        return {name: ask(name) for name in Resources.model_fields}

    def seed_groups(self, paper: str, scale: str, step: str, *keys: str) -> list[str]:
        """The `seeds` wildcards of a step: one for each job, by the step's `seeds_per_job`.

        `keys` lead to the part of the step's settings that holds it.
        """
        config = self.paper(paper, scale)
        settings: Any = getattr(config, step)
        for key in keys:
            settings = settings[key] if isinstance(settings, Mapping) else getattr(settings, key)
        return group_seeds(config.seeds, settings.seeds_per_job)

    def scale_files(self, scale: str, extra_tables: Mapping[str, Iterable[str]]) -> list[str]:
        """All tables and figures of one scale; `extra_tables` names topics by paper."""
        return [
            f"results/{scale}/{name}"
            for paper in self.papers
            for name in (
                f"table_{paper}.csv",
                *(f"table_{paper}_{topic}.csv" for topic in extra_tables.get(paper, ())),
                f"figure_{paper}.png",
            )
        ]

    def category(self, file: str) -> str:
        """The heading under which the report shows a top-level file: its paper, or the summary."""
        found = _PAPER_OF_FILE.match(file)
        return found[2] if found else "summary"

    def caption(self, file: str) -> str:
        """What the report says of a top-level file."""
        found = _PAPER_OF_FILE.match(file)
        if not found:
            return _SUMMARY_CAPTIONS[file]
        kind, paper, topic = found[1], found[2], found[3]
        seed_file = read_seed_file(Path("seeds") / f"{paper}.yaml")
        own = seed_file.captions.get(f"{kind}_{topic}" if topic else kind, "")
        text = f"{seed_file.title} ({seed_file.venue}). {own}".strip()
        if kind == "table" and not topic:
            text += (
                " Means over seeds with the 95 % Student t interval; `reported` is the paper's"
                " own number."
            )
        return f"{text} What the reproduction rests on: {seed_file.basis}."

    def own_data(self, name: str) -> str:
        """The user's own file or folder for a data set; empty for none."""
        path = self.config.data.get(name, "")
        return str(Path(path).expanduser()) if path else ""

    def own_files(self, name: str) -> list[str]:
        """The files of the user's own copy of a data set: what its rule depends on."""
        place = self.own_data(name)
        if not place:
            return []
        if Path(place).is_dir():
            return sorted(str(path) for path in Path(place).rglob("*") if path.is_file())
        return [place]

    def _check_target(self, target: str) -> None:
        found = _SCALE_IN_TARGET.match(target)
        if found and found[1] not in _TOP_FOLDERS:
            raise InputError(
                f"target {target}: there is no scale '{found[1]}'; allowed: {', '.join(SCALES)}"
            )
        name = re.match(r"^results/(?:[^/]+/)?(?:table|figure)_([a-z0-9]+)", target)
        if name and name[1] not in self.papers:
            raise InputError(
                f"target {target}: there is no paper '{name[1]}'; known: {', '.join(self.papers)}"
            )
