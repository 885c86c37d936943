"""Arguments of public functions, checked where they come in, in one way: by the types in the function's signature.

A function that is marked `at_the_door` gets Python's own numbers where it was given numpy's, and refuses everything
else that its signature does not have with a `ValueError`: the argument's name, what is expected, and what it got. The
limits of numbers are stated here once: the command line, the site's file and requests to the server use the same.

Imports nothing of cpsched.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Limits:
    """The smallest and the largest value of a number, and its unit."""

    least: int
    most: int
    unit: str = ""

    def __contains__(self, number: float) -> bool:
        return self.least <= number <= self.most

    def __str__(self) -> str:
        return f"{self.unit and ' of '}{self.unit} from {self.least} to {self.most}"


#: Of random numbers: an unsigned number of 32 bits.
SEED = Limits(0, 2**32 - 1)
#: The number of CPU cores to use.
WORKERS = Limits(1, 256)
#: Of a search.
STEPS = Limits(1, 10**9)
#: A time that may be spent.
SECONDS = Limits(0, 10**6, unit="seconds")

Seed = Annotated[int, SEED]
Workers = Annotated[int, WORKERS]
Seconds = Annotated[float, SECONDS]
Steps = Annotated[int, STEPS]

P = ParamSpec("P")
T = TypeVar("T")

_NOUNS = {int: "an integer", float: "a number", str: "a text", bool: "True or False", NoneType: "None"}
#: What makes a value of a class out of the text or path that was given in its place.
_MAKERS = {
    "Instance": "cpsched.read_instance reads one from a file",
    "Plan": "cpsched.read_plan reads one from a file",
    "QueueRule": "cpsched.make_scheduler makes one by its name",
}
#: The most characters of a value in a message.
_LONGEST = 80


class _RefusedError(Exception):
    """A value is not of the type."""


def at_the_door(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that checks its arguments, by their types, before it does anything.

    Numbers of numpy become Python's; True and False are no numbers, and a text is no sequence. A type that says
    nothing here (``Any``, ``object``, a type variable) admits everything.

    The function raises `ValueError` if an argument is not what its type says. The message has its name, what is
    expected, and what it is.
    """

    @cache
    def hints() -> Mapping[str, Any]:  # at the first call: types may be stated below the function
        return get_type_hints(function, include_extras=True)

    expected = signature(function)
    gathering = {one.name for one in expected.parameters.values() if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}

    @wraps(function)
    def checking(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            bound = expected.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # which names itself in its refusal
        for name, value in bound.arguments.items():
            if name in hints() and name not in gathering:
                bound.arguments[name] = plain_argument(value, hints()[name], name=name)
        return function(*bound.args, **bound.kwargs)

    return checking


def plain_argument(value: object, hint: Any, *, name: str = "") -> Any:
    """Return an argument, with Python's numbers in place of others.

    Raises `ValueError` if it is not of its type.

    `value`: the argument.
    `hint`: its type, as an annotation.
    `name`: of the argument, for the message; may be empty.
    """
    try:
        return _plain(value, hint)
    except _RefusedError:
        message = f"Expected {_noun(hint)}, got {_shown(value)}{_maker(value, hint)}"
        raise ValueError(f"{name}: {message}" if name else message) from None


def _plain(value: Any, hint: Any) -> object:
    """Return a value of a type, with Python's numbers in place of others."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        number: Any = _plain(value, inner[0])
        return number if all(number in one for one in inner[1:] if isinstance(one, Limits)) else _refuse()
    if origin in (Union, UnionType):
        return _first(value, inner)
    if hint is bool:
        return bool(value) if type(value).__name__ in ("bool", "bool_") else _refuse()
    if hint is int:
        return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else _refuse()
    if hint is float:
        if isinstance(value, Real) and not isinstance(value, bool) and value == value:  # nan is no number
            return value if isinstance(value, int) else float(value)
        return _refuse()
    if origin is Literal:
        return value if value in inner else _refuse()
    if hint in (None, NoneType):
        return value if value is None else _refuse()
    if origin is Callable or hint is Callable:
        return value if callable(value) else _refuse()
    if origin is not None and issubclass(origin, Mapping):
        return value if isinstance(value, Mapping) else _refuse()
    if origin is not None and issubclass(origin, Collection):
        return _elements(value, inner[0])
    if hint is Path:
        return value if isinstance(value, PathLike) else _refuse()
    return value if not isinstance(hint, type) or hint is object or isinstance(value, hint) else _refuse()


def _first(value: object, hints: Sequence[Any]) -> object:
    for hint in hints:
        try:
            return _plain(value, hint)
        except _RefusedError:
            continue
    return _refuse()


def _elements(value: object, hint: Any) -> object:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return _refuse()
    for element in value:
        _plain(element, hint)
    return value


def _refuse() -> Any:
    raise _RefusedError


def _noun(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return f"{_noun(inner[0])}{''.join(str(one) for one in inner[1:] if isinstance(one, Limits))}"
    if origin in (Union, UnionType, Literal):
        return " or ".join(dict.fromkeys(map(_noun, inner)))
    if origin is Callable or hint is Callable:
        return "something that can be called"
    if origin is not None and issubclass(origin, Mapping):
        return "a mapping"
    if origin is not None and issubclass(origin, Collection):
        return f"a sequence, each element {_noun(inner[0])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(map(str, (f"{hint.__name__}.{one.name}" for one in hint)))
    if hint is None or not hasattr(hint, "__name__"):
        return "None" if hint is None else str(hint)
    name = hint.__name__
    return _NOUNS.get(hint) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _maker(value: object, hint: Any) -> str:
    """Say how a value of the type is made, where a text or path was given in its place."""
    if not isinstance(value, str) and not hasattr(value, "__fspath__"):
        return ""
    names = (getattr(one, "__name__", "") for one in (hint, *get_args(hint)))
    return "".join(f"; {_MAKERS[name]}" for name in names if name in _MAKERS)


def _shown(value: object) -> str:
    """Return a value for a message, with the type of what is no plain number or text."""
    text = repr(value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return text if value is None or type(value) in (int, float, str, bool) else f"{text} of type {type(value).__name__}"
