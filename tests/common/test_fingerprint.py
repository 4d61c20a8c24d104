"""The fingerprint changes with the meaning of the code, and with nothing else."""

from pathlib import Path

import pytest

from retable.common.fingerprint import (
    DynamicImportError,
    fingerprint,
    first_party_imports,
    third_party_imports,
)

FILES = {
    "retable/__init__.py": '"""The package."""\n',
    "retable/common/__init__.py": "",
    "retable/common/tools.py": (
        "import numpy as np\n\n\ndef double(x):\n    return 2 * np.asarray(x)\n"
    ),
    "retable/common/unused.py": "import pandas\n\nVALUE = 1\n",
    "retable/common/lazy.py": "import scipy.stats\n\nDEGREES = 3\n",
    "retable/common/sibling.py": "LEVEL = 0.95\n",
    "retable/common/table.txt": "1 2 3\n",
    "retable/paper/__init__.py": "ORDER = 1\n",
    "retable/paper/model.py": (
        '"""The model."""\n'
        "from ..common.sibling import LEVEL\n"
        "from . import parts\n\n\n"
        "class Model:\n"
        '    """A model."""\n\n'
        "    def level(self):\n"
        '        """Its level."""\n'
        "        return LEVEL + parts.SIZE\n"
    ),
    "retable/paper/parts.py": "SIZE = 4\n",
    "retable/paper/steps/__init__.py": '"""The steps."""\n',
    "retable/paper/steps/train.py": (
        '"""Train."""\n\n'
        "from retable.common.tools import double\n"
        "from retable.paper.model import Model\n\n\n"
        "def train(lr=0.1, epochs=3):\n"
        '    """Train the model."""\n'
        "    from retable.common import lazy\n\n"
        "    # the learning rate\n"
        "    return double(lr) * epochs + Model().level() + lazy.DEGREES\n"
    ),
    "retable/paper/steps/table.py": "import pandas as pd\n\n\ndef table():\n    return pd\n",
}
STEP = "retable.paper.steps.train"
SCRIPT = "from retable.common.tools import double\n\nprint(double(3))\n"


class Tree:
    """Copies of one small source tree; each in its own folder, since files are read only once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def source(self, changes: dict[str, str]) -> Path:
        self.count += 1
        source = self.folder / f"src{self.count}"
        for name, content in (FILES | changes).items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return source

    def of(self, changes: dict[str, str] | None = None, script: str = SCRIPT) -> str:
        source = self.source(changes or {})
        path = source.parent / f"step{self.count}.py"
        path.write_text(script)
        return fingerprint(STEP, source, [path])


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def edited(name: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[name]
    return {name: FILES[name].replace(old, new)}


def test_same_code_elsewhere(tree: Tree) -> None:
    assert tree.of() == tree.of()


@pytest.mark.parametrize(
    "changes",
    [
        edited("retable/paper/steps/train.py", "# the learning rate", "# another comment\n"),
        edited(
            "retable/paper/steps/train.py", "lr=0.1, epochs=3", "\n    lr=0.1,\n    epochs=3,\n"
        ),
        edited("retable/paper/steps/train.py", '"""Train the model."""', '"""Train it well."""'),
        edited("retable/paper/steps/train.py", '    """Train the model."""\n', ""),
        edited("retable/paper/steps/train.py", '"""Train."""\n\n', "\n\n"),
        edited("retable/paper/model.py", '    """A model."""\n\n', ""),
        edited("retable/paper/model.py", '"""A model."""', '"""Another text."""'),
        edited("retable/paper/steps/train.py", "* epochs +", "*   epochs+"),
        edited("retable/common/tools.py", "2 * np.asarray(x)", "(2 * np.asarray(x))"),
        edited("retable/common/tools.py", "def double", "# twice\ndef double"),
        edited("retable/__init__.py", "The package.", "Something else."),
        {"retable/common/unused.py": "VALUE = 2\n"},
        {"retable/common/added.py": "VALUE = 2\n"},
        {"retable/paper/steps/table.py": "def table():\n    return None\n"},
        {"retable/other/__init__.py": "", "retable/other/model.py": "VALUE = 3\n"},
        {"retable/other/__init__.py": "", "retable/other/table.csv": "a,b\n"},
    ],
)
def test_cosmetic_or_unrelated_edit(tree: Tree, changes: dict[str, str]) -> None:
    assert tree.of(changes) == tree.of()


@pytest.mark.parametrize(
    "changes",
    [
        edited("retable/paper/steps/train.py", "* epochs", "/ epochs"),
        edited("retable/paper/steps/train.py", "lr=0.1", "lr=0.2"),
        edited("retable/paper/steps/train.py", "epochs=3", "epochs=3.0"),
        edited("retable/common/tools.py", "2 *", "3 *"),
        edited("retable/common/lazy.py", "DEGREES = 3", "DEGREES = 4"),
        edited("retable/common/sibling.py", "0.95", "0.9"),
        edited("retable/paper/parts.py", "4", "5"),
        edited("retable/paper/__init__.py", "ORDER = 1", "ORDER = 2"),
        edited("retable/__init__.py", '"""The package."""\n', "import os\n"),
        {"retable/paper/steps/__init__.py": "VALUE = 1\n"},
        {"retable/common/table.txt": "1 2 4\n"},
        {"retable/common/new.json": "{}"},
        {"retable/paper/data/levels.txt": "1\n"},
    ],
)
def test_edit_that_means_something(tree: Tree, changes: dict[str, str]) -> None:
    assert tree.of(changes) != tree.of()


def test_data_in_a_folder_of_the_package(tree: Tree) -> None:
    name = "retable/paper/data/deep/levels.txt"
    assert tree.of({name: "1\n"}) != tree.of({name: "2\n"})


def test_script(tree: Tree) -> None:
    assert tree.of(script=f"# a comment\n{SCRIPT}") == tree.of()
    assert tree.of(script=SCRIPT.replace("3", "4")) != tree.of()
    script = "from retable.common.unused import VALUE\n\nprint(VALUE)\n"
    assert tree.of(script=script) != tree.of({"retable/common/unused.py": "VALUE = 2\n"}, script)


def test_values_that_look_alike(tree: Tree) -> None:
    name = "retable/paper/parts.py"
    values = ["1", "1.0", "True", "'1'", "b'1'", "-1", "1j", "(1,)", "[1]", "{1}"]
    prints = [tree.of({name: f"SIZE = {value}\n"}) for value in values]
    assert len(set(prints)) == len(values)


def test_moving_code_between_modules_counts(tree: Tree) -> None:
    swapped = {
        "retable/paper/parts.py": FILES["retable/common/sibling.py"],
        "retable/common/sibling.py": FILES["retable/paper/parts.py"],
    }
    assert tree.of(swapped) != tree.of()


@pytest.mark.parametrize(
    "line",
    [
        "import importlib\nimportlib.import_module('retable.common.unused')\n",
        "from importlib import import_module\nimport_module('retable.common.unused')\n",
        "__import__('retable.common.unused')\n",
    ],
)
@pytest.mark.parametrize("name", ["retable/paper/steps/train.py", "retable/common/tools.py"])
def test_dynamic_import_is_an_error(tree: Tree, name: str, line: str) -> None:
    number = FILES[name].count("\n") + line.count("\n")
    with pytest.raises(DynamicImportError, match=rf"{name}, line {number}: .*write an import"):
        tree.of({name: FILES[name] + line})


def test_missing_module(tree: Tree) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"retable\.paper\.none"):
        tree.of({"retable/paper/parts.py": "from retable.paper.none import x\n"})
    source = tree.source({})
    (source / "retable" / "paper" / "steps" / "__init__.py").unlink()
    with pytest.raises(ModuleNotFoundError, match=r"has no __init__\.py"):
        fingerprint(STEP, source)


def test_imports(tree: Tree) -> None:
    source = tree.source({})
    assert first_party_imports(STEP, source) == {
        *("retable", "retable.common", "retable.common.lazy", "retable.common.sibling"),
        *("retable.common.tools", "retable.paper", "retable.paper.model", "retable.paper.parts"),
        *("retable.paper.steps", STEP),
    }
    assert third_party_imports(STEP, source) == {"numpy", "scipy"}
    assert third_party_imports("retable.paper.steps.table", source) == {"pandas"}


def test_circular_imports_end(tree: Tree) -> None:
    changes = {"retable/paper/parts.py": "from retable.paper import model\n\nSIZE = 4\n"}
    assert tree.of(changes) == tree.of(changes)
