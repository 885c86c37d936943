"""The small notations inside a document: array indices, item bounds, places, cron expressions, the epoch."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

from cronsim import CronSim, CronSimError

from cpsched.domain import MAX_AMOUNT, MAX_ARRAY, MAX_NAME, Arrangement, ItemBound, Place
from cpsched.errors import SyntaxFault

#: A name: no control characters in it.
_NAME = re.compile(rf"[^\x00-\x1f\x7f-\x9f]{{1,{MAX_NAME}}}")

_INDEX_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")
_ITEMS = re.compile(r"([0-9]{1,10})|(?:([0-9]{1,10})/)?([0-9]{1,3}(?:\.[0-9]{1,9})?)%")
#: How many chunks are in one group of a level, behind what else a place says.
_PART = re.compile(r"(.*:)?(segment|spread)=([1-9][0-9]{0,6}):")
_SHARING = {"excl": True, "exclusive": True, "shared": False}
_CRON_FIELDS = 5
_CRON_PART = re.compile(r"(?:\*|(\d{1,3}|[a-z]{3})(?:-(\d{1,3}|[a-z]{3}))?)(/\d{1,3})?", re.IGNORECASE | re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_CRON_NAMES = {name: number for number, name in [*enumerate(_MONTHS, 1), *enumerate(_WEEKDAYS)]}


def parse_indices(text: str, *, limit: int = MAX_ARRAY) -> tuple[int, ...]:
    """Return the indices of a job array, ascending: ``1,3,5-9`` or ``0-20:5``.

    ``indices := range (',' range)*;  range := INT ['-' INT [':' STEP]]``. They are counted before they are made.

    Raises `SyntaxFault` if the text is none, an index occurs twice or is beyond 2^31-1, or there are more than `limit`.
    """
    ranges: list[range] = []
    at = 0
    while True:
        match = _INDEX_RANGE.match(text, at)
        if match is None:
            raise SyntaxFault(text, (at, at + 1), "Expected an index or a range such as 0-20:5")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if first > last or step == 0 or last > MAX_AMOUNT:
            raise SyntaxFault(text, match.span(), f"Expected a rising range up to {MAX_AMOUNT} with a step >= 1")
        ranges.append(range(first, last + 1, step))
        at = match.end()
        if at == len(text):
            break
        if text[at] != ",":
            raise SyntaxFault(text, (at, at + 1), f"Expected ',', got {text[at]!r}")
        at += 1
    count = sum(map(len, ranges))
    if count > limit:
        raise SyntaxFault(text, (0, len(text)), f"Expected at most {limit} array elements, got {count}")
    indices = sorted(index for indices in ranges for index in indices)
    for before, after in pairwise(indices):
        if before == after:
            raise SyntaxFault(text, (0, len(text)), f"Expected every index once, got {before} twice")
    return tuple(indices)


def format_indices(indices: Sequence[int]) -> str:
    """Write ascending indices as `parse_indices` reads them, neighbours joined."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][-1] + 1 == index:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ",".join("-".join(map(str, run)) for run in runs)


def parse_items(text: str) -> ItemBound:
    """Parse a bound, ``30``, ``45%`` or ``30/45%`` (OCCS-15). Raises `SyntaxFault` if it is none."""
    match = _ITEMS.fullmatch(text)
    if match is None:
        raise SyntaxFault(text, (0, len(text)), "Expected items such as 30, 45% or 30/45%")
    written = match[1] or match[2]
    least = int(written) if written else None
    percent = Fraction(match[3]) if match[3] else None
    if (least or 0) > MAX_AMOUNT or (percent or 0) > 100:
        raise SyntaxFault(text, (0, len(text)), f"Expected at most {MAX_AMOUNT} items and 100 per cent")
    return ItemBound(least=least, percent=percent)


def format_items(items: ItemBound) -> str:
    """Write a bound as `parse_items` reads it; percent have at most nine decimals."""
    least = "" if items.least is None else str(items.least)
    if items.percent is None:
        return least
    percent = f"{float(items.percent):.9f}".rstrip("0").rstrip(".")
    return f"{least}/{percent}%" if least else f"{percent}%"


def parse_place(text: str) -> Place:
    """Parse a place: ``[free|pack|scatter][:excl|:exclusive|:shared][:within=LEVEL]``, in part (OCCS-18).

    ``place := (ARRANGEMENT [':' SHARING] | SHARING) [':' WITHIN] | WITHIN``,
    ``WITHIN := [('segment=' | 'spread=') CHUNKS ':'] 'within=' LEVEL``.

    Raises `SyntaxFault` if the text is no such place.
    """
    before, is_within, level = text.partition("within=")
    if is_within and before[-1:] in ("", ":"):
        if not 0 < len(level) <= MAX_NAME:
            raise SyntaxFault(text, (0, len(text)), f"Expected a level of the topology behind within=, got {level!r}")
        counted = _PART.fullmatch(before)
        before = before if counted is None else counted[1] or ""
        place = replace(parse_place(before[:-1]) if before else Place(), within=level)
        if counted is None:
            return place
        number = int(counted[3])
        return replace(place, segment=number) if counted[2] == "segment" else replace(place, spread=number)
    if counted := _PART.fullmatch(f"{text}:"):
        message = f"Expected within=LEVEL behind {counted[2]}={counted[3]}, got none"
        raise SyntaxFault(text, counted.span(2), message)
    first, colon, second = text.partition(":")
    if not colon and first in _SHARING:
        return Place(exclusive=_SHARING[first])
    if first not in tuple(Arrangement):
        hint = _lower_case(first, (*Arrangement, *_SHARING))
        message = f"Expected free, pack, scatter, excl or shared, got {first!r}{hint}"
        raise SyntaxFault(text, (0, len(first)), message)
    if colon and second not in _SHARING:
        span = (len(first) + 1, len(text))
        hint = _lower_case(second, _SHARING)
        raise SyntaxFault(text, span, f"Expected excl, exclusive or shared, got {second!r}{hint}")
    return Place(arrangement=Arrangement(first), exclusive=bool(colon) and _SHARING[second])


def _lower_case(word: str, known: Collection[str]) -> str:
    """Return a hint where `word` would be known in lower case, else nothing."""
    return f", did you mean {word.lower()}?" if word.lower() in known else ""


def format_place(place: Place) -> str:
    """Write a place as `parse_place` reads it, without what is the default."""
    parts = [str(place.arrangement)] + ["excl"] * place.exclusive
    for key, number in (("segment", place.segment), ("spread", place.spread), ("within", place.within)):
        parts += [] if number is None else [f"{key}={number}"]
    return ":".join(parts)


def check_cron(expression: str) -> None:
    """Check a cron expression of five fields (minute, hour, day of month, month, day of week).

    A field is a list of ``*``, ``a``, ``a-b``, each with an optional ``/step``. What else `cronsim` reads (``L``,
    ``#``) is not in the format, nor is a step through a range of one value, which it would read as one without end.

    Raises `SyntaxFault` if it is none, or can never match.
    """
    span = (0, len(expression))
    fields = expression.split()
    if len(fields) != _CRON_FIELDS:
        raise SyntaxFault(expression, span, f"Expected a cron expression of {_CRON_FIELDS} fields, got {len(fields)}")
    for part in ",".join(fields).split(","):
        match = _CRON_PART.fullmatch(part)
        if match is None or (match[2] and match[3] and _cron_value(match[1]) == _cron_value(match[2])):
            raise SyntaxFault(expression, span, "Expected cron fields made of *, a, a-b and /step")
    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise SyntaxFault(expression, span, f"Expected a cron expression, got: {error}") from error


def _cron_value(text: str) -> int | None:
    return int(text) if text.isdigit() else _CRON_NAMES.get(text.lower())


def parse_epoch(text: str) -> datetime:
    """Return the time of second 0. Raises `SyntaxFault` if it is no ISO-8601 time in whole seconds with an offset."""
    try:
        epoch = datetime.fromisoformat(text)
    except ValueError as error:
        message = "Expected an ISO-8601 date and time such as 2014-03-31T18:00:00+02:00"
        raise SyntaxFault(text, (0, len(text)), message) from error
    if epoch.tzinfo is None:
        raise SyntaxFault(text, (0, len(text)), "Expected an offset from UTC such as +02:00 at the end, got none")
    if epoch.microsecond:
        raise SyntaxFault(text, (0, len(text)), "Expected whole seconds, got a fraction")
    return epoch


def is_name(text: str) -> bool:
    """Return whether a document may have this name."""
    return _NAME.fullmatch(text) is not None
