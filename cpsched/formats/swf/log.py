"""The contents of a log: its header, its jobs, and the lines that are neither."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, SupportsFloat

from cpsched.domain import FrozenMap
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import UnusableLine, read_each
from cpsched.formats.files import read_lines, write_whole

#: The range of numbers in logs: a field beyond it is a fault.
_MAX_NUMBER = 10**15

NUM_FIELDS = 18
#: A comment line, without its semicolon, that says something by a key.
HEADER = re.compile(r"([A-Za-z][A-Za-z ]*):\s*(.*)")


class SwfJob(NamedTuple):
    """One line of a log; None where the log has -1, unknown. Times in seconds on the log's own clock."""

    number: int
    submit: int
    wait: int | None
    run_time: int | None
    #: Processors that the job got.
    processors: int | None
    #: Mean over the processors.
    cpu_time: float | None
    #: KB per processor, mean.
    used_memory: float | None
    requested_processors: int | None
    requested_time: int | None
    #: KB per processor, or what else the site wrote there.
    requested_memory: int | None
    #: 0 failed, 1 completed, 2 to 4 a part of a job, 5 cancelled.
    status: int | None
    user: int | None
    group: int | None
    executable: int | None
    queue: int | None
    partition: int | None
    preceding_job: int | None
    think_time: int | None
    #: The text beyond the 18th column.
    extra: tuple[str, ...] = ()
    #: The line of the file, from 1; 0 for a job that was not read.
    line: int = 0

    @property
    def id(self) -> str:
        """The number as text."""
        return str(self.number)


@dataclass(frozen=True, slots=True, repr=False)
class SwfLog:
    """A log as it was read.

    `source`: the file it came from. `header`: the header comments ``; Key: value``; a key may occur several times, so
    each has all its values in order. `comments`: the other comment lines. `jobs`: in the order of the lines. `faults`:
    the lines that are neither jobs nor comments; the path is ``line N``.
    """

    source: str
    header: FrozenMap[str, tuple[str, ...]]
    comments: tuple[str, ...]
    jobs: tuple[SwfJob, ...]
    faults: tuple[Fault, ...]

    def __repr__(self) -> str:
        return f"<SwfLog of {self.source!r}: {len(self.jobs)} jobs, {len(self.faults)} faulty lines>"


#: The columns (from 0) that are means; all others count something and are rounded up where a log has fractions.
_REAL_COLUMNS = range(5, 7)


def read_swf(path: str | Path) -> SwfLog:
    """Read a log, plain or gzip (told by its first bytes, not by its name).

    Raises `DocumentError` if the file cannot be read, is a damaged gzip file, is too large, or holds not one job.
    """
    header: dict[str, list[str]] = {}
    comments: list[str] = []
    jobs: list[SwfJob] = []

    def read(text: str, number: int) -> None:
        if text.startswith(";"):
            comment = text.lstrip("; \t")
            if match := HEADER.fullmatch(comment):
                header.setdefault(match[1], []).append(match[2])
            elif comment:
                comments.append(comment)
        elif text:
            jobs.append(_parse_job(text, number))

    faults = read_each(enumerate(read_lines(Path(path)), start=1), read)
    if not jobs:
        raise DocumentError(
            str(path), [Fault("", "Expected a log in Standard Workload Format, got no job line"), *faults[:5]]
        )
    headers = FrozenMap((key, tuple(values)) for key, values in header.items())
    return SwfLog(str(path), headers, tuple(comments), tuple(jobs), tuple(faults))


def _parse_job(text: str, line: int) -> SwfJob:
    fields = text.split()
    if len(fields) < NUM_FIELDS:
        raise UnusableLine(f"Expected {NUM_FIELDS} fields, got {len(fields)}")
    values = _plain_numbers(fields)
    if values is None:
        numbers = [_number(field, column) for column, field in enumerate(fields[:NUM_FIELDS], start=1)]
        values = [n if column in _REAL_COLUMNS else math.ceil(n) for column, n in enumerate(numbers)]
    known: list[Any] = [None if value == -1 else value for value in values]
    if known[0] is None or known[0] < 0:
        raise UnusableLine(f"Expected a job number >= 0 in field 1, got {fields[0]}")
    if known[1] is None:
        raise UnusableLine("Expected a submit time in field 2, got -1 (unknown)")
    return SwfJob._make((*known, tuple(fields[NUM_FIELDS:]), line))


def _plain_numbers(fields: list[str]) -> list[float] | None:
    """Return the numbers of a line that is as the format wants it, or None: then each field is looked at alone.

    Nearly all lines are so, and this way is three times as fast.
    """
    try:
        cpu_time, used_memory = float(fields[5]), float(fields[6])
        values = [*map(int, fields[:5]), cpu_time, used_memory, *map(int, fields[7:NUM_FIELDS])]
    except ValueError:
        return None
    # nan compares with nothing
    bounded = abs(cpu_time) <= _MAX_NUMBER and abs(used_memory) <= _MAX_NUMBER
    return values if bounded and max(values) <= _MAX_NUMBER and min(values) >= -_MAX_NUMBER else None


def _number(field: str, column: int) -> float:
    """Return a field's number; logs hold floats where one expects integers."""
    try:
        value = int(field) if field.lstrip("+-").isdecimal() and len(field) < 20 else float(field)
    except ValueError:
        raise UnusableLine(f"Expected a number in field {column}, got {field[:40]!r}") from None
    if not abs(value) <= _MAX_NUMBER:
        raise UnusableLine(f"Expected a number within ±10^15 in field {column}, got {field[:40]}")
    return value


def write_swf(
    path: str | Path, rows: Iterable[Sequence[SupportsFloat | None]], *, header: Mapping[str, str] | None = None
) -> None:
    """Write a log, gzipped if `path` ends in ``.gz``; the file is whole or not there.

    Raises `ValueError` if a row has fewer fields or one that is no finite number, or the header a key or value that no
    line can hold. Raises `DocumentError` if the file cannot be written.

    `path`: where it goes. `rows`: the jobs, each the 18 numbers of a line in their order, as in `SwfJob`; None is
    unknown and written as -1. What a row has beyond them is left out. `header`: what the log says of itself, ``; Key:
    value``.
    """
    lines = [*_header_lines(header or {}), *map(_job_line, rows)]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8"))


def _header_lines(header: Mapping[str, str]) -> Iterator[str]:
    for key, value in header.items():
        match = HEADER.fullmatch(f"{key}: {value}")
        if match is None or match.groups() != (key, value) or value != value.strip() or not value.isprintable():
            raise ValueError(f"need a key in letters and a value in one line, got {key!r} and {value!r}")
        yield f"; {key}: {value}"


def _job_line(row: Sequence[SupportsFloat | None]) -> str:
    fields = row[:NUM_FIELDS]
    if len(fields) < NUM_FIELDS:
        raise ValueError(f"need {NUM_FIELDS} fields, got {len(fields)}: {row}")
    return " ".join(map(_written, fields))


def _written(value: SupportsFloat | None) -> str:
    """Write a number so that it is read as the same: whole ones without a point."""
    if value is None:
        return "-1"
    if isinstance(value, int):
        return str(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"need finite numbers, got {value}")
    return str(int(number)) if number.is_integer() else repr(number)
