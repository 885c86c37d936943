"""Raw JSON: from a file to Python values, and a cursor that walks in them and refuses with the path.

This is the judge's own reader, on purpose: a slip in `cpsched.formats` must not hide itself here.
"""

import gzip
import io
import json
import os
import re
import select
import stat
import unicodedata
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, NoReturn

from cpsched.errors import DocumentError, Fault

#: The limits of the documents, from the fine print.
MAX_BYTES = 256 * 2**20
MAX_TIME = 10**12
MAX_PLAN_TIME = 10**17
MAX_DURATION = 10**10
MAX_AMOUNT = 2**31 - 1
MAX_AREA = 10**18
MAX_SIZE = 10**6
MAX_NAME = 256
MAX_NUMBER = 1e100
#: A gzip file holds at most 64 times its own size, where that is more than 4 MiB.
MAX_RATIO = 64
SMALL_BYTES = 4 * 2**20
#: More than a million values take at least 6 bytes each.
SMALL_VALUES = 10**6
BYTES_A_VALUE = 6
MAX_KEYS = 10**4
GZIP_MAGIC = b"\x1f\x8b"
#: There is one of these for each value.
SIGNS = (b",", b"[", b"{")
TEXT = re.compile(rb'"(?:\\.|[^\\"]++)*+"?', re.DOTALL)
#: Seconds until something comes out of a named pipe.
PATIENCE = 10.0


def load(path: str | Path) -> object:
    """Read a ``.json`` or ``.json.gz`` file within limits. Raises `DocumentError` if it is none."""
    source = str(path)
    try:
        with open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
            _refuse_endless(stream)
            data = _unpacked(b"".join(_portions(stream)))
        _refuse_crowded(data)
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique_keys)
    except RecursionError as error:
        raise DocumentError(source, [Fault("", "expected a JSON document, got one nested too deeply")]) from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise DocumentError(source, [Fault("", f"expected a JSON document, got: {what}")]) from error


def _refuse_endless(stream: BinaryIO) -> None:
    """Refuse inputs that may never end: a device, and a named pipe without a writer."""
    mode = os.fstat(stream.fileno()).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise ValueError("neither a file nor a pipe")
    if stat.S_ISFIFO(mode) and not select.select([stream], [], [], PATIENCE)[0]:
        raise ValueError(f"a pipe to which nothing was written within {PATIENCE:g} s")
    os.set_blocking(stream.fileno(), True)


def _portions(stream: BinaryIO) -> Iterator[bytes]:
    """Read a file, but never much more than the limit."""
    size = 0
    while size <= MAX_BYTES and (portion := stream.read(2**20)):
        size += len(portion)
        yield portion


def _unpacked(data: bytes) -> bytes:
    """Unpack a file whose first bytes are those of gzip, but never more than one byte beyond the limit."""
    limit = MAX_BYTES
    if data.startswith(GZIP_MAGIC):
        limit = min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * len(data)))
        with gzip.open(io.BytesIO(data)) as packed:
            data = packed.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"expected at most {limit} bytes unpacked, got more")
    return data


def _refuse_crowded(data: bytes) -> None:
    """Refuse, before it is decoded, what has far more values than a document of its size has."""
    limit = max(SMALL_VALUES, len(data) // BYTES_A_VALUE)
    values = sum(map(data.count, SIGNS))
    if values > limit:
        values -= sum(sum(map(text.group().count, SIGNS)) for text in TEXT.finditer(data))
    if values > limit:
        raise ValueError(f"expected at most {limit} values in {len(data)} bytes, got more")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"expected a number, got {name}")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object in which a key occurs twice: two readers could read different values."""
    if len(pairs) > MAX_KEYS:
        raise ValueError(f"expected at most {MAX_KEYS} keys in one object, got {len(pairs)}")
    value: dict[str, object] = {}
    for key, member in pairs:
        if key in value:
            raise ValueError(f"the key {shown(key)} occurs twice in one object")
        value[key] = member
    return value


def unknown_key(key: str, known: Collection[str]) -> str:
    """Report an unknown key, and the key that may have been meant."""
    close = get_close_matches(key, list(known), n=1)
    return "unknown key" + (f", did you mean {close[0]}?" if close else "")


def shown(value: object) -> str:
    """Show a value that was got, shortened."""
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        return "a huge integer"
    text = repr(value) if not isinstance(value, dict | list | tuple) else f"{type(value).__name__} of {len(value)}"
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class Cursor:
    """A value inside a document, with its path; every question about it answers or raises `DocumentError`."""

    value: object
    path: str
    source: str

    def refuse(self, message: str) -> NoReturn:
        """Raise a `DocumentError` that points here."""
        raise DocumentError(self.source, [Fault(self.path, message)])

    def _expected(self, what: str) -> NoReturn:
        self.refuse(f"expected {what}, got {shown(self.value)}")

    def mapping(self) -> Mapping[str, object]:
        """Return an object whose keys are strings."""
        if not isinstance(self.value, Mapping) or not all(isinstance(key, str) for key in self.value):
            self._expected("an object")
        return self.value

    def members(self, required: Collection[str] = (), optional: Collection[str] = ()) -> "dict[str, Cursor]":
        """Return the members of an object that has all the required keys and no unknown one."""
        mapping = self.mapping()
        for key in mapping:
            if key not in required and key not in optional:
                self._at(key, mapping[key]).refuse(unknown_key(key, [*required, *optional]))
        for key in required:
            if key not in mapping:
                self._at(key, None).refuse("expected a value, got nothing")
        return {key: self._at(key, value) for key, value in mapping.items()}

    def entries(self) -> "list[tuple[str, Cursor]]":
        """Return the members of an object whose keys are names."""
        entries = [(key, self._at(key, value)) for key, value in self.mapping().items()]
        for key, cursor in entries:
            if not _is_name(key):
                cursor.refuse(f"expected a name of 1 to {MAX_NAME} characters without control characters")
        return entries

    def items(self) -> "list[Cursor]":
        """Return the elements of an array."""
        if not isinstance(self.value, list | tuple):
            self._expected("an array")
        return [Cursor(value, f"{self.path}[{index}]", self.source) for index, value in enumerate(self.value)]

    def integer(self, least: int, most: int) -> int:
        """Return an integer in ``[least, most]``."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not least <= self.value <= most:
            self._expected(f"an integer from {least} to {most}")
        return self.value

    def time(self) -> int:
        """Return a time (s on the instance's clock)."""
        return self.integer(-MAX_TIME, MAX_TIME)

    def plan_time(self) -> int:
        """Return a time of a plan, which may lie far behind those of its instance."""
        return self.integer(-MAX_PLAN_TIME, MAX_PLAN_TIME)

    def duration(self) -> int:
        """Return a duration of at least one second."""
        return self.integer(1, MAX_DURATION)

    def number(self) -> Fraction:
        """Return a finite number, exactly as it is written in decimal."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self._expected("a number")
        if not -MAX_NUMBER <= self.value <= MAX_NUMBER:
            self._expected(f"a number within ±{MAX_NUMBER:.0e}")
        return Fraction(repr(self.value)) if isinstance(self.value, float) else Fraction(self.value)

    def text(self) -> str:
        """Return a string without control characters."""
        if not isinstance(self.value, str) or not _is_plain(self.value):
            self._expected("a string without control characters")
        return self.value

    def seconds(self) -> None:
        """Refuse what is no number of at least 0."""
        if self.number() < 0:
            self._expected("seconds of at least 0")

    def words(self) -> str:
        """Return a text that is not empty."""
        return self.text() or self.refuse("expected words, got an empty text")

    def name(self) -> str:
        """Return a string that may be a name."""
        if not isinstance(self.value, str) or not _is_name(self.value):
            self._expected(f"a name of 1 to {MAX_NAME} characters without control characters")
        return self.value

    def choice(self, options: Collection[str]) -> str:
        """Return one of some words."""
        if not isinstance(self.value, str) or self.value not in options:
            self._expected("one of " + ", ".join(options))
        return self.value

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            self._expected("true or false")
        return self.value

    def names(self) -> tuple[str, ...]:
        """Return an array of names."""
        return tuple(item.name() for item in self.items())

    def amounts(self) -> dict[str, int]:
        """Return amounts of resources by name; those of 0 are left out, since 0 is the same as none."""
        read = {name: amount.integer(0, MAX_AMOUNT) for name, amount in self.entries()}
        return {name: amount for name, amount in read.items() if amount}

    def _at(self, key: str, value: object) -> "Cursor":
        return Cursor(value, f"{self.path}.{key}" if self.path else key, self.source)


def _is_name(text: str) -> bool:
    """Return whether a text has 1 to 256 characters and no control character."""
    return 0 < len(text) <= MAX_NAME and _is_plain(text)


def _is_plain(text: str) -> bool:
    """Return whether a text has neither control characters nor halves of characters."""
    return text.isprintable() or not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)


def refuse_format(written: Cursor, expected: str) -> NoReturn:
    """Refuse a document by its ``format``; where it is the other document of a pair, say so."""
    kind = str(written.value).partition("/")[0]
    others = {"cpsched-instance": "this is an instance", "cpsched-plan": "this is a plan"}
    is_other = kind in others and not expected.startswith(f"{kind}/")
    hint = f": {others[kind]}; are the two files swapped?" if is_other else ""
    written.refuse(f"expected {expected!r}, got {shown(written.value)}{hint}")
