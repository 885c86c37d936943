"""What a simulation tells of where jobs ran."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from cpsched.domain import FrozenMap, Instance, MaxWait, Outage, Queue
from cpsched.lab.sim import BackfillRule, QueueRule, simulate
from cpsched.metrics import runs_summary
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_workloads import rules, workloads


def numbers_in(ranges: str) -> list[int]:
    """Return the numbers of ``0-3 7``."""
    spans = [part.split("-") for part in ranges.split()]
    return [number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]


@given(workloads(), rules())
def test_allocations_are_those_of_the_record(workload: Instance, rule: QueueRule) -> None:
    """Each job has the nodes that the record says, by their numbers, folded as far as possible."""
    history = simulate(workload, rule)
    names = workload.cluster.node_names
    recorded = {
        job.id: {names.index(placement.node) for placement in job.segments[-1].allocation}
        for job in history.record().jobs
    }
    for job, ranges in zip(history.runs.ids, history.allocations(), strict=True):
        numbers = numbers_in(ranges)
        assert numbers == sorted(recorded.get(job, set()))
        gaps = sum(after > before + 1 for before, after in pairwise(numbers))
        assert len(ranges.split()) == gaps + bool(numbers)


@given(workloads(), rules())
def test_first_starts_and_losses_are_those_of_the_record(workload: Instance, rule: QueueRule) -> None:
    """A job starts first with its first attempt, and has lost the seconds of all that were cut short."""
    history = simulate(workload, rule)
    record, runs = history.record(), history.runs
    for place, job in enumerate(runs.ids):
        cut = [attempt for attempt in record.attempts if attempt.id == job]
        started = [run.start for run in (*cut, *record.jobs) if run.id == job]
        assert runs.first_start[place] == min(started, default=-1)
        assert runs.lost[place] == sum(attempt.end - attempt.start for attempt in cut)


def test_worked_example_of_what_was_asked_lost_and_overdue() -> None:
    """Three jobs of 2 GPUs on a node of 4, which fails in 5-10: a and b lose 5 s of 2 cores, and c starts at 20, 10 s
    after it is overdue; those who were in time with their first start are not.
    """
    queues = FrozenMap({"q": Queue(expected_wait=10, max_wait=MaxWait(seconds=7))})
    jobs = [waiting(name, 10, chunk(2, cores=1, gpus=1), queue="q", submit=3 * (name == "c")) for name in "abc"]
    instance = window(
        [nodes("n", cores=4, gpus=8)],
        *jobs,
        licenses={"lic": 1},
        queues=queues,
        outages=(Outage(nodes=("n",), start=5, end=10),),
    )
    runs = simulate(instance, QueueRule(name="fcfs", backfill=BackfillRule.NOBODY)).runs
    assert runs.start.tolist() == [10, 10, 20]
    assert {name: amounts.tolist() for name, amounts in runs.asked.items()} == {
        "cores": [2, 2, 2],
        "gpus": [2, 2, 2],
        "lic": [0, 0, 0],
    }
    summary = runs_summary(runs, 4, resources={"gpus": 8, "lic": 1})
    assert (summary.total.lost_core_seconds, summary.total.overdue) == (2 * 5 + 2 * 5, 1)
    assert [(use.name, use.allocated) for use in summary.by_resource] == [("gpus", 60 / (8 * 30)), ("lic", 0.0)]
