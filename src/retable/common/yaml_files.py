"""Reading YAML with errors that a user can mend: the file, the line and what is wrong there."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from retable.common.errors import InputError

# The C loader is the same safe one, ten times as fast.
_SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SAFE_LOADER):
    """The safe loader, except that a key that stands twice is an error: YAML takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key '{key.value}' stands there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, name: str | None = None) -> Any:
    """Read a YAML file; InputError with the file and the line when it is missing or no YAML.

    `name` is what the user calls the file, where that is not its path.
    """
    name = name or str(path)
    try:
        # _Loader is safe: it builds plain data alone.
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not valid YAML: not UTF-8 at byte {error.start}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise InputError(f"{name}{place}: not valid YAML: {problem}") from None
