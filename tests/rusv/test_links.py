"""Milestones between jobs, against the pairs of jobs that they stand for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.rusv import (
    FOREVER,
    NOWHERE,
    Countdown,
    JobTable,
    Links,
    ahead,
    behind,
    links_of,
    raise_earliest,
    relaxed,
)
from tests.rusv.linked_pairs import distances

JOBS = 7

#: (job, seconds) of the jobs before a milestone, which are all below some job, and of those after it.
Drawn = tuple[list[tuple[int, int]], list[tuple[int, int]]]


@st.composite
def milestones(draw: st.DrawFn) -> list[Drawn]:
    """Draw milestones of jobs that wait only for jobs with smaller numbers."""
    drawn = []
    for border in draw(st.lists(st.integers(1, JOBS - 1), max_size=4)):
        before, after = (
            draw(st.lists(st.tuples(st.integers(*jobs), st.integers(0, 5)), min_size=1, max_size=4))
            for jobs in ((0, border - 1), (border, JOBS - 1))
        )
        drawn.append((before, after))
    return drawn


def made(drawn: Iterable[Drawn]) -> Links:
    """Return the links of milestones."""
    return with_longest(drawn, ())


def spelt_out(drawn: Iterable[Drawn]) -> list[tuple[int, int, int]]:
    """Return (job, job for which it waits, seconds between their starts), pair by pair."""
    return sorted(
        (job, other, seconds + delay) for before, after in drawn for other, seconds in before for job, delay in after
    )


@given(milestones())
def test_milestones_are_pairs(drawn: list[Drawn]) -> None:
    """All that are before a milestone are waited for by all after it; seconds and delay add up."""
    assert distances(made(drawn)) == spelt_out(drawn)


def test_an_array_after_an_array_is_kept_once_for_each_element() -> None:
    """A thousand jobs that wait for a thousand others are two thousand entries, and not a million."""
    thousand = np.arange(1000)
    before, after = (np.stack([0 * thousand, jobs, 0 * thousand], axis=1) for jobs in (thousand, 1000 + thousand))
    links = links_of(2000, before, after)
    assert sum(len(array) for array in links[1::2]) == 4000  # both ends of each entry
    assert (len(links.before_of), len(links.after_of)) == (2, 2)


@pytest.mark.kernels
@given(milestones(), st.lists(st.integers(-1, 30), min_size=JOBS, max_size=JOBS))
def test_the_window_of_a_job_is_that_of_its_pairs(drawn: list[Drawn], starts: list[int]) -> None:
    """The first start that all before a job leave it, and the last that all planned ones behind it leave it."""
    table = JobTable([(0, 2, 40, 1)] * JOBS, made(drawn))
    table.starts[:] = [NOWHERE if start < 0 else start for start in starts]
    for job in range(JOBS):
        before = [(starts[other], lag) for one, other, lag in spelt_out(drawn) if one == job]
        after = [(starts[one], lag) for one, other, lag in spelt_out(drawn) if other == job]
        earliest = FOREVER if any(start < 0 for start, _ in before) else max([2, *(s + lag for s, lag in before)])
        assert table.window(job) == (earliest, min([40, *(s - lag for s, lag in after if s >= 0)]))


#: Whether the second of a pair follows the first within some seconds: (job, later job, seconds).
LONGEST = st.lists(
    st.tuples(st.integers(0, JOBS - 2), st.integers(1, JOBS - 1), st.integers(0, 9)).filter(lambda one: one[0] < one[1])
)


@pytest.mark.kernels
@given(milestones(), LONGEST, st.lists(st.integers(-1, 30), min_size=JOBS, max_size=JOBS))
def test_longest_delays_bound_both_jobs(
    drawn: list[Drawn], longest: list[tuple[int, int, int]], starts: list[int]
) -> None:
    """They narrow the window of milestones alone; where one is broken, the job that is followed has to start later."""
    plain, links = made(drawn), with_longest(drawn, longest)
    assert all(np.array_equal(*pair) for pair in zip(relaxed(links), plain, strict=True))
    table, alone = JobTable([(0, 2, 40, 1)] * JOBS, links), JobTable([(0, 2, 40, 1)] * JOBS, plain)
    table.starts[:] = alone.starts[:] = [NOWHERE if start < 0 else start for start in starts]
    raised = np.zeros(JOBS, dtype=np.int64)
    assert raise_earliest(links, table.starts, raised) == bool(raised.any())
    for job in range(JOBS):
        behind_it = [starts[after] - most for one, after, most in longest if one == job and starts[after] >= 0]
        before_it = [starts[one] + most for one, after, most in longest if after == job and starts[one] >= 0]
        first, last = alone.window(job)
        if first < FOREVER:
            assert table.window(job) == (max([first, *behind_it]), min([last, *before_it]))
        late = [least for least in behind_it if least > table.starts[job]]
        assert raised[job] == max([0, *late])


def with_longest(drawn: Iterable[Drawn], longest: Iterable[tuple[int, int, int]]) -> Links:
    """Return the links of milestones and of longest delays."""
    soon = np.array([(after, one, most) for one, after, most in longest], dtype=np.int64).reshape(-1, 3)
    rows = [[(number, *entry) for number, parts in enumerate(drawn) for entry in parts[side]] for side in (0, 1)]
    before, after = (np.array(of_side, dtype=np.int64).reshape(-1, 3) for of_side in rows)
    return links_of(JOBS, before, after, soon)


@given(milestones(), st.sets(st.integers(0, JOBS - 1)))
def test_jobs_behind_and_ahead(drawn: list[Drawn], jobs: set[int]) -> None:
    """From some jobs to all that wait for them, and to all for which they wait, each once."""
    for find, known, new in ((behind, 1, 0), (ahead, 0, 1)):
        reached = set(jobs)
        for _ in range(JOBS):
            reached |= {pair[new] for pair in spelt_out(drawn) if pair[known] in reached}
        found = find(made(drawn), sorted(jobs))
        assert len(found) == len(set(found))
        assert set(found) == reached


@given(milestones(), st.sets(st.integers(0, JOBS - 1)), st.permutations(range(JOBS)))
def test_a_job_is_free_when_all_before_it_have_passed(drawn: list[Drawn], left: set[int], order: list[int]) -> None:
    """Jobs that are not left do not count; each is named once, when the last of those before it passes."""
    countdown, links = Countdown(made(drawn), left), spelt_out(drawn)

    def is_free(job: int) -> bool:
        return not any(other in left for one, other, _ in links if one == job)

    assert [countdown.is_over(job) for job in range(JOBS)] == [is_free(job) for job in range(JOBS)]
    of_all, named = Countdown(made(drawn)), Countdown(made(drawn), range(JOBS))
    assert [(of_all.is_over(job), of_all.passed(job)) for job in order] == [
        (named.is_over(job), named.passed(job)) for job in order
    ]
    for job in order:
        if job in left:
            were_free = {one for one in range(JOBS) if is_free(one)}
            left.remove(job)
            freed = countdown.passed(job)
            assert sorted(freed) == sorted({one for one in range(JOBS) if is_free(one)} - were_free)
            assert [countdown.is_over(one) for one in range(JOBS)] == [is_free(one) for one in range(JOBS)]
