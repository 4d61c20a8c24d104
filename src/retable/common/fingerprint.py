"""What code means, as one hash: it changes when behaviour may change, and for no other reason.

The fingerprint of a module covers the syntax trees, docstrings left out, of the module itself and
of every first-party module that it imports, transitively: relative imports, imports inside
functions and the parent packages included, and the data files that lie in their packages. Layout,
comments and docstrings do not enter. Third-party code is pinned by the lock file instead.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "retable"
_DYNAMIC = {"import_module", "__import__"}


class DynamicImportError(ValueError):
    """A first-party module is imported in a way that no reader of the source can follow."""


def fingerprint(module: str, source: Path, scripts: Iterable[Path] = ()) -> str:
    """Hash the meaning of `module`, of all first-party code below it and of `scripts`.

    Args:
        module: dotted name, for example `retable.mlabnc.steps.train`.
        source: the folder that holds the package (`src`).
        scripts: files outside the package whose code counts too, with what they import.

    Raises:
        ModuleNotFoundError: the module, or one that is imported, does not exist.
        DynamicImportError: `importlib.import_module` or `__import__` in first-party code.
    """
    source = source.resolve()
    names = set(first_party_imports(module, source))
    digest = hashlib.sha256()
    for script in scripts:
        digest.update(_meaning(script))
        for imported in _imports(script, "", source):
            names |= first_party_imports(imported, source)
    for name in sorted(names):
        path = module_path(name, source)
        digest.update(name.encode())
        digest.update(_meaning(path))
        if path.name == "__init__.py":
            for data in _package_data(path.parent):
                digest.update(data.relative_to(path.parent).as_posix().encode())
                digest.update(data.read_bytes())
    return digest.hexdigest()[:16]


@cache
def first_party_imports(module: str, source: Path) -> frozenset[str]:
    """All first-party modules that run when `module` is imported or its functions are called."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        parent = name.rpartition(".")[0]
        if parent:
            waiting.append(parent)
        waiting.extend(_imports(module_path(name, source), name, source))
    return frozenset(seen)


def third_party_imports(module: str, source: Path) -> set[str]:
    """Top-level names of all modules outside the package that `module` imports, transitively."""
    found: set[str] = set()
    for name in first_party_imports(module, source):
        for node in ast.walk(_tree(module_path(name, source))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found - {PACKAGE}


def module_path(name: str, source: Path) -> Path:
    """The file of a first-party module."""
    base = source.joinpath(*name.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    if base.is_dir():
        raise ModuleNotFoundError(f"{name}: {base} has no __init__.py")
    raise ModuleNotFoundError(f"there is no module {name} below {source}")


def _package_data(folder: Path) -> list[Path]:
    """The data files of a package, those in folders that are no packages themselves included."""
    found = []
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not (path / "__init__.py").exists():
            found += _package_data(path)
        elif path.is_file() and path.suffix not in (".py", ".pyc"):
            found.append(path)
    return sorted(found)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


@cache
def _meaning(path: Path) -> bytes:
    """The syntax tree as text, without docstrings, comments and positions."""
    tree = ast.parse(path.read_bytes(), filename=str(path))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        ):
            node.body = body[1:]
    return ast.dump(tree, annotate_fields=False).encode()


@cache
def _imports(path: Path, name: str, source: Path) -> tuple[str, ...]:
    """First-party modules that one file imports by itself; each file is walked once."""
    return tuple(_find_imports(path, name, source))


def _find_imports(path: Path, name: str, source: Path) -> Iterator[str]:
    is_package = path.name == "__init__.py"
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == PACKAGE:
                    yield alias.name
        elif isinstance(node, ast.ImportFrom):
            target = node.module or ""
            if node.level:
                anchor = name.split(".")
                anchor = anchor[: len(anchor) - node.level + is_package]
                target = ".".join([*anchor, target] if target else anchor)
            if target.partition(".")[0] != PACKAGE:
                continue
            yield target
            for alias in node.names:
                if _is_module(f"{target}.{alias.name}", source):
                    yield f"{target}.{alias.name}"
        elif name and isinstance(node, ast.Call) and _called(node) in _DYNAMIC:
            raise DynamicImportError(
                f"{path}, line {node.lineno}: {_called(node)}() hides what is imported; "
                "write an import statement"
            )


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_module(name: str, source: Path) -> bool:
    base = source.joinpath(*name.split("."))
    return base.with_suffix(".py").is_file() or (base / "__init__.py").is_file()
