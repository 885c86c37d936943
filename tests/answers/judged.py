"""Could a job start at a second? Asked of the verifier, which shares no code with the answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cpsched.domain import FrozenMap, Instance, Plan, WaitingJob, WaitingReason
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.portfolio import solve
from cpsched.verify import verify
from tests.verify.openings import openings_of

__all__ = ["could_start", "planned"]


def planned(instance: Instance) -> Plan:
    """Return the planner's plan, with which the judge finds no fault."""
    plan = solve(instance, engine="planner", budget=0)
    violations = verify(instance_to_document(instance), plan_to_document(plan))
    assert not violations, "\n".join(map(str, violations))
    return plan


def could_start(instance: Instance, plan: Plan, job_id: str, second: int, without: Collection[str] = ()) -> bool:
    """Tell whether the oracle of openings finds nodes for a job at a second, beside a plan without some other jobs.

    What the job's own times and its dependencies say is not asked.
    """
    jobs = []
    for job in instance.elements():
        if job.id == job_id:
            jobs.append(
                replace(
                    job,
                    submit=min(job.submit, second),
                    start_at=second,
                    not_before=None,
                    deadline=None,
                    after=(),
                )
            )
        elif job.id not in without:
            jobs.append(replace(job, after=(), not_before=None, deadline=None, start_at=None))
    left = replace(
        plan,
        jobs=tuple(job for job in plan.jobs if job.id not in without and job.id != job_id),
        waiting_room=(WaitingJob(id=job_id, reason=WaitingReason.TOO_LATE, detail="asked about"),),
    )
    queues = FrozenMap({name: replace(queue, max_wait=None) for name, queue in instance.queues.items()})
    asked = replace(instance, jobs=tuple(jobs), queues=queues)
    return bool(openings_of(instance_to_document(asked), plan_to_document(left)))
