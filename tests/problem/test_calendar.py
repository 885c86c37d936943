"""Calendars enumerated: worked examples, and every minute looked at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, Cluster, Instance, NodeClass, Reservation, Validity
from cpsched.problem import Intervals, intervals, minus, occurrences, union
from cpsched.problem.calendar import MOST_INTERVALS
from tests.oracle.minute_calendar import MOMENTS, ZONES, expressions, matching_minutes
from tests.sizes import examples, some

DAY = 86_400
CLUSTER = Cluster(classes=(NodeClass(names=("n1",), resources=Amounts({"cores": 1})),))


def window(epoch: datetime, zone: str | None = None, now: int = 0) -> Instance:
    """Make an empty instance with a clock."""
    return Instance(name="clock", epoch=epoch, time_zone=zone, now=now, cluster=CLUSTER)


@examples(100, deadline=None)
@given(
    expressions(),
    st.sampled_from(MOMENTS),
    st.sampled_from((None, *ZONES)),
    st.integers(-DAY, DAY),
    st.integers(1, 3 * DAY),
    st.sampled_from((0, 330, -210)),
)
def test_equals_every_minute(
    expression: str, moment: datetime, zone: str | None, now: int, more: int, own: int
) -> None:
    """The intervals are those of a walk over all minutes, around changes of the offset, in many zones and without
    (OCCS-14).
    """
    epoch = (moment + timedelta(seconds=17)).astimezone(ZoneInfo("UTC")) + timedelta(minutes=own)
    found = intervals(Validity(cron=expression), window(epoch, zone, now), now + more)
    assert found == matching_minutes(expression, epoch, ZoneInfo(zone) if zone else None, now, now + more)


@pytest.mark.slow
@pytest.mark.parametrize(
    "zone", some(["Australia/Lord_Howe", "Europe/Berlin", "Africa/Casablanca", "America/St_Johns"], 2)
)
@pytest.mark.parametrize("expression", ["30-45/5 1-2 * * *", "* 0-2,22-23 1-31/3 * sun,mon"])
def test_two_changes_equal_every_minute(zone: str, expression: str) -> None:
    """Over a time with both changes of the offset, each minute has been looked at."""
    epoch = datetime.fromisoformat("2026-02-10T12:00:00+01:00")
    until = 60 * DAY if zone == "Africa/Casablanca" else 272 * DAY
    offsets = {
        (epoch + timedelta(days=day)).astimezone(ZoneInfo(zone)).utcoffset() for day in range(0, until // DAY, 10)
    }
    assert len(offsets) == 2
    found = intervals(Validity(cron=expression), window(epoch, zone), until)
    assert found == matching_minutes(expression, epoch, ZoneInfo(zone), 0, until)


def test_the_paper_s_example() -> None:
    """Mondays and Fridays from 7 to 11, from 2018 to 2026 in UTC: 835 slots (OCCS-43)."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2018, 2026))
    found = intervals(Validity(cron="* 7-10 * * 1,5"), window(epoch, now=start), end)
    assert len(found) == 835
    assert found[:2] == ((1514790000, 1514804400), (1514790000 + 4 * DAY, 1514804400 + 4 * DAY))


def test_the_repeated_hour_and_the_skipped_one() -> None:
    """In Berlin, from 2 to 3 there are two hours on 25 October 2026 and none on 29 March."""
    night = window(datetime.fromisoformat("2026-10-25T00:00:00+02:00"), "Europe/Berlin")
    assert intervals(Validity(cron="* 2 * * *"), night, DAY) == ((7200, 4 * 3600),)
    assert intervals(Validity(cron="30-59 2 * * *"), night, DAY) == ((9000, 10800), (12600, 14400))
    spring = window(datetime.fromisoformat("2026-03-29T00:00:00+01:00"), "Europe/Berlin")
    assert intervals(Validity(cron="* 2 * * *"), spring, DAY) == ()
    assert intervals(Validity(cron="* 8 * * *"), spring, DAY) == ((7 * 3600, 8 * 3600),)


def test_without_a_zone_the_offset_is_fixed() -> None:
    """The epoch's own offset holds in summer and winter."""
    winter = window(datetime.fromisoformat("2026-03-28T00:00:00+01:00"))
    assert intervals(Validity(cron="* 8 * * *"), winter, 2 * DAY) == tuple(
        (8 * 3600 + day * DAY, 9 * 3600 + day * DAY) for day in (0, 1)
    )


def test_always_and_from_until() -> None:
    """Without cron there is one interval at most, within now and the end."""
    clock = Instance(name="clock", now=10, cluster=CLUSTER)
    assert intervals(Validity(), clock, 20) == ((10, 20),)
    assert intervals(Validity(from_=5, until=15), clock, 20) == ((10, 15),)
    assert intervals(Validity(from_=12), clock, 20) == ((12, 20),)
    assert intervals(Validity(from_=20), clock, 20) == intervals(Validity(until=10), clock, 20) == ()
    assert intervals(Validity(), clock, 10) == ()


def test_cron_within_from_and_until() -> None:
    """A cron expression with from and until holds where both do."""
    clock = window(datetime.fromisoformat("2026-06-01T00:00:00+02:00"), "Europe/Berlin")
    validity = Validity(cron="* 8-17 * * *", from_=9 * 3600, until=DAY + 9 * 3600)
    assert intervals(validity, clock, 9 * DAY) == ((9 * 3600, 18 * 3600), (DAY + 8 * 3600, DAY + 9 * 3600))


def test_a_calendar_needs_an_epoch() -> None:
    """An instance without epoch has no days."""
    with pytest.raises(ValueError, match="epoch"):
        intervals(Validity(cron="* * * * *"), Instance(name="clock", cluster=CLUSTER), 10)


def test_whole_weeks_join() -> None:
    """Days that follow one another are one interval, and all minutes are one for ever."""
    monday = window(datetime.fromisoformat("2026-06-01T00:00:00+02:00"), "Europe/Berlin")
    assert intervals(Validity(cron="* * * * mon-fri"), monday, 14 * DAY) == ((0, 5 * DAY), (7 * DAY, 12 * DAY))
    assert intervals(Validity(cron="* * * * *"), monday, 10**12) == ((0, 10**12),)


def test_far_times() -> None:
    """Beyond the years of the calendar dates repeat every 400 years, and so do the changes of a zone's offset."""
    epoch, cycle = datetime.fromisoformat("2026-06-01T00:00:00+02:00"), 146_097 * DAY
    sundays = Validity(cron="* 2 * * sun")
    far, farther = (
        intervals(sundays, window(epoch, "Europe/Berlin", now), now + 400 * DAY) for now in (10**12, 10**12 + cycle)
    )
    assert farther == tuple((start + cycle, end + cycle) for start, end in far)
    lengths = [end - start for start, end in far]
    assert set(lengths) == {3600, 7200}
    before = intervals(sundays, window(epoch, "Europe/Berlin", -(10**12)), -(10**12) + 400 * DAY)
    assert {end - start for start, end in before} == {3600}
    assert len(before) == 58


def test_the_work_is_bounded() -> None:
    """After the most intervals, and after 400 years, a rule counts as holding always."""
    clock = window(datetime.fromisoformat("2026-06-01T00:00:00+00:00"))
    often = intervals(Validity(cron="*/2 * * * *"), clock, 10**12)
    assert len(often) == MOST_INTERVALS
    assert often[-1] == (120 * (MOST_INTERVALS - 1), 10**12)
    assert intervals(Validity(cron="0 0 1 1 *"), clock, 10**12)[-1] == (146_097 * DAY, 10**12)


def test_occurrences_of_a_reservation() -> None:
    """The first hundred of the next ten years, from now on; a single one until it has ended."""
    clock = window(datetime.fromisoformat("2026-06-01T08:30:00+02:00"), "Europe/Berlin")
    daily = Reservation(id="r", validity=Validity(cron="* 8 * * *"), nodes=("n1",))
    found = occurrences(daily, clock)
    assert len(found) == 100
    assert found[:2] == ((0, 1800), (DAY - 1800, DAY + 1800))
    yearly = Reservation(id="r", validity=Validity(cron="* * 1 1 *", from_=365 * DAY), nodes=("n1",))
    assert len(occurrences(yearly, clock)) == 9
    always = Reservation(id="r", validity=Validity(cron="* * * * *"), nodes=("n1",))
    assert occurrences(always, clock) == ((0, 3660 * DAY),)
    assert occurrences(Reservation(id="r", start=-5, end=1, nodes=("n1",)), clock) == ((-5, 1),)
    assert occurrences(Reservation(id="r", start=-5, end=0, nodes=("n1",)), clock) == ()


TIMES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6).map(
    lambda pairs: union([(min(pair), max(pair)) for pair in pairs])
)


def _seconds(times: Intervals) -> set[int]:
    return {second for start, end in times for second in range(start, end)}


def _is_normal(times: Intervals) -> bool:
    edges = [edge for interval in times for edge in interval]
    return edges == sorted(set(edges))


@examples(100)
@given(TIMES, TIMES, TIMES)
def test_sets_of_times(first: Intervals, second: Intervals, third: Intervals) -> None:
    """Union and difference are those of the sets of seconds, in normal form."""
    joined, left = union(first, second, third), minus(first, second)
    assert _seconds(joined) == _seconds(first) | _seconds(second) | _seconds(third)
    assert _seconds(left) == _seconds(first) - _seconds(second)
    assert _is_normal(joined)
    assert _is_normal(left)
