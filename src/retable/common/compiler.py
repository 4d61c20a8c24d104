"""PyTorch's compiler stays unloaded in jobs that compile nothing.

PyTorch's optimisers ask the compiler to leave them alone, and import it for that: about two seconds
of every training job.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

_NAME = "torch._dynamo"


def defer_compiler() -> None:
    """Load PyTorch's compiler only when it is used, from now on; torch must be imported."""
    if _NAME not in sys.modules:
        sys.modules[_NAME] = sys.modules["torch"]._dynamo = _Absent()
        sys.meta_path.insert(0, _Finder())


def _unchanged(function: Callable, *_: Any, **__: Any) -> Callable:
    """What the compiler's `disable` comes to where nothing is compiled."""
    return function


def _nothing() -> None:
    """What the compiler's `graph_break` comes to where nothing is compiled."""


class _Absent(types.ModuleType):
    """Stands in for the compiler until something else of it is asked for, then loads it."""

    __path__: Sequence[str] = ()  # a package: `_Finder` is asked for its modules

    def __init__(self) -> None:
        super().__init__(_NAME)
        self.disable = _unchanged
        self.graph_break = _nothing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by `inspect` of every module that is loaded
            raise AttributeError(name)
        return getattr(_load(), name)


def _load() -> types.ModuleType:
    if isinstance(sys.modules.get(_NAME), _Absent):
        del sys.modules[_NAME]
        del sys.modules["torch"]._dynamo
        sys.meta_path[:] = [part for part in sys.meta_path if not isinstance(part, _Finder)]
    import torch._dynamo

    return torch._dynamo


class _Finder(importlib.abc.MetaPathFinder):
    """Loads the compiler when one of its modules is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(f"{_NAME}."):
            return None
        _load()
        if name not in sys.modules:
            return importlib.util.find_spec(name)
        return importlib.machinery.ModuleSpec(name, _Loaded(sys.modules[name]))


class _Loaded(importlib.abc.Loader):
    """Gives a module that was imported on the way, so that there is one of it only."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec
