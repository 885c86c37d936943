"""Instances that were built in Python: checked as documents are, before an engine sees them.

Kernels trust what they get: a walltime of 0 crashes them. So an instance that no reader has checked is checked twice:
each field must have a value of its type (paths are those of Python, ``instance.jobs[0].steps[0].walltime``), and the
reader must accept the document that the instance is written as.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from cpsched.domain import FrozenMap, Instance, Job, Running
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown
from cpsched.formats.instance_reader import instance_to_document, is_trusted, parse_instance

#: So many faults of type are told.
_MOST_FAULTS = 1000

#: Without these nothing can be written as a document.
_NEVER_EMPTY: dict[type, tuple[str, ...]] = {Job: ("steps",), Running: ("segments",)}

_NOUNS = {int: "an integer", str: "a text", bool: "True or False", NoneType: "None"}


def checked(instance: Instance) -> Instance:
    """Return an instance that is in order: the one given where a reader made it, else what its document says.

    Raises `DocumentError` with all faults of type, or with all that the reader finds.
    """
    if is_trusted(instance):
        return instance
    if not _accepts(Instance)(instance):
        found = [
            fault for fault, _ in zip(_type_faults(instance, Instance, "instance"), range(_MOST_FAULTS), strict=False)
        ]
        raise DocumentError("the instance built in Python", found)
    try:
        document = instance_to_document(instance)
    except ValueError as error:
        raise DocumentError("the instance built in Python", [Fault("instance", str(error))]) from error
    return parse_instance(document, source="the instance built in Python")


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


@cache
def _accepts(hint: Any) -> Callable[[Any], bool]:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        options = tuple(map(_accepts, get_args(hint)))
        return lambda value: any(option(value) for option in options)
    if origin is tuple:
        of_element = _accepts(get_args(hint)[0])
        return lambda value: type(value) is tuple and all(map(of_element, value))
    if origin is FrozenMap:
        of_key, of_value = map(_accepts, get_args(hint))
        return lambda value: (
            isinstance(value, FrozenMap) and all(of_key(key) and of_value(one) for key, one in value.items())
        )
    if hint is float:
        return lambda value: type(value) in (int, float)
    if hint in (int, bool, str):
        return lambda value: type(value) is hint
    if is_dataclass(hint):
        return _accepts_noun(hint)
    return lambda value: isinstance(value, hint)


def _accepts_noun(cls: Any) -> Callable[[Any], bool]:
    """Return a predicate that tells whether a value is a noun whose fields all have their types."""
    known: list[tuple[str, Callable[[Any], bool]]] = []

    def accepts(value: Any) -> bool:
        if not known:  # at the first use, since nouns may hold each other
            known.extend((name, _accepts(hint)) for name, hint in _hints(cls).items())
        if type(value) is not cls or not all(of_field(getattr(value, name)) for name, of_field in known):
            return False
        return all(getattr(value, name) for name in _NEVER_EMPTY.get(cls, ()))

    return accepts


def _type_faults(value: Any, hint: Any, path: str) -> Iterator[Fault]:
    if _accepts(hint)(value):
        return
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and value is not None:
        candidates = [option for option in inner if option is not NoneType]
        if len(candidates) == 1:
            yield from _type_faults(value, candidates[0], path)
            return
    elif origin is tuple and type(value) is tuple:
        for index, element in enumerate(value):
            yield from _type_faults(element, inner[0], f"{path}[{index}]")
        return
    elif origin is FrozenMap and isinstance(value, FrozenMap):
        for key, one in value.items():
            yield from _type_faults(key, inner[0], f"{path} (a key)")
            yield from _type_faults(one, inner[1], f"{path}[{shown(key)}]")
        return
    elif is_dataclass(hint) and type(value) is hint:
        for name, of_field in _hints(type(value)).items():
            yield from _type_faults(getattr(value, name), of_field, f"{path}.{name}")
        for name in _NEVER_EMPTY.get(type(value), ()):
            if getattr(value, name) == ():
                yield Fault(f"{path}.{name}", "Expected at least one element, got none")
        return
    yield Fault(path, f"Expected {_noun(hint)}, got {shown(value)}{_hint(value, hint)}")


def _noun(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_noun, inner)))
    if origin is tuple:
        return f"a tuple, each element {_noun(inner[0])}"
    if origin is FrozenMap:
        return "a FrozenMap"
    if hint is float:
        return "a number"
    return _NOUNS.get(hint) or f"a value of type {hint.__name__}"


def _hint(value: Any, hint: Any) -> str:
    """Suggest the key that may have been meant, or nothing."""
    if isinstance(value, str) and hint == tuple[str, ...]:
        return "; cpsched.formats.expand_hostlist makes names of a host list"
    if type(value).__module__ == "numpy" and hint is int:
        return f" of type numpy.{type(value).__name__}; int() makes an integer of it"
    return ""
