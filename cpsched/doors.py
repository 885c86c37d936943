"""Doors of rooms that import a module only when one of its names is asked for.

Behind many doors are compilers and solvers; a program that needs one name need not wait for the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dis import get_instructions
from functools import cache
from importlib import import_module
from typing import Any


def opener(room: str) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a room's door from its imports under ``if TYPE_CHECKING:``.

    A public name is fetched from where that block has it, at its first use. No name is that of a module: the import of
    this module would put it in the place of the name.
    """

    def fetch(name: str) -> Any:
        if name not in _origins(room):
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, there = _origins(room)[name]
        try:
            found = getattr(import_module(module), there)
        except AttributeError:  # a room itself: `cpsched.gym`
            found = import_module(f"{module}.{there}")
        setattr(sys.modules[room], name, found)
        return found

    return fetch


def later(room: str, name: str) -> Any:
    """Fetch a public name of a room when it is asked for: a policy by its name, or what shows a noun from below."""
    return getattr(import_module(f"cpsched.{room}"), name)


@cache
def _origins(room: str) -> Mapping[str, tuple[str, str]]:
    """Return module and name there of each name of a door, read from the door's compiled code: it needs no source."""
    loader: Any = sys.modules[room].__loader__
    module, there, origins = "", None, {}
    for one in get_instructions(loader.get_code(room)):
        if one.opname == "IMPORT_NAME":
            module = one.argval
        elif one.opname == "STORE_NAME" and there is not None:
            origins[one.argval] = module, there
        there = one.argval if one.opname == "IMPORT_FROM" else None
    return origins
