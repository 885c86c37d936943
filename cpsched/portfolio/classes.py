"""Strict priorities: one class of jobs after the other, each beside the plans of all above it.

A window of one class is an ordinary one: the running jobs, the waiting jobs of the class, and what the jobs of higher
classes have in their plans as amounts that are set aside. So every engine honours classes, and knows nothing of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from cpsched.domain import Instance, PlannedJob, SetAside, WaitingJob, priority_classes, resumable
from cpsched.engine import Engine, Outcome, Progress
from cpsched.metrics import objective_value, of_aim
from cpsched.planner import Beside, PlannerEngine, inserted


class Classes:
    """The plan of a strict window, made from its highest class on; mutable. `instance`: the window, for engines."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._class_of = priority_classes(instance)
        self._beside = Beside(instance)
        waiting = [job for job in instance.jobs if job.running is None]
        numbers = sorted({self._class_of[job.id] for job in waiting}, reverse=True)
        #: The entries of each class that has no plan yet, the highest class first.
        self.left = [tuple(job.id for job in waiting if self._class_of[job.id] == number) for number in numbers]
        self._waiting: dict[str, WaitingJob] = {}

    @property
    def waiting_jobs(self) -> tuple[PlannedJob, ...]:
        """The plans of waiting jobs so far."""
        beside = self._beside
        return tuple(planned for name, planned in beside.planned.items() if not beside.is_running(name))

    def size(self, *classes: Iterable[str]) -> int:
        """Return the number of jobs in some classes."""
        return sum(len(self._beside.entries[name].element_ids) for entries in classes for name in entries)

    def priority(self, entries: Iterable[str]) -> int:
        """Return the priority of a class."""
        return max(self._class_of[name] for name in entries)

    def window(self, entries: Collection[str]) -> Instance:
        """Return the window of some entries of the highest classes left, for engines; it has no classes of its own.

        Jobs that wait for one that has no start are not in it: `add` puts them into the waiting room. A running job
        whose share a plan may change may be changed for jobs of its own class and higher ones only.
        """
        highest = max((self._class_of[name] for name in entries), default=None)
        window = self._beside.window(
            entries, lambda running: highest is not None and self._class_of[running.id] > highest
        )
        return replace(window, has_strict_priorities=False)

    def add(self, entries: Collection[str], outcome: Outcome) -> None:
        """Take the plan of the window of some entries as settled, with starts for jobs that it leaves out and that find
        one beside it before lower classes take what is free.
        """
        beside = self._beside
        self.left = [rest for one in self.left if (rest := tuple(name for name in one if name not in entries))]
        beside.planned |= {job.id: job for job in outcome.jobs}
        elements = [element for name in entries for element in beside.entries[name].element_ids]
        waiting = beside.without_start({job.id: job for job in outcome.waiting_room}, elements)
        if waiting:
            found = inserted(
                self._instance, Outcome(jobs=tuple(beside.planned.values()), waiting_room=tuple(waiting.values()))
            )
            beside.planned |= {job.id: job for job in found.jobs}
            waiting = {job.id: job for job in found.waiting_room}
        self._waiting |= waiting

    def outcome(self) -> Outcome:
        """Return the plan so far, in document order."""
        planned = self._beside.planned
        return Outcome(
            jobs=tuple(planned[name] for name in self._beside.elements if name in planned),
            waiting_room=tuple(self._waiting[name] for name in self._beside.elements if name in self._waiting),
        )


class ByClass:
    """An engine that plans strict windows class by class, and others at once.

    `engine`: plans the window of each class.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
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
        classes = Classes(instance)
        self.finish(classes, progress)
        return classes.outcome()

    def finish(self, classes: Classes, progress: Progress | None = None) -> None:
        """Plan the classes that are left.

        The planner plans all of them at once where that comes to the same: each job that has one size and one kind of
        chunks gets its earliest start beside the jobs before it, and no job moves. A job that must start by some time,
        or within some time of another, could be too late, and others of its class would have to move for it.
        """
        together = tuple(name for one in classes.left for name in one)
        window = classes.window(together)
        waiting = [job for job in window.jobs if job.running is None]
        is_bounded = any(job.is_hurried or window.latest_start(job) is not None for job in waiting)
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
    """Return whether waiting jobs are rigid, have one kind of chunks and no choice, and running ones cannot change."""
    return all(
        resumable(job, instance.now) is None
        if job.running is not None
        else not (job.changes or job.alternatives) and len(job.request.chunks) == 1
        for job in instance.jobs
    )


def rank(instance: Instance, jobs: Sequence[PlannedJob]) -> tuple[tuple[int, float], ...]:
    """Return the key by which plans of a window are compared, the smaller the better: more jobs beat fewer, then the
    value counts, aim by aim; where priorities are strict, class by class, the highest first.
    """
    if not instance.has_strict_priorities:
        aims = instance.objective.aims
        return tuple((-len(jobs), objective_value(of_aim(instance, aim), jobs)) for aim in aims)
    return tuple((-count, value) for count, value in class_values(instance, jobs).values())


def class_values(instance: Instance, jobs: Sequence[PlannedJob]) -> dict[int, tuple[int, float]]:
    """Return the number and the value of the jobs of each class in a plan, by priority, the highest first."""
    class_of, members = priority_classes(instance), defaultdict[int, list[PlannedJob]](list)
    for job in jobs:
        members[class_of[job.id]].append(job)
    classes = sorted(set(class_of.values()), reverse=True)
    return {number: (len(members[number]), objective_value(instance, members[number])) for number in classes}
