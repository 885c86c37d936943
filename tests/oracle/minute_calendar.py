"""A cron expression minute by minute: the naive twin of calendars, and random expressions."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from hypothesis import strategies as st

__all__ = ["MOMENTS", "ZONES", "expressions", "matches", "matching_minutes"]

#: Zones with changes in spring and autumn, of half an hour, with odd offsets, south of the equator, and without any.
ZONES = (
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Chatham", "America/St_Johns",
    "Africa/Casablanca", "America/Sao_Paulo", "Asia/Tehran", "Europe/Dublin", "UTC",
)  # fmt: skip

#: Some hours before changes of the zones' offsets, and days without any.
MOMENTS = tuple(
    datetime.fromisoformat(f"{day}T00:00:00+00:00")
    for day in (
        "2026-03-28", "2026-10-24", "2026-03-07", "2026-10-31", "2026-04-04", "2026-10-03", "2026-09-26", "2026-02-14",
        "2026-03-21", "2018-11-03", "2018-02-17", "2022-03-20", "2022-09-20", "2026-12-31", "2028-02-28", "2030-06-01",
        "2099-03-28",
    )
)  # fmt: skip

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {name: number for number, name in [*enumerate(_MONTHS, 1), *enumerate(_WEEKDAYS)]}


def matches(expression: str, wall: datetime) -> bool:
    """Whether an expression matches a minute on the wall: part by part, number by number."""
    minute, hour, day, month, weekday = expression.split()
    sunday = (0, 7) if wall.isoweekday() == 7 else (wall.isoweekday(),)
    if not (_matches_field(hour, wall.hour, 23) and _matches_field(minute, wall.minute, 59)):
        return False
    by_date = _matches_field(day, wall.day, 31, least=1)
    by_weekday = any(_matches_field(weekday, number, 7) for number in sunday)
    both = day.startswith("*") or weekday.startswith("*")
    by_day = (by_date and by_weekday) if both else (by_date or by_weekday)
    return by_day and _matches_field(month, wall.month, 12, least=1)


def _matches_field(field: str, value: int, most: int, *, least: int = 0) -> bool:
    return field == "*" or any(_matches_part(part, value, most, least) for part in field.split(","))


def _matches_part(part: str, value: int, most: int, least: int) -> bool:
    body, slash, step = part.partition("/")
    first, dash, last = body.partition("-")
    low = least if first == "*" else _number(first)
    high = most if first == "*" or (slash and not dash) else _number(last if dash else first)
    return low <= value <= high and (value - low) % int(step or 1) == 0


def _number(text: str) -> int:
    return _NAMES[text] if text in _NAMES else int(text)


def matching_minutes(
    expression: str, epoch: datetime, zone: tzinfo | None, start: int, end: int
) -> tuple[tuple[int, int], ...]:
    """Join the seconds of ``[start, end)`` whose minute on the wall matches, looked at one minute after the other.

    Offsets are whole minutes.
    """
    found: list[tuple[int, int]] = []
    time = start
    while time < end:
        moment = (epoch + timedelta(seconds=time)).astimezone(zone or epoch.tzinfo)
        stop = min(end, time + 60 - moment.second)
        if matches(expression, moment):
            if found and found[-1][1] == time:
                found[-1] = (found[-1][0], stop)
            else:
                found.append((time, stop))
        time = stop
    return tuple(found)


def _parts(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    pair = st.tuples(number, number).filter(lambda ends: ends[0] < ends[1])
    steps = st.integers(1, max(2, high // 2))
    kinds = [
        number.map(str),
        pair.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(number, steps).map(lambda drawn: f"{drawn[0]}/{drawn[1]}"),
        st.tuples(pair, steps).map(lambda drawn: f"{drawn[0][0]}-{drawn[0][1]}/{drawn[1]}"),
        steps.map(lambda step: f"*/{step}"),
    ]
    if names:
        kinds.append(st.tuples(st.integers(0, len(names) - 2), st.booleans()).map(
            lambda drawn: f"{names[drawn[0]]}-{names[-1]}" if drawn[1] else names[drawn[0]]))  # fmt: skip
    part = st.one_of(kinds)
    return st.one_of(st.just("*"), st.lists(part, min_size=1, max_size=3).map(",".join))


def expressions() -> st.SearchStrategy[str]:
    """Draw cron expressions of every form that a document may have, in which each day of month can occur."""
    fields = (_parts(0, 59), _parts(0, 23), _parts(1, 28), _parts(1, 12, _MONTHS), _parts(0, 7, _WEEKDAYS))
    return st.tuples(*fields).map(" ".join)
