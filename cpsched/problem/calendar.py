"""The times at which a rule holds, enumerated: always, from and until, and cron in the site's time zone (OCCS-14, 43).

A set of times is a sorted tuple of half-open intervals of seconds that neither overlap nor touch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain, islice
from zoneinfo import ZoneInfo

from cronsim import CronSim

from cpsched.domain import Instance, Reservation, Validity

Intervals = tuple[tuple[int, int], ...]

#: The most intervals of one validity that are enumerated, and the most days that are looked at.
MOST_INTERVALS = 100_000
MOST_DAYS = 146_097
#: The occurrences of a recurring reservation that are known: so many of them, in so many seconds from now on.
MOST_OCCURRENCES = 100
LONGEST = 3660 * 86_400

_DAY = 86_400
#: Months of a year, and days of the longest one.
_MONTHS, _DAYS = 12, 31
#: Seconds for which an offset is asked for before times are told.
_LONG = 64 * _DAY
#: Days after which dates, weekdays and the changes of a time zone repeat.
_CYCLE = 146_097
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
#: The first second of the years 2 and 2400 in Unix time: offsets do not change before and repeat from then on.
_YEAR_2 = -62_104_060_800
_YEAR_2400 = 13_569_465_600


def intervals(validity: Validity, instance: Instance, until: int) -> Intervals:
    """Return the maximal intervals of ``[instance.now, until)`` at which a rule holds (OCCS-43).

    A second belongs to a cron expression if the expression matches the wall-clock minute of that second in the
    instance's `time_zone`, or in the fixed offset of its `epoch` where it names no zone. In autumn the repeated hour
    matches twice; in spring the skipped minutes never occur.

    Raises `ValueError` if a cron expression is given and the instance has no epoch.

    `validity`: the times, as the document says them. `instance`: has the clock: `epoch`, `time_zone` and `now`.
    `until`: the end of the times that are enumerated, in seconds on the instance's clock.

    Returns sorted times, in seconds on the instance's clock. The work is bounded: of a cron expression with more than
    `MOST_INTERVALS` intervals, or beyond `MOST_DAYS` days, what follows is one interval up to the end, as if the rule
    held always from then on.
    """
    found: list[tuple[int, int]] = []
    for some in _intervals(validity, instance, until):
        found += some
        if len(found) > MOST_INTERVALS:
            end = until if validity.until is None else min(until, validity.until)
            return (*found[: MOST_INTERVALS - 1], (found[MOST_INTERVALS - 1][0], end))
    return tuple(found)


def occurrences(reservation: Reservation, instance: Instance) -> Intervals:
    """Return the times of a reservation that have not ended: its own, or the first occurrences of a recurring one.

    An occurrence that has begun counts from `now` on; `MOST_OCCURRENCES` are known, of the next `LONGEST` seconds.
    """
    if reservation.validity is not None:
        until = instance.now + LONGEST
        found = chain.from_iterable(_intervals(reservation.validity, instance, until))
        return tuple(islice(found, MOST_OCCURRENCES))
    if reservation.start is None or reservation.end is None:
        raise ValueError(f"Expected start and end, or validity, in reservation {reservation.id}")
    return ((reservation.start, reservation.end),) if reservation.end > instance.now else ()


def _intervals(validity: Validity, instance: Instance, until: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the intervals of `intervals`, however many they are, some at a time."""
    start = instance.now if validity.from_ is None else max(instance.now, validity.from_)
    end = until if validity.until is None else min(until, validity.until)
    if start >= end:
        return
    if validity.cron is None:
        yield [(start, end)]
        return
    if instance.epoch is None or instance.epoch.tzinfo is None:
        raise ValueError("Expected an instance with an epoch with an offset, which a calendar needs")
    zone = instance.epoch.tzinfo if instance.time_zone is None else ZoneInfo(instance.time_zone)
    origin = (instance.epoch - _UNIX) // timedelta(seconds=1)
    held: list[tuple[int, int]] = []
    for spans in _parsed(validity.cron).spans(zone, start, end, origin):
        if held and held[-1][1] == spans[0][0]:
            spans[0] = held.pop()[0], spans[0][1]
        if held:
            yield held
        held = spans
    if held:
        yield held


@dataclass(frozen=True, slots=True)
class _Cron:
    """A parsed expression of five fields: the days that it matches, and the times of such a day."""

    #: The matching times of a day in seconds since midnight.
    times: Intervals
    days: frozenset[int]
    months: frozenset[int]
    #: 0 is Sunday.
    weekdays: frozenset[int]
    #: Whether a day has to match by day of month and by weekday, or by one of them.
    is_both: bool
    #: Whether all dates match, so that the weekday alone counts.
    is_by_weekday: bool

    def spans(self, zone: tzinfo, start: int, end: int, origin: int) -> Iterator[list[tuple[int, int]]]:
        """Yield the matching times of ``[start, end)`` in order, day by day, in seconds since `origin` (Unix time).

        From `MOST_DAYS` days after `start` all time matches.
        """
        last, times = min(end, start + MOST_DAYS * _DAY), self.times
        for begin, stop, offset in _offsets(zone, start + origin, last + origin):
            first, behind = begin - origin, stop - origin
            for day in range((begin + offset) // _DAY, (stop + offset - 1) // _DAY + 1):
                if self._matches(day):
                    midnight = day * _DAY - offset - origin
                    spans = [(midnight + time, midnight + until) for time, until in times]
                    if midnight < first or midnight + _DAY > behind:
                        clipped = ((max(time, first), min(until, behind)) for time, until in spans)
                        spans = [span for span in clipped if span[0] < span[1]]
                    if spans:
                        yield spans
        if last < end:
            yield [(last, end)]

    def _matches(self, day: int) -> bool:
        """Whether a day matches, numbered from 1 January 1970, a Thursday."""
        by_weekday = (day + 4) % 7 in self.weekdays
        if self.is_by_weekday:
            return by_weekday
        when = date.fromordinal((day + _UNIX.toordinal() - 1) % _CYCLE + 1)
        by_date = when.day in self.days
        return when.month in self.months and ((by_date and by_weekday) if self.is_both else (by_date or by_weekday))


@lru_cache(maxsize=256)
def _parsed(expression: str) -> _Cron:
    """Parse an expression that a document may have; a site has the same few in every window."""
    parsed = CronSim(expression, _UNIX)
    minutes = [(3600 * hour + 60 * minute) for hour in sorted(parsed.hours) for minute in sorted(parsed.minutes)]
    days, months = frozenset(parsed.days), frozenset(parsed.months)
    return _Cron(
        times=union([(minute, minute + 60) for minute in minutes]),
        days=days,
        months=months,
        weekdays=frozenset(int(day) % 7 for day in parsed.weekdays if isinstance(day, int)),
        is_both=parsed.day_and,
        is_by_weekday=parsed.day_and and len(months) == _MONTHS and days.issuperset(range(1, _DAYS + 1)),
    )


def _offsets(zone: tzinfo, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield ``[begin, stop)`` and its offset from UTC in seconds, for the whole of ``[start, end)``, in Unix time.

    One look in two days and a bisection where the offset has changed: no zone has ever changed it twice within three.
    """
    offset, at = _offset(zone, start), start
    while at < end:
        stop = min(end, at + 2 * _DAY)
        after = _offset(zone, stop)
        if after != offset:
            low, high = at, stop
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
            yield start, high, offset
            start, offset = high, after
        if stop - start >= _LONG:
            yield start, stop, offset
            start = stop
        at = stop
    if start < end:
        yield start, end, offset


@lru_cache(maxsize=4096)
def _offset(zone: tzinfo, time: int) -> int:
    """Return the offset from UTC at a second of Unix time; each calendar of a window asks for the same seconds."""
    if time >= _YEAR_2400:
        time = _YEAR_2400 + (time - _YEAR_2400) % (_CYCLE * _DAY)
    moment = _UNIX + timedelta(seconds=max(time, _YEAR_2))
    return (moment.astimezone(zone).replace(tzinfo=UTC) - moment) // timedelta(seconds=1)


def union(*sets: Iterable[tuple[int, int]]) -> Intervals:
    """Return the times that are in one of the sets; their intervals may be in any order, overlap and touch."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(interval for one in sets for interval in one):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif start < end:
            joined.append((start, end))
    return tuple(joined)


def minus(times: Intervals, taken: Intervals) -> Intervals:
    """Return the times of one set that are not in the other."""
    left: list[tuple[int, int]] = []
    index = 0
    for start, end in times:
        while index < len(taken) and taken[index][1] <= start:
            index += 1
        cuts = [start]
        at = index
        while at < len(taken) and taken[at][0] < end:
            cuts += taken[at]
            at += 1
        cuts.append(end)
        left += [(begin, stop) for begin, stop in zip(cuts[::2], cuts[1::2], strict=True) if begin < stop]
    return tuple(left)
