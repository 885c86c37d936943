"""Fitting evolving applications: worked examples, and thousands of small cases against every schedule there is."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.problem import Application
from cpsched.rules.evolving import VARIANTS, Variant, compact, fit, schedule
from cpsched.rusv import FOREVER, Profile
from tests.oracle.dense_evolving import area_of, best_schedule, dense, fit_literally
from tests.oracle.expansions import follows

#: All variants by name.
NAMED = {variant.name: variant for variant in VARIANTS}
LIMITS = [1, 2, 3, None]
NOTHING = Profile()


def ranges(name: str, applications: list[Application], capacity: int, busy: Profile = NOTHING) -> list[tuple[int, int]]:
    """Return start and end of each application by a variant."""
    tracks = schedule(applications, NAMED[name], busy=busy, capacity=capacity)
    return [(track.steps[0].start, track.steps[-1].end) for track in tracks]


# ---- worked examples ----


@pytest.mark.parametrize(
    ("name", "kept", "waste"),
    [
        ("ep_rigid", ((12, 0), (7, 4)), 4),
        ("ep_nox", ((12, 0), (2, 4), (2, 2), (3, 4)), 0),
        ("ep_2x", ((12, 0), (2, 4), (2, 2), (3, 4)), 0),
        ("ep_2xc", ((12, 0), (2, 4), (2, 2), (3, 4)), 0),
        ("ep_infx", ((2, 0), (2, 4), (8, 2), (3, 4)), 12),
        ("ep_infxc", ((4, 0), (2, 4), (6, 2), (3, 4)), 8),
    ],
)
def test_worked_example(name: str, kept: tuple[tuple[int, int], ...], waste: int) -> None:
    """Five nodes, of which 3 are busy for 2 s, and again from 6 to 12; steps of 4, 2 and 4 nodes (EVO-10)."""
    asked = ((2, 4), (2, 2), (3, 4))
    busy = Profile(((2, 3), (4, 0), (6, 3)))
    (track,) = schedule([Application(steps=asked)], NAMED[name], busy=busy, capacity=5)
    assert track.profile.steps == kept
    assert area_of(track.profile) - area_of(Profile(asked)) == waste


@pytest.mark.parametrize("name", NAMED)
def test_nobody_blocks_another(name: str) -> None:
    """Two applications that want 2 nodes, then 3, of 4: step by step both would wait for ever (EVO-18)."""
    twice = [Application(steps=((5, 2), (5, 3)))] * 2
    assert ranges(name, twice, capacity=4) == [(0, 10), (10, 20)]


def test_own_limit_is_kept() -> None:
    """An application that allows less than the variant has the second of its steps, of 2 s, held for less."""
    steps, busy = ((2, 4), (2, 2), (3, 4)), Profile(((2, 3), (4, 0), (6, 3)))
    for limit, start in [(1, 12), (2.9, 12), (3, 4), (3.9, 3), (4, 2), (None, 2)]:
        assert ranges("ep_infx", [Application(steps=steps, limit=limit)], 5, busy)[0][0] == start


def test_limits_are_rounded_down() -> None:
    """A step of 3 s that may be held 1.5 times as long is held for 4 s, exactly: the smaller limit counts."""
    application = Application(steps=((3, 1), (10, 1)), limit=1.5)
    assert application.longest(None) == (4, 15)
    assert application.longest(1) == (3, 10)
    assert Application(steps=((3, 1),)).longest(None) == (FOREVER,)


def test_too_wide_a_step_is_refused() -> None:
    """A search for more nodes than there are ends."""
    with pytest.raises(ValueError, match="at most 4"):
        fit([(1, 2), (1, 5)], NOTHING, 4, longest=[1, 1])


def test_long_applications_need_no_recursion() -> None:
    """An application of 3,000 steps beside a comb of busy seconds is fitted, in steps that are tried once."""
    steps = [(1, 1 + place % 2) for place in range(3000)]
    comb = Profile(tuple((1, 1 + place % 3) for place in range(3000)))
    starts = fit(steps, comb, 3, longest=[1] * len(steps))
    assert starts[-1] - starts[0] == 2999


# ---- every schedule there is ----


def random_case(draw: Random) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...], int]:
    """Return steps, what is busy, and the number of nodes."""
    capacity = draw.randint(1, 5)
    steps = tuple((draw.randint(1, 4), draw.randint(0, capacity)) for _ in range(draw.randint(1, 4)))
    busy = tuple((draw.randint(1, 4), draw.randint(0, capacity)) for _ in range(draw.randint(0, 6)))
    return steps, busy, capacity


@pytest.mark.parametrize("limit", LIMITS)
def test_fit_and_compact_find_what_trying_everything_finds(limit: int | None) -> None:
    """In 1,000 cases for each limit the completion is the earliest (EVO-8), and then the start the latest (EVO-9)."""
    draw = Random(f"evolving {limit}")
    num_gained = num_held = 0
    for _ in range(1000):
        steps, busy, capacity = random_case(draw)
        earliest = draw.choice([0, 0, 3])
        longest = Application(steps=steps).longest(limit)
        best, latest = best_schedule(steps, busy, capacity, longest, earliest)
        fitted = fit(steps, Profile(busy), capacity, longest=longest, earliest=earliest)
        compacted = compact(steps, fitted, Profile(busy), capacity, longest=longest)
        for starts in (fitted, compacted):
            assert starts[0] >= earliest
            assert starts[-1] + steps[-1][0] == best
            assert_kept(steps, starts, busy, capacity, longest)
        assert compacted[0] == latest
        assert compacted == fitted or latest > fitted[0]
        num_gained += latest > fitted[0]
        num_held += best - fitted[0] > sum(duration for duration, _ in steps)
    assert (num_gained > 0) == (num_held > 0) == (limit != 1)


def assert_kept(
    steps: tuple[tuple[int, int], ...],
    starts: tuple[int, ...],
    busy: tuple[tuple[int, int], ...],
    capacity: int,
    longest: tuple[int, ...],
) -> None:
    """Check that steps are long enough and not too long, the last one exact, and that there is room for all (EVO-5)."""
    lengths = [after - before for before, after in pairwise((*starts, starts[-1] + steps[-1][0]))]
    for length, (duration, _), most in zip(lengths, steps, longest, strict=True):
        assert duration <= length <= most
    held = Profile(tuple((length, amount) for length, (_, amount) in zip(lengths, steps, strict=True))).delay(starts[0])
    assert follows(held, Profile(steps))
    assert (held + Profile(busy)).max(0, held.end) <= capacity


@pytest.mark.parametrize("limit", LIMITS)
def test_the_loop_is_the_paper_s_recursion(limit: int | None) -> None:
    """On 300 longer cases for each limit, to try no start twice changes no step (EVO-8)."""
    draw = Random(f"literally {limit}")
    for _ in range(300):
        capacity = draw.randint(3, 9)
        steps = tuple((draw.randint(1, 9), draw.randint(1, capacity)) for _ in range(draw.randint(1, 8)))
        busy = Profile(tuple((draw.randint(1, 9), draw.randint(0, capacity)) for _ in range(draw.randint(0, 40))))
        longest = Application(steps=steps).longest(limit)
        _, starts = fit_literally(steps, busy, capacity, longest, at=2)
        assert fit(steps, busy, capacity, longest=longest, earliest=2) == tuple(starts or ())


STEPS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4).map(tuple)
APPLICATIONS = st.lists(st.builds(Application, steps=STEPS, limit=st.sampled_from([1, 1.5, 2, None])), max_size=5)


@given(APPLICATIONS, st.sampled_from(VARIANTS))
def test_lists(applications: list[Application], variant: Variant) -> None:
    """In queue order each application is fitted beside those before it; all keep within 4 nodes, and never move
    (EVO-7).
    """
    tracks = list(schedule(applications, variant, busy=NOTHING, capacity=4))
    busy = NOTHING
    for application, track in zip(applications, tracks, strict=True):
        asked = Profile(application.steps)
        steps = application.steps
        if variant.is_rigid:
            asked = Profile(((sum(d for d, _ in steps), max(n for _, n in steps)),))
            best = best_schedule(asked.steps, busy.steps, 4, [asked.end])
        else:
            best = best_schedule(steps, busy.steps, 4, [min(most, 99) for most in application.longest(variant.limit)])
        assert track.steps[-1].end == best[0]
        assert follows(track.profile, asked)
        busy += track.profile
    assert max(dense(busy.steps, busy.end), default=0) <= 4
    first = list(schedule(applications[:2], variant, busy=NOTHING, capacity=4))
    assert first == tracks[:2]


@given(APPLICATIONS)
def test_expansion_and_evolution_are_never_worse_for_a_single_application(applications: list[Application]) -> None:
    """Beside the same others more freedom never ends later: rigid, none, twice, without limit."""
    busy = Profile(((2, 3), (4, 0), (6, 3), (2, 4)))
    for application in applications:
        ends = [ranges(name, [application], 4, busy)[0][1] for name in ("ep_rigid", "ep_nox", "ep_2x", "ep_infx")]
        assert ends == sorted(ends, reverse=True)
