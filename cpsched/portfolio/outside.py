"""Policies and engines from outside: entry points of other distributions, or a module's, ``module:name``."""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cpsched.engine import Engine
from cpsched.errors import DocumentError, Fault

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The groups of entry points: ``NAME = "module:object"``.
POLICY_GROUP, ENGINE_GROUP = "cpsched.policies", "cpsched.engines"


def announced(group: str) -> dict[str, "EntryPoint"]:
    """Return the entry points of a group by their names, in alphabetical order; of equal ones the first."""
    from importlib.metadata import entry_points  # most names are ours

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def load_outside(name: str, *groups: str) -> object | None:
    """Return the object of ``module:name``, or of the first group that announces the name; None where none does.

    A module is searched for as Python does it, and last in the working directory.

    Raises `DocumentError` if the module or its object cannot be had; an error within the module is the cause.
    """
    for group in groups:
        if (entry := announced(group).get(name)) is not None:
            return _loaded(name, entry.module, entry.attr)
    module, colon, attribute = name.partition(":")
    return _loaded(name, module, attribute) if colon else None


def _loaded(name: str, module: str, attribute: str) -> object:
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise _refused(name, f"Expected MODULE:NAME, such as mypolicies:ShortestFirst, got {name!r}")
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):
        sys.path.append(here)  # last: no file that lies there takes the place of a library
    try:
        found: object = import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            message = f"Expected a module on Python's path, or in the working directory {here}, got {module!r}"
        else:
            message = f"The module {module!r} cannot be imported: {type(error).__name__}: {error}"
        raise _refused(name, message) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise _refused(name, f"Expected a name of the module {module!r}, got {attribute!r}")
        found = getattr(found, part)
    return found


def _refused(name: str, message: str) -> DocumentError:
    return DocumentError(name, [Fault("", message)])


def is_engine(found: object) -> bool:
    """Tell whether an object, or what a class makes, is an engine: it has the three methods of `Engine`."""
    return all(callable(getattr(found, method, None)) for method in ("prepare", "unsupported", "plan"))


def outside_engine(name: str) -> Engine | None:
    """Return the engine of a name, made by its class or function if it is one; None where there is no such name.

    Raises `DocumentError` if it cannot be had, or is no engine.
    """
    found = load_outside(name, ENGINE_GROUP)
    if found is None:
        return None
    if callable(found) and (isinstance(found, type) or not is_engine(found)):
        found = found()
    if not (is_engine(found) and isinstance(getattr(found, "name", None), str)):
        message = "Expected an engine, with a name and the methods prepare, unsupported and plan"
        raise _refused(name, f"{message}, got {type(found).__name__}")
    return found  # type: ignore[return-value]  # it has just been looked at
