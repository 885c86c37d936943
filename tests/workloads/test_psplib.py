"""Projects of PSPLIB as windows."""

from __future__ import annotations

from itertools import permutations, product
from random import Random

import pytest

from cpsched.domain import Dependency, DependencyType, ObjectiveTerm
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.portfolio import solve
from tests.workloads.psplib import lags_window, project_window

#: Source 1, activities 2 to 6, a milestone 7 in the middle, sink 8; 2 and 3 cannot run together, nor 4 and 5.
PROJECT = """\
************************************************************************
file with basedata            : by hand
************************************************************************
projects                      :  1
jobs (incl. supersource/sink ):  8
horizon                       :  30
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
************************************************************************
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      6      0       12       26       12
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           7
   3        1          2           7   6
   4        1          1           8
   5        1          1           8
   6        1          1           8
   7        1          2           4   5
   8        1          0        \n\
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     3       2    0
  3      1     4       2    1
  4      1     5       0    2
  5      1     2       1    1
  6      1     9       1    0
  7      1     0       0    0
  8      1     0       0    0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  R 2
    3    2
************************************************************************
"""


#: The same with a nonrenewable resource: 5 uses up 6 of it, or 3 if it takes longer; 6 has two modes that are the same.
MODES = (
    PROJECT.replace("nonrenewable              :  0", "nonrenewable              :  1")
    .replace("   5        1 ", "   5        2 ")
    .replace("   6        1 ", "   6        2 ")
    .replace("       0    0\n", "       0    0    0\n")
    .replace("  2      1     3       2    0", "  2      1     3       2    0    0")
    .replace("  3      1     4       2    1", "  3      1     4       2    1    2")
    .replace("  4      1     5       0    2", "  4      1     5       0    2    0")
    .replace("  5      1     2       1    1", "  5      1     2       1    1    6\n         2     3       1    1    3")
    .replace("  6      1     9       1    0", "  6      1     9       1    0    0\n         2     9       1    0    0")
    .replace("    3    2\n", "    3    2    5\n")
)


def after(*numbers: int) -> tuple[Dependency, ...]:
    """Return the dependencies on some activities."""
    return tuple(Dependency(job=str(number), type=DependencyType.AFTEROK) for number in numbers)


def test_a_project_becomes_a_window() -> None:
    """Activities are jobs of one core, resources are licences, precedences go through what takes no time."""
    instance = project_window(PROJECT, "by-hand")
    assert {job.id: (job.walltime, dict(job.licenses), job.after) for job in instance.jobs} == {
        "2": (3, {"R1": 2}, ()),
        "3": (4, {"R1": 2, "R2": 1}, ()),
        "4": (5, {"R2": 2}, after(2, 3)),
        "5": (2, {"R1": 1, "R2": 1}, after(2, 3)),
        "6": (9, {"R1": 1}, after(3)),
    }
    assert instance.cluster.licenses == {"R1": 3, "R2": 2}
    assert instance.cluster.totals == {"cores": 5}
    assert instance.objective.weights == {ObjectiveTerm.MAKESPAN: 1.0}
    assert parse_instance(instance_to_document(instance)) == instance


def test_the_planner_and_the_optimum() -> None:
    """With 3 first the project takes 4 + max(9, 3 + 5 + 2) = 14 s, with 2 first 3 + 4 + 9 = 16 s.

    4 and 5 take 3 of the 2 R2 together; whichever of them is first, the other follows.
    """
    instance = project_window(PROJECT, "by-hand")
    assert solve(instance, engine="planner").objective.value == 16
    assert solve(instance, engine="cp", budget=30).objective.value == 14


def test_modes_are_alternatives_and_what_is_used_up_does_not_come_back() -> None:
    """Each mode has its own licences; the planner takes the one of which there is enough."""
    instance = project_window(MODES, "modes")
    assert instance.cluster.consumed == ("N1",)
    (five,) = (job for job in instance.jobs if job.id == "5")
    assert [(one.walltime, dict(one.licenses)) for one in five.choices] == [
        (2, {"R1": 1, "R2": 1, "N1": 6}),
        (3, {"R1": 1, "R2": 1, "N1": 3}),
    ]
    assert not any(job.alternatives for job in instance.jobs if job.id != "5")
    assert parse_instance(instance_to_document(instance)) == instance
    plan = solve(instance, engine="planner")
    assert {job.id: job.alternative for job in plan.jobs if job.alternative} == {"5": 1}
    assert not plan.waiting_room


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nonrenewable              :  0", "nonrenewable              :  2", "Expected 4 resources, got 2"),
        ("doubly constrained        :  0", "doubly constrained        :  1", "line 10: Expected no resources of both"),
        (
            "  5      1     2       1    1",
            "  5      1     0       1    1",
            "activity 5: Expected a duration in each mode",
        ),
        (
            "   3        1          2 ",
            "   3        0          2 ",
            "activity 3: Expected a mode and 2 successors, got 0",
        ),
        (
            "   3        1          2 ",
            "   3        1          3 ",
            "activity 3: Expected a mode and 3 successors, got 1",
        ),
        ("2           7   6", "2           7   9", "activity 9: Expected a row with its duration, got none"),
        ("  5      1     2       1    1", "  5      1     2       1", "activity 5: Expected 2 demands, got 1"),
        ("  5      1     2       1    1", "  5      1", "line 34: Expected 3 numbers or more, got '5      1'"),
        ("    3    2\n", "", "Expected a part 'RESOURCEAVAILABILITIES' with rows of numbers, got none"),
    ],
)
def test_what_is_no_project_is_refused(old: str, new: str, message: str) -> None:
    """The error names the file, the place, and what was expected."""
    assert old in PROJECT
    with pytest.raises(DocumentError) as caught:
        project_window(PROJECT.replace(old, new), "by-hand")
    assert str(caught.value).startswith("by-hand: 1 fault\n")
    assert message in str(caught.value)


#: Three activities of which 1 and 2 cannot run together; 3 starts at least 2 after the start of 1, and at most 4.
LAGS = """\
3\t1\t0\t0
0\t1\t2\t1\t2\t[0]\t[0]
1\t1\t2\t3\t4\t[2]\t[3]
2\t1\t1\t4\t[5]
3\t1\t2\t1\t4\t[-4]\t[1]
4\t1\t0
0\t1\t0\t0
1\t1\t3\t2
2\t1\t5\t2
3\t1\t1\t3
4\t1\t0\t0
3
"""


def test_time_lags_are_dependencies_from_start_to_start() -> None:
    """A negative lag back is the most that one may start after the other; source and sink are no jobs."""
    window = lags_window(LAGS, "lags")
    first, second, third = window.jobs
    assert [first.after, second.after] == [(), ()]
    assert third.after == (
        Dependency(job="1", type=DependencyType.AFTER, delay=2),
        Dependency(job="1", type=DependencyType.AFTER, max_delay=4),
    )
    assert (first.walltime, dict(first.licenses), dict(window.cluster.licenses)) == (3, {"R1": 2}, {"R1": 3})
    assert parse_instance(instance_to_document(window)).jobs == window.jobs
    plan = solve(window, engine="cp", budget=60)
    start = {job.id: job.start for job in plan.jobs}
    assert 2 <= start["3"] - start["1"] <= 4
    assert (plan.objective.value, plan.engine.stopped) == (9, "optimal")


def test_a_file_of_time_lags_that_ends_too_soon_is_refused() -> None:
    """A row without its activity is no project."""
    with pytest.raises(DocumentError, match="Expected 12 rows for 3 activities, got 11"):
        lags_window(LAGS.replace("1\t1\t3\t2\n", ""), "lags")


def test_where_jobs_may_start_before_and_after_each_other_the_best_plan_is_the_same() -> None:
    """Windows of random projects have plans as short as the best of all starts that keep the lags."""
    random, found = Random(1), []
    for number in range(20):
        count, lags = 4, {}
        durations = [random.randint(1, 3) for _ in range(count)]
        for one, other in permutations(range(count), 2):
            if random.random() < 0.4:
                lags[one, other] = random.choice([-4, -3, -2, -1, 0, 0, 1, 2])
        value = _best_of_all(durations, lags)
        plan = _planned(durations, lags, f"random-{number}")
        assert plan == value, (durations, lags)
        found.append(value)
    assert {value is None for value in found} == {True, False}


def _planned(durations: list[int], lags: dict[tuple[int, int], int], name: str) -> int | None:
    """Return the makespan of the best plan of all activities, see `_best_of_all`; None without one."""
    count = len(durations)
    text = [f"{count} 1 0 0"]
    for number in range(count + 2):
        of = {1 + other: lag for (one, other), lag in lags.items() if 1 + one == number}
        words = [number, 1, len(of), *of, *(f"[{lag}]" for lag in of.values())]
        text.append(" ".join(map(str, words)))
    text += ["0 1 0 0", *(f"{1 + one} 1 {seconds} {1 + one % 2}" for one, seconds in enumerate(durations))]
    text += [f"{1 + count} 1 0 0", "2"]
    try:
        window = lags_window("\n".join(text), name)
    except DocumentError:  # lags that contradict each other
        return None
    plan = solve(window, engine="cp", budget=20)
    if plan.waiting_room:
        return None
    start = {job.id: job.start for job in plan.jobs}
    assert all(start[f"{1 + other}"] - start[f"{1 + one}"] >= lag for (one, other), lag in lags.items())
    return round(plan.objective.value)


def _best_of_all(durations: list[int], lags: dict[tuple[int, int], int]) -> int | None:
    """Return the least makespan of all starts that keep the lags and the two units, of which every other job takes
    one, and the rest both.
    """
    horizon, best = 3 * len(durations) + 4, None
    needs = [1 + one % 2 for one in range(len(durations))]
    for starts in product(range(horizon), repeat=len(durations)):
        value = max(start + seconds for start, seconds in zip(starts, durations, strict=True))
        if best is not None and value >= best:
            continue
        if any(starts[other] - starts[one] < lag for (one, other), lag in lags.items()):
            continue
        used = [0] * value
        for start, seconds, need in zip(starts, durations, needs, strict=True):
            for second in range(start, start + seconds):
                used[second] += need
        if max(used) <= 2:
            best = value
    return best
