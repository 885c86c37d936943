"""The figures of a simulation, against worked examples and a twin of plain loops."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from statistics import fmean, median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.metrics import Distribution, Ending, Figures, Group, RunsSummary, overtaken, runs_summary
from tests.metrics.made_runs import Row, many_rows, runs_of


def spread(values: list[float]) -> Distribution | None:
    """Work out a distribution in plain Python; the percentile is that of Hyndman and Fan's seventh definition."""
    if not values:
        return None
    ordered = sorted(values)
    place = 0.95 * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return Distribution(
        mean=fmean(ordered),
        median=median(ordered),
        p95=below + (above - below) * (place - math.floor(place)),
        max=ordered[-1],
    )


def literal_figures(rows: list[Row], jobs: list[int], capacity: int) -> Figures:
    """Work out the figures of some of the jobs, one by one."""
    chosen = [rows[job] for job in jobs]
    over = [row for row in chosen if row.is_over]
    waits = [row.start - row.submit for row in over]
    responses = [row.end - row.submit for row in over]
    behind = [max(0, row.start - row.submit - row.expected_wait) for row in over]
    statics = [row.walltime if row.runtime < 0 else min(row.runtime, row.walltime) for row in over]
    horizon = max(max(row.submit, row.start, row.end) for row in rows)
    delayed = overtaken(runs_of(*rows))
    free_at, in_turn = Fraction(0), Fraction(0)
    for row in sorted(rows, key=lambda row: row.submit):
        free_at = max(free_at, Fraction(row.submit))
        in_turn = max(in_turn, free_at - row.submit)
        free_at += Fraction(row.cores * (row.end - row.start), capacity) if row.is_over else 0
    longest = 2 * in_turn + max(row.walltime for row in rows)
    judged = [bool(delayed[job]) for job in jobs if rows[job].ending is not Ending.REFUSED]
    return Figures(
        jobs=len(chosen),
        completed=sum(row.ending is Ending.COMPLETED for row in chosen),
        killed=sum(row.ending is Ending.KILLED for row in chosen),
        refused=sum(row.ending is Ending.REFUSED for row in chosen),
        waiting=sum(row.ending is Ending.WAITING for row in chosen),
        restarts=sum(row.attempts - 1 for row in chosen if row.attempts),
        core_seconds=sum(row.cores * (row.end - row.start) for row in chosen),
        lost_core_seconds=sum(row.cores * row.lost for row in chosen),
        wait=spread([float(wait) for wait in waits]),
        response=spread([float(response) for response in responses]),
        slowdown=spread(
            [response / max(1, row.end - row.start) for row, response in zip(over, responses, strict=True)]
        ),
        bounded_slowdown=spread(
            [max(1, response / max(10, row.end - row.start)) for row, response in zip(over, responses, strict=True)]
        ),
        static_slowdown=spread(
            [response / max(1, seconds) for response, seconds in zip(responses, statics, strict=True)]
        ),
        wqt=sum(wait / row.expected_wait for wait, row in zip(waits, over, strict=True)),
        late=sum(seconds > 0 for seconds in behind),
        tardiness=sum(behind),
        weighted_tardiness=sum(seconds / row.expected_wait for seconds, row in zip(behind, over, strict=True)),
        overdue=sum(
            (horizon if row.first_start < 0 else row.first_start) - row.submit > row.max_wait
            for row in chosen
            if row.max_wait >= 0 and row.ending is not Ending.REFUSED
        ),
        starved=sum(
            (row.start if row.start >= 0 else horizon) - row.submit > longest
            for row in chosen
            if row.ending is not Ending.REFUSED
        ),
        unfairly_delayed=fmean(judged) if judged else None,
    )


def assert_alike(found: object, expected: object) -> None:
    """Assert that two trees of dataclasses, lists and numbers are equal up to rounding."""
    if hasattr(expected, "__dataclass_fields__"):
        for name in expected.__dataclass_fields__:
            assert_alike(getattr(found, name), getattr(expected, name))
    else:
        assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def literal_groups(rows: list[Row], jobs: list[int], capacity: int, keys: list[str | None]) -> list[Group]:
    """Work out the figures per key."""
    ordered = sorted({keys[job] for job in jobs}, key=lambda key: (key is None, key or ""))
    return [
        Group(key=key, figures=literal_figures(rows, [job for job in jobs if keys[job] == key], capacity))
        for key in ordered
    ]


@given(many_rows)
def test_figures_are_those_of_plain_loops(rows: list[Row]) -> None:
    """All jobs, and those of each queue and user, fare as loops over the jobs say."""
    found = runs_summary(runs_of(*rows), 10)
    jobs = list(range(len(rows)))
    assert_alike(found.total, literal_figures(rows, jobs, 10))
    for groups, keys in ((found.by_queue, [row.queue for row in rows]), (found.by_user, [row.user for row in rows])):
        expected = literal_groups(rows, jobs, 10, keys)
        assert [group.key for group in groups] == [group.key for group in expected]
        for group, literal in zip(groups, expected, strict=True):
            assert_alike(group.figures, literal.figures)


@given(many_rows, st.sampled_from((0.0, 0.1, 0.25, 0.4)), st.sampled_from((0.0, 0.1, 0.25, 0.5)))
def test_the_machine_is_measured_over_the_jobs_that_count(rows: list[Row], warm_up: float, cool_down: float) -> None:
    """Utilisation and queue are those of the seconds between the first arrival that counts and the first that is cut
    off, of all jobs; how jobs fare is that of the jobs that count.
    """
    in_order = sorted(range(len(rows)), key=lambda job: rows[job].submit)
    first, last = int(len(rows) * warm_up), len(rows) - int(len(rows) * cool_down)
    jobs = sorted(in_order[first:last])
    begin = rows[in_order[first]].submit
    end = rows[in_order[last]].submit if last < len(rows) else max(max(row.submit, row.end, row.start) for row in rows)
    seconds = range(begin, end)
    queued = [
        sum(
            row.submit <= second and ((row.ending is Ending.WAITING and row.start < 0) or second < row.start)
            for row in rows
            if row.ending is not Ending.REFUSED
        )
        for second in seconds
    ]
    held = sum(row.cores * (row.start <= second < row.end) for row in rows for second in seconds)
    useful = sum(
        row.cores * (row.start <= second < row.end)
        for row in rows
        if row.ending is Ending.COMPLETED
        for second in seconds
    )
    found = runs_summary(
        runs_of(*rows), 100, resources={"gpus": 40, "cores": 100}, warm_up=warm_up, cool_down=cool_down
    )
    assert (found.begin, found.end, found.cut) == (begin, end, len(rows) - len(jobs))
    assert found.allocated == pytest.approx(held / (100 * len(seconds)) if seconds else 0.0)
    assert found.effective == pytest.approx(useful / (100 * len(seconds)) if seconds else 0.0)
    gpus = [
        sum(row.gpus * (row.start <= second < row.end) for row in chosen for second in seconds)
        for chosen in (rows, [row for row in rows if row.ending is Ending.COMPLETED])
    ]
    assert [(use.name, use.capacity, use.allocated, use.effective) for use in found.by_resource] == [
        ("gpus", 40, *(pytest.approx(held / (40 * len(seconds)) if seconds else 0.0) for held in gpus)),
        ("cores", 100, found.allocated, found.effective),
    ]
    assert found.mean_queue_length == pytest.approx(fmean(queued) if queued else 0.0)
    assert found.max_queue_length == max(queued, default=0)
    assert_alike(found.total, literal_figures(rows, jobs, 100))


def test_worked_example_of_the_paper() -> None:
    """Waits of 600, 30000 and 90000 s where 1800, 21600 and 86400 are expected (BRIDI-19)."""
    waits = {"debug": (600, 1800), "parallel": (30000, 21600), "longpar": (90000, 86400)}
    rows = [Row(0, wait, wait + 100, queue=queue, expected_wait=expected) for queue, (wait, expected) in waits.items()]
    summary = runs_summary(runs_of(*rows), 10, decision_seconds=[0.1, 0.3, 0.2])
    total = summary.total
    assert total.wqt == pytest.approx(0.333 + 1.389 + 1.042, abs=0.001)
    assert (total.late, total.tardiness) == (2, 8400 + 3600)
    assert total.weighted_tardiness == pytest.approx(0.4306, abs=0.0001)
    assert summary.decisions is not None
    assert (summary.decisions.count, summary.decisions.p50) == (3, 0.2)
    assert summary.decisions.mean == pytest.approx(0.2)  # AO
    assert summary.decisions.p99 == pytest.approx(0.298)
    assert [group.key for group in summary.by_queue] == ["debug", "longpar", "parallel"]


def test_slowdown_is_measured_against_the_unstretched_runtime() -> None:
    """A job of 100 s that was stretched to 200 s and waited 100 s is slowed down by 300/100, not by 300/200 (SD-12)."""
    summary = runs_summary(runs_of(Row(0, 100, 300, walltime=120, runtime=100)), 1)
    assert summary.total.static_slowdown is not None
    assert summary.total.static_slowdown.mean == 3.0
    assert summary.total.slowdown is not None
    assert summary.total.slowdown.mean == 1.5
    assert summary.makespan == 300


def test_short_jobs_are_bounded() -> None:
    """A job of 1 s that waited 9 s has slowdown 10, and 1 where it counts as a job of 10 s."""
    total = runs_summary(runs_of(Row(0, 9, 10)), 1).total
    assert total.slowdown is not None
    assert total.slowdown.max == 10.0
    assert total.bounded_slowdown is not None
    assert total.bounded_slowdown.max == 1.0


def test_killed_jobs_hold_but_achieve_nothing() -> None:
    """On 4 cores for 100 s, 2 that complete and 1 that is killed: allocated 3/4, effective 2/4 (EVO-12)."""
    rows = (Row(0, 0, 100, cores=2), Row(0, 0, 100, cores=1, ending=Ending.KILLED))
    summary = runs_summary(runs_of(*rows), 4)
    assert (summary.allocated, summary.effective) == (0.75, 0.5)


def test_classes_go_by_run_time_and_nodes() -> None:
    """A job that runs for 4 h on 64 nodes is in the first class, one of a second or a node more in the next; what a job
    runs is what it would at full share, and one that never ran is in none (SD-14).
    """
    hours = [Row(0, 0, 9, walltime=10**6, runtime=seconds) for seconds in (14400, 14401, 43200, 43201, 86400, 86401)]
    cut, unknown, waiting = Row(0, 0, 9, walltime=5, runtime=10**6), Row(0, 0, 9, walltime=50_000), Row(0)
    rows = [*hours, cut, unknown, waiting._replace(ending=Ending.WAITING)]
    nodes = np.array([64, 65, 512, 513, 1024, 1025, 1, 2, 0])
    groups = runs_summary(replace(runs_of(*rows), nodes=nodes), 10**6).by_class
    assert [(group.key, group.figures.jobs) for group in groups] == [
        ("up to 4 h, up to 64 nodes", 2),
        ("up to 12 h, up to 512 nodes", 2),
        ("up to 24 h, up to 64 nodes", 1),
        ("up to 24 h, up to 1024 nodes", 2),
        ("more than 24 h, more than 1024 nodes", 1),
    ]


def test_days_begin_with_the_first_submission_that_counts() -> None:
    """A job of the last second of a day is of that day, one of the next second of the next; empty days have none."""
    rows = [Row(at, at, at + 9) for at in (100, 86499, 86500, 700 * 86400)]
    groups = runs_summary(runs_of(*rows), 4).by_day
    assert [(group.key, group.figures.jobs) for group in groups] == [("day 1", 2), ("day 2", 1), ("day 700", 1)]
    assert not runs_summary(runs_of(), 4).by_day


def test_size_classes_end_at_powers_of_eight() -> None:
    """Classes are 1, 2-8, 9-64, 65-512 and so on, and only those that have jobs are listed."""
    rows = [Row(0, 0, 9, cores=cores) for cores in (8, 1, 2, 65, 512, 4097)]
    groups = runs_summary(runs_of(*rows), 4).by_size
    assert [(group.key, group.figures.jobs) for group in groups] == [
        ("1", 1),
        ("2-8", 2),
        ("65-512", 2),
        ("4097-32768", 1),
    ]


def test_fairness_is_over_the_means_of_named_users() -> None:
    """Users whose mean bounded slowdowns are 1 and 3 give 16/20; a job without user, however slow, is nobody's."""
    rows = (Row(0, 0, 10, user="ada"), Row(0, 20, 30, user="bob"), Row(0, 900, 910))
    summary = runs_summary(runs_of(*rows), 1)
    assert summary.jain == pytest.approx(0.8)
    assert [group.key for group in summary.by_user] == ["ada", "bob", None]
    assert runs_summary(runs_of(rows[2]), 1).jain is None


def test_who_waits_for_far_longer_than_in_turn_starves() -> None:
    """In turn the third job would wait for 20 s: more than 50 s, with the longest walltime of 10 s, is starvation."""
    rows = [Row(0, 0, 10, cores=4, walltime=10), Row(0, 10, 20, cores=4, walltime=10)]
    for start, starved in ((50, 0), (51, 1)):
        late = Row(0, start, start + 10, cores=1, walltime=10)
        assert runs_summary(runs_of(*rows, late), 4).total.starved == starved


def test_nothing_that_is_over_has_no_figures() -> None:
    """Where all wait or were refused there are counts, and None where a value would be made up; also without jobs."""
    rows = (Row(0, ending=Ending.WAITING, attempts=0), Row(5, ending=Ending.REFUSED, attempts=0))
    summary = runs_summary(runs_of(*rows), 1)
    assert (summary.total.jobs, summary.total.waiting, summary.total.refused) == (2, 1, 1)
    assert (summary.total.wait, summary.jain, summary.decisions) == (None, None, None)
    assert (summary.makespan, summary.allocated, summary.max_queue_length) == (0, 0.0, 1)
    assert runs_summary(runs_of(), 1, warm_up=0.1).total.jobs == 0


@given(many_rows)
def test_the_document_is_json_and_has_it_all(rows: list[Row]) -> None:
    """The figures survive JSON, with no value that JSON does not know."""
    summary = runs_summary(runs_of(*rows), 10, decision_seconds=[0.5])
    document = json.loads(json.dumps(summary.as_document(), allow_nan=False))
    assert set(document) == set(RunsSummary.__dataclass_fields__)
    assert document["total"]["jobs"] == len(rows)
    assert [group["key"] for group in document["by_user"]] == [group.key for group in summary.by_user]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 0}, "capacity > 0, got 0"),
        ({"capacity": 1, "warm_up": -0.1}, "got -0.1 and 0.0"),
        ({"capacity": 1, "warm_up": 0.5, "cool_down": 0.5}, "sum below 1, got 0.5 and 0.5"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], message: str) -> None:
    """A machine has cores, and what is cut off leaves something."""
    with pytest.raises(ValueError, match=message):
        runs_summary(runs_of(Row(0, 1, 2)), **arguments)  # type: ignore[arg-type]  # wrong on purpose
