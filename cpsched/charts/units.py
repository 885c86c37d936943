"""Numbers in words, each by its unit, and the ticks of axes of durations."""

import math
from datetime import UTC, datetime
from enum import StrEnum


class Unit(StrEnum):
    """The unit of an axis, which says how its numbers are written."""

    NUMBER = "number"
    #: Seconds, written as ``2 h 13 min``.
    SECONDS = "seconds"
    #: Shares of 1, written in percent.
    SHARE = "share"
    #: Seconds of a local clock since 1970, written as date and time.
    DATE = "date"


_PARTS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
#: Lengths between two ticks, in seconds, the first ones for axes of a few seconds.
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
#: Ticks of logarithmic axes of durations, and closer ones for where these are too few.
_DECADES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000)
_BETWEEN = tuple(factor * 10.0**power for power in range(-7, 1) for factor in (1, 2, 5))
_BETWEEN += (10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000)
#: Months between two ticks of dates; beyond them whole decades.
_MONTHS = (1, 2, 3, 6, 12, 24, 60)
_DAY = 86400
#: Years up to which dates are written.
_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799


def duration(seconds: float) -> str:
    """Return seconds as ``2 h 5 min``: the two largest units, the rest cut off."""
    rest = abs(round(seconds))
    parts = []
    for size, unit in _PARTS:
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount:,} {unit}")
    return ("-" if seconds < 0 and parts else "") + (" ".join(parts[:2]) or "0 s")


def unit_text(unit: Unit, value: float | None) -> str:
    """Return a number with its unit; a hyphen where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    match unit:
        case Unit.SECONDS:
            return _seconds_text(value)
        case Unit.SHARE:
            return f"{100 * value:.1f}%"
        case Unit.DATE:
            return f"{date_of(value):%Y-%m-%d %H:%M}"
    if float(value).is_integer():
        return f"{value:,.0f}"
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if abs(value) < 1000 else 0
    return f"{value:,.{min(places, 9)}f}"


def _seconds_text(value: float) -> str:
    """Return a duration; below ten seconds with a fraction, below one in thousandths or millionths."""
    size = abs(value)
    if size == 0 or size >= 10 or (size >= 1 and float(value).is_integer()):
        return duration(value)
    for least, factor, unit in ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs")):
        if size >= least:
            return f"{value * factor:.3g} {unit}"
    return "0 s"


def date_of(value: float) -> datetime:
    """Return the date of a local clock; the calendar's first or last second beyond it."""
    return datetime.fromtimestamp(min(max(value, _FIRST_SECOND), _LAST_SECOND), UTC)


def duration_ticks(low: float, high: float, *, most: int, is_log: bool) -> list[float]:
    """Return the places of at most about this many ticks in an interval of seconds: at full minutes, hours and days."""
    if is_log:
        for places, fewest in ((_DECADES, 3), (_BETWEEN, 2)):
            inside = [tick for tick in places if low * 0.999 <= tick <= high * 1.001]
            if len(inside) >= fewest:
                return inside[:: max(1, math.ceil(len(inside) / most))]
    wanted = max((high - low) / max(1, most), 1e-9)
    if wanted < 1:
        power = 10.0 ** math.floor(math.log10(wanted))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted)
    else:
        step = next((float(length) for length in _STEPS if length >= wanted), 0.0)
        step = step or 86400.0 * math.ceil(wanted / 86400)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def date_ticks(low: float, high: float, *, most: int) -> list[tuple[float, str]]:
    """Return the places and labels of at most about this many ticks in an interval of seconds of a local clock."""
    if high - low <= most * 31 * _DAY:
        places = duration_ticks(low, high, most=most, is_log=False)
        step = places[1] - places[0] if len(places) > 1 else _DAY
        return [(place, _day_label(date_of(place), step)) for place in places]
    months = (high - low) / (30.4 * _DAY)
    step = next((length for length in _MONTHS if months / length <= most), 120 * math.ceil(months / 120 / most))
    first = date_of(low)
    ticks = []
    for month in range(first.year * 12, date_of(high).year * 12 + 12, step):
        year = month // 12
        if 1 <= year <= 9999:
            at = datetime(year, month % 12 + 1, 1, tzinfo=UTC)
            if low <= at.timestamp() <= high:
                ticks.append((at.timestamp(), f"{at:%Y-%m}" if step < 12 else f"{at:%Y}"))
    return ticks


def _day_label(moment: datetime, step: float) -> str:
    """Return a date, or within a day the clock."""
    if step >= _DAY or (moment.hour, moment.minute, moment.second) == (0, 0, 0):
        return f"{moment:%Y-%m-%d}" if step >= _DAY else f"{moment:%m-%d}"
    return f"{moment:%H:%M}" if step >= 60 else f"{moment:%H:%M:%S}"


def shortened(text: str, most: int) -> str:
    """Return a text of at most this many characters, the end of a longer one cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
