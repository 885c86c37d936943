"""TOML in: campaign files and the values of parameters, with bounds on everything."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from cpsched.formats.faults import path_of, shown
from cpsched.formats.files import refuse, walk
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
        return parse_toml(content.decode("utf-8").replace("\r\n", "\n"), source)
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
