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
    #: Without their braces.
    entries: list[bytes]


class AnswerReader:
    """Reads one answer after the other of the same command; mutable.

    Slurm indents its JSON: a line that has the indentation of an entry and a closing brace ends the entry, since no
    text in JSON has a line break. So the entries are told apart without being parsed. The parts are put together only
    if each is JSON by itself: then the whole is, and says the same. What is not indented so, or has a fault, is read as
    a whole.
    """

    def __init__(self) -> None:
        #: The last answer that was read, and its records.
        self._last: tuple[bytes, SlurmRecords] | None = None
        #: Its entries, and their records.
        self._entries: list[bytes] = []
        self._known: Sequence[Any] = ()

    def read(self, data: bytes, source: str, kind: str) -> SlurmRecords:
        """Read all records of an answer; those of entries that are as before are the same objects.

        Raises `DocumentError` as `parse_answer` and `read_answer`; and if the answer has no list of that kind, not even
        an empty one.
        """
        if self._last is None or self._last[0] != data:
            parts = _parts(data)
            records = None if parts is None or parts.kind != kind else self._records(parts, source)
            self._last = data, _read_whole(data, source, kind) if records is None else records
        return self._last[1]

    def _records(self, parts: _Parts, source: str) -> SlurmRecords | None:
        """Return the records of an answer in parts; None where it has to be read as a whole."""
        found, new = self._as_before(parts.entries)
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

    def _as_before(self, entries: list[bytes]) -> tuple[list[Any], list[int]]:
        """Return the records of entries that the last answer had too, and the places of all others.

        Most entries are in the same order as before. Only where they are not, the place of each is looked for.
        """
        before, known, found, new = self._entries, self._known, list[Any](), list[int]()
        places: dict[bytes, int] = {}
        at, last = 0, len(before)
        for place, entry in enumerate(entries):
            if not (at < last and before[at] == entry):
                places = places or {text: number for number, text in enumerate(before)}
                where = places.get(entry)
                if where is None:
                    new.append(place)
                    found.append(None)
                    continue
                at = where
            entries[place] = before[at]  # its hash is known
            found.append(known[at])
            at += 1
        return found, new


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _read_whole(data: bytes, source: str, kind: str) -> SlurmRecords:
    answer = parse_answer(_text(data), source)
    if not isinstance(answer.get(kind), list | dict):
        raise DocumentError(source, [Fault(kind, f"Expected a list of {kind}, got none")])
    return read_answer(answer, source)


def _parts(data: bytes) -> _Parts | None:
    """Take an answer apart; None where it is not indented as Slurm does it, or has no entries."""
    keys = _INDENT.match(data)
    begin = keys and re.search(_LIST % keys[1], data)
    if not keys or not begin:
        return None
    indent, kind, inner = keys[1], begin[1], begin[3]
    # the answer is long: it is copied once
    entries = data.split(b"\n%b},\n%b{\n" % (inner, inner))
    first, last = entries[0], entries[-1]
    start = begin.end() if len(entries) == 1 else 0
    end = last.rfind(b"\n%b}\n%b]" % (inner, indent), start)
    if end < 0 or len(first) < begin.end():
        return None
    rest = first[: begin.start(2)] + last[end + len(inner) + 2 :]
    if rest.count(b'\n%b"%b":' % (indent, kind)) != 1:
        return None
    entries[-1] = last[:end]
    entries[0] = entries[0][begin.end() :]
    return _Parts(_text(kind), _text(rest), entries)
