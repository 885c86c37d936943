"""The naive twin of EASY: it looks at the queue in every second, and forgets its reservation after each.

Who fits where is asked of the literal planner's machine; what is a twin here is the way through time.
"""

from __future__ import annotations

from copy import deepcopy

from cpsched.domain import Instance, Job
from cpsched.rusv import FOREVER
from tests.oracle.literal_planner import Machine, planning_order, search_interval


def easy_by_the_second(instance: Instance, waiting: list[Job]) -> dict[str, int]:
    """Return the starts of those of the `waiting` jobs (all that can be planned) that find one.

    Only for requests of one kind of chunks: several kinds may be lucky, and fit later with less room.
    """
    machine = Machine(instance.cluster)
    for job in instance.jobs:
        if job.running is not None:
            machine.book_running(job)
    starts: dict[str, int] = {}
    queue: list[Job] = []
    for job in (job for job in planning_order(instance) if job in waiting):
        if job.start_at is None and job.deadline is None:
            queue.append(job)
        elif (interval := search_interval(instance, job)) and (place := machine.place(job, *interval)):
            starts[job.id] = place[0]
    second = instance.now
    while queue:
        present = [job for job in queue if instance.earliest_start(job) <= second]
        for job in start_now(machine, present, second):
            starts[job.id] = second
            queue.remove(job)
        second += 1
    return starts


def start_now(machine: Machine, present: list[Job], second: int) -> list[Job]:
    """Book and return the jobs, in queue order, that EASY starts at a second."""
    started = []
    for job in present:
        if machine.place(job, second, second + job.walltime) is None:
            break
        started.append(job)
    behind = present[len(started) + 1 :]
    if behind:
        trial = deepcopy(machine)  # with the head's reservation, which lasts for this second
        assert trial.place(present[len(started)], second, FOREVER) is not None
        for job in behind:
            place = trial.place(job, second, second + job.walltime)
            if place is not None:
                machine.book(job, *place)
                started.append(job)
    return started
