"""When the clock of a log began, by the calendar: what its header says of that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cpsched.errors import Fault
from cpsched.formats.faults import shown
from cpsched.formats.swf.log import SwfLog

#: Dates of a log lie before the year 2500 (s since 1970).
_LAST = 16_725_225_600
_DAY = 86_400


class BadCalendar(Exception):  # noqa: N818 - control flow, the fault is what is seen
    """The header's time of the log's begin cannot be understood."""

    def __init__(self, got: str) -> None:
        expected = "seconds since 1970, and all dates before 2500"
        self.fault = Fault("header UnixStartTime", f"Expected {expected}, got {shown(got)}: there is no epoch")
        super().__init__(str(self.fault))


def date_of(log: SwfLog, time: int) -> datetime | None:
    """Return the date of a second on the clock of a log, with the offset of its time zone then; None if it is unknown.

    ``UnixStartTime`` says when the clock shows 0 (a start of 0 is unknown); ``TimeZoneString``, a name of the IANA's
    list, and else ``TimeZone``, in seconds to the east, says where. Without them, or with a name that this machine does
    not know, it is UTC.

    Raises `BadCalendar` if the start is no number of seconds, or such a date far from our days.
    """
    text = log.header.get("UnixStartTime", ("0",))[0]
    start = _number(text)
    if start == 0:
        return None
    if start is None or start < 0 or not 0 <= start + time < _LAST:
        raise BadCalendar(text)
    date = datetime.fromtimestamp(start + time, _zone(log))
    return date.replace(tzinfo=timezone(date.utcoffset() or timedelta()))


def _zone(log: SwfLog) -> tzinfo:
    for name in log.header.get("TimeZoneString", ()):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    offset = _number(log.header.get("TimeZone", ("0",))[0])
    return UTC if offset is None or abs(offset) >= _DAY else timezone(timedelta(seconds=offset))


def _number(text: str) -> int | None:
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isdecimal() and digits.isascii() and len(digits) < 20 else None
