"""The tiny instances: what is claimed by hand is confirmed by trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import Instance, Job
from cpsched.formats import instance_to_document
from cpsched.verify import verify
from tests.workloads.brute_force import Best, least_weighted_wait
from tests.workloads.tiny import TinyCase, shipped_cases


@pytest.mark.parametrize("case", shipped_cases(), ids=lambda case: case.instance.name)
def test_optimum_is_confirmed_by_brute_force(case: TinyCase) -> None:
    """No order and no choice of nodes gives less than the optimum claimed, and a plan with these starts has it."""
    best = least_weighted_wait(case.instance)
    assert best.value == pytest.approx(case.optimum, abs=1e-12)
    assert best.starts == case.starts
    assert {job: number for job, number in best.choices.items() if number} == case.alternatives


@pytest.mark.parametrize("case", shipped_cases(), ids=lambda case: case.instance.name)
def test_claimed_starts_have_the_claimed_value(case: TinyCase) -> None:
    """The optimum claimed is the weighted wait of the starts claimed, by the formula of the documents."""
    jobs = {job.id: job for job in case.instance.jobs}
    stretch = {job: jobs[job].choices[n].walltime - jobs[job].walltime for job, n in case.alternatives.items()}
    waits = [
        (start - jobs[job].submit + stretch.get(job, 0)) / case.instance.expected_wait(jobs[job])
        for job, start in case.starts.items()
    ]
    assert sum(waits) == pytest.approx(case.optimum, abs=1e-12)


@pytest.mark.parametrize("case", shipped_cases(), ids=lambda case: case.instance.name)
def test_best_plan_is_a_valid_plan(case: TinyCase) -> None:
    """The plan that brute force found passes the verifier, which computes the value for itself."""
    best = least_weighted_wait(case.instance)
    assert verify(instance_to_document(case.instance), plan_document(case.instance, best)) == ()


@pytest.mark.parametrize("case", shipped_cases(), ids=lambda case: case.instance.name)
def test_no_job_of_the_best_plan_can_start_a_second_earlier(case: TinyCase) -> None:
    """Moving any one job of the optimal plan forward by a second, on its nodes, breaks a rule."""
    best = least_weighted_wait(case.instance)
    for job, start in best.starts.items():
        moved = replace(best, starts={**best.starts, job: start - 1})
        assert verify(instance_to_document(case.instance), plan_document(case.instance, moved))


def plan_document(instance: Instance, best: Best) -> dict[str, Any]:
    """Write the plan as a document, with the value of its starts as its value and as its bound."""
    planned = [job for job in instance.jobs if job.id in best.starts]
    chosen = {job.id: job.choices[best.choices[job.id]] for job in planned}
    value = sum(
        (best.starts[job.id] - job.submit + chosen[job.id].walltime - job.walltime) / instance.expected_wait(job)
        for job in planned
    )
    suffered = sum((instance.earliest_start(job) - job.submit) / instance.expected_wait(job) for job in planned)
    missing = [job.id for job in instance.jobs if job.running is None and job.id not in best.starts]
    return {
        "format": "cpsched-plan/1",
        "instance": instance.name,
        "now": instance.now,
        "objective": {
            "name": "weighted_wait",
            "value": value,
            "bound": value,
            "gap": 0.0,
            "planner": value,
            "suffered": suffered,
        },
        "engine": {"name": "brute-force", "version": "1", "budget": 1.0, "elapsed": 1.0, "stopped": "optimal"},
        "jobs": [planned_job(job, best) for job in instance.jobs if job.id not in missing],
        "waiting_room": [
            {"id": job, "reason": "unsatisfiable", "detail": "fits nowhere on the idle cluster"} for job in missing
        ],
    }


def planned_job(job: Job, best: Best) -> dict[str, Any]:
    """Write one job of the plan: a running one as it runs, another one where the layout has it."""
    if job.running is not None:
        (segment,) = job.running.segments
        start, end = segment.start, segment.end
        allocation: list[dict[str, Any]] = [
            {"node": held.node, "resources": dict(held.resources)} for held in segment.allocation
        ]
    else:
        start, alternative = best.starts[job.id], best.choices[job.id]
        chosen = job.choices[alternative]
        end = start + chosen.walltime
        allocation = [
            {
                "node": node,
                "chunk": kind,
                "count": count,
                "resources": {name: count * amount for name, amount in chosen.request.chunks[kind].resources.items()},
            }
            for kind, nodes in enumerate(best.layouts[job.id])
            for node, count in Counter(nodes).items()
        ]
    segments = [{"start": start, "end": end, "allocation": allocation}]
    said = {"alternative": alternative} if job.running is None and job.alternatives else {}
    return {"id": job.id, "start": start, "end": end, "segments": segments, **said}
