"""The jobs of a window: running, refused, and admitted ones; and the outcome of each on a ledger."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cpsched.booking import Ledger
from cpsched.domain import RULES, FrozenMap, Instance, Job, PlannedJob, WaitingJob, WaitingReason, needs_migration
from cpsched.engine import Outcome
from cpsched.errors import UnsupportedError
from cpsched.problem import Refusal, level_rule, levels_of, missing_from, refusals, waits

#: Why a job is left out that has to start within some time of another one.
HURRIED = "no start was found at most max_delay after another job"


def uncompiled(instance: Instance) -> tuple[str, ...]:
    """Return the rules of an instance that was not made for engines, each with its path: no engine knows rules."""
    return tuple(
        f"{key}: {what}, which engines know only as `cpsched.problem.compiled` has them"
        for key, what in RULES.items()
        if getattr(instance, key)
    ) + tuple(
        f"cluster.topology.{level}: a level, by which engines know nodes only as `cpsched.problem.compiled` has them"
        for level in levels_of(instance)
        if not any(level_rule(level) in one.properties for one in instance.cluster.classes)
    )


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that the planner cannot honour, each with its path."""
    waiting = [job for job in instance.jobs if job.running is None]
    return (
        *uncompiled(instance),
        *(
            f"job {job.id}: cannot keep its nodes from step to step: {moves}"
            for job in waiting
            if (moves := needs_migration(job.steps)) is not None
        ),
    )


def hurried(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that engines cannot honour which know no longest delays."""
    late = (job for job in instance.jobs if job.is_hurried and job.running is None)
    return tuple(f"job {job.id}: starts at most some time after another (max_delay)" for job in late)


def within_groups(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that engines cannot honour which know no groups of nodes."""
    return tuple(f"job {job.id}: within one {level}" for job in instance.jobs for level in sorted(job.levels))


def changing(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that engines for rigid waiting jobs cannot honour."""
    return tuple(
        f"job {job.id}: evolves over several steps" for job in instance.jobs if job.is_evolving and job.running is None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionResult:
    """All jobs of an instance, told apart before anything is booked."""

    #: Running and waiting ones, arrays by their elements, in document order.
    jobs: tuple[Job, ...]
    #: The waiting jobs that can never start, dependencies ignored, by id.
    refused: FrozenMap[str, Refusal]

    @classmethod
    def of(cls, instance: Instance, *, engine: str, is_shrunk: bool = True) -> "AdmissionResult":
        """Separate the jobs of an instance, for an engine that plans them on a ledger.

        Raises `UnsupportedError` if the instance asks for something that a ledger cannot honour yet.

        `is_shrunk`: whether it starts malleable jobs on a share of their cores.
        """
        if features := unsupported(instance):
            raise UnsupportedError(engine, features)
        jobs = instance.elements()
        return cls(jobs=jobs, refused=FrozenMap(refusals(instance, is_shrunk=is_shrunk)))

    @property
    def admitted(self) -> tuple[Job, ...]:
        """The waiting jobs that may be booked, in document order."""
        return tuple(job for job in self.jobs if job.running is None and job.id not in self.refused)

    def without(self, job_id: str) -> "AdmissionResult":
        """Return the admission without one of its jobs."""
        return replace(self, jobs=tuple(job for job in self.jobs if job.id != job_id))

    def outcome(self, ledger: Ledger) -> Outcome:
        """Return the outcome of all jobs in document order; `ledger` has the admitted jobs."""
        planned: list[PlannedJob] = []
        left: list[Job] = []
        for job in self.jobs:
            if job.running is not None:
                planned.append(ledger.running.planned(job.id))
            elif job.id not in self.refused and (placed := ledger.planned(job.id)) is not None:
                planned.append(placed)
            else:
                left.append(job)
        return Outcome(jobs=tuple(planned), waiting_room=tuple(without_start(ledger, left, self.refused)))


def without_start(ledger: Ledger, jobs: Sequence[Job], refused: Mapping[str, Refusal]) -> Iterator[WaitingJob]:
    """Yield jobs that have no start on a ledger, each with its reason, with why some can never start."""
    instance, running = ledger.instance, (job.id for job in ledger.instance.jobs if job.running is not None)
    if any(job.id not in refused for job in jobs):
        missing = missing_from(instance, {*running, *(job.id for job in ledger.jobs if ledger.is_booked(job.id))})
    for job in jobs:
        if job.id in refused:
            reason, detail = refused[job.id]
            yield WaitingJob(id=job.id, reason=reason, detail=detail)
            continue
        detail = "each kind of its chunks finds room by itself, but no way was found to place all of them at a time"
        found = waits(instance, job, missing, detail)
        too_late = found.reason is WaitingReason.TOO_LATE
        yield replace(found, detail=_too_late(ledger, job)) if too_late else found


def _too_late(ledger: Ledger, job: Job) -> str:
    """Return which of a job's times left it no start on a ledger."""
    if ledger.instance.latest_start(job) is None:
        return HURRIED
    earliest = ledger.earliest_start(job.id)
    if job.start_at is not None and earliest is not None and job.start_at < earliest:
        return f"may start only at {job.start_at}; those that it waits for leave it no start before {earliest}"
    if job.start_at is not None:
        return f"its nodes are not free for {job.walltime} s at {job.start_at}, the only start it accepts"
    if job.deadline is not None:
        return f"no start leaves it {job.walltime} s before its deadline {job.deadline}"
    limit = ledger.instance.must_start_by(job)
    return f"finds no start by {limit}, when it has waited for the max_wait of its queue {job.queue}"
