"""Small windows that CP-SAT proves, and the starts that it has to look at for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from random import Random

import pytest

from cpsched.cp.encoding import encode
from cpsched.cp.messages import BetterPlan, Counted, Done, Reply, Verdict
from cpsched.cp.solver import solve
from cpsched.cp.tight_starts import _sums
from cpsched.domain import FrozenMap, Instance, Objective, ObjectiveTerm, PlannedJob
from cpsched.formats import read_instance
from cpsched.metrics import objective_value
from tests.cp.fixed_plans import encoding_of, instance_of
from tests.cp.test_model import ALL, optimum_of, plan_of, request_for
from tests.sizes import seeds

#: Windows that stood unproven, and their optimum.
PROVEN = {
    "cp-12-jobs-4-nodes": 43 / 12,
    "evolving-unproven-1": 27.0,
    "evolving-unproven-2": 15 / 1800,
    "evolving-unproven-3": 13 / 1800,
}
#: Deterministic seconds in which they are proven from the planner's plan; on one core that is less than 20 s.
ENOUGH = 8.0


@pytest.mark.parametrize("name", PROVEN)
def test_windows_that_stood_unproven_are_proven(name: str, repository: Path) -> None:
    """From the planner's plan one worker finds the optimum and proves it, and the proof is one of the window."""
    instance = read_instance(repository / "tests" / "cases" / f"{name}.json")
    plan = plan_of(instance)
    encoding = encoding_of(instance, plan)
    replies: list[Reply] = []
    solve(replace(request_for(encoding, plan), deterministic_time=ENOUGH), replies.append)
    assert encoding.has_all_plans
    assert replies[-1] == Done(Verdict.OPTIMAL)
    best, bound = optimum_of(instance, plan)
    assert objective_value(instance, best) == pytest.approx(PROVEN[name])
    assert bound == pytest.approx(PROVEN[name])


def test_a_model_that_was_not_begun_proves_no_number_of_jobs() -> None:
    """CP-SAT says 0 for the most jobs of a model for which there was no time: no reply says less than is known."""
    jobs: list[dict[str, object]] = [
        {"id": f"j{number}", "request": "ncpus=3", "walltime": 10 + number, "deadline": 200 + number}
        for number in range(60)
    ]
    instance = instance_of([{"names": "n[1-8]", "resources": {"cores": 4}}], jobs)
    plan = [job for job in plan_of(instance) if job.id != "j7"]
    encoding = encode(instance, plan, {"j7"})
    replies: list[Reply] = []
    solve(replace(request_for(encoding, plan), deterministic_time=1e-9, hint=None), replies.append)
    numbers = [reply.most for reply in replies if isinstance(reply, Counted)]
    assert numbers
    assert min(numbers) > len(plan)


def test_elements_without_a_start_keep_all_that_wait_for_their_array_from_one() -> None:
    """Three elements of 10 s on one core have time until 25, and two of the next array need all of them to have ended:
    no plan has more than two jobs, and that is proven; with time until 30 all five have a start.
    """
    for deadline, most in ((25, 2), (30, 5)):
        jobs: list[dict[str, object]] = [
            {"id": "a", "request": "ncpus=1", "walltime": 10, "array": {"indices": "0-2"}, "deadline": deadline},
            {"id": "b", "request": "ncpus=1", "walltime": 5, "array": {"indices": "0-1"},
             "after": [{"job": "a", "type": "afterok"}]},
        ]  # fmt: skip
        instance = instance_of([{"names": "n", "resources": {"cores": 1}}], jobs)
        encoding = encode(instance, [], {job.id for job in instance.elements()})
        replies: list[Reply] = []
        solve(replace(request_for(encoding, []), deterministic_time=ENOUGH, hint=None), replies.append)
        assert min(reply.most for reply in replies if isinstance(reply, Counted)) == most


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(300))
def test_some_optimal_plan_has_tight_starts(seed: int) -> None:
    """With all seconds to choose from, no plan is better than the best one that starts when something ends."""
    instance = _random_window(Random(seed))
    plan = plan_of(instance)
    params = replace(ALL, has_tight_starts=False)
    tight, _ = optimum_of(instance, plan)
    free, _ = optimum_of(instance, plan, params)
    assert objective_value(instance, tight) == pytest.approx(objective_value(instance, free), rel=1e-9, abs=1e-9)


def _random_window(random: Random) -> Instance:
    """Return a window of rigid and malleable jobs beside running ones, with all that can fix a start."""
    unit = random.choice([1, 4])

    def seconds(most: int) -> int:
        return unit * random.randint(1, most)

    jobs: list[dict[str, object]] = []
    for number in range(random.randint(0, 2)):
        held = {"start": 0, "allocation": [{"node": f"n{number + 1}", "resources": {"cores": random.randint(1, 4)}}]}
        jobs.append({"id": f"r{number}", "request": "ncpus=1", "walltime": seconds(9), "running": held})
    for number in range(random.randint(2, 5)):
        request = f"{random.randint(1, 2)}:ncpus={random.randint(1, 4)}" + random.choice(["", "", ",abaqus=1"])
        entry: dict[str, object] = {"id": f"w{number}", "request": request, "walltime": seconds(8)}
        if random.random() < 0.2:
            entry["not_before"] = random.randint(0, 12)
        if random.random() < 0.1:
            entry["start_at"] = random.randint(0, 12)
        if random.random() < 0.2:
            entry["malleable"] = {"shares": [0.5]}
        if number and random.random() < 0.3:
            kind = random.choice(["after", "afterok"])
            entry["after"] = [{"job": f"w{number - 1}", "type": kind, "delay": random.randint(0, 5)}]
        jobs.append(entry)
    weights = {random.choice(["weighted_wait", "wait", "slowdown", "completion", "tardiness"]): 1.0}
    if random.random() < 0.3:
        weights["makespan"] = 0.5
    nodes = [{"names": "n[1-2]", "resources": {"cores": 4}}, {"names": "m", "resources": {"cores": 3}}]
    queues = {"hasty": {"expected_wait": 5}, "patient": {"expected_wait": 40}}
    for job in jobs:
        job["queue"] = random.choice(list(queues))
    return instance_of(nodes, jobs, licenses={"abaqus": 1}, queues=queues, objective=weights)


@pytest.mark.parametrize("seed", seeds(100))
def test_sums_are_all_sums(seed: int) -> None:
    """The bits are a base and at most one step of each job: the same as trying all of them."""
    random = Random(seed)
    bases = [random.randint(0, 30) for _ in range(random.randint(1, 3))]
    steps = [{random.randint(1, 30) for _ in range(random.randint(1, 2))} for _ in range(random.randint(0, 5))]
    chosen = chain.from_iterable(combinations(steps, count) for count in range(len(steps) + 1))
    expected = {total for of_jobs in chosen for total in _totals(bases, of_jobs) if total <= 60}
    bits = _sums(bases, steps, 60)
    assert {number for number in range(bits.bit_length()) if bits >> number & 1} == expected


def _totals(bases: Sequence[int], steps: Sequence[set[int]]) -> set[int]:
    totals = set(bases)
    for of_job in steps:
        totals = {total + step for total in totals for step in of_job}
    return totals


def _starts(instance: Instance, plan: Sequence[PlannedJob]) -> set[int]:
    pieces = encode(instance, plan).tight_starts
    assert pieces is not None
    return {second for first, last in pieces for second in range(first, last + 1)}


def test_tight_starts_of_three_jobs() -> None:
    """Jobs of 3, 4 and 5 s start at a sum of some of these; one that is known to start at 6 may do so."""
    entries = [
        {"id": name, "request": "ncpus=4", "walltime": seconds} for name, seconds in (("a", 3), ("b", 4), ("c", 5))
    ]
    instance = instance_of([{"names": "n", "resources": {"cores": 4}}], entries)
    plan = plan_of(instance)
    assert _starts(instance, plan) == {0, 3, 4, 5, 7, 8, 9, 12}
    late = [plan[0], *(replace(one, start=one.start + 7, end=one.end + 7) for one in plan[1:])]
    assert _starts(instance, late) - _starts(instance, plan) == {one.start for one in late} - {7, 8, 9, 12, 0}


def test_any_start_may_be_needed_where_late_is_cheap() -> None:
    """An objective that pays for delay needs all seconds."""
    entries = [{"id": name, "request": "ncpus=4", "walltime": 3} for name in "ab"]
    instance = instance_of([{"names": "n", "resources": {"cores": 4}}], entries)
    plan = plan_of(instance)
    assert encode(instance, plan).tight_starts is not None
    paid = replace(instance, objective=Objective(weights=FrozenMap({ObjectiveTerm.WAIT: -1.0})))
    assert encode(paid, plan).tight_starts is None


def test_many_seconds_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond some pieces all later seconds are allowed, and the optimum is still found."""
    entries = [{"id": str(seconds), "request": "ncpus=4", "walltime": seconds} for seconds in (3, 5, 11, 23)]
    instance = instance_of([{"names": "n", "resources": {"cores": 4}}], entries)
    plan = plan_of(instance)
    monkeypatch.setattr("cpsched.cp.tight_starts._MOST_PIECES", 4)
    encoding = encode(instance, plan)
    assert encoding.tight_starts is not None
    assert encoding.tight_starts[-1] == (8, encoding.horizon)
    best, _ = optimum_of(instance, plan)
    assert [one.start for one in best] == [0, 3, 8, 19]


def test_solutions_start_tight() -> None:
    """Every solution that the solver tells of has its starts among the tight ones."""
    windows = (_random_window(Random(seed)) for seed in range(7, 99))
    instance = next(window for window in windows if not any(job.malleability is not None for job in window.jobs))
    plan = plan_of(instance)
    encoding = encoding_of(instance, plan)
    replies: list[Reply] = []
    solve(request_for(encoding, plan), replies.append)
    found = [reply for reply in replies if isinstance(reply, BetterPlan)]
    assert found
    assert {one.start for reply in found for one in reply.placed} <= _starts(instance, plan)
