"""The naive twin of EASY: it looks at the queue in every second, and forgets its reservation after each.

Who fits where is asked of the literal planner's machine; what is a twin here is the way through time.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

from cpsched.domain import Arrangement, Instance, Job
from cpsched.rusv import FOREVER
from tests.oracle.literal_planner import (
    Machine,
    Mapped,
    Node,
    awaited,
    kinds_of_start,
    mapping_orders,
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
    queue.sort(key=lambda job: (-instance.priority(job), job.submit, waiting.index(job)))
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
    """Return whether a job may start from a second on, by its own times and by those that it waits for."""
    released = start_after_awaited(instance, job, places)
    return released is not None and max(released, instance.earliest_start(job)) <= second


def waits_in_vain(instance: Instance, job: Job, queue: list[Job], places: Places) -> bool:
    """Return whether a job waits for one that has no start and is not in the queue."""
    others = [other for _, other in awaited(instance, job) if other.running is None]
    return any(places.get(other.id) is None and other not in queue for other in others)


def start_now(machine: Machine, present: list[Job], second: int) -> list[Job]:
    """Book and return the jobs, in queue order, that EASY starts at a second."""
    started = []
    for job in present:
        if machine.place(job, second, second + job.walltime) is None:
            break
        started.append(job)
    head, behind = present[len(started)] if len(started) < len(present) else None, present[len(started) + 1 :]
    has_started = head is not None
    while head is not None and has_started:
        has_started = False
        for job in [job for job in behind if job not in started]:
            reserved = deepcopy(machine).place(head, second, FOREVER)
            assert reserved is not None
            trial = deepcopy(machine)  # with the head's reservation, which lasts for this second
            trial.book(head, reserved[0], latest_free(machine, head, reserved[0], second))
            place = trial.place(job, second, second + job.walltime)
            if place is not None:
                machine.book(job, *place)
                started.append(job)
                has_started = True
    return started


def latest_free(machine: Machine, job: Job, start: int, second: int) -> Mapped:
    """Return where a job of one kind of chunks stands from its start on if it takes first what is not free now."""
    (chunk,), is_packed = job.request.chunks, job.request.place.arrangement is Arrangement.PACK
    size = chunk.count if is_packed else 1
    named = {node.name: node for node in machine.nodes}
    names = [node.name for node in machine.by_weight] if is_packed else mapping_orders(machine.cluster, job)[0][1]
    units = {}
    for name in names:
        then = units_on(named[name], job, start, start + job.walltime) // size
        units[name] = then, min(then, units_on(named[name], job, second, second + 1) // size)
    late = min(chunk.count // size, sum(then - now for then, now in units.values()))
    early = chunk.count // size - late
    mapped: Mapped = []
    for name, (then, now) in units.items():
        taken = min(late, then - now) + min(early, now)
        late, early = late - min(late, then - now), early - min(early, now)
        if taken:
            mapped.append((name, 0, taken * size))
    assert not late
    assert not early
    return mapped


def units_on(node: Node, job: Job, start: int, end: int) -> int:
    """Return how many chunks of a job fit on a node throughout ``[start, end)``, no more than it asks for."""
    (chunk,), place = job.request.chunks, job.request.place
    gate = node.holders if place.exclusive else node.closed
    if not node.admits(job, chunk) or max(gate.values(start, end)):
        return 0
    most = 1 if place.arrangement is Arrangement.SCATTER else chunk.count
    free = {counter: max(0, vector.avl - max(vector.values(start, end))) for counter, vector in node.used.items()}
    return min([most, *(free[counter] // amount for counter, amount in node.demands(chunk.resources).items())])
