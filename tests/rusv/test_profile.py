"""Evolution profiles: the paper's examples, and the laws of their algebra against one value per second."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.rusv import Profile
from tests.oracle.dense_evolving import area_of, dense, profile_of
from tests.oracle.expansions import delays, expands, follows

#: Longer than any two profiles that are drawn here, one after the other.
SECONDS = 60

# few durations and amounts, so that neighbours are often equal, steps empty and ends at the same time
STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=5).map(tuple)
PROFILES = STEPS.map(Profile)
TIMES = st.integers(0, 30)


def values(profile: Profile) -> list[int]:
    """Return the value in each second."""
    return dense(profile.steps, SECONDS)


# ---- the paper's examples ----

EXAMPLE = Profile(((1200, 10), (3600, 20), (600, 5)))


@pytest.mark.parametrize(("end", "highest"), [(1200, 10), (1201, 20), (0, 0)])
def test_highest_value_of_the_example(end: int, highest: int) -> None:
    """The end of an interval does not belong to it, and there is nothing in an empty one."""
    assert EXAMPLE.max(0, end) == highest


@pytest.mark.parametrize(("end", "last"), [(5400, 4800), (2000, 2000)])
def test_last_place_of_the_highest_value_of_the_example(end: int, last: int) -> None:
    """It is the end of the step of 20 nodes, or of the interval if that comes first."""
    assert EXAMPLE.loc(0, end) == last


def test_sum_of_the_example() -> None:
    """Steps are cut where another profile has a border."""
    total = Profile(((2000, 0), (100, 3))) + Profile(((2050, 1),))
    assert total.steps == ((2000, 1), (50, 4), (50, 3))


@pytest.mark.parametrize("steps", [((-1, 2),), ((1, -2),)])
def test_negative_steps_are_refused(steps: tuple[tuple[int, int], ...]) -> None:
    """Neither a duration nor an amount is below 0."""
    with pytest.raises(ValueError, match="0 or more"):
        Profile(steps)


@pytest.mark.parametrize("ask", [Profile.max, Profile.loc])
def test_there_is_nothing_before_the_beginning(ask: object) -> None:
    """A time before 0 is refused."""
    with pytest.raises(ValueError, match="got -1"):
        ask(EXAMPLE, -1, 5)  # type: ignore[operator]  # one of two methods


# ---- one value per second says the same ----


@given(STEPS, TIMES, TIMES)
def test_questions_second_by_second(steps: tuple[tuple[int, int], ...], start: int, end: int) -> None:
    """Value, highest value and its last place are what a list of values says (EVO-3)."""
    profile, listed = Profile(steps), dense(steps, SECONDS)
    within = listed[start:end]
    assert profile.at(start) == listed[start]
    assert profile.max(start, end) == max(within, default=0)
    highest = [second for second in range(start, end) if listed[second] == max(within)]
    assert profile.loc(start, end) == max(highest, default=max(start, end) - 1) + 1
    assert area_of(profile) == sum(listed)


@given(STEPS, STEPS, TIMES)
def test_operations_second_by_second(
    first: tuple[tuple[int, int], ...], second: tuple[tuple[int, int], ...], time: int
) -> None:
    """Sum, delay and mirror image are what they are in each second."""
    here, there = dense(first, SECONDS), dense(second, SECONDS)
    assert values(Profile(first) + Profile(second)) == list(map(operator.add, here, there))
    assert values(Profile(first).delay(time)) == ([0] * time + here)[:SECONDS]
    assert values(Profile(first).mirrored(time)) == (here[:time][::-1] + [0] * SECONDS)[:SECONDS]


@given(STEPS)
def test_form_is_canonical(steps: tuple[tuple[int, int], ...]) -> None:
    """However a function is cut into steps, it is the same value, with no step that says nothing (EVO-1)."""
    profile = Profile(steps)
    assert profile == profile_of(dense(steps, SECONDS)) == Profile(profile.steps)
    assert all(duration > 0 for duration, _ in profile.steps)
    assert all(one[1] != other[1] for one, other in zip(profile.steps, profile.steps[1:], strict=False))
    assert not profile.steps or profile.steps[-1][1] > 0
    assert profile.end == max((second + 1 for second in range(SECONDS) if values(profile)[second]), default=0)


# ---- laws ----


@given(PROFILES, PROFILES, PROFILES)
def test_sums(one: Profile, other: Profile, third: Profile) -> None:
    """Profiles with + are a commutative monoid."""
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert one + Profile() == one
    assert area_of(one + other) == area_of(one) + area_of(other)


@given(PROFILES, PROFILES, TIMES, TIMES)
def test_delays(one: Profile, other: Profile, first: int, second: int) -> None:
    """Delays add up, keep sums and areas, and are told from what they delay."""
    assert one.delay(first).delay(second) == one.delay(first + second)
    assert (one + other).delay(first) == one.delay(first) + other.delay(first)
    assert delays(one.delay(first), one)
    assert follows(one.delay(first), one)


@given(PROFILES, PROFILES, TIMES)
def test_mirror_images(one: Profile, other: Profile, more: int) -> None:
    """Two mirrors cancel each other if nothing is cut off, and a mirror keeps sums."""
    end = one.end + more
    assert one.mirrored(end).mirrored(end) == one
    assert (one + other).mirrored(more) == one.mirrored(more) + other.mirrored(more)


@given(STEPS, st.data())
def test_expansions(steps: tuple[tuple[int, int], ...], data: st.DataObject) -> None:
    """What holds each step as long or longer expands what was asked for, delayed or not; equal counts too (EVO-2)."""
    more = data.draw(st.lists(st.integers(0, 3), min_size=len(steps), max_size=len(steps)))
    held = Profile(
        tuple((duration + extra * (duration > 0), n) for (duration, n), extra in zip(steps, more, strict=True))
    )
    asked = Profile(steps)
    assert expands(held, asked)
    assert follows(held.delay(data.draw(TIMES)), asked)
    assert expands(asked, asked)
    assert expands(asked, held) == (held == asked)


@given(PROFILES, PROFILES)
def test_what_follows(one: Profile, other: Profile) -> None:
    """A profile that follows another one ends with the same amounts in the same order, and has no less; a mere delay
    has no more.
    """
    ordered = [[amount for _, amount in profile.steps] for profile in (one, other)]
    if follows(one, other):
        assert ordered[0][-len(ordered[1]) or len(ordered[0]) :] == ordered[1]
        assert area_of(one) >= area_of(other)
    if delays(one, other):
        assert follows(one, other)
        assert area_of(one) == area_of(other)


@pytest.mark.parametrize(
    ("scheduled", "does"),
    [
        (((2, 4), (8, 2), (3, 4)), True),
        (((5, 0), (2, 4), (2, 2), (3, 4)), True),
        (((2, 4), (1, 2), (3, 4)), False),
        (((2, 4), (2, 3), (3, 4)), False),
        (((2, 4), (3, 4)), False),
        (((2, 4), (2, 2), (1, 0), (3, 4)), False),
    ],
)
def test_what_is_scheduled_follows_what_was_asked_for(scheduled: tuple[tuple[int, int], ...], does: bool) -> None:
    """Longer steps and a later start follow; shorter, other or missing steps and a hole do not (EVO-5)."""
    assert follows(Profile(scheduled), Profile(((2, 4), (2, 2), (3, 4)))) is does
