"""Doors of rooms that import a module only when one of its names is asked for.

Behind many doors are compilers and solvers; who needs one name need not wait for the rest.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["opener"]


def opener(room: str) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a room's door from its imports under ``if TYPE_CHECKING:``.

    A public name is fetched from where that block has it, at its first use. No name is that of a module: the import of
    this module would put it in the place of the name.
    """
    source = Path(str(sys.modules[room].__file__)).read_text(encoding="utf-8")
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    origin = {one.asname or one.name: (str(found.module), one.name) for found in imports for one in found.names}

    def fetch(name: str) -> Any:
        if name not in origin:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, there = origin[name]
        found = getattr(import_module(module), there)
        setattr(sys.modules[room], name, found)
        return found

    return fetch
