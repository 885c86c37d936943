"""Simulations of jobs whose chunks are within one group of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.errors import DocumentError, UnsupportedError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.lab.policies import make_scheduler
from cpsched.metrics import Ending
from cpsched.verify import Judge, verify
from tests.problem.test_topology import job, window
from tests.sim.played import played


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "maui", "slurm", "planner"])
def test_simulations_keep_jobs_in_groups(policy: str) -> None:
    """Whatever rule starts a job, the judge finds it in its groups in the record, and none is left."""
    instance = window(
        *(
            job(f"j{number}", f"{chunks}:ncpus={1 + number % 2},place={place}", 10 + number) | {"submit": 3 * number}
            for number, (chunks, place) in enumerate(
                [
                    *((1, "within=switch"), (2, "within=rack"), (3, "within=switch"), (3, "spread=1:within=switch")),
                    *((2, "within=switch"), (4, "segment=2:within=switch"), (2, "spread=1:within=rack")),
                    *((6, "scatter:segment=2:within=switch"),),
                ]
                * 2
            )
        )
    )
    assert len(played(instance, make_scheduler(policy)).record().jobs) == 16


@pytest.mark.parametrize(("cost", "start"), [(0, 0), (4, 4), (30, 20)])
@pytest.mark.parametrize("policy", ["first_fit", "easy", "smith", "planner"])
def test_a_preference_waits_for_its_seconds(policy: str, cost: int, start: int) -> None:
    """n7 and n8 are free, and n3 and n4 are so at 20, under one switch. By rules a goes anywhere after `cost` seconds,
    when nothing else happens; the planner knows at once that it will.
    """
    held = [{"node": f"n{number}", "resources": {"cores": 2}} for number in range(1, 7)]
    busy = job("r", "6:ncpus=2", 20, runtime=20, running={"start": 0, "allocation": held})
    near = {"level": "switch", "cost": cost}
    history = played(window(busy, job("a", "2:ncpus=2", place="scatter", prefer=near)), make_scheduler(policy))
    (found,) = (one for one in history.record().jobs if one.id == "a")
    assert (found.start, found.alternative) == (0 if policy == "planner" and cost < 20 else start, int(cost < 20))


def test_jobs_across_switches_are_slower() -> None:
    """Of two switches of two nodes and one of three, a has two, b one of each of two, c all nodes. b takes 20 % longer,
    and c is killed at its walltime. The judge says so of each job that ends at another second.
    """
    jobs = [
        job("a", "2:ncpus=2,place=scatter:within=switch", 20, runtime=10),
        job("b", "2:ncpus=2,place=scatter", 20, runtime=11),
        job("c", "8:ncpus=2", 12, runtime=11) | {"submit": 1},
    ]
    held = [{"node": node, "resources": {"cores": 2}} for node in ("n3", "n5", "n7", "n8")]
    jobs.append(job("r", "4:ncpus=2", 14, runtime=14, running={"start": 0, "allocation": held}))
    document = instance_to_document(window(*jobs))
    document["cluster"]["slowdown"] = {"switch": 20, "rack": 10}
    instance = parse_instance(document)
    assert parse_instance(instance_to_document(instance)) == instance
    history = played(instance, make_scheduler("fcfs"))
    assert {one.id: one.end - one.start for one in history.record().jobs} == {"a": 10, "b": 14, "c": 12, "r": 14}
    assert [one for one, ending in zip("abcr", history.runs.ending, strict=True) if ending == Ending.KILLED] == ["c"]
    record = plan_to_document(history.record())
    for name in ("a", "b"):
        late = {**record, "jobs": [later(one) if one["id"] == name else one for one in record["jobs"]]}
        assert ("walltime", name) in {(one.rule, one.subject) for one in verify(document, late)}


def later(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job of a record that takes a second longer."""
    (segment,) = job["segments"]
    return job | {"end": job["end"] + 1, "segments": [segment | {"end": segment["end"] + 1}]}


def test_what_slows_down_nothing_is_refused() -> None:
    """An undeclared level is a fault for both readers; jobs that change or may be stopped are refused by name."""
    stoppable = job("a", "1:ncpus=1", preemptible={"by": "requeue"})
    document = instance_to_document(window(stoppable))
    document["cluster"]["slowdown"] = {"switch": 5}
    with pytest.raises(UnsupportedError, match=r"job a: .*cluster\.slowdown"):
        played(parse_instance(document), make_scheduler("fcfs"))
    document["cluster"]["slowdown"] = {"isle": 5}
    for read in (parse_instance, Judge):
        with pytest.raises(DocumentError, match=r"cluster\.slowdown\.isle"):
            read(document)
