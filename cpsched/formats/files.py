"""JSON files in and out, and the lines of logs: read with bounds on everything, written whole or not at all."""

import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import Faults, Location, shown
from cpsched.formats.paths import open_file, open_input
from cpsched.writing import write_bytes

#: The largest document, unpacked (formats.md, limits of the documents).
MAX_BYTES = 256 * 2**20

#: The largest ratio of a document to its gzip file, if the document has more bytes than documents may always have.
#: Real ones are up to 40 times as large, a file that was made to fill the memory up to 1,000 times.
_MAX_RATIO = 64
_ALWAYS_UNPACKED = 4 * 2**20
#: Values that a document may always have, and bytes for each one where it has more. Real ones have about 11; a list of
#: empty objects has 3, and takes 72 in memory.
_ALWAYS_VALUES = 10**6
_BYTES_A_VALUE = 6
#: Bytes that are read at a time.
_PORTION = 2**20
#: Keys of one object.
_MAX_KEYS = 10**4

_GZIP_MAGIC = b"\x1f\x8b"
#: A text, whether it ends or not; it is read once, and nothing of it again.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
#: Longer integers are beyond every bound of the format, and Python refuses to read some of them.
_LONGEST_INTEGER = 400


class _Repeated(dict[str, Any]):
    """An object in which keys occurred more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        #: In the order of the document.
        self.repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]


class _TooManyKeys:
    """Replaces an object with too many keys."""

    def __init__(self, count: int) -> None:
        self.count = count


#: What files are by their names that somebody gave in place of a document, and what to do with them.
_FOREIGN = {
    **dict.fromkeys((".swf", ".acct", ".events"), "a log; cpsched convert makes an instance of it, simulate reads it"),
    ".csv": "a table; in Python, cpsched.Model.from_frame(pandas.read_csv(FILE)) makes a model of it",
}


class _NoNumber:
    """Replaces a text that is no number in JSON, or that is too large for one."""

    def __init__(self, text: str) -> None:
        self.text = text


def load_document(source: str | Path) -> dict[str, Any]:
    """Read a JSON object from a file or a pipe, plain or gzipped (told by its first bytes).

    Raises `DocumentError` if the file cannot be read, has more bytes, values or keys than a document may have, is no
    UTF-8, no JSON, no object, nested too deeply, or has a key twice in one object, or numbers that are none.
    """
    return _an_object(load_json(source), str(source))


def load_json(source: str | Path) -> object:
    """Read any JSON value from a file or a pipe, as `load_document` reads an object."""
    name = str(source)
    try:
        with open_input(Path(source)) as stream:
            return read_json(stream, name)
    except (OSError, ValueError) as error:
        # ValueError: a NUL in the path. gzip.BadGzipFile is an OSError.
        refuse(name, "file", f"Expected a readable file, got: {getattr(error, 'strerror', None) or error}")


def read_document(stream: BinaryIO, name: str) -> dict[str, Any]:
    """Read a JSON object from an open file, as `load_document` does; `name` is what it is called in messages.

    Raises `DocumentError` as `load_document` does. Raises `OSError` if it cannot be read.
    """
    return _an_object(read_json(stream, name), name)


def _an_object(document: object, name: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        refuse(name, "document", f"Expected an object, got {shown(document)}")
    return document


def read_json(stream: BinaryIO, name: str) -> object:
    """Read any JSON value from an open file, with the bounds and errors of `read_document`."""
    packed = bytearray()
    # up to a little more than a document may have; memory is taken only for what is there
    while len(packed) <= MAX_BYTES and (portion := stream.read(_PORTION)):
        packed += portion
    content = _unpack(packed, name)
    _refuse_too_many_values(content, name)
    text = _decode(content, name)
    refused: list[object] = []
    try:
        document = _decode_json(text, refused)
    except json.JSONDecodeError as error:
        got = _FOREIGN.get(Path(name.removesuffix(".gz")).suffix, error.msg)
        refuse(name, f"line {error.lineno} column {error.colno}", f"Expected JSON, got: {got}")
    except RecursionError:
        refuse(name, "document", "Expected an instance or a plan, got objects or lists nested too deeply")
    if refused:
        _refuse_marked(document, name)
    return document


def write_document(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a document, gzipped if `path` ends in ``.gz``, whole or not at all.

    Lists have one entry per line; the same document gives the same bytes.

    Raises `DocumentError` if the file cannot be written.
    """
    write_whole(path, document_text(document).encode("utf-8"))


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file, gzipped if `path` ends in ``.gz``: to a temporary file beside it, which then takes its name.

    Raises `DiskFullError` if there is no room for it; an older file of that name is then left as it was. Raises
    `DocumentError` if it cannot be written for another reason.
    """
    write_bytes(path, gzip.compress(content, mtime=0) if Path(path).suffix == ".gz" else content)


def refuse(source: str, path: str, message: str) -> NoReturn:
    """Refuse a document for one fault."""
    raise DocumentError(source, [Fault(path, message)]) from None


def _unpack(content: bytes | bytearray, name: str) -> bytes | bytearray:
    """Unpack a gzip file, as far as a document may be long; what is none is the document itself."""
    limit = MAX_BYTES
    if content.startswith(_GZIP_MAGIC):
        limit = min(limit, max(_ALWAYS_UNPACKED, _MAX_RATIO * len(content)))
        try:
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(limit + 1)
        except (EOFError, zlib.error) as error:
            refuse(name, "file", f"Expected a whole gzip file, got: {error}")
    if len(content) > limit:
        refuse(name, "file", f"Expected at most {limit} bytes unpacked, got more")
    return content


def _refuse_too_many_values(content: bytes | bytearray, name: str) -> None:
    """Refuse what would take far more memory than a document of its size does, before it is decoded."""
    limit = max(_ALWAYS_VALUES, len(content) // _BYTES_A_VALUE)
    count = _count_signs(content)
    if count > limit:
        count -= sum(_count_signs(match.group()) for match in _TEXT.finditer(content))
    if count > limit:
        refuse(name, "document", f"Expected at most {limit} values in a document of {len(content)} bytes, got more")


def _count_signs(content: bytes | bytearray) -> int:
    return content.count(b",") + content.count(b"{") + content.count(b"[")


def _decode(content: bytes | bytearray, name: str) -> str:
    if not content or content.isspace():
        refuse(name, "file", "Expected a JSON object, got an empty file")
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        refuse(name, f"byte {error.start}", f"Expected UTF-8, got the byte 0x{content[error.start]:02x}")


def _decode_json(text: str, refused: list[object]) -> object:
    """Decode JSON; what is refused is marked in the tree (and listed), because only the whole tree has paths."""

    def mark(value: object) -> object:
        refused.append(value)
        return value

    def read_object(pairs: list[tuple[str, Any]]) -> object:
        if len(pairs) > _MAX_KEYS:
            return mark(_TooManyKeys(len(pairs)))
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


def _refuse_marked(document: object, source: str) -> None:
    """Refuse the document for all that was marked while it was decoded."""
    faults = Faults(document)
    for location, value in walk(document):
        if isinstance(value, _NoNumber):
            faults.add(location, f"Expected a number, got {shown(value.text)[1:-1]}")
        elif isinstance(value, _TooManyKeys):
            faults.add(location, f"Expected at most {_MAX_KEYS} keys in an object, got {value.count}")
        elif isinstance(value, _Repeated):
            for key in value.repeated:
                faults.add((*location, key), "Expected the key once in its object, got it more than once")
        if faults.has_more:
            break
    faults.raise_if_any(source)


def walk(document: object) -> Iterator[tuple[Location, object]]:
    """Yield every value with its location, in document order; one path is held at a time."""
    yield (), document
    inside: list[tuple[Iterator[tuple[str | int, object]], Location]] = [(_members(document), ())]
    while inside:
        members, location = inside[-1]
        for part, value in members:
            here: Location = (*location, part)
            yield here, value
            if isinstance(value, dict | list):
                inside.append((_members(value), here))
                break
        else:
            inside.pop()


def _members(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, dict):
        return iter(value.items())
    return enumerate(value) if isinstance(value, list) else iter(())


def document_text(document: Mapping[str, Any]) -> str:
    """Return a document as text: JSON with one line for each key and for each entry of a list of objects."""
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


#: A log of more bytes than this (unpacked) is refused; the largest public ones have about 100 MiB.
_MAX_LOG_BYTES = 2**31
#: So are such lines; the 21 columns of MetaCentrum list every node of a job and take some kilobytes.
_MAX_LINE_BYTES = 2**20


def read_lines(path: Path) -> Iterator[str]:
    """Yield the stripped lines of a file, plain or gzip (told by its first bytes, not by its name).

    Raises `DocumentError` if the file cannot be read, is a damaged gzip file, is larger than any log, or has longer
    lines.
    """
    size = 0
    try:
        with open_file(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            while line := stream.readline(_MAX_LINE_BYTES):
                size += len(line)
                if size > _MAX_LOG_BYTES or len(line) == _MAX_LINE_BYTES:
                    limits = f"{_MAX_LOG_BYTES} bytes, and fewer than {_MAX_LINE_BYTES} in each line"
                    raise DocumentError(str(path), [Fault("", f"Expected at most {limits}, got more")])
                yield line.decode("utf-8", errors="replace").removeprefix("\ufeff").strip()
    except (OSError, ValueError, EOFError, zlib.error) as error:
        # ValueError: a NUL in the path.
        raise DocumentError(
            str(path), [Fault("", f"Expected a readable log, got: {getattr(error, 'strerror', None) or error}")]
        ) from error
