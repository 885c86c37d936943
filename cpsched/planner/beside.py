"""Some waiting jobs of a window beside a plan of others: a window in which what the others have is set aside.

So every engine can plan the rest of a plan, and knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from cpsched.domain import (
    Dependency,
    DependencyType,
    Instance,
    Job,
    Placement,
    PlannedJob,
    Running,
    SetAside,
    WaitingJob,
    WaitingReason,
    repeated,
)
from cpsched.problem import missing_from


class Beside:
    """The windows of waiting jobs beside those that have a plan; mutable: further ones get a plan.

    `instance`: the window of all jobs, for engines. `planned`: the plans of some jobs, those of running ones included
    where they differ from the window.
    """

    def __init__(self, instance: Instance, planned: Iterable[PlannedJob] = ()) -> None:
        self._instance = instance
        self._members = instance.members()
        self.entries = {job.id: job for job in instance.jobs}
        self._entry_of = {element: job.id for job in instance.jobs for element in job.element_ids}
        self.planned: dict[str, PlannedJob] = {job.id: job for job in planned}

    @property
    def elements(self) -> Collection[str]:
        """The ids of all jobs, in document order."""
        return self._entry_of.keys()

    def is_running(self, element: str) -> bool:
        """Return whether a job runs."""
        return self.entries[self._entry_of[element]].running is not None

    def window(self, entries: Collection[str], is_settled: Callable[[Job], bool]) -> Instance:
        """Return the window of some waiting entries without a plan.

        Jobs that wait for one that has no start are not in it.

        `is_settled`: tells of a running job whether it may not be changed any more.
        """
        chosen = self._startable(entries)
        jobs = []
        for job in self._instance.jobs:
            if job.running is not None:
                jobs.append(self._as_planned(job, is_settled=is_settled(job)))
            elif job.id in chosen:
                jobs.append(self._after_settled(job, chosen))
        return replace(
            self._instance,
            jobs=tuple(jobs),
            set_aside=(*self._instance.set_aside, *self._settled()),
        )

    def without_start(self, waiting: Mapping[str, WaitingJob], names: Iterable[str]) -> dict[str, WaitingJob]:
        """Return why jobs without a start wait, by id: those that are in no window wait for others without a start.

        `waiting`: why some of them wait, by their own windows.
        """
        missing, found = missing_from(self._instance, self._had()), dict(waiting)
        for name in names:
            if name not in self.planned and name not in found:
                found[name] = self._awaiting(name, missing)
        return found

    def _startable(self, entries: Collection[str]) -> set[str]:
        """Return the entries that wait for no job without a start."""
        chosen, had = set(entries), self._had()
        while True:
            startable = had.union(*(self.entries[name].element_ids for name in chosen))
            missing = missing_from(self._instance, startable)
            lost = {name for name in chosen if any(missing(one.job) for one in self.entries[name].after)}
            if not lost:
                return chosen
            chosen -= lost

    def _had(self) -> set[str]:
        """Return the jobs that run, and those that have a plan."""
        return {element for element in self.elements if element in self.planned or self.is_running(element)}

    def _awaiting(self, element: str, missing: Callable[[str], str | None]) -> WaitingJob:
        """Return why a job without a start waits, given what is `missing_from` those that run or have a plan."""
        job = self.entries[self._entry_of[element]]
        for dependency in job.after:
            if (name := missing(dependency.job)) is not None:
                detail = f"waits for {name} ({dependency.type}), which has no start"
                return WaitingJob(id=element, reason=WaitingReason.DEPENDENCY, detail=detail)
        is_bounded = self._instance.latest_start(job) is not None
        reason = WaitingReason.TOO_LATE if is_bounded else WaitingReason.NOT_MAPPED
        detail = "no start was found for it after those of the jobs that it waits for"
        return WaitingJob(id=element, reason=reason, detail=detail)

    def _as_planned(self, job: Job, *, is_settled: bool) -> Job:
        """Return a running job as it is planned so far; one that is settled cannot be changed any more."""
        planned = self.planned.get(job.id)
        if planned is not None and planned != repeated(job):
            job = replace(job, running=Running(start=planned.start, segments=planned.segments))
        return replace(job, malleability=None) if is_settled and job.malleability is not None else job

    def _after_settled(self, job: Job, chosen: Collection[str]) -> Job:
        """Return a waiting job that may start after those that it waits for: settled ones are an earliest start."""
        if not job.after:
            return job
        earliest = [] if job.not_before is None else [job.not_before]
        after: list[Dependency] = []
        for dependency in job.after:
            names = self._members[dependency.job]
            left = [name for name in names if self._entry_of[name] in chosen or self.is_running(name)]
            if len(left) == len(names):
                after.append(dependency)
                continue
            after += (replace(dependency, job=name) for name in left)
            of = {name: self.planned[name] for name in names if name not in left}
            is_start = dependency.type is DependencyType.AFTER
            earliest += ((one.start if is_start else one.end) + dependency.delay for one in of.values())
        return replace(job, after=tuple(after), not_before=max(earliest, default=None))

    def _settled(self) -> Iterator[SetAside]:
        """Yield what the waiting jobs that have a plan hold, segment by segment."""
        has = self._instance.cluster.class_of
        for name, planned in self.planned.items():
            job = self.entries[self._entry_of[name]]
            if job.running is not None:
                continue  # it is in every window
            chosen = job.choices[planned.alternative]
            for segment in planned.segments:
                allocation = segment.allocation
                if chosen.steps[0].request.place.exclusive:
                    nodes = dict.fromkeys(one.node for one in allocation)
                    allocation = tuple(Placement(node=node, resources=has[node].resources) for node in nodes)
                yield SetAside(start=segment.start, end=segment.end, allocation=allocation, licenses=chosen.licenses)
