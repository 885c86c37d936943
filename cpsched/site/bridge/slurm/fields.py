"""Values of Slurm's JSON, whatever version wrote them: plain, null, or objects that say whether they are set."""

import marshal
from collections.abc import Mapping, Sequence
from typing import Any

from cpsched.errors import Fault
from cpsched.formats import shown

#: Slurm's numbers for "not set" and "no limit", of 32 and 64 bits, and of 16 for keys that have so few.
_NO_VALUE = frozenset({2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1})
_NO_SHORT = frozenset({2**16 - 2, 2**16 - 1})
_SHORT = frozenset({
    "core_spec", "cores_per_socket", "cpus_per_task", "minimum_cpus_per_node", "segment_size", "sockets_per_node",
    "tasks_per_board", "tasks_per_core", "tasks_per_node", "tasks_per_socket", "threads_per_core",
})  # fmt: skip
#: That for "no limit" of 32 bits.
_INFINITE = 2**32 - 1
_LEAST_NO_VALUE = min(_NO_SHORT)


class Fields:
    """One object of an answer, read by key; what has the wrong type is a fault, what is missing is not set."""

    def __init__(self, source: object, path: str, faults: list[Fault]) -> None:
        self._path, self._faults = path, faults
        self._source: Mapping[str, Any] = {}
        if isinstance(source, dict):
            self._source = source
        elif source is not None:
            faults.append(Fault(path, f"Expected an object, got {shown(source)}"))

    def __contains__(self, key: str) -> bool:
        return self._source.get(key) is not None

    def text_of(self, keys: Sequence[str]) -> bytes:
        """Return a text of the values of some keys: two objects have the same one only if their values are the same."""
        # version 2 writes equal values equally, and those of two types (1 and true) not
        return marshal.dumps(list(map(self._source.get, keys)), 2)

    def quiet(self) -> "Fields":
        """Return the object, whose faults are told already."""
        return Fields(self._source, self._path, [])

    def only(self, keys: Sequence[str]) -> "Fields":
        """Return the object with some of its keys alone."""
        return Fields({key: self._source.get(key) for key in keys}, self._path, self._faults)

    def _wrong(self, key: str, expected: str, value: object) -> None:
        self.fault(key, f"Expected {expected}, got {shown(value)}")

    def fault(self, key: str, message: str) -> None:
        """Note a fault of a value."""
        self._faults.append(Fault(f"{self._path}.{key}" if key else self._path, message))

    def number(self, *keys: str) -> int | None:
        """Return the first of some keys that has a whole number; None where none is set, or it is infinite."""
        for key in keys:
            value = self._source.get(key)
            if type(value) is int and 0 <= value < _LEAST_NO_VALUE:
                return value
            if isinstance(value, dict):
                value = value.get("number") if value.get("set") and not value.get("infinite") else None
            if value is None or value == "":
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
                value = int(value)
            if type(value) is not int:
                self._wrong(key, "a whole number", value)
            elif value >= 0 and value not in _NO_VALUE and not (value in _NO_SHORT and key in _SHORT):
                return value
        return None

    def is_infinite(self, key: str) -> bool:
        """Tell whether a number has no limit, which is not the same as that it is not set."""
        value = self._source.get(key)
        return value.get("infinite") is True if isinstance(value, dict) else value == _INFINITE

    def text(self, *keys: str) -> str:
        """Return the first of some keys that has a text, lists joined by commas; empty where none has."""
        for key in keys:
            value = self._source.get(key)
            if type(value) is str and value:
                return value
            if isinstance(value, list):
                value = ",".join(part for part in value if isinstance(part, str))
            if value is None or value == "":
                continue
            if not isinstance(value, str):
                self._wrong(key, "a text", value)
            else:
                return value
        return ""

    def texts(self, key: str, *, has_gaps: bool = False) -> tuple[str, ...]:
        """Return the texts of a list, or of a text with commas. `has_gaps`: empty and null ones keep their places."""
        value = self._source.get(key)
        if value is None or value == "":
            return ()
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list) or not all(isinstance(part, str | None) for part in value):
            self._wrong(key, "a list of texts", value)
            return ()
        return tuple(part or "" for part in value if part or has_gaps)

    def flag(self, key: str) -> bool:
        """Return whether a key is true."""
        value = self._source.get(key)
        if value is not None and not isinstance(value, bool | int):
            self._wrong(key, "true or false", value)
        return value is True or value == 1

    def inside(self, *keys: str) -> "Fields":
        """Return the object below some keys; one without anything where there is none."""
        value: Any = self._source
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return Fields(value, ".".join((self._path, *keys)), self._faults)

    def each(self, key: str) -> "Sequence[Fields]":
        """Return the objects of a list, or the values of an object."""
        value = self._source.get(key)
        if isinstance(value, dict):
            value = list(value.values())
        if value is None:
            return ()
        if not isinstance(value, list):
            self._wrong(key, "a list", value)
            return ()
        return [Fields(entry, f"{self._path}.{key}[{index}]", self._faults) for index, entry in enumerate(value)]

    def is_object(self, key: str) -> bool:
        """Return whether a key has an object."""
        return isinstance(self._source.get(key), dict)

    def count(self, key: str) -> int:
        """Return how many entries an object or a list has."""
        value = self._source.get(key)
        return len(value) if isinstance(value, dict | list) else 0
