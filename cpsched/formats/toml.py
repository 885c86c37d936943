"""TOML in, with bounds on everything: campaigns, parameters, and files of settings as annotated nouns."""

import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cpsched.domain import Check, SolveParams
from cpsched.formats.faults import Faults, Location, path_of, shown
from cpsched.formats.files import refuse, walk
from cpsched.formats.kinds import Object, kind_of
from cpsched.formats.paths import open_input

#: The largest file; the shipped ones have a few thousand bytes.
_MAX_BYTES = 2**20
#: Tables and lists in each other, and the parts of a dotted key, each of which is a table.
_MAX_DEPTH = 32
#: A text or a comment, whether it ends or not; it is read once, and nothing of it again.
_TEXT = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)|'
    r"'''(?:[^']++|'(?!''))*+(?:'''|\Z)|"
    r'"(?:[^"\\\n]++|\\.)*+"?|'
    r"'[^'\n]*+'?|#[^\n]*+",
    re.DOTALL,
)
#: A key of too many parts, in a document without its texts; the time to parse one grows with the square of its parts.
_LONG_KEY = re.compile(rf"(?:\.[^.\n=,{{}}\[\]]*+){{{_MAX_DEPTH}}}")
_TOO_DEEP = f"Expected at most {_MAX_DEPTH} tables or lists in each other, got more"


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file or a pipe.

    Raises `DocumentError` if it cannot be read, has more than a megabyte, is no UTF-8 or no TOML, or goes beyond a
    bound of `parse_toml`.
    """
    source = str(path)
    try:
        with open_input(path) as stream:
            content = stream.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        refuse(source, "file", f"Expected a readable file, got: {getattr(error, 'strerror', None) or error}")
    if len(content) > _MAX_BYTES:
        refuse(source, "file", f"Expected at most {_MAX_BYTES} bytes, got more")
    try:
        return parse_toml(content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n"), source)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        refuse(source, "", f"Expected TOML, got: {error}")


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Parse TOML; `source` is what it is called in messages.

    Raises `DocumentError` if tables or lists are nested too deeply, or an integer has more than 64 bits (TOML 1.0,
    section "Integer"). Raises `TOMLDecodeError` if it is no TOML.
    """
    if _LONG_KEY.search(_TEXT.sub("", text)):
        refuse(source, "", _TOO_DEEP)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        refuse(source, "", _TOO_DEEP)
    except ValueError:  # Python reads no integer of so many digits
        refuse(source, "", "Expected integers of at most 64 bits, got a longer one")
    for location, value in walk(document):
        if len(location) > _MAX_DEPTH:
            refuse(source, "", _TOO_DEEP)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            refuse(source, path_of(location), f"Expected an integer of at most 64 bits, got {shown(value)}")
    return document


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

    `path`: the TOML file. `noun`: of the whole file, or of a table. `table`: its name; None: the whole file.
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
