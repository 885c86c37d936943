"""Load over time, against an example and a twin that looks at each second."""

from __future__ import annotations

from hypothesis import given

from cpsched.metrics import Ending, Runs, load_over_time
from tests.metrics.made_runs import Row, many_rows, runs_of


def load_at(rows: list[Row], second: int) -> tuple[int, int, int]:
    """Count the cores held, the jobs that wait and the core-seconds they ask for, in one second."""
    used = sum(row.cores for row in rows if row.start <= second < row.end)
    queued = [
        row
        for row in rows
        if row.ending is not Ending.REFUSED
        and row.submit <= second
        and ((row.ending is Ending.WAITING and row.start < 0) or second < row.start)
    ]
    return used, len(queued), sum(row.cores * row.walltime for row in queued)


def by_second(runs: Runs, seconds: range) -> list[tuple[int, int, int]]:
    """Read the step functions second by second."""
    steps = load_over_time(runs)
    listed = list(zip(steps.time, steps.used_cores, steps.queue_length, steps.queued_core_seconds, strict=True))
    found: list[tuple[int, int, int]] = []
    for second in seconds:
        before = [(int(cores), int(length), int(queued)) for time, cores, length, queued in listed if time <= second]
        found.append(before[-1] if before else (0, 0, 0))
    return found


@given(many_rows)
def test_steps_are_the_load_of_each_second(rows: list[Row]) -> None:
    """In each second the step functions have what the jobs hold and ask for, and each of their times is a change."""
    seconds = range(-1, 45)
    runs = runs_of(*rows)
    assert by_second(runs, seconds) == [load_at(rows, second) for second in seconds]
    levels = [(0, 0, 0), *(load_at(rows, second) for second in seconds)]
    changes = [second for second, before, now in zip(seconds, levels, levels[1:], strict=False) if before != now]
    assert load_over_time(runs).time.tolist() == changes


def test_an_example_by_hand() -> None:
    """Job 0 runs at once, job 1 waits for it; nothing changes where one ends as the next starts but the queue."""
    steps = load_over_time(runs_of(Row(0, 0, 10, cores=4), Row(2, 10, 15, cores=4, walltime=50)))
    assert steps.time.tolist() == [0, 2, 10, 15]
    assert steps.used_cores.tolist() == [4, 4, 4, 0]
    assert steps.queue_length.tolist() == [0, 1, 0, 0]
    assert steps.queued_core_seconds.tolist() == [0, 200, 0, 0]


def test_nothing_changes_without_jobs() -> None:
    """No jobs, no steps."""
    assert len(load_over_time(runs_of()).time) == 0
