"""Files of settings, TOML of annotated nouns as documents are: those of `solve`, of sites, servers and campaigns."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cpsched.domain import Check, SolveParams
from cpsched.formats.faults import Faults, Location, shown
from cpsched.formats.kinds import Object, kind_of
from cpsched.formats.toml import load_toml

T = TypeVar("T")

_OBJECT = re.compile(r"(?<=^Expected )an object(?=, got )|(?<=, got )an object$")
#: The absolute path of a file.
FilePath = Annotated[
    str,
    Check(
        lambda text: None if text[:1] == "/" and "\0" not in text else f"Expected an absolute path, got {shown(text)}"
    ),
]


class TomlFaults(Faults):
    """What is wrong with a file of TOML, in whose words an object is a table. Mutable."""

    def add(self, location: Location, message: str) -> None:
        """Note a fault, unless there are too many already."""
        super().add(location, _OBJECT.sub("a table", message))


def keys_of(*nouns: Any) -> Collection[str]:
    """Return every key that tables of some nouns may have somewhere: candidates for unknown keys."""
    return tuple(dict.fromkeys(key for noun in nouns for key in kind_of(noun).all_keys))


def read_table(noun: type[T], table: object, at: Location, faults: Faults, **stand_ins: object) -> T | None:
    """Read a table at some place of a file, and note what is wrong with it.

    Keys with faults are left out (those in `stand_ins` are replaced), so that the other keys can be checked further.
    None where the table makes no sense without them.
    """
    hint: Any = noun
    kind: Object = kind_of(hint)
    if not kind.accepts(table):
        kind.explain(table, at, faults)
        table = kind.sound(table, at, faults, stand_ins) if isinstance(table, dict) else None
    found: T | None = None if table is None else kind.read(table, at, None)
    return found


def read_settings(path: Path, noun: type[T], *, table: str | None = None) -> tuple[T, Faults]:
    """Read a file of settings: what it says, and where more that is wrong with it can be noted.

    Raises `DocumentError` as `load_toml`, or with everything that does not fit the noun.

    `path`: the TOML file. `noun`: that of the whole file, or of one of its tables. `table`: the name of that table;
    None: the whole file.
    """
    document = load_toml(path)
    faults = TomlFaults(document, keys_of(noun))
    part, at = (document, ()) if table is None else (document.get(table, {}), (table,))
    found = read_table(noun, part, at, faults)
    if faults or found is None:
        faults.refuse(str(path))
    return found, faults


def read_solve_params(path: Path) -> SolveParams:
    """Read the figures of `solve` from a TOML file, one key each; those that are left out have their defaults.

    Raises `DocumentError` if the file cannot be read, or with everything that is wrong with it.
    """
    return read_settings(path, SolveParams)[0]
