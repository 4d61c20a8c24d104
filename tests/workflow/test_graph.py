"""The graph of jobs: built at every scale, fast, without heavy imports; linted; for all papers."""

import subprocess
import sys
from pathlib import Path

import pytest

from retable.common.configuration import known_papers

from .conftest import ROOT

PAPERS = known_papers(ROOT)
# Not pandas: Snakemake itself imports it where it is installed.
HEAVY = ("torch", "scipy", "matplotlib", "sklearn", "accelerate", "cvxpy", "networkx", "gensim")


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_the_graph_of_everything_is_built(clone, scale):
    jobs = clone.jobs("--config", f"scale={scale}")
    assert jobs["claims"] == len(PAPERS)
    assert jobs["top_level"] >= 2 * len(PAPERS) + 3


def test_the_profile_of_the_cluster_means_paper_scale(clone):
    printed = clone.run("--profile", "slurm", "-n")
    assert "scale=paper" in printed
    assert "scale=laptop" not in printed


def test_building_the_graph_imports_nothing_heavy(clone):
    code = (
        "import sys\n"
        "from snakemake.cli import main\n"
        "try:\n"
        "    main(['-n', '--quiet'])\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        f"print('HEAVY', [name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=clone.path,
        env=clone.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("HEAVY")]
    assert line == "HEAVY []"


def test_lint_is_clean(clone):
    assert "Congratulations" in clone.run("--lint")


def test_a_clone_with_published_results_has_work_to_do(clone):
    published = clone.path / "published"
    published.mkdir()
    for path in (ROOT / "published").glob("*"):
        (published / path.name).write_bytes(path.read_bytes())
    assert clone.jobs()["all"] == 1


def test_published_holds_what_the_papers_make():
    names = {path.name for path in (ROOT / "published").glob("*")}
    if not names:
        pytest.fail("published/ is empty: run make publish")
    for paper in PAPERS:
        assert {f"table_{paper}.csv", f"figure_{paper}.png"} <= names
    assert {"claims.csv", "claims_checks.csv"} <= names
    ledger = Path(ROOT / "published" / "claims.csv").read_text()
    for paper in PAPERS:
        assert f"\n{paper},{paper}-1," in ledger
