"""The naive twin of EASY: it looks at the queue in every second, and forgets its reservation after each.

Who fits where is asked of the literal planner's machine; what is a twin here is the way through time.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

from cpsched.domain import Instance, Job
from cpsched.rusv import FOREVER
from tests.oracle.literal_planner import (
    Machine,
    Mapped,
    awaited,
    kinds_of_start,
    planning_order,
    search_interval,
    start_after_awaited,
)

#: When jobs start, and where, as far as they have been planned.
Places = Mapping[str, tuple[int, Mapped] | None]


def easy_by_the_second(instance: Instance, waiting: list[Job]) -> dict[str, int]:
    """Return the starts of those of the `waiting` jobs (all that can be planned) that find one.

    Only for requests of one kind of chunks: several kinds may be lucky, and fit later with less room.
    """
    machine = Machine(instance.cluster)
    for job in instance.jobs:
        if job.running is not None:
            machine.book_running(job)
    places: dict[str, tuple[int, Mapped] | None] = {}
    queue: list[Job] = []
    kinds = kinds_of_start(instance)
    for job in (job for job in planning_order(instance) if job in waiting):
        if kinds[job.id][0] > 2:
            queue.append(job)
        elif (released := start_after_awaited(instance, job, places)) is not None:
            held_back = replace(job, not_before=max(released, instance.earliest_start(job)))
            if interval := search_interval(instance, held_back):
                places[job.id] = machine.place(job, *interval)
    second = instance.now
    while queue := [job for job in queue if not waits_in_vain(instance, job, queue, places)]:
        present: list[Job] = []
        while present != (arrived := [job for job in queue if has_arrived(instance, job, places, second)]):
            present = arrived
            for job in start_now(machine, present, second):
                places[job.id] = second, []
                queue.remove(job)
        second += 1
    return {job_id: place[0] for job_id, place in places.items() if place is not None}


def has_arrived(instance: Instance, job: Job, places: Places, second: int) -> bool:
    """Tell whether a job may start from a second on, by its own times and by those that it waits for."""
    released = start_after_awaited(instance, job, places)
    return released is not None and max(released, instance.earliest_start(job)) <= second


def waits_in_vain(instance: Instance, job: Job, queue: list[Job], places: Places) -> bool:
    """Tell whether a job waits for one that has no start and is not in the queue."""
    others = [other for _, other in awaited(instance, job) if other.running is None]
    return any(places.get(other.id) is None and other not in queue for other in others)


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
