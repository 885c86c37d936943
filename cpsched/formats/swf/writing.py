"""Writing a log: 18 numbers a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import SupportsFloat

from cpsched.formats.files import write_whole
from cpsched.formats.swf.log import HEADER, NUM_FIELDS


def write_swf(
    path: str | Path,
    rows: Iterable[Sequence[SupportsFloat | None]],
    *,
    header: Mapping[str, str] | None = None,
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
