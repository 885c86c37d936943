"""JSON files in and out: read with bounds on everything, written whole or not at all."""

from __future__ import annotations

import gzip
import json
import math
import secrets
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import Faults, Location, shown

__all__ = ["MAX_BYTES", "load_document", "write_document", "write_whole"]

#: The largest document, unpacked (formats.md, limits of the documents).
MAX_BYTES = 256 * 2**20

_GZIP_MAGIC = b"\x1f\x8b"
#: Longer integers are beyond every bound of the format, and Python refuses to read some of them.
_LONGEST_INTEGER = 400


class _Repeated(dict[str, Any]):
    """An object in which keys stood more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        #: In the order of the document.
        self.repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]


class _NoNumber:
    """Stands where the text has something that JSON calls no number, or that is too large for one."""

    def __init__(self, text: str) -> None:
        self.text = text


def load_document(source: str | Path) -> dict[str, Any]:
    """Read a JSON object from a file, plain or gzipped (told by its first bytes).

    Raises
    ------
    DocumentError
        If the file cannot be read, is larger than 256 MiB unpacked, is no UTF-8, no JSON object, nested too deeply,
        has a key twice in one object, or numbers that are none.
    """
    name = str(source)
    text = _decode(_read_bytes(Path(source), name), name)
    refused: list[object] = []
    try:
        document = _decode_json(text, refused)
    except json.JSONDecodeError as error:
        _refuse(name, f"line {error.lineno} column {error.colno}", f"Expected JSON, got: {error.msg}")
    except RecursionError:
        _refuse(name, "document", "Expected an instance or a plan, got objects or lists nested too deeply")
    if not isinstance(document, dict):
        _refuse(name, "document", f"Expected an object, got {shown(document)}")
    if refused:
        _refuse_marked(document, name)
    return document


def write_document(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a document, gzipped if `path` ends in ``.gz``, whole or not at all.

    Lists stand with one entry per line; the same document gives the same bytes.

    Raises
    ------
    DocumentError
        If the file cannot be written.
    """
    write_whole(path, _layout(document).encode("utf-8"))


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file, gzipped if `path` ends in ``.gz``: to a temporary file beside it, which then takes its name.

    Raises
    ------
    DocumentError
        If the file cannot be written; an older file of that name is then left as it was.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as stream:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
                    packed.write(content)
            else:
                stream.write(content)
        temporary.replace(target)
    except OSError as error:
        _refuse(str(path), "file", f"Expected to write it, got: {error.strerror or error}")
    finally:
        temporary.unlink(missing_ok=True)


def _refuse(source: str, path: str, message: str) -> NoReturn:
    raise DocumentError(source, [Fault(path, message)]) from None


def _read_bytes(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as stream:
            return _unpack(stream, name)
    except (OSError, ValueError) as error:
        # ValueError: a NUL in the path. gzip.BadGzipFile is an OSError.
        _refuse(name, "file", f"Expected a readable file, got: {getattr(error, 'strerror', None) or error}")


def _unpack(stream: BinaryIO, name: str) -> bytes:
    magic = stream.peek(2)[:2] if hasattr(stream, "peek") else b""
    try:
        content = (gzip.GzipFile(fileobj=stream) if magic == _GZIP_MAGIC else stream).read(MAX_BYTES + 1)
    except (EOFError, zlib.error) as error:
        _refuse(name, "file", f"Expected a whole gzip file, got: {error}")
    if len(content) > MAX_BYTES:
        _refuse(name, "file", f"Expected at most {MAX_BYTES} bytes unpacked, got more")
    return content


def _decode(content: bytes, name: str) -> str:
    if not content.strip():
        _refuse(name, "file", "Expected a JSON object, got an empty file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(name, f"byte {error.start}", f"Expected UTF-8, got the byte 0x{content[error.start]:02x}")


def _decode_json(text: str, refused: list[object]) -> object:
    """Decode JSON; what is refused is marked in the tree (and listed), because only the whole tree has paths."""

    def mark(value: object) -> object:
        refused.append(value)
        return value

    def read_object(pairs: list[tuple[str, Any]]) -> object:
        found = dict(pairs)
        return found if len(found) == len(pairs) else mark(_Repeated(pairs))

    def read_int(digits: str) -> object:
        return int(digits) if len(digits) <= _LONGEST_INTEGER else mark(_NoNumber(digits))

    def read_float(digits: str) -> object:
        number = float(digits)
        return number if math.isfinite(number) else mark(_NoNumber(digits))

    def read_constant(word: str) -> object:
        return mark(_NoNumber(word))

    return json.loads(
        text, object_pairs_hook=read_object, parse_int=read_int, parse_float=read_float, parse_constant=read_constant
    )


def _refuse_marked(document: dict[str, Any], source: str) -> None:
    """Refuse the document for all that was marked while it was decoded."""
    faults = Faults(document)
    pending: list[tuple[Location, object]] = [((), document)]
    while pending:
        location, value = pending.pop()
        if isinstance(value, _NoNumber):
            faults.add(location, f"Expected a number, got {shown(value.text)[1:-1]}")
        elif isinstance(value, dict):
            if isinstance(value, _Repeated):
                for key in value.repeated:
                    faults.add((*location, key), "Expected the key once in its object, got it more than once")
            pending.extend(((*location, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            pending.extend(((*location, index), inner) for index, inner in enumerate(value))
    faults.raise_if_any(source)


def _layout(document: Mapping[str, Any]) -> str:
    """Write JSON with one line for each key and for each entry of a list of objects."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(f"    {_compact(entry)}" for entry in value)
            lines.append(f"  {_compact(key)}: [\n{entries}\n  ]")
        else:
            lines.append(f"  {_compact(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
