"""What the README tells to type works: its Python runs, its targets and files exist."""

import re
from pathlib import Path

import pytest

from retable.common.configuration import known_papers

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_blocks_run(code):
    exec(compile(code, "README.md", "exec"), {})


def test_every_paper_has_a_row():
    for paper in known_papers(ROOT):
        assert f"results/table_{paper}.csv" in README, f"{paper} has no row in README.md"


def test_links_point_at_files():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), f"README.md links to {target}, which is not there"
