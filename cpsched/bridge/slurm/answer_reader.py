"""Slurm's JSON again and again: an entry whose text is the same as in the answer before is not read anew."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cpsched.bridge.slurm.json_reader import parse_answer, read_answer
from cpsched.bridge.slurm.records import SlurmRecords
from cpsched.errors import DocumentError, Fault

__all__ = ["AnswerReader"]

#: The indentation of an answer's keys.
_INDENT = re.compile(r'\{\n( +)"')
#: The beginning of its list of jobs or nodes: the indentation of the keys, the key, and that of the entries.
_LIST = r'\n{indent}"(jobs|nodes)": \[(\n( +)\{{\n)'


@dataclass(frozen=True, slots=True)
class _Parts:
    """An answer in parts: that it is JSON is not known yet."""

    kind: str
    #: The answer with an empty list in place of the entries.
    rest: str
    #: Without their braces.
    entries: list[str]


class AnswerReader:
    """Reads one answer after the other of the same command; mutable.

    Slurm indents its JSON: a line that has the indentation of an entry and a closing brace ends the entry, since no
    text in JSON has a line break. So the entries are told apart without being parsed. The parts are put together only
    if each is JSON by itself: then the whole is, and says the same. What is not indented so, or has a fault, is read as
    a whole.
    """

    def __init__(self) -> None:
        #: The last answer that was read, and its records; the records by the text of their entries.
        self._last: tuple[str, SlurmRecords] | None = None
        self._known: Mapping[str, Any] = {}

    def read(self, text: str, source: str, kind: str) -> SlurmRecords:
        """Read all records of an answer; those of entries that are as before are the same objects.

        Raises
        ------
        DocumentError
            As `parse_answer` and `read_answer`; and if the answer has no list of that kind, not even an empty one.
        """
        if self._last is None or self._last[0] != text:
            parts = _parts(text)
            records = None if parts is None or parts.kind != kind else self._records(parts, source)
            self._last = text, _read_whole(text, source, kind) if records is None else records
        return self._last[1]

    def _records(self, parts: _Parts, source: str) -> SlurmRecords | None:
        """Return the records of an answer in parts; None where it has to be read as a whole."""
        found = [self._known.get(entry) for entry in parts.entries]
        new = [at for at, record in enumerate(found) if record is None]
        try:
            rest = parse_answer(parts.rest, source)
            others = read_answer(rest, source)
            read = read_answer({parts.kind: [json.loads(f"{{{parts.entries[at]}}}") for at in new]}, source)
        except (DocumentError, ValueError, RecursionError):
            return None
        if rest.get(parts.kind) != []:
            return None
        for at, record in zip(new, getattr(read, parts.kind), strict=True):
            found[at] = record
        self._known = dict(zip(parts.entries, found, strict=True))
        records: Any = tuple(found)
        return replace(others, jobs=records) if parts.kind == "jobs" else replace(others, nodes=records)


def _read_whole(text: str, source: str, kind: str) -> SlurmRecords:
    answer = parse_answer(text, source)
    if not isinstance(answer.get(kind), list | dict):
        raise DocumentError(source, [Fault(kind, f"Expected a list of {kind}, got none")])
    return read_answer(answer, source)


def _parts(text: str) -> _Parts | None:
    """Take an answer apart; None where it is not indented as Slurm does it, or has no entries."""
    keys = _INDENT.match(text)
    begin = keys and re.compile(_LIST.format(indent=keys[1])).search(text)
    if not keys or not begin:
        return None
    indent, kind, inner = keys[1], begin[1], begin[3]
    end = text.rfind(f"\n{inner}}}\n{indent}]", begin.end())
    rest = text[: begin.start(2)] + text[end + len(inner) + 2 :]
    if end < 0 or rest.count(f'\n{indent}"{kind}":') != 1:
        return None
    return _Parts(kind, rest, text[begin.end() : end].split(f"\n{inner}}},\n{inner}{{\n"))
