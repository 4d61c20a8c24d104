"""Every rule's environment exists, is pinned to the lock file, and holds what its code imports."""

import re
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from retable.common.data.catalogue import KINDS
from retable.common.fingerprint import first_party_imports, module_path, third_party_imports

from .conftest import ROOT

SOURCE = ROOT / "src"
RULE_FILES = sorted((ROOT / "rules").glob("*.smk"))
# Distributions whose name is not that of their module.
DISTRIBUTIONS = {
    "Bio": "biopython",
    "yaml": "pyyaml",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "cycler": "matplotlib",
    "mpl_toolkits": "matplotlib",
}
# Imported by a module that every job loads, but used by jobs that train (or load torch) alone.
CHECKPOINTS = "retable.common.checkpoints"
ONLY_IN_TRAINING = {CHECKPOINTS, "retable.common.compiler", "retable.common.processes"}


def pins(lines):
    found = {}
    for line in lines:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line.strip())
        if match:
            found[match[1].lower().replace("_", "-")] = match[2]
    return found


@cache
def environment(path: Path):
    content = yaml.safe_load(path.read_text())
    (from_pip,) = [part["pip"] for part in content["dependencies"] if isinstance(part, dict)]
    return pins(from_pip)


def rules():
    """(file, rule, environment, step) of every rule that runs a step."""
    for file in RULE_FILES:
        for block in re.split(r"^\s*rule\b", file.read_text(), flags=re.MULTILINE)[1:]:
            name = block.split(":")[0].strip() or "data"
            runs = re.search(r'\*\*step\(\s*"(\w+)",\s*"?([\w:]+)"?', block)
            if "script:" not in block:
                continue
            conda = re.search(r'conda:\s+"([^"]+)"', block)
            steps = [runs and runs[2].split(":")[0]]
            if steps == ["kind"]:  # the rules of the shared data sets are made in a loop
                steps = list(KINDS)
            for step in steps:
                yield pytest.param(
                    file,
                    conda and conda[1],
                    step and f"retable.{runs[1]}.steps.{step}",
                    id=f"{file.stem}-{step if name == 'data' else name}",
                )


@pytest.mark.parametrize(("file", "conda", "module"), list(rules()))
def test_a_rule_has_an_environment_that_holds_what_it_imports(file, conda, module):
    assert conda, "the rule names no environment"
    path = (file.parent / conda).resolve()
    assert path.is_file(), f"{path} is missing"
    assert module, "the rule runs no step"
    own = first_party_imports(module, SOURCE)
    every_job = first_party_imports("retable.common.jobs", SOURCE)
    if CHECKPOINTS not in own:
        every_job -= ONLY_IN_TRAINING
    needed = set()
    for name in own | every_job:
        needed |= direct_third_party(name)
    held = environment(path)
    needed = {DISTRIBUTIONS.get(name, name).lower().replace("_", "-") for name in needed}
    assert needed <= set(held), f"{path.name} lacks {sorted(needed - set(held))}"


@cache
def direct_third_party(module):
    """What one module imports by itself from outside the package and the standard library."""
    import ast

    found = set()
    for node in ast.walk(ast.parse(module_path(module, SOURCE).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found - {"retable"} - sys.stdlib_module_names


def test_the_library_sees_the_same_imports():
    assert "torch" in third_party_imports("retable.common.training", SOURCE)
    assert "torch" not in third_party_imports("retable.common.claims", SOURCE)


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda p: p.stem)
def test_environments_have_the_versions_of_the_lock_file(path):
    lock = pins((ROOT / "requirements.lock").read_text().splitlines())
    for name, version in environment(path).items():
        assert lock.get(name) == version, f"{path.name}: {name}=={version}, locked {lock.get(name)}"
