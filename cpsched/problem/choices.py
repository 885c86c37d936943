"""Jobs with a choice under rules: each choice is compiled as a job of its own, and a plan has one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby, islice
from typing import Any

from cpsched.domain import Amounts, Job
from cpsched.problem.rule import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledJob(Job):
    """A job as engines have it, of which more is known than a document says."""

    #: The walltime that it asks for itself, where it has to run by one of its alternatives.
    usual: int | None = None
    #: The job with all its choices and what it consumes, where one is made for it (`settling.py`), which comes first.
    whole: Job | None = None

    @property
    def own_walltime(self) -> int:
        """The walltime by its own request."""
        return self.walltime if self.usual is None else self.usual


def given(job: Job, number: int) -> Job:
    """Return a job that has to run by one of its choices."""
    chosen = job.choices[number]
    return _compiled(chosen, usual=job.walltime) if number else chosen


def with_choices(chosen: Job, job: Job, number: int) -> Job:
    """Return a job that runs by one of its choices, of which it is known what others it has."""
    order = (number, *(other for other in range(1 + len(job.alternatives)) if other != number))
    steps = [job.choices[other].steps[0] for other in order]
    licenses = tuple(map(job.licenses_of, order))
    whole = job
    if number:
        whole = _compiled(
            job,
            steps=(steps[0],),
            alternatives=tuple(steps[1:]),
            licenses=licenses[0],
            licenses_of_choices=licenses,
            usual=job.walltime,
        )
    return _compiled(chosen, whole=whole)


def with_licenses(job: Job, of_choices: Sequence[Amounts]) -> Job:
    """Return a job each of whose choices takes these licences."""
    if not job.alternatives:
        return job if job.licenses == of_choices[0] else replace(job, licenses=of_choices[0])
    return _compiled(job, licenses=of_choices[0], licenses_of_choices=tuple(of_choices))


def _compiled(job: Job, **more: Any) -> CompiledJob:
    """Return a job as engines have it, in which some fields have other values."""
    return CompiledJob(**({one.name: getattr(job, one.name) for one in fields(job)} | more))


def apart(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs with the choices of each in its place, which have ids of their own (`Choice`)."""
    return tuple(one for job in jobs for one in choices_apart(job))


def choices_apart(job: Job) -> tuple[Job, ...]:
    """Return the choices of a job under ids of their own; a job without a choice is its only one."""
    if not job.alternatives:
        return (job,)
    return tuple(replace(one, id=Choice(job.id, number)) for number, one in enumerate(job.choices))


def together(jobs: Sequence[Job], compiled: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs, as they are stated, of which each choice has been compiled (`apart`)."""
    left = iter(compiled)
    return tuple(_put_together(job, tuple(islice(left, 1 + len(job.alternatives)))) for job in jobs)


def _put_together(job: Job, choices: Sequence[Job]) -> Job:
    """Return a job whose choices are these; what these have in common is the job's."""
    first = choices[0]
    if len(choices) == 1:
        return first
    ends = [one.deadline for one in choices]
    return _compiled(
        job,
        steps=first.steps,
        alternatives=tuple(one.steps[0] for one in choices[1:]),
        licenses=first.licenses,
        licenses_of_choices=tuple(one.licenses for one in choices),
        not_before=first.not_before,
        deadline=None if None in ends else max(end for end in ends if end is not None),
        reservation=first.reservation,
    )


def at_most(jobs: Sequence[Job], amount: Callable[[Job], int]) -> int:
    """Return the sum of what jobs have, of each of them the most that it has in any of its choices (`apart`)."""
    return sum(max(map(amount, choices)) for _, choices in groupby(jobs, key=lambda job: str(job.id)))
