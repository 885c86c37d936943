"""In which order waiting jobs are planned."""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush

from cpsched.domain import Instance, Job, priority_classes

#: The urgency of a job, most urgent first: fixed start, deadline, hard ``max_wait``, overdue by any ``max_wait``, or
#: none of these. Up to `_LIMITED` a job can be too late, and then has no start.
_FIXED, _DUE, _LIMITED, _OVERDUE, _FREE = range(5)
#: One of the above, and for limits of waiting the second at which they are or were reached.
_Urgency = tuple[int, int]
#: By what a job is ordered: its urgency, its priority (less is more), and its submission.
Turn = tuple[_Urgency, int, int]


def planning_order(instance: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order waiting jobs: fixed starts, then deadlines, then jobs with a hard ``max_wait``, then jobs that are overdue
    by any ``max_wait``, then the rest; each by priority, then by submission, then as given.

    The job types come first as in OpenCCS, section 5 (OCCS-35): a job that can run at one time only is served before
    jobs that can wait. Limits of waiting are served by the second at which they are or were reached, before any
    priority: the others of their kind can wait for longer, and a job that misses its limit is lost (hard) or costs more
    with every second (overdue; the starving jobs of PBS-2).

    A job comes after all that it waits for (OCCS-49). These are served when it would be, if that is before their own
    turn: late predecessors would make it late. They do not inherit its priority: else a user could lift one job by
    hanging another one on it. Only where priorities are strict the classes of jobs come before all of this
    (`cpsched.domain.priority_classes`), and these are inherited.
    """
    return awaited_first(instance, by_turn(instance, jobs))


def by_turn(instance: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order waiting jobs as `planning_order` does, but without dependencies: a queue of jobs that may start."""
    urgencies = _urgencies(instance, jobs)
    classes = priority_classes(instance) if instance.has_strict_priorities else {}
    return sorted(
        jobs, key=lambda job: (-classes.get(job.id, 0), urgencies[job.id], -instance.priority(job), job.submit)
    )


def bound_jobs(instance: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that are lost if they start too late, and those for which they wait, in planning order."""
    urgencies = _urgencies(instance, jobs)
    return planning_order(instance, [job for job in jobs if urgencies[job.id][0] <= _LIMITED])


def turn_of(instance: Instance, job: Job) -> Turn:
    """Return by what a waiting job is ordered for which no other one waits, where priorities are not strict."""
    return _own_urgency(instance, job), -instance.priority(job), job.submit


def is_bound(turn: Turn) -> bool:
    """Return whether the job of a turn is lost if it starts too late."""
    return turn[0][0] <= _LIMITED


def awaited_first(instance: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Return waiting jobs in the given order, but each only after all others of them that it waits for."""
    if not any(job.after for job in jobs):
        return list(jobs)
    places = {job.id: place for place, job in enumerate(jobs)}
    arrays = {name: elements for name, elements in instance.members().items() if elements != (name,)}
    sorter = TopologicalSorter(arrays)
    for job in jobs:
        sorter.add(job.id, *(dependency.job for dependency in job.after))
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    order: list[Job] = []
    while sorter:
        for name in sorter.get_ready():
            heappush(ready, (places.get(name, -1), name))  # jobs that are not in the list block no job
        place, name = heappop(ready)
        if place >= 0:
            order.append(jobs[place])
        sorter.done(name)
    return order


def _urgencies(instance: Instance, jobs: Sequence[Job]) -> dict[str, _Urgency]:
    """Return for each job its own urgency, or that of the most urgent one that waits for it, directly or not."""
    urgencies = {job.id: _own_urgency(instance, job) for job in jobs}
    if not any(job.after for job in jobs):
        return urgencies
    names = instance.names()
    of_names: dict[str, _Urgency] = {}  # the most urgent one that waits for each name that dependencies give
    for job in reversed(awaited_first(instance, jobs)):
        awaiting = (of_names[name] for name in names[job.id] if name in of_names)
        urgencies[job.id] = urgency = min([urgencies[job.id], *awaiting])
        for dependency in job.after:
            of_names[dependency.job] = min(urgency, of_names.get(dependency.job, urgency))
    return urgencies


def _own_urgency(instance: Instance, job: Job) -> _Urgency:
    """Return how urgent a job is by itself."""
    if job.start_at is not None:
        return _FIXED, 0
    if job.deadline is not None:
        return _DUE, 0
    limit = instance.due(job)
    if limit is not None and limit < instance.now:
        return _OVERDUE, limit
    if limit is not None and instance.must_start_by(job) is not None:
        return _LIMITED, limit
    return _FREE, 0
