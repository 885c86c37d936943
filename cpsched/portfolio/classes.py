"""Strict priorities: one class of jobs after the other, each beside the plans of all above it.

A window of one class is an ordinary one: the running jobs, the waiting jobs of the class, and what the jobs of higher
classes have in their plans as amounts that are set aside. So every engine honours classes, and knows nothing of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
    priority_classes,
    repeated,
    resumable,
)
from cpsched.engine import Engine, Outcome, Progress
from cpsched.metrics import objective_value
from cpsched.planner import PlannerEngine
from cpsched.problem import missing_from

__all__ = ["ByClass", "Classes", "Opened", "class_values", "is_plain", "rank"]

#: Given the jobs planned so far and the waiting ones of a class, returns both with starts for some of the latter.
Opened = Callable[[Sequence[PlannedJob], Sequence[WaitingJob]], Outcome]


class Classes:
    """The plan of a strict window, made from its highest class on; mutable.

    Parameters
    ----------
    instance
        The window.
    opened
        Finds starts for jobs of the waiting room before lower classes take what is free; None: there are none.
    """

    def __init__(self, instance: Instance, opened: Opened | None = None) -> None:
        self._instance, self._opened = instance, opened
        self._class_of = priority_classes(instance)
        self._members = instance.members()
        self._entries = {job.id: job for job in instance.jobs}
        self._entry_of = {element: job.id for job in instance.jobs for element in job.element_ids}
        waiting = [job for job in instance.jobs if job.running is None]
        numbers = sorted({self._class_of[job.id] for job in waiting}, reverse=True)
        #: The entries of each class that has no plan yet, the highest class first.
        self.left = [tuple(job.id for job in waiting if self._class_of[job.id] == number) for number in numbers]
        self._planned: dict[str, PlannedJob] = {}
        self._waiting: dict[str, WaitingJob] = {}

    @property
    def waiting_jobs(self) -> tuple[PlannedJob, ...]:
        """The plans of waiting jobs so far."""
        return tuple(planned for name, planned in self._planned.items() if not self._runs(name))

    def size(self, *classes: Iterable[str]) -> int:
        """Return the number of jobs in some classes."""
        return sum(len(self._entries[name].element_ids) for entries in classes for name in entries)

    def priority(self, entries: Iterable[str]) -> int:
        """Return the priority of a class."""
        return max(self._class_of[name] for name in entries)

    def window(self, entries: Collection[str]) -> Instance:
        """Return the window of some entries of the highest classes left, for engines; it has no classes of its own.

        Jobs that wait for one that has no start are not in it: `add` puts them into the waiting room. A running job
        whose share a plan may change may be changed for jobs of its own class and higher ones only.
        """
        highest = max((self._class_of[name] for name in entries), default=None)
        chosen = self._startable(entries)
        jobs = []
        for job in self._instance.jobs:
            if job.running is not None:
                is_settled = highest is not None and self._class_of[job.id] > highest
                jobs.append(self._as_planned(job, is_settled=is_settled))
            elif job.id in chosen:
                jobs.append(self._after_settled(job, chosen))
        return replace(
            self._instance,
            jobs=tuple(jobs),
            set_aside=(*self._instance.set_aside, *self._settled()),
            has_strict_priorities=False,
        )

    def add(self, entries: Collection[str], outcome: Outcome) -> None:
        """Take the plan of the window of some entries as settled."""
        self.left = [rest for one in self.left if (rest := tuple(name for name in one if name not in entries))]
        waiting = {job.id: job for job in outcome.waiting_room}
        self._planned |= {job.id: job for job in outcome.jobs}
        missing = missing_from(self._instance, self._had())
        for name in entries:
            for element in self._entries[name].element_ids:
                if element not in self._planned and element not in waiting:
                    waiting[element] = self._awaiting(element, missing)
        if waiting and self.left and self._opened is not None:
            opened = self._opened(tuple(self._planned.values()), tuple(waiting.values()))
            self._planned |= {job.id: job for job in opened.jobs}
            waiting = {job.id: job for job in opened.waiting_room}
        self._waiting |= waiting

    def outcome(self) -> Outcome:
        """Return the plan so far, in document order."""
        elements = list(self._entry_of)
        return Outcome(
            jobs=tuple(self._planned[name] for name in elements if name in self._planned),
            waiting_room=tuple(self._waiting[name] for name in elements if name in self._waiting),
        )

    def _runs(self, element: str) -> bool:
        """Return whether a job runs."""
        return self._entries[self._entry_of[element]].running is not None

    def _startable(self, entries: Collection[str]) -> set[str]:
        """Return the entries that wait for no job without a start."""
        chosen, had = set(entries), self._had()
        while True:
            startable = had.union(*(self._entries[name].element_ids for name in chosen))
            missing = missing_from(self._instance, startable)
            lost = {name for name in chosen if any(missing(one.job) for one in self._entries[name].after)}
            if not lost:
                return chosen
            chosen -= lost

    def _had(self) -> set[str]:
        """Return the jobs that run, and those that have a plan."""
        return {element for element in self._entry_of if element in self._planned or self._runs(element)}

    def _awaiting(self, element: str, missing: Callable[[str], str | None]) -> WaitingJob:
        """Return why a job that is in no window waits, given what is `missing_from` those that run or have a plan."""
        for dependency in self._entries[self._entry_of[element]].after:
            if (name := missing(dependency.job)) is not None:
                detail = f"waits for {name} ({dependency.type}), which has no start"
                return WaitingJob(id=element, reason=WaitingReason.DEPENDENCY, detail=detail)
        raise ValueError(f"job {element} is in no window, and waits for no job without a start")

    def _as_planned(self, job: Job, *, is_settled: bool) -> Job:
        """Return a running job as it is planned so far; one that is settled cannot be changed any more."""
        planned = self._planned.get(job.id)
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
            if self._entry_of[names[0]] in chosen or self._runs(names[0]):
                after.append(dependency)
                continue
            is_start = dependency.type is DependencyType.AFTER
            earliest += (
                (self._planned[name].start if is_start else self._planned[name].end) + dependency.delay
                for name in names
            )
        return replace(job, after=tuple(after), not_before=max(earliest, default=None))

    def _settled(self) -> Iterator[SetAside]:
        """Yield what the waiting jobs that have a plan hold, segment by segment."""
        has = self._instance.cluster.class_of
        for name, planned in self._planned.items():
            job = self._entries[self._entry_of[name]]
            if job.running is not None:
                continue  # it is in every window
            for segment in planned.segments:
                allocation = segment.allocation
                if job.steps[0].request.place.exclusive:
                    nodes = dict.fromkeys(one.node for one in allocation)
                    allocation = tuple(Placement(node=node, resources=has[node].resources) for node in nodes)
                yield SetAside(start=segment.start, end=segment.end, allocation=allocation, licenses=job.licenses)


class ByClass:
    """An engine that plans strict windows class by class, and others at once.

    Parameters
    ----------
    engine
        Plans the window of each class.
    opened
        As `Classes` has it.
    """

    def __init__(self, engine: Engine, opened: Opened | None = None) -> None:
        self._engine, self._opened = engine, opened
        self.name = engine.name

    def prepare(self) -> None:
        """Compile or load what the engine needs."""
        self._engine.prepare()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features that the engine cannot honour; several classes, if it knows no amounts set aside."""
        features = self._engine.unsupported(instance)
        if features or not instance.has_strict_priorities or len(Classes(instance).left) < 2:
            return features
        aside = SetAside(start=instance.now, end=instance.now)
        beside = self._engine.unsupported(replace(instance, set_aside=(*instance.set_aside, aside)))
        return ("priorities: strict, with several classes of jobs",) if beside else ()

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs of an instance."""
        if not instance.has_strict_priorities:
            return self._engine.plan(instance, progress)
        classes = Classes(instance, self._opened)
        self.finish(classes, progress)
        return classes.outcome()

    def finish(self, classes: Classes, progress: Progress | None = None) -> None:
        """Plan the classes that are left.

        The planner plans all of them at once where that comes to the same: each job that has one size and one kind of
        chunks gets its earliest start beside the jobs before it, and no job moves. A job that must start by some time
        could be too late, and others of its class would have to move for it.
        """
        together = tuple(name for one in classes.left for name in one)
        window = classes.window(together)
        is_bounded = any(job.running is None and window.latest_start(job) is not None for job in window.jobs)
        is_same = isinstance(self._engine, PlannerEngine) and is_plain(window) and not is_bounded
        if len(classes.left) < 2 or is_same:
            window = replace(window, has_strict_priorities=len(classes.left) > 1)
            classes.add(together, self._engine.plan(window, progress))
        done, count = 0, classes.size(together)
        while classes.left:
            entries = classes.left[0]
            classes.add(entries, self._engine.plan(classes.window(entries), None))
            done += classes.size(entries)
            if progress is not None:
                progress(done, count)


def is_plain(instance: Instance) -> bool:
    """Return whether all waiting jobs are rigid and of one kind of chunks, and no running job can change."""
    return all(
        resumable(job, instance.now) is None
        if job.running is not None
        else not job.is_evolving and job.malleability is None and len(job.request.chunks) == 1
        for job in instance.jobs
    )


def rank(instance: Instance, jobs: Sequence[PlannedJob]) -> tuple[tuple[int, float], ...]:
    """Return the key by which plans of a window are compared, the smaller the better: more jobs beat fewer, then the
    value counts; where priorities are strict, class by class, the highest first.
    """
    if not instance.has_strict_priorities:
        return ((-len(jobs), objective_value(instance, jobs)),)
    return tuple((-count, value) for count, value in class_values(instance, jobs).values())


def class_values(instance: Instance, jobs: Sequence[PlannedJob]) -> dict[int, tuple[int, float]]:
    """Return the number and the value of the jobs of each class in a plan, by priority, the highest first."""
    class_of, members = priority_classes(instance), defaultdict[int, list[PlannedJob]](list)
    for job in jobs:
        members[class_of[job.id]].append(job)
    classes = sorted(set(class_of.values()), reverse=True)
    return {number: (len(members[number]), objective_value(instance, members[number])) for number in classes}
