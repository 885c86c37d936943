"""Cron expressions: worked examples, and a naive look at every minute."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, Cluster, Instance, NodeClass
from cpsched.domain import Validity as DomainValidity
from cpsched.problem import intervals
from cpsched.verify.validity import ALWAYS, Clock, Cron, Validity, first_moment, parse_cron
from tests.oracle.minute_calendar import MOMENTS, ZONES, expressions, matching_minutes
from tests.sizes import examples

#: A Thursday, 23:58:30 in its own offset.
EPOCH = datetime.fromisoformat("2026-01-01T23:58:30+05:30")
CLOCK = Clock(EPOCH)
DAY = 86_400


def _matches(expression: str, moment: datetime) -> bool:
    """Naive twin: look at one minute, for expressions of numbers, lists and stars."""
    fields = expression.split()
    values = (moment.minute, moment.hour, moment.day, moment.month, moment.isoweekday() % 7)
    hits = [field == "*" or value in map(int, field.split(",")) for field, value in zip(fields, values, strict=True)]
    days = (hits[2] or hits[4]) if "*" not in (fields[2], fields[4]) else (hits[2] and hits[4])
    return hits[0] and hits[1] and hits[3] and days


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    some = st.lists(st.integers(low, high), min_size=1, max_size=4, unique=True)
    return st.one_of(st.just("*"), some.map(lambda numbers: ",".join(map(str, numbers))))


@examples(60, deadline=None)
@given(st.tuples(_field(0, 59), _field(0, 23), _field(1, 5), st.just("*"), _field(0, 6)), st.integers(-2 * DAY, DAY))
def test_first_and_run_end_agree_with_every_minute(fields: tuple[str, ...], start: int) -> None:
    """The first matching second and the end of its interval are those of a walk over seconds' minutes."""
    expression = " ".join(fields)
    cron = parse_cron(expression, CLOCK)
    end = start + DAY

    def valid(second: int) -> bool:
        return _matches(expression, EPOCH + timedelta(seconds=second))

    turns = [start, *range(start + (30 - start) % 60, end, 60)]
    expected = next((turn for turn in turns if valid(turn)), None)
    assert cron.first(start, end) == expected
    if expected is not None:
        stop = next((turn for turn in turns if turn > expected and not valid(turn)), end)
        assert cron.run_end(expected, end) == stop


def _all(cron: Cron, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """Return all intervals that an expression has in a time, as the judge finds them one by one."""
    found: list[tuple[int, int]] = []
    while (begin := cron.first(start, end)) is not None:
        start = cron.run_end(begin, end)
        found.append((begin, start))
    return tuple(found)


@examples(200, deadline=None)
@given(expressions(), st.sampled_from(MOMENTS), st.sampled_from(ZONES), st.integers(-DAY, DAY), st.integers(1, 3 * DAY))
def test_zones_agree_with_every_minute(expression: str, epoch: datetime, zone: str, start: int, more: int) -> None:
    """In a time zone the intervals are those of a walk over all minutes, around the changes of its offset."""
    cron = parse_cron(expression, Clock(epoch, ZoneInfo(zone)))
    assert _all(cron, start, start + more) == matching_minutes(expression, epoch, ZoneInfo(zone), start, start + more)


@examples(100, deadline=None)
@given(
    expressions(),
    st.sampled_from(MOMENTS),
    st.sampled_from((None, *ZONES)),
    st.sampled_from((-(10**12), -(10**10), 0, 10**9, 10**10, 10**12)),
    st.integers(1, 400 * DAY),
)
def test_the_judge_and_the_engines_have_the_same_intervals(
    expression: str, epoch: datetime, zone: str | None, now: int, more: int
) -> None:
    """Two readings of an expression that share no code agree, over months, now and in far centuries."""
    cluster = Cluster(classes=(NodeClass(names=("n1",), resources=Amounts({"cores": 1})),))
    instance = Instance(name="clock", epoch=epoch, time_zone=zone, now=now, cluster=cluster)
    found = intervals(DomainValidity(cron=expression), instance, now + more)
    cron = parse_cron(expression, Clock(epoch, None if zone is None else ZoneInfo(zone)))
    few = 200
    if len(found) > few:
        found, more = found[:few], found[few - 1][1] - now
    assert _all(cron, now, now + more) == found


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("* * * * *", 0),
        ("* 7-10 * * mon,fri", 90 + 7 * 3600),
        ("0 8 * * MON-FRI", 90 + 8 * 3600),
        ("*/30 * * * *", 90),
        ("59 23 * * *", 30),
        ("10/20 0 * * *", 90 + 10 * 60),
        ("0 0 1 feb *", 90 + 30 * DAY),
        ("0 0 3 * sun", 90 + DAY),
        ("0 0 * * 7", 90 + 2 * DAY),
    ],
)
def test_worked_expressions(expression: str, first: int) -> None:
    """From Thursday 23:58:30 on, midnight is 90 s away; where both days are given either will do."""
    assert parse_cron(expression, CLOCK).first(0, 400 * DAY) == first


def test_intervals_join_over_midnight() -> None:
    """Mon-fri is one interval from Monday 0:00 to Saturday 0:00."""
    cron = parse_cron("* * * * mon-fri", CLOCK)
    monday = 90 + 3 * DAY
    assert cron.first(90 + DAY, 30 * DAY) == monday
    assert cron.run_end(monday, 30 * DAY) == monday + 5 * DAY
    assert cron.run_end(monday, monday + 7) == monday + 7


def test_rare_and_far_days() -> None:
    """29 February is found years ahead, and times beyond year 9999 are no trouble."""
    assert (
        parse_cron("0 0 29 2 *", CLOCK).first(0, 10**12)
        == 90 + DAY * (datetime(2028, 2, 29) - datetime(2026, 1, 2)).days
    )
    assert parse_cron("* * * * *", CLOCK).first(10**12 - 5, 10**12) == 10**12 - 5
    assert parse_cron("* * * * *", CLOCK).first(-(10**12), 0) == -(10**12)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-3 * * * *",
        "* * * * mon-sun",
        "5-5/2 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 */2",
        "*/0 * * * *",
        "a * * * *",
        "1,,2 * * * *",
        "-1 * * * *",
        "mon * * * *",
        "1-2-3 * * * *",
        "² * * * *",
    ],
)
def test_what_is_no_expression(expression: str) -> None:
    """Everything else is refused with a `ValueError`."""
    with pytest.raises(ValueError, match="expected"):
        parse_cron(expression, CLOCK)


def _hours(text: str) -> Validity:
    cron: Cron = parse_cron(text, CLOCK)
    return Validity(cron=cron)


def test_first_moment_outside_others() -> None:
    """A rule holds from where those that override it stop."""
    assert first_moment(ALWAYS, (), 3, 9) == 3
    assert first_moment(ALWAYS, (ALWAYS,), 3, 9) is None
    assert first_moment(ALWAYS, (Validity(until=5),), 3, 9) == 5
    assert first_moment(ALWAYS, (Validity(until=5), Validity(from_=5, until=7)), 3, 9) == 7
    assert first_moment(Validity(from_=4), (Validity(from_=6),), 3, 9) == 4
    assert first_moment(_hours("* 0-5 * * *"), (_hours("* 0-3 * * *"),), 0, DAY) == 90 + 4 * 3600


def test_the_repeated_hour_and_the_skipped_one() -> None:
    """In Berlin, from 2 to 3 there are two hours on 25 October 2026 and none on 29 March."""
    berlin = ZoneInfo("Europe/Berlin")
    autumn = parse_cron("* 2 * * *", Clock(datetime.fromisoformat("2026-10-25T00:00:00+02:00"), berlin))
    assert _all(autumn, 0, DAY) == ((7200, 14400),)
    spring = parse_cron("* 2 * * *", Clock(datetime.fromisoformat("2026-03-29T00:00:00+01:00"), berlin))
    assert spring.first(0, DAY) is None


@pytest.mark.slow
def test_what_has_no_end_is_found_in_time() -> None:
    """A plan may have times far beyond those of its instance; a search over them ends after 400 years."""
    cron = parse_cron("* * * * *", Clock(EPOCH, ZoneInfo("Europe/Berlin")))
    assert cron.run_end(0, 10**17) == 10**17
    assert parse_cron("0 0 29 2 *", CLOCK).run_end(0, 10**17) == 0
