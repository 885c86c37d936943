"""Slurm's JSON again and again: an entry whose text is the same as in the answer before is not read anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from cpsched.errors import DocumentError, Fault
from cpsched.site.bridge.slurm.json_reader import parse_answer, read_answer
from cpsched.site.bridge.slurm.records import SlurmRecords

#: An answer as it was printed.
Data = bytes | bytearray
#: The indentation of an answer's keys.
_INDENT = re.compile(rb'\{\n( +)"')
#: The beginning of its list of jobs or nodes: the indentation of the keys, the key, and that of the entries.
_LIST = rb'\n%b"(jobs|nodes)": \[(\n( +)\{\n)'


@dataclass(frozen=True, slots=True)
class _Parts:
    """An answer in parts: that it is JSON is not known yet."""

    kind: str
    #: The answer with an empty list in place of the entries.
    rest: str
    #: Without their braces; those that the answer before had too are the same objects.
    entries: list[bytes]
    #: The place of each in the answer before; None: it is new.
    places: list[int | None]


class AnswerReader:
    """Reads one answer after the other of the same command; mutable.

    Slurm indents its JSON: a line that has the indentation of an entry and a closing brace ends the entry, since no
    text in JSON has a line break. So the entries are told apart without being parsed. The parts are put together only
    if each is JSON by itself: then the whole is, and says the same. What is not indented so, or has a fault, is read as
    a whole.
    """

    def __init__(self) -> None:
        #: The last answer that was read, and its records.
        self._last: tuple[Data, SlurmRecords] | None = None
        #: Its entries, and their records.
        self._entries: list[bytes] = []
        self._known: Sequence[Any] = ()

    def read(self, data: Data, source: str, kind: str) -> SlurmRecords:
        """Read all records of an answer; those of entries that are as before are the same objects.

        Raises `DocumentError` as `parse_answer` and `read_answer`; and if the answer has no list of that kind, not even
        an empty one.
        """
        if self._last is None or self._last[0] != data:
            parts = self._parts(data)
            records = None if parts is None or parts.kind != kind else self._records(parts, source)
            self._last = data, _read_whole(data, source, kind) if records is None else records
        return self._last[1]

    def _records(self, parts: _Parts, source: str) -> SlurmRecords | None:
        """Return the records of an answer in parts; None where it has to be read as a whole."""
        found = [None if place is None else self._known[place] for place in parts.places]
        new = [at for at, place in enumerate(parts.places) if place is None]
        try:
            rest = parse_answer(parts.rest, source)
            others = read_answer(rest, source)
            # what this parser accepts means the same to the other one, which is slower and accepts more
            entries = [msgspec.json.decode(f"{{{_text(parts.entries[at])}}}") for at in new]
            read = read_answer({parts.kind: entries}, source)
        except (DocumentError, ValueError, RecursionError):
            return None
        records = getattr(read, parts.kind)
        if rest.get(parts.kind) != [] or len(records) < len(new):
            return None
        for at, record in zip(new, records, strict=True):
            found[at] = record
        self._entries, self._known = parts.entries, found
        whole: Any = tuple(found)
        return replace(others, jobs=whole) if parts.kind == "jobs" else replace(others, nodes=whole)

    def _parts(self, data: Data) -> _Parts | None:
        """Take an answer apart; None where it is not indented as Slurm does it, or has no entries.

        The answer is long, and most entries are as before, in the same order: these are compared where they are. Others
        are copied, and looked for among all.
        """
        keys = _INDENT.match(data)
        begin = keys and re.search(_LIST % keys[1], data)
        if not keys or not begin:
            return None
        indent, kind, inner = keys[1], begin[1], begin[3]
        between, last = b"\n%b},\n%b{\n" % (inner, inner), b"\n%b}\n%b]" % (inner, indent)
        before, entries, places, known = self._entries, list[bytes](), list[int | None](), dict[bytes, int]()
        at, start, has_more = 0, begin.end(), True
        while has_more:
            place: int | None = at if at < len(before) and data.startswith(before[at], start) else None
            end = start + len(before[at]) if place is not None else -1
            if place is None or not data.startswith((between, last), end):
                end = data.find(between, start)
                end = data.rfind(last, start) if end < 0 else end
                if end < 0:
                    return None
                known = known or {text: number for number, text in enumerate(before)}
                entry = bytes(data[start:end])
                place = known.get(entry)
            entries.append(entry if place is None else before[place])
            places.append(place)
            at = at if place is None else place + 1
            has_more = data.startswith(between, end)
            start = end + len(between)
        rest = data[: begin.start(2)] + data[end + len(inner) + 2 :]
        if rest.count(b'\n%b"%b":' % (indent, kind)) != 1:
            return None
        return _Parts(_text(kind), _text(rest), entries, places)


def _text(data: Data) -> str:
    return data.decode("utf-8", "replace")


def _read_whole(data: Data, source: str, kind: str) -> SlurmRecords:
    answer = parse_answer(_text(data), source)
    if not isinstance(answer.get(kind), list | dict):
        raise DocumentError(source, [Fault(kind, f"Expected a list of {kind}, got none")])
    return read_answer(answer, source)
