"""The RUSV planner: planning, mapping, booking, backfilling and replanning of rigid jobs (OpenCCS, Keller 2017)."""

from __future__ import annotations

from cpsched.booking import Ledger, Mapping, refusal
from cpsched.domain import (
    Instance,
    Job,
    Plan,
    PlannedJob,
    WaitingJob,
    WaitingReason,
)
from cpsched.engine import Budget, Outcome, Progress
from cpsched.errors import UnsupportedError
from cpsched.planner.queue import planning_order
from cpsched.planner.support import unsupported

__all__ = ["Planner", "PlannerEngine"]


class Planner:
    """Plans the waiting jobs of one instance, each as early as possible without moving anyone before it; mutable.

    Raises
    ------
    UnsupportedError
        If the instance asks for something that cannot be honoured yet.
    """

    def __init__(self, instance: Instance, mapping: Mapping | None = None) -> None:
        features = unsupported(instance)
        if features:
            raise UnsupportedError(PlannerEngine.name, features)
        self.instance = instance
        self._elements = instance.elements()
        waiting = tuple(job for job in self._elements if job.running is None)
        self._refused: dict[str, tuple[WaitingReason, str]] = {}
        verdicts: dict[object, tuple[WaitingReason, str] | None] = {}
        for job in waiting:
            verdict = self._verdict(job, verdicts)
            if verdict is not None:
                self._refused[job.id] = verdict
        admitted = tuple(job for job in waiting if job.id not in self._refused)
        self._order = [job.id for job in planning_order(instance, admitted)]
        self.ledger = Ledger(instance, admitted, mapping)

    def _verdict(
        self, job: Job, known: dict[object, tuple[WaitingReason, str] | None]
    ) -> tuple[WaitingReason, str] | None:
        """Return why a job can never start, asked once for all jobs that ask for the same."""
        times = (job.submit, job.not_before, job.start_at, job.deadline) if job.start_at or job.deadline else None
        key = (job.steps, job.licenses, job.queue, times)
        if key not in known:
            known[key] = refusal(self.instance, job)
        return known[key]

    def plan(self, progress: Progress | None = None) -> None:
        """Plan all waiting jobs in their order."""
        self.ledger.plan(self._order, progress)

    def backfill(self) -> int:
        """Move jobs to earlier starts until no job can move (OCCS-34); return how many moves there were."""
        moves = 0
        while moved := self.ledger.backfill(self._order):
            moves += moved
        return moves

    def cancel(self, job_id: str) -> int:
        """Take a waiting job out of the plan, and let the others move up; return how many moves there were."""
        self.ledger.release(job_id)
        self._order.remove(job_id)
        self._elements = tuple(job for job in self._elements if job.id != job_id)
        return self.backfill()

    def outcome(self) -> Outcome:
        """Return where everybody stands now, in document order."""
        planned: list[PlannedJob] = []
        waiting: list[WaitingJob] = []
        for job in self._elements:
            if job.running is not None:
                planned.append(_running(job))
            elif job.id in self._refused:
                reason, detail = self._refused[job.id]
                waiting.append(WaitingJob(id=job.id, reason=reason, detail=detail))
            elif (placed := self.ledger.planned(job.id)) is not None:
                planned.append(placed)
            else:
                waiting.append(_without_start(job))
        return Outcome(jobs=tuple(planned), waiting_room=tuple(waiting), stopped="done")


def _running(job: Job) -> PlannedJob:
    """Return a running job as it stands in a plan."""
    assert job.running is not None  # noqa: S101 - callers pass running jobs only
    segments = job.running.segments
    return PlannedJob(id=job.id, start=job.running.start, end=segments[-1].end, segments=segments)


def _without_start(job: Job) -> WaitingJob:
    """Say why a job that could run on the empty cluster found no start."""
    if job.start_at is not None:
        detail = f"its nodes are not free for {job.walltime} s at {job.start_at}, the only start it accepts"
        return WaitingJob(id=job.id, reason=WaitingReason.TOO_LATE, detail=detail)
    if job.deadline is not None:
        detail = f"no start leaves it {job.walltime} s before its deadline {job.deadline}"
        return WaitingJob(id=job.id, reason=WaitingReason.TOO_LATE, detail=detail)
    detail = "each kind of its chunks finds room by itself, but no way was found to place all of them at a time"
    return WaitingJob(id=job.id, reason=WaitingReason.NOT_MAPPED, detail=detail)


class PlannerEngine:
    """The planner as an engine: what every other engine falls back on. Deterministic; takes the time it needs."""

    name = "planner"

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return what the instance asks for and the planner cannot honour yet."""
        return unsupported(instance)

    def plan(
        self, instance: Instance, budget: Budget, *, seed: int, hint: Plan | None, progress: Progress | None
    ) -> Outcome:
        """Plan all jobs in the planner's order; `budget`, `seed` and `hint` change nothing."""
        planner = Planner(instance)
        planner.plan(progress)
        return planner.outcome()
