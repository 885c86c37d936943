"""Checks of the whole instance: unique and declared names, cycles, and running jobs that fit together."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cpsched.domain import Cluster, Job, NodeState, Outage, Preemption, Queue, Reservation, ReservationKind, Running
from cpsched.errors import Fault
from cpsched.formats.faults import Location, path_of, shown
from cpsched.formats.reading import Reading, cycle_of

_ELEMENT = re.compile(r"(.*)\[(0|[1-9][0-9]{0,9})\]", re.DOTALL)
#: The most cycles that are reported, and the most jobs of a cycle or of an overload that are named.
_MOST_CYCLES = 10
_MOST_NAMED = 8

#: A job, or nothing where its faults left none, with its place in the document.
_PlacedJobs = Sequence[tuple[Location, Job]]


def check_instance(
    reading: Reading,
    cluster: Cluster,
    queues: Mapping[str, Queue],
    jobs: _PlacedJobs,
    reservations: Sequence[tuple[Location, Reservation]],
) -> None:
    """Note every fault that lies between the parts of an instance."""
    for placed in (reservations, jobs):
        reading.faults.add_repeated("a unique id", (((*location, "id"), one.id) for location, one in placed))
    entries = {job.id: job for _, job in jobs}
    indices = {job.id: frozenset(job.array) for job in entries.values() if job.array is not None}
    for location, job in jobs:
        array = _array_of(job.id, indices)
        if array is not None:
            reading.faults.add((*location, "id"), f"Expected a unique id, got {shown(job.id)}, an element of {array}")
    _check_references(reading, queues, jobs, {reservation.id: reservation for _, reservation in reservations})
    if _check_dependencies(reading, jobs, entries, indices):
        _check_longest_delays(reading, jobs, indices)
    _check_running(reading, cluster, jobs)


def check_outages(reading: Reading, jobs: _PlacedJobs, outages: Sequence[tuple[Location, Outage]]) -> None:
    """Report every outage at `now` of a node on which a job runs."""
    held: dict[str, str] = {}
    for _, job in jobs:
        for segment in job.running.segments if job.running is not None else ():
            if segment.start <= reading.now < segment.end:
                held.update((placement.node, job.id) for placement in segment.allocation)
    for location, outage in outages:
        if outage.start <= reading.now < outage.end:
            for node in outage.nodes:
                if node in held:
                    message = f"Expected no running job on a node that is down, got {shown(held[node])} on {node}"
                    reading.faults.add((*location, "nodes"), message)
                    break


def check_preemption(reading: Reading, queues: Mapping[str, Queue], preemption: Preemption) -> None:
    """Check that queues that may stop each other's jobs are declared, and that none may stop its own in a circle."""
    for name, others in preemption.queues.items():
        where = ("preemption", "queues", name)
        for at, queue in ((where, name), *(((*where, place), other) for place, other in enumerate(others))):
            reading.check_known(at, "queue", queue, queues, "queues")
    if circle := cycle_of(preemption.queues):
        message = f"Expected no queues that may stop each other, got a circle of {', '.join(map(repr, circle))}"
        reading.faults.add(("preemption", "queues", circle[0]), message)


def _array_of(name: str, indices: Mapping[str, frozenset[int]]) -> str | None:
    match = _ELEMENT.fullmatch(name)
    if match is None or int(match[2]) not in indices.get(match[1], ()):
        return None
    return match[1]


def _check_references(
    reading: Reading, queues: Mapping[str, Queue], jobs: _PlacedJobs, reservations: Mapping[str, Reservation]
) -> None:
    for location, job in jobs:
        if job.queue is not None:
            reading.check_known((*location, "queue"), "queue", job.queue, queues, "queues")
        if job.reservation is None:
            continue
        where = (*location, "reservation")
        if (
            reading.check_known(where, "reservation", job.reservation, reservations, "reservations")
            and reservations[job.reservation].kind is ReservationKind.DOWNTIME
        ):
            reading.faults.add(where, f"Expected a reservation for jobs, got {shown(job.reservation)}, a downtime")


def _check_dependencies(
    reading: Reading, jobs: _PlacedJobs, entries: Mapping[str, Job], indices: Mapping[str, frozenset[int]]
) -> bool:
    """Check that each job waits for jobs that exist, and not for itself; an element counts as its array.

    Return whether jobs wait in no cycle.
    """
    waits_for: dict[str, list[str]] = {}
    for location, job in jobs:
        for place, dependency in enumerate(job.after):
            entry = dependency.job if dependency.job in entries else _array_of(dependency.job, indices)
            if entry is not None:
                waits_for.setdefault(job.id, []).append(entry)
            else:
                reading.check_known((*location, "after", place, "job"), "job", dependency.job, entries, "jobs")
    place_of = {job.id: place for place, (_, job) in reversed(list(enumerate(jobs)))}
    for number in range(_MOST_CYCLES):
        cycle = cycle_of(waits_for)
        if cycle is None:
            return number == 0
        reading.faults.add((*jobs[place_of[cycle[0]]][0], "after"), f"Expected no cycle, got {_arrows(cycle)}")
        del waits_for[cycle[0]]
    return False


def _check_longest_delays(reading: Reading, jobs: _PlacedJobs, indices: Mapping[str, frozenset[int]]) -> None:
    """Check that each ``max_delay`` is one after a single job, and that starts can be found that keep all together.

    Bounds on distances between starts can be kept exactly if they make no cycle of negative length (Bellman-Ford).
    """
    placed = [(location, job) for location, job in jobs if job.is_hurried]
    if not placed:
        return
    from networkx import DiGraph, NetworkXError, find_negative_cycle

    wrong: list[tuple[Location, str]] = []
    for location, job in placed:
        for place, one in enumerate(job.after):
            where = (*location, "after", place, "max_delay")
            if one.max_delay is not None and one.max_delay < one.delay:
                wrong.append((where, f"Expected at least delay = {one.delay}, got {one.max_delay}"))
            if one.max_delay is not None and one.job in indices:
                wrong.append((where, f"Expected a single job, got {shown(one.job)}, an array"))
    for where, message in wrong:
        reading.faults.add(where, message)
    if wrong:
        return
    by_id, least = {job.id: job for _, job in jobs}, dict[tuple[str, str], int]()
    for name, job in by_id.items():
        least["", name] = 0
        for one in job.after:
            awaited = one.job if one.job in by_id else _array_of(one.job, indices) or one.job
            if (before := by_id.get(awaited)) is None or before.running is not None:
                continue
            distances = {(name, awaited): -one.lag(before.shortest)}
            if one.max_delay is not None and before.malleability is None and not before.is_evolving:
                distances[awaited, name] = one.max_delay + one.lag(before.longest) - one.delay
            least |= {pair: min(least.get(pair, seconds), seconds) for pair, seconds in distances.items()}
    graph = DiGraph()
    graph.add_weighted_edges_from((before, after, seconds) for (before, after), seconds in least.items())
    try:
        cycle = find_negative_cycle(graph, "")[:-1]
    except NetworkXError:
        return
    over = -sum(least[pair] for pair in pairwise([*cycle, cycle[0]]))
    location = next(location for location, job in placed if job.id in cycle)
    message = f"Expected max_delay that starts can keep together, got {over} s too little in {_arrows(cycle)}"
    reading.faults.add((*location, "after"), message)


def _arrows(cycle: Sequence[str]) -> str:
    named = [shown(name)[1:-1] for name in cycle[:_MOST_NAMED]]
    return " -> ".join([*named, *(["…"] if len(cycle) > _MOST_NAMED else []), named[0]])


def _check_running(reading: Reading, cluster: Cluster, jobs: _PlacedJobs) -> None:
    """Check that what runs is on nodes of the cluster; warn where it is odd, or more together than there is."""
    #: By node (None for licences) and resource: (time, takes or gives back, place in `jobs`, where).
    changes: dict[tuple[str | None, str], list[tuple[int, int, int, Location]]] = {}

    def take(key: tuple[str | None, str], start: int, end: int, amount: int, place: int, where: Location) -> None:
        if amount:
            changes.setdefault(key, []).extend([(start, amount, place, where), (end, -amount, place, where)])

    for place, (location, job) in enumerate(jobs):
        if job.running is None or not job.running.segments:
            continue
        _warn_of_anomalies(reading, cluster, location, job, job.running)
        for index, segment in enumerate(job.running.segments):
            path = _allocation_location(reading, location, index)
            for position, held in enumerate(segment.allocation):
                where = (*path, position)
                if reading.check_known((*where, "node"), "node", held.node, cluster.class_of, "nodes"):
                    for name, amount in held.resources.items():
                        take((held.node, name), segment.start, segment.end, amount, place, where)
        for name, amount in job.licenses.items():
            take((None, name), job.running.start, job.running.segments[-1].end, amount, place, (*location, "licenses"))
    for (node, resource), events in changes.items():
        if node is None and "licenses" in reading.incomplete:
            continue
        has = (cluster.licenses if node is None else cluster.class_of[node].resources).get(resource, 0)
        owner = "the cluster" if node is None else f"node {node}"
        _check_sum(reading, f"{owner} has {has} {resource}", has, events, jobs)


def _warn_of_anomalies(reading: Reading, cluster: Cluster, location: Location, job: Job, running: Running) -> None:
    """Warn of a running job that started before its submission, is on a node that is down, or has too little."""
    if running.start < job.submit:
        message = f"started at {running.start}, before it was submitted at {job.submit}"
        reading.on_warning(Fault(path_of((*location, "running", "start")), message))
    for index, segment in enumerate(running.segments):
        if segment.start <= reading.now < segment.end:
            for position, held in enumerate(segment.allocation):
                node_class = cluster.class_of.get(held.node)
                if node_class is not None and node_class.state is NodeState.DOWN:
                    where = (*_allocation_location(reading, location, index), position, "node")
                    reading.on_warning(Fault(path_of(where), f"runs on {shown(held.node)[1:-1]}, which is down"))
    if len(running.segments) > 1 and len(running.segments) != len(job.steps):
        return  # nobody knows which of its steps it is in
    for index, segment in enumerate(running.segments):
        asked = job.steps[min(index, len(job.steps) - 1)].request.totals
        for name, amount in asked.items():
            has = sum(held.resources.get(name, 0) for held in segment.allocation)
            if has < amount and not (name == "cores" and job.malleability is not None):
                message = f"has less than it asks for: {has} {name}, asked for are {amount}"
                reading.on_warning(Fault(path_of(_allocation_location(reading, location, index)), message))
                return


def _check_sum(
    reading: Reading, subject: str, has: int, events: list[tuple[int, int, int, Location]], jobs: _PlacedJobs
) -> None:
    """Warn of the first time at which jobs together take more than there is, with the last of them as the place."""
    taken = 0
    holders: dict[int, int] = {}
    # At one time, what ends gives back (a negative amount) before what begins takes.
    for time, amount, place, where in sorted(events, key=lambda event: (event[0], event[1] > 0, event[2])):
        taken += amount
        holders[place] = holders.get(place, 0) + amount
        if taken > has:
            named = [f"{shown(jobs[p][1].id)[1:-1]} ({held})" for p, held in holders.items() if held]
            listed = ", ".join(named[:_MOST_NAMED]) + (", …" if len(named) > _MOST_NAMED else "")
            message = f"running jobs take more than there is: {subject}, got {taken} from {time}: {listed}"
            reading.on_warning(Fault(path_of(where), message))
            return


def _allocation_location(reading: Reading, location: Location, index: int) -> Location:
    """Return the location of the allocation of segment `index`: a job without segments has one of its own."""
    if location in reading.segmented:
        return (*location, "running", "segments", index, "allocation")
    return (*location, "running", "allocation")
