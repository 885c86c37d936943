"""Changes that are suggested let the job start, and no larger number would: asked again of the verifier."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from cpsched.answers import Answers, Change, ChangeKind
from cpsched.domain import Amounts, Instance, Job
from tests.answers.judged import could_start, planned
from tests.oracle.random_instances import instances
from tests.sizes import examples


@examples(40)
@given(instances())
def test_numbers_are_the_largest_that_help(instance: Instance) -> None:
    """With the number the job could start when it is said, before its planned start; with one more it could not."""
    plan = planned(instance)
    answers = Answers(instance, plan)
    for job in instance.elements():
        if job.running is not None or len(job.request.chunks) > 1:
            continue
        explanation = answers.explain(job.id)
        if explanation.start is None:
            continue
        for change in explanation.changes:
            assert change.start < explanation.start
            changed = with_number(job, change, 0)
            if changed is None:
                continue
            assert could_start(exchanged(instance, changed), plan, job.id, change.start)
            larger = with_number(job, change, 1)
            if larger is not None and larger != job:
                assert not could_start(exchanged(instance, larger), plan, job.id, change.start)


def with_number(job: Job, change: Change, more: int) -> Job | None:
    """Return a job with the number of a change, and some more; None: the change is none of a number."""
    if change.amount is None:
        return None
    number = change.amount + more
    step = job.steps[0]
    chunk = step.request.chunks[0]
    if change.kind is ChangeKind.WALLTIME:
        return replace(job, steps=(replace(step, walltime=number),))
    if change.kind is ChangeKind.LICENSE:
        (name,) = job.licenses
        return replace(job, licenses=Amounts({name: number} if number else {}))
    if change.kind is ChangeKind.CHUNKS:
        chunk = replace(chunk, count=number)
    else:
        chunk = replace(chunk, resources=Amounts({**chunk.resources, "cores": number}))
    return replace(job, steps=(replace(step, request=replace(step.request, chunks=(chunk,))),))


def exchanged(instance: Instance, changed: Job) -> Instance:
    """Return an instance with another job in place of the one of its id."""
    return replace(
        instance,
        jobs=tuple(replace(changed if job.id == changed.id else job, after=()) for job in instance.elements()),
    )
