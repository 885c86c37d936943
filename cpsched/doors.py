"""Doors of rooms that import a module only when one of its names is asked for.

Behind many doors are compilers and solvers; who needs one name need not wait for the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["opener"]


def opener(room: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a room's door, which fetches a public name from its module at the first use.

    Parameters
    ----------
    room
        The dotted name of the package.
    modules
        The public names of each module of the room, with blanks between them. No name is that of a module: the import
        of this module would put it in the place of the name.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def fetch(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        found = getattr(import_module(f"{room}.{module_of[name]}"), name)
        setattr(sys.modules[room], name, found)
        return found

    return fetch
