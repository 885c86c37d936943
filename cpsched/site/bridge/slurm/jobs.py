"""Jobs of Slurm as an instance has them, alone or as one of several, or the reason why they cannot be planned."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

from cpsched.domain import Amounts, Arrangement, Chunk, Job, Place, Placement, Request, Running, Segment, Step
from cpsched.formats import fold_hostlist
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.protocol import JobState, digest_of
from cpsched.site.bridge.slurm.limiting import Take
from cpsched.site.bridge.slurm.marker import Marker, is_sayable, prefix_of
from cpsched.site.bridge.slurm.records import JobRecord, ReservationRecord, Share
from cpsched.site.bridge.slurm.requests import Holding, Site, counter_of, licenses_of, steps_of
from cpsched.site.bridge.slurm.states import CLOSED, NEVER
from cpsched.text import printable

#: The walltime (s) of a running job without a limit: a year.
_NO_LIMIT = 365 * 86400
_LONGEST_NAME = 256


class Seen(NamedTuple):
    """One job, or one task of an array, with what was noted of it."""

    id: str
    #: As Slurm has it, and as its user asked for it.
    record: JobRecord
    view: JobRecord
    marker: Marker | None


def _name(text: str) -> str | None:
    """Return a name as documents may have it: on one line, and not too long; None where there is none."""
    return printable(text)[:_LONGEST_NAME] or None


def job_of(one: Seen, site: Site, reservations: Mapping[str, ReservationRecord], now: int) -> Job:
    """Return one job that runs or waits.

    Raises `Inexpressible` if an instance cannot say it, or nobody may start it.
    """
    view = one.view
    make = partial(
        Job,
        id=one.id,
        user=_name(view.user),
        group=_name(view.group),
        project=_name(view.account),
        submit=min(view.submit, now),
    )
    if view.state is JobState.RUNNING:
        return _running(make, view, site, now)
    if view.state is JobState.HELD:
        raise Inexpressible(f"it is held ({view.reason})" if view.reason else "it is held", is_for_manager=False)
    if view.others:
        raise Inexpressible("; ".join(view.others))
    if (why := view.reason.partition(":")[0]) in NEVER and not (one.marker is not None and one.marker.ordered):
        raise Inexpressible(f"Slurm says that it cannot start ({why})", is_for_manager=False)
    if not is_sayable(prefix_of(one.record.admin_comment)):
        raise Inexpressible("its AdminComment has blanks, or signs that scontrol cannot be given")
    named = [name for name in view.reservation.split(",") if name in reservations]
    if view.reservation and not named:
        raise Inexpressible(f"its reservation {view.reservation} is not known")
    if view.array is not None and view.task is None and not view.tasks_text:
        raise Inexpressible("the tasks of its array are not known")
    begin = view.begin if view.begin is not None and view.begin > now else None
    queue, steps, licenses = _asked(view if now < anywhere_from(view) else view.but(within=""), site)
    return make(
        queue=queue if queue in site.partitions else None,
        steps=steps[:1],
        alternatives=steps[1:],
        licenses=licenses,
        not_before=begin,
        deadline=view.deadline,
        reservation=named[0] if named else None,  # Slurm tries them in turn
    )


def anywhere_from(view: JobRecord) -> float:
    """Return the second from which on a waiting job does without one group of nodes; infinite where it never does."""
    return math.inf if view.within_for is None else view.submit + view.within_for


def _asked(view: JobRecord, site: Site) -> tuple[str, tuple[Step, ...], Amounts]:
    """Return the queue in which a waiting job is planned, its requests with their walltime, and its licences.

    Of several partitions each that can run the job is a choice. Raises `Inexpressible` if there is none.
    """
    found: list[tuple[str, int, Sequence[Step]]] = []
    reason: Inexpressible | None = None
    candidates = site.queues_of(view)
    for queue in candidates:
        partition = site.limits(queue)
        walltime = view.time_limit
        try:
            if partition.state in CLOSED:
                raise Inexpressible(f"its partition {queue} is {partition.state}", is_for_manager=False)
            if walltime is None and not view.is_unlimited:
                walltime = partition.default_time or partition.max_time
            if walltime is None:
                raise Inexpressible("it has no time limit")
            asked = (queue,) if len(candidates) == 1 else (queue, *view.partitions)
            steps, licenses = steps_of(view if view.partitions == asked else view.but(partitions=asked), walltime, site)
        except Inexpressible as error:
            reason = reason or error
            continue
        is_short = partition.max_time is None or walltime <= partition.max_time
        if len(candidates) == 1 or (is_short and site.has_room(queue, steps[0].request)):
            found.append((queue, walltime, steps))
        else:
            reason = reason or Inexpressible(f"none of its partitions {','.join(view.partitions)} can run it")
    if not found:
        raise reason or Inexpressible("it has no partition")
    queue, walltime, steps = found[0]
    if len(found) > 1:
        queue = site.union([name for name, _, _ in found])
        steps = [step for _, _, of_partition in found for step in of_partition]
    elif len(candidates) > 1:
        steps, licenses = steps_of(view.but(partitions=(queue,)), walltime, site)
    return queue, tuple(steps), licenses


def _running(make: Callable[..., Job], view: JobRecord, site: Site, now: int) -> Job:
    """Return a running job: the nodes that it holds are a fact."""
    if not view.shares:
        raise Inexpressible("it runs, and Slurm does not say where", is_for_manager=False)
    unknown = [share.node for share in view.shares if share.node not in site.nodes]
    if unknown:
        raise Inexpressible(f"it runs on nodes that are not known ({fold_hostlist(unknown)})", is_for_manager=False)
    if any(one.are_cores for one in view.shares):
        view = view.but(shares=tuple(_in_cpus(one, site) for one in view.shares))
    start = min(now, view.start if view.start is not None else now)
    walltime = _NO_LIMIT if view.time_limit is None else max(1, view.time_limit)
    queue = view.partitions[0] if view.partitions else ""
    if view.is_completing:
        walltime = max(1, now + 1 - start)
    elif view.is_suspended and view.end is not None:
        walltime = max(walltime, view.end - start)
    shares = [(one.cpus, one.memory, one.gres, one.gres and site.nodes[one.node].gres) for one in view.shares]
    asked = queue, walltime, view.exclusive, tuple(shares)
    if (known := site.holding.get(asked)) is None:
        known = site.holding[asked] = _holding(view, queue, walltime, site)
    held, steps = known
    allocation = tuple(
        [
            Placement(node=share.node, resources=amounts, chunk=chunk, count=1)
            for share, (amounts, chunk) in zip(view.shares, held, strict=True)
        ]
    )
    segment = Segment(start=start, end=max(start + walltime, now + 1), allocation=allocation)
    return make(
        queue=queue if queue in site.partitions else None,
        steps=steps,
        licenses=licenses_of(view),
        running=Running(start=start, segments=(segment,)),
    )


def _holding(view: JobRecord, queue: str, walltime: int, site: Site) -> Holding:
    """Return what a running job has on each of its nodes, with the kind of its chunk there, and its request."""
    amounts = [_held(share, queue, site) for share in view.shares]
    counts = Counter(amounts)
    kinds = {held: (held, index) for index, held in enumerate(counts)}
    chunks = tuple(Chunk(count=count, resources=held) for held, count in counts.items())
    place = Place(arrangement=Arrangement.SCATTER, exclusive=view.exclusive != "" or site.limits(queue).is_alone)
    return [kinds[held] for held in amounts], (Step(walltime=walltime, request=Request(chunks=chunks, place=place)),)


def _in_cpus(share: Share, site: Site) -> Share:
    threads = site.nodes[share.node].threads if share.are_cores else 1
    return share if threads == 1 else replace(share, cpus=share.cpus * threads, are_cores=False)


def _held(share: Share, queue: str, site: Site) -> Amounts:
    has = site.nodes[share.node].gres  # a job may be told a type that its node does not tell
    gres = {name: amount for name, amount in share.gres.items() if name in has or "." not in name}
    amounts = {"cores": share.cpus, "mem": share.memory if site.counts_memory else 0, **gres}
    if site.limits(queue).cpus_per_node is not None:
        amounts[counter_of(queue)] = share.cpus
    return Amounts({name: amount for name, amount in amounts.items() if amount} or {"cores": 1})


def revision_of(job: JobRecord) -> str:
    """Return a short text that changes when what a plan of the job rests on does; of a job as its user asked for it."""
    return _digest(
        (
            job.partitions,
            job.time_limit,
            (job.nodes, job.max_nodes, job.cpus, job.tasks, job.tasks_per_node, job.cpus_per_node, job.exclusive),
            (
                *(job.required_nodes, job.excluded_nodes, job.features, job.licenses, job.reservation),
                *filter(None, (job.within, job.segment)),
            ),
            (job.memory_per_cpu, job.memory_per_node),
            (job.tres_per_job, job.tres_per_node, job.tres_per_socket, job.tres_per_task),
            job.restarts,
        )
    )


@lru_cache(maxsize=2**14)  # many jobs ask alike
def _digest(asked: tuple[Any, ...]) -> str:
    *before, tres, restarts = asked
    texts = [text.replace("gres/", "gres:").replace("=", ":") for text in tres]
    return digest_of((*before, texts, restarts))


def join_components(
    views: Iterable[tuple[str, JobRecord]], jobs: dict[str, Job], left: dict[str, Inexpressible], *, is_planned: bool
) -> None:
    """Make one job of the components of each heterogeneous job that waits, with the id of the first of them.

    The others are left: they start with it. If one of them cannot be planned, or such jobs are not (`is_planned`), none
    is.
    """
    parts: dict[int, list[str]] = defaultdict(list)
    for key, view in views:
        if view.het is not None and not view.state.is_over and (key not in jobs or jobs[key].running is None):
            parts[view.het].append(key)
    for number, keys in parts.items():
        first = keys[0]
        components = [jobs[key] for key in keys if key in jobs]
        lost = [key for key in keys if key in left]
        if not is_planned:
            reason = f"it is a part of heterogeneous job {number}"
        elif lost:
            reason = f"component {lost[0]} of its heterogeneous job {number} is left out: {left[lost[0]]}"
        elif len({component.queue for component in components}) > 1:
            reason = f"the components of its heterogeneous job {number} are in several partitions"
        elif components:
            jobs[keys[0]] = _joined(components)
            reason = f"it starts with job {keys[0]}, of which it is a component"
            keys = keys[1:]
        for key in keys:
            jobs.pop(key, None)
            left.setdefault(key, Inexpressible(reason, is_for_manager=keys[0] == first))


def _joined(components: list[Job]) -> Job:
    """Return one job with the chunks of all components, for as long as the longest of them."""
    requests = [component.request for component in components]
    is_scattered = any(request.place.arrangement is Arrangement.SCATTER for request in requests)
    place = Place(
        arrangement=Arrangement.SCATTER if is_scattered else Arrangement.FREE,
        exclusive=any(request.place.exclusive for request in requests),
    )
    chunks = tuple(chunk for request in requests for chunk in request.chunks)
    licenses = Counter[str]()
    for component in components:
        licenses.update(component.licenses)
    walltime = max(component.walltime for component in components)
    step = Step(walltime=walltime, request=Request(chunks=chunks, place=place))
    return replace(components[0], steps=(step,), alternatives=(), licenses=Amounts(licenses))


def throttled(
    views: Iterable[tuple[str, JobRecord]], takes: Mapping[str, tuple[Take, ...]]
) -> Iterator[tuple[str, tuple[Take, ...]]]:
    """Yield what tasks take of limits, with that on the tasks of their array at a time."""
    tasks = [(key, view) for key, view in views if view.array is not None and not view.state.is_over]
    most = {view.array: view.throttle for _, view in tasks if view.throttle is not None}
    for key, view in tasks:
        bound = most.get(view.array)
        if bound is not None:
            yield key, (*takes.get(key, ()), Take(f"tasks of array {view.array} at a time", bound, 1))
