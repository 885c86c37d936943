"""What a simulation tells of where jobs ran."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from cpsched.domain import Instance
from cpsched.sim import QueueRule, simulate
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
