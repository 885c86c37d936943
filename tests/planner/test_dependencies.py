"""Jobs that wait for others, planned: OCCS-49."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Dependency, DependencyType, Job, WaitingReason
from cpsched.planner import Planner, unsupported
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.literal_planner import plan_literally
from tests.planner.checked import places, solved, starts
from tests.portfolio.judged import assert_judged
from tests.sizes import examples

FOUR = nodes("n", cores=4)
TYPES = list(DependencyType)
ENDS = [kind for kind in TYPES if kind is not DependencyType.AFTER]


def after(name: str, kind: DependencyType = DependencyType.AFTEROK, delay: int = 0) -> tuple[Dependency, ...]:
    """Return the dependencies of a job."""
    return (Dependency(job=name, type=kind, delay=delay),)


def cores(job_id: str, amount: int, walltime: int, **options: Any) -> Job:
    """Return a job of a single chunk."""
    return waiting(job_id, walltime, chunk(cores=amount), **options)


# ---- minimal distances ----


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("kind", TYPES)
def test_the_four_types(kind: DependencyType, delay: int) -> None:
    """``after`` counts from the start of the other job, at 5, the others from its end, at 15; a delay is added."""
    jobs = [cores("late", 1, 7, priority=9, after=after("first", kind, delay)), cores("first", 1, 10, not_before=5)]
    begin = 5 if kind is DependencyType.AFTER else 15
    assert starts(window([FOUR], *jobs)) == {"first": 5, "late": begin + delay}


@pytest.mark.parametrize(("end", "ends"), [(20, 20), (3, 11)])
@pytest.mark.parametrize("delay", [0, 4])
def test_running_jobs_are_facts(end: int, ends: int, delay: int) -> None:
    """At second 10 a job that began at 0 lets go of those that wait for its start; its end is the planned one, or the
    next second if that has passed.
    """
    runs = running("r", end, n={"cores": 1})
    assert runs.running is not None
    (segment,) = runs.running.segments
    runs = replace(runs, running=replace(runs.running, segments=(replace(segment, end=ends),)))
    jobs = [cores(str(kind), 1, 5, after=after("r", kind, delay)) for kind in TYPES]
    found = starts(replace(window([FOUR], runs, *jobs), now=10))
    assert found == {"after": 10, **{str(kind): ends + delay for kind in ENDS}}


def test_a_delay_from_the_past_counts() -> None:
    """Second 10, 25 s after a start at 0: the job may start at 25."""
    jobs = [running("r", 99, n={"cores": 1}), cores("late", 1, 5, after=after("r", DependencyType.AFTER, 25))]
    assert starts(replace(window([FOUR], *jobs), now=10)) == {"late": 25}


def test_arrays_and_elements() -> None:
    """On one core: a job after an array waits for its last element, a job after an element for that one."""
    jobs = [
        cores("a", 1, 10, array=(1, 3, 4)),
        cores("one", 1, 1, after=after("a[1]"), priority=9),
        cores("all", 1, 1, after=after("a"), array=(0, 1), priority=9),
    ]
    expected = {"a[1]": 0, "one": 10, "a[3]": 11, "a[4]": 21, "all[0]": 31, "all[1]": 32}
    assert starts(window([nodes("n", cores=1)], *jobs)) == expected


def test_several_are_waited_for() -> None:
    """The last one decides: 4 s after the start of the long one is later than the end of the short one."""
    both = (*after("short"), *after("long", DependencyType.AFTER, 4))
    jobs = [cores("short", 2, 3), cores("long", 2, 30), cores("late", 1, 5, after=both)]
    instance = window([FOUR, nodes("m", cores=4)], *jobs)
    assert starts(instance) == {"short": 0, "long": 0, "late": 4}


def test_a_chain_longer_than_the_cluster() -> None:
    """Of 40 jobs in a row, in whatever order, each begins when the one before it ends, though four could run."""
    chain = [cores(f"c{n}", 1, 1 + n % 5, priority=n, after=after(f"c{n - 1}") if n else ()) for n in range(40)]
    expected, begin = {}, 0
    for job in chain:
        expected[job.id], begin = begin, begin + job.walltime
    instance = window([FOUR], *reversed(chain))
    assert starts(instance) == expected
    assert places(instance, solved(instance)) == plan_literally(instance)


def test_others_are_not_held_up() -> None:
    """While a job waits for its predecessor, those behind it in the queue run."""
    jobs = [cores("late", 4, 5, priority=9, after=after("slow")), cores("slow", 1, 50), cores("other", 3, 50)]
    assert starts(window([FOUR], *jobs)) == {"slow": 0, "late": 50, "other": 0}


# ---- who is planned first ----


def test_who_waits_with_a_deadline_does_not_lose_it_by_its_predecessor() -> None:
    """The predecessor goes before an important job, since the job that waits for it must end by 20."""
    jobs = [
        cores("important", 4, 50, priority=9),
        cores("due", 4, 10, deadline=20, after=after("first")),
        cores("first", 4, 10, priority=-9),
    ]
    assert starts(window([FOUR], *jobs)) == {"first": 0, "due": 10, "important": 20}


# ---- no start ----


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (cores("lost", 5, 10), WaitingReason.UNSATISFIABLE),
        (cores("lost", 1, 10, start_at=-1), WaitingReason.TOO_LATE),
        (cores("lost", 4, 10, deadline=12), WaitingReason.TOO_LATE),
        (waiting("lost", 10, chunk(2, cores=2), chunk(2, cores=1)), WaitingReason.NOT_MAPPED),
    ],
)
@pytest.mark.parametrize("kind", TYPES)
def test_who_waits_for_a_job_without_a_start_has_none(lost: Job, reason: WaitingReason, kind: DependencyType) -> None:
    """The reason names the jobs that it waits for, down a chain; a job beside it is planned."""
    jobs = [
        running("r", 5, n={"cores": 1}),
        cores("last", 1, 5, start_at=60, after=(*after("r"), *after("next", kind))),
        cores("next", 1, 5, after=after("lost", kind)),
        lost,
        cores("beside", 1, 5, after=after("r")),
    ]
    plan = solved(window([FOUR], *jobs))
    assert [(job.id, job.reason) for job in plan.waiting_room] == [
        ("last", WaitingReason.DEPENDENCY),
        ("next", WaitingReason.DEPENDENCY),
        ("lost", reason),
    ]
    assert [job.detail for job in plan.waiting_room[:2]] == [
        f"waits for next ({kind}), which has no start",
        f"waits for lost ({kind}), which has no start",
    ]


def test_a_reason_of_its_own_comes_first() -> None:
    """A job that could never run is told so, though it also waits for one that cannot."""
    jobs = [cores("lost", 5, 10), cores("large", 6, 10, after=after("lost"))]
    plan = solved(window([FOUR], *jobs))
    assert [(job.id, job.reason) for job in plan.waiting_room] == [
        ("lost", "unsatisfiable"),
        ("large", "unsatisfiable"),
    ]


def test_one_element_is_enough() -> None:
    """A job that waits for an array waits for the element that finds no start, and says which one it is."""
    jobs = [cores("a", 4, 10, array=(1, 2), deadline=15), cores("late", 1, 5, after=after("a"))]
    plan = solved(window([FOUR], *jobs))
    assert [job.id for job in plan.waiting_room] == ["a[2]", "late"]
    assert plan.waiting_room[1].detail == "waits for a[2] (afterok), which has no start"


def test_too_late_by_those_that_it_waits_for() -> None:
    """A fixed start, and a deadline, that the predecessor leaves no time for."""
    jobs = [
        cores("first", 1, 10),
        cores("fixed", 1, 5, start_at=9, after=after("first")),
        cores("just", 1, 5, start_at=10, after=after("first")),
        cores("due", 1, 5, deadline=14, after=after("first")),
    ]
    plan = solved(window([FOUR], *jobs))
    assert [(job.id, job.reason, job.detail) for job in plan.waiting_room] == [
        ("fixed", "too_late", "may start only at 9; those that it waits for leave it no start before 10"),
        ("due", "too_late", "no start leaves it 5 s before its deadline 14"),
    ]
    assert {job.id: job.start for job in plan.jobs} == {"first": 0, "just": 10}


# ---- cancelling and backfilling ----


def test_backfilling_keeps_the_distances() -> None:
    """When the first job leaves, a chain moves up as far as its own distances allow, its second part in a later pass.

    One core: x at 0 leaves; c is first in the order, but waits for b, and both follow a.
    """
    jobs = [
        cores("x", 1, 9, priority=9),
        cores("c", 1, 2, priority=8, after=after("b", DependencyType.AFTER, 6)),
        cores("b", 1, 3, priority=7, after=after("a", delay=1)),
        cores("a", 1, 4, priority=6),
    ]
    instance = window([nodes("n", cores=1)], *jobs)
    planner = Planner(instance)
    planner.plan()
    assert {job.id: job.start for job in planner.outcome().jobs} == {"x": 0, "a": 9, "b": 14, "c": 20}
    assert planner.cancel("x") == 3
    assert {job.id: job.start for job in planner.outcome().jobs} == {"a": 0, "b": 5, "c": 11}
    assert planner.backfill() == 0
    assert_judged(replace(instance, jobs=tuple(jobs[1:])), planner.outcome())


def test_who_waits_for_a_cancelled_job_loses_its_place() -> None:
    """With it go all that wait for it, by whatever type, and others move up; a second predecessor does not help."""
    jobs = [
        cores("a", 1, 10),
        cores("b", 4, 10, after=after("a", DependencyType.AFTERANY)),
        cores("c", 4, 10, after=(*after("b"), *after("d"))),
        cores("d", 4, 10),
    ]
    instance = window([FOUR], *jobs)
    planner = Planner(instance)
    planner.plan()
    assert_judged(instance, planner.outcome())
    assert planner.cancel("a") == 1
    outcome = planner.outcome()
    assert [(job.id, job.start) for job in outcome.jobs] == [("d", 0)]
    assert [(job.id, job.reason, job.detail) for job in outcome.waiting_room] == [
        ("b", "dependency", "waits for a (afterany), which has no start"),
        ("c", "dependency", "waits for b (afterok), which has no start"),
    ]
    assert planner.backfill() == 0
    assert planner.cancel("d") == 0


# ---- many ----


def test_an_array_of_thousands_waits_for_another_one() -> None:
    """Of 3,000 elements of 2 s on 4 cores the last ends at 1,500; 3,000 others of 1 s start after all of them, and one
    more job after all of these: nine million pairs of jobs, of which none is spelt out.
    """
    many = tuple(range(3000))
    jobs = (
        cores("z", 4, 1, after=after("b")),
        cores("b", 1, 1, array=many, after=after("a", delay=5)),
        cores("a", 1, 2, array=many),
    )
    instance = window([FOUR], *jobs)
    assert unsupported(instance) == ()
    planner = Planner(instance)
    planner.plan()
    outcome = planner.outcome()
    assert_judged(instance, outcome)
    found = {job.id: job.start for job in outcome.jobs}
    assert (found["a[2999]"], found["b[0]"], found["b[2999]"], found["z"]) == (1498, 1505, 2254, 2255)
    planner.cancel("a[7]")
    assert {job.id.partition("[")[0] for job in planner.outcome().jobs} == {"a"}
    assert len(planner.outcome().jobs) == 2999


@examples(25)
@given(st.integers(1, 4), st.lists(st.integers(1, 6), min_size=1, max_size=12), st.data())
def test_unit_jobs_with_room_are_a_longest_path(width: int, times: list[int], data: st.DataObject) -> None:
    """Where there is a core for each job, each starts at the end of the longest path of lags that leads to it."""
    kinds = st.sampled_from(TYPES)
    jobs: list[Job] = []
    expected: dict[str, int] = {}
    for number, walltime in enumerate(times):
        others = data.draw(st.lists(st.tuples(st.integers(0, 11), kinds, st.integers(0, 3)), max_size=width))
        links = tuple(link for n, kind, delay in others if n < number for link in after(f"j{n}", kind, delay))
        jobs.append(cores(f"j{number}", 1, walltime, priority=number, after=links))
        moments = [
            expected[link.job] + link.delay + (0 if link.type is DependencyType.AFTER else times[int(link.job[1:])])
            for link in links
        ]
        expected[f"j{number}"] = max([0, *moments])
    assert starts(window([nodes("n", cores=len(times))], *jobs)) == expected
