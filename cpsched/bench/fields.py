"""Reading the tables of a campaign key by key, and noting all that is wrong on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from cpsched.domain import FrozenMap
from cpsched.formats import Faults, Location, shown

__all__ = ["FLAG", "TEXT", "Fields", "Kind", "integer", "list_of", "number", "one_of", "parameters_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """What a value has to be."""

    #: As in "Expected a text, got 5".
    words: str
    #: Returns the value as it is needed; raises ValueError where it is none of this kind.
    read: Callable[[object], T]
    #: Takes the place of a value that is not there or wrong, until the campaign is refused for it.
    stand_in: T


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


TEXT = Kind("a text of one line", _text, "?")
FLAG = Kind("true or false", _flag, False)


def integer(least: int) -> Kind[int]:
    """Return the kind of integers from `least` on."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError
        return value

    return Kind(f"an integer >= {least}", read, least)


def number(words: str, admits: Callable[[float], bool], stand_in: float) -> Kind[float]:
    """Return the kind of finite numbers that `admits` lets in."""

    def read(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError
        if not math.isfinite(value) or not admits(value):
            raise ValueError
        return float(value)

    return Kind(words, read, stand_in)


def one_of(names: Collection[str], stand_in: str) -> Kind[str]:
    """Return the kind of a few texts, written out."""

    def read(value: object) -> str:
        if value not in names:
            raise ValueError
        return str(value)

    return Kind(" or ".join(f'"{name}"' for name in names), read, stand_in)


def list_of(kind: Kind[T], words: str, *, or_one: bool = False) -> Kind[tuple[T, ...]]:
    """Return the kind of lists of different values, at least one; or of one value, which stands for a list of it."""

    def read(value: object) -> tuple[T, ...]:
        entries = value if isinstance(value, list) else [value] if or_one else []
        found = tuple(kind.read(entry) for entry in entries)
        if not found or len(set(found)) < len(found):
            raise ValueError
        return found

    return Kind(words, read, (kind.stand_in,))


class Fields:
    """Mutable: the keys of one table that were not read yet.

    Parameters
    ----------
    table
        The table, or what stands in its place.
    location
        Where it is in the document.
    faults
        Where what is wrong is noted.
    """

    def __init__(self, table: object, location: Location, faults: Faults) -> None:
        self.location = location
        self.faults = faults
        self._known: list[str] = []
        if not isinstance(table, dict):
            faults.add(location, f"Expected a table, got {shown(table)}")
        self._table: dict[str, object] = table if isinstance(table, dict) else {}

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def required(self, key: str, kind: Kind[T]) -> T:
        """Read a key that has to be there."""
        if key not in self._table:
            self._known.append(key)
            self.faults.add((*self.location, key), f"Expected {kind.words}, got nothing")
            return kind.stand_in
        return self.optional(key, kind, kind.stand_in)

    def optional(self, key: str, kind: Kind[T], default: T) -> T:
        """Read a key that may be missing."""
        self._known.append(key)
        if key not in self._table:
            return default
        try:
            return kind.read(self._table[key])
        except ValueError:
            self.faults.add((*self.location, key), f"Expected {kind.words}, got {_shown(self._table[key])}")
            return kind.stand_in

    def raw(self, key: str) -> dict[str, object]:
        """Read a table whose keys somebody else knows; one that is missing is empty."""
        self._known.append(key)
        value = self._table.get(key, {})
        if isinstance(value, dict):
            return value
        self.faults.add((*self.location, key), f"Expected a table, got {_shown(value)}")
        return {}

    def table(self, key: str) -> Fields:
        """Read a table; one that is missing is empty."""
        return Fields(self.raw(key), (*self.location, key), self.faults)

    def tables(self, key: str) -> Iterator[Fields]:
        """Read a list of tables; one that is missing is empty."""
        self._known.append(key)
        value = self._table.get(key, [])
        if not isinstance(value, list):
            self.faults.add((*self.location, key), f"Expected tables under [[{key}]], got {_shown(value)}")
            return
        for place, entry in enumerate(value):
            yield Fields(entry, (*self.location, key, place), self.faults)

    def close(self) -> None:
        """Note the keys that nobody has read."""
        for key in self._table:
            if key not in self._known:
                self.faults.add((*self.location, key), f"unknown key{self.faults.suggestion(key, self._known)}")

    def refuse(self, key: str, message: str) -> None:
        """Note what is wrong with a key."""
        self.faults.add((*self.location, key), message)

    def refuse_unknown(self, key: str, noun: str, name: str, known: Collection[str]) -> None:
        """Note that `name`, which a key says, is not among the known ones; nothing where it was no text at all."""
        if name == TEXT.stand_in:
            return
        self.faults.add_unknown((*self.location, key), noun, name, known)


def _shown(value: object) -> str:
    """Show a value in a message, short lists with their entries."""
    if isinstance(value, list) and len(value) <= 5:
        return f"[{', '.join(map(shown, value))}]"
    return "a table" if isinstance(value, dict) else shown(value)


def parameters_of(table: Mapping[str, object]) -> FrozenMap[str, Any]:
    """Return the parameters of a generator or a scheduler such that they can be hashed."""
    return cast(FrozenMap[str, Any], _frozen(table))


def _frozen(value: object) -> object:
    match value:
        case Mapping():
            return FrozenMap((str(key), _frozen(inner)) for key, inner in value.items())
        case list():
            return tuple(map(_frozen, value))
    return value
