"""When a rule holds: always, from–until, or in the minutes that a 5-field cron expression matches.

Cron minutes are those of the site's time zone, or of the fixed offset of the instance's epoch where no zone is named.
Days are numbered as `datetime.date` does and folded into one cycle of 400 years, after which dates, weekdays and the
changes of a zone's offset repeat, so that no time of a document is too far away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cpsched.verify.documents import Cursor

DAY = 86_400
#: Days after which the calendar repeats, weekdays included.
CYCLE = 146_097
#: How far a search goes: what has not come in a cycle does not come.
REACH = CYCLE * DAY
#: The day from which on the offsets of a zone repeat with the calendar: 1 January 2400.
REGULAR = date(2400, 1, 1).toordinal()
#: The first day after which every zone's midnight is in a year of the calendar.
DAY_TWO = 2
#: Days of each month in a leap year.
DAYS_OF = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
LONGEST_STEP = 999
FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
NAMED = {
    "month": {name: number for number, name in enumerate(MONTHS, 1)},
    "day of week": {name: number for number, name in enumerate(WEEKDAYS)},
}


@dataclass(frozen=True, slots=True)
class Clock:
    """What the clock on the wall says at a second of the instance's clock."""

    #: Second 0, with its offset.
    epoch: datetime
    #: The site's time zone; None: the epoch's offset holds always.
    zone: ZoneInfo | None = None

    def reads(self, time: int) -> tuple[int, int]:
        """Read the clock, in seconds since the midnight of 1 January of year 0; return how long that holds, too.

        The second number is a second of the instance's clock, within a day, before which it is not put forward or back.
        """
        offset = self.epoch.utcoffset() or timedelta()
        utc = self.epoch.replace(tzinfo=None) - offset
        second = utc.toordinal() * DAY + 3600 * utc.hour + 60 * utc.minute + utc.second + time
        if self.zone is None:
            return second + offset // timedelta(seconds=1), time + DAY
        ahead = _ahead(self.zone, second)
        same, other = 0, DAY
        if _ahead(self.zone, second + DAY) == ahead:
            same = DAY - 1
        while other - same > 1:
            middle = (same + other) // 2
            if _ahead(self.zone, second + middle) == ahead:
                same = middle
            else:
                other = middle
        return second + ahead, time + other


@lru_cache(maxsize=1024)
def _ahead(zone: ZoneInfo, second: int) -> int:
    """Return by how many seconds a zone is ahead of UTC at a second of UTC, counted from year 0."""
    day, of_day = divmod(second, DAY)
    day = REGULAR + (day - REGULAR) % CYCLE if day >= REGULAR else max(day, DAY_TWO)
    moment = datetime.fromordinal(day).replace(tzinfo=zone) + timedelta(seconds=of_day)
    return (zone.fromutc(moment).replace(tzinfo=None) - moment.replace(tzinfo=None)) // timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression on the instance's clock."""

    #: The matching times of a matching day, joined: half-open ranges of seconds since its midnight.
    spans: tuple[tuple[int, int], ...]
    days: frozenset[int]
    months: frozenset[int]
    #: 0 is Sunday.
    weekdays: frozenset[int]
    #: Whether a day matches by day of month or weekday (both are restricted), or by both.
    either: bool
    clock: Clock

    def matches_day(self, day: int) -> bool:
        """Return whether the day of this number matches."""
        when = date.fromordinal(day % CYCLE or CYCLE)
        by_date = when.day in self.days
        by_weekday = when.isoweekday() % 7 in self.weekdays
        return when.month in self.months and ((by_date or by_weekday) if self.either else (by_date and by_weekday))

    def first(self, start: int, end: int) -> int | None:
        """Return the first matching second of ``[start, end)``, or None."""
        time, end = start, min(end, start + REACH)
        while time < end:
            shown, goes_on = self.clock.reads(time)
            day, second = divmod(shown, DAY)
            if self.matches_day(day):
                ahead = next((max(0, begin - second) for begin, stop in self.spans if second < stop), DAY)
                if time + ahead < min(goes_on, time + DAY - second):
                    return time + ahead if time + ahead < end else None
            time = min(goes_on, time + DAY - second)
        return None

    def run_end(self, time: int, end: int) -> int:
        """Return where the interval around a matching second stops, at most `end`."""
        last = min(end, time + REACH)
        while time < last:
            shown, goes_on = self.clock.reads(time)
            day, second = divmod(shown, DAY)
            stop = next((stop for begin, stop in self.spans if begin <= second < stop), None)
            if stop is None or not self.matches_day(day):
                return time
            time = min(goes_on, time + stop - second)
        return end


@dataclass(frozen=True, slots=True)
class Validity:
    """The times at which a rule holds: inside ``[from_, until)`` and, where there is a `cron`, in its minutes."""

    from_: int | None = None
    until: int | None = None
    cron: Cron | None = None

    def first(self, start: int, end: int) -> int | None:
        """Return the first valid second of ``[start, end)``, or None."""
        start = start if self.from_ is None else max(start, self.from_)
        end = end if self.until is None else min(end, self.until)
        if start >= end:
            return None
        return start if self.cron is None else self.cron.first(start, end)

    def run_end(self, time: int, end: int) -> int:
        """Return where the valid interval around the valid second `time` stops, at most `end`."""
        end = end if self.until is None else min(end, self.until)
        return end if self.cron is None else self.cron.run_end(time, end)


ALWAYS = Validity()


def first_moment(validity: Validity, unless: Sequence[Validity], start: int, end: int) -> int | None:
    """Return the first second of ``[start, end)`` at which `validity` holds and none of `unless` does, or None."""
    moment = validity.first(start, end)
    while moment is not None:
        covered = max(
            (other.run_end(moment, end) for other in unless if other.first(moment, moment + 1) is not None),
            default=None,
        )
        if covered is None:
            return moment
        moment = validity.first(covered, end)
    return None


def parse_cron(text: str, clock: Clock) -> Cron:
    """Parse a 5-field cron expression; day of month and day of week match by either where both are restricted.

    Raises `ValueError` if it is no such expression; the text says which field.
    """
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"expected 5 cron fields, got {len(fields)}")
    minutes, hours, days, months, weekdays = (
        _field(field, name, low, high) for field, (name, low, high) in zip(fields, FIELDS, strict=True)
    )
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    if not either and min(days) > max(DAYS_OF[month - 1] for month in months):
        raise ValueError(f"expected a day of month that one of the months has, got {fields[2]!r}")
    return Cron(
        spans=_join(sorted(60 * (60 * hour + minute) for hour in hours for minute in minutes)),
        days=days,
        months=months,
        weekdays=frozenset(weekday % 7 for weekday in weekdays),
        either=either,
        clock=clock,
    )


def _field(text: str, name: str, low: int, high: int) -> frozenset[int]:
    """Return the values of one field: a list of ``*``, ``a``, ``a-b``, each with an optional ``/step``."""
    values: set[int] = set()
    for part in text.split(","):
        body, slash, step = part.partition("/")
        if body == "*":
            first, last, dash = low, high, ""
        else:
            left, dash, right = body.partition("-")
            first = _value(left, name, low, high)
            last = _value(right, name, low, high) if dash else high if slash else first
        stride = _value(step, f"step of {name}", 1, LONGEST_STEP) if slash else 1
        if first > last or (dash and slash and first == last):
            raise ValueError(f"expected an ascending range for the {name}, got {part!r}")
        values.update(range(first, last + 1, stride))
    return frozenset(values)


def _value(text: str, name: str, low: int, high: int) -> int:
    """Return a number in ``[low, high]`` or a name of a month or weekday."""
    names = NAMED.get(name, {})
    word = text.lower()
    value = names[word] if word in names else int(word) if word.isascii() and word.isdigit() and len(word) < 4 else -1
    if not low <= value <= high:
        raise ValueError(f"expected a {name} from {low} to {high}, got {text!r}")
    return value


def _join(starts: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Join minutes, given by their first seconds, to maximal ranges."""
    spans: list[tuple[int, int]] = []
    for start in starts:
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], start + 60)
        else:
            spans.append((start, start + 60))
    return tuple(spans)


def read_validity(cursor: Cursor | None, clock: Clock | None) -> Validity:
    """Read when a rule holds."""
    if cursor is None or cursor.value == "always":
        return ALWAYS
    members = cursor.members(optional=["from", "until", "cron"])
    if not members:
        cursor.refuse("expected always, or at least one of from, until and cron")
    start = members["from"].time() if "from" in members else None
    until = members["until"].time() if "until" in members else None
    if start is not None and until is not None and start >= until:
        cursor.refuse(f"expected from < until, got {start} and {until}")
    if "cron" not in members:
        return Validity(start, until)
    if clock is None:
        cursor.refuse("expected the instance to have an epoch, which a calendar needs")
    try:
        return Validity(start, until, parse_cron(members["cron"].text(), clock))
    except ValueError as error:
        members["cron"].refuse(str(error))
