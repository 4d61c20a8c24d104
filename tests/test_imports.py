"""Dependencies point one way: workflow -> paper -> common."""

import ast
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
PAPERS = sorted(
    path.name
    for path in (SOURCE / "retable").iterdir()
    if (path / "__init__.py").exists() and path.name != "common"
)
TRAINING = [p for p in PAPERS if (SOURCE / "retable" / p / "steps" / "train.py").exists()]
HEAVY = ("torch", "scipy", "pandas", "matplotlib", "sklearn", "networkx", "cvxpy", "accelerate")


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("retable", cache_dir=None)


def room(module):
    return module.split(".")[1] if "." in module else ""


def test_there_are_papers():
    assert {"robustmg", "mlabnc", "hstu"} <= set(PAPERS)


def test_common_knows_no_paper(graph):
    for module in graph.modules:
        if room(module) == "common":
            for imported in graph.find_modules_directly_imported_by(module):
                assert room(imported) not in PAPERS, f"{module} imports {imported}"


def test_no_paper_imports_another(graph):
    for module in graph.modules:
        if room(module) in PAPERS:
            for imported in graph.find_modules_directly_imported_by(module):
                assert room(imported) in (room(module), "common", ""), f"{module}: {imported}"


@pytest.mark.parametrize("paper", TRAINING)
def test_training_reaches_neither_tables_nor_figures(graph, paper):
    module = f"retable.{paper}.steps.train"
    below = graph.find_upstream_modules(module)
    assert not below & {"retable.common.tables", "retable.common.figures"}


@pytest.mark.parametrize(
    "module", [f"retable.{p}{part}" for p in PAPERS for part in ("", ".config")]
)
def test_rooms_and_configurations_are_light(module):
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]", f"{module}: {done.stdout}{done.stderr}"


def test_everything_is_imported_from_submodules():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
                "retable"
            ):
                continue
            package = SOURCE.joinpath(*node.module.split("."))
            if not package.is_dir():
                continue
            for alias in node.names:
                inside = (package / f"{alias.name}.py", package / alias.name / "__init__.py")
                assert any(part.exists() for part in inside), (
                    f"{path}: line {node.lineno} imports {alias.name} from a package"
                )
