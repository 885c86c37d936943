"""Reservations of Slurm in an instance.

A reservation of whole nodes that are up and free is a reservation there too, and one with the flag ``MAINT`` that no
job names a downtime. All others are free pools that only their own jobs have access to, since a reservation of an
instance is had as a whole or not at all: those of cores or licences, on nodes on which jobs still run or which others
have reserved too, and those whose jobs may be elsewhere (``MAGNETIC``, ``FLEX``). Their jobs ask for a licence that
says so, and on the reserved nodes for what is reserved there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from cpsched.domain import (
    Access,
    Amounts,
    Cluster,
    FreePool,
    Instance,
    ItemBound,
    Job,
    NodeState,
    Request,
    Reservation,
    ReservationKind,
    Validity,
)
from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.slurm.records import JobRecord, ReservationRecord

#: There are so many of the licences that say whose job a job is.
_ENOUGH = 10**6
#: With one of these, jobs of a reservation may be elsewhere, or others on its nodes.
_LOOSE = frozenset({"MAGNETIC", "FLEX", "OVERLAP"})


def with_reservations(
    instance: Instance, records: Sequence[ReservationRecord], views: Mapping[str, JobRecord]
) -> Instance:
    """Return an instance with the reservations that have not ended; `views` are its jobs as Slurm has them."""
    coming = [one for one in records if one.end > max(instance.now, one.start)]
    nodes = {one.name: _nodes(one, instance.cluster) for one in coming}
    coming = [one for one in coming if nodes[one.name] or one.licenses]
    if not coming:
        return instance
    named = {job.reservation for job in instance.jobs}
    busy = _busy(instance)
    plain, pooled = list[Reservation](), list[ReservationRecord]()
    for one in coming:
        others = [other for other in coming if other is not one and _meet(one, other, nodes)]
        reservation = _plain(one, nodes[one.name], instance.cluster, is_named=one.name in named)
        is_downtime = reservation is not None and reservation.kind is ReservationKind.DOWNTIME
        is_free = not others and all(busy.get(name, 0) <= one.start for name in nodes[one.name])
        if reservation is not None and (is_downtime or is_free):
            plain.append(reservation)
        else:
            pooled.append(one)
    names = {one.name for one in pooled}
    return replace(
        instance,
        cluster=_with_counters(instance.cluster, pooled, nodes),
        jobs=tuple(_member(job, views.get(job.id), pooled) for job in instance.jobs) if names else instance.jobs,
        reservations=tuple(plain),
        free_pools=tuple(pool for one in pooled for pool in _pools(one, pooled, nodes, instance.cluster)),
    )


def _nodes(record: ReservationRecord, cluster: Cluster) -> tuple[str, ...]:
    try:
        names = expand_hostlist(record.nodes) if record.nodes else ()
    except SyntaxFault:
        names = ()
    return tuple(dict.fromkeys(name for name in names if name in cluster.class_of))


def _busy(instance: Instance) -> dict[str, int]:
    """Return until when jobs that run now are on each node."""
    found: dict[str, int] = {}
    for job in instance.jobs:
        for segment in job.running.segments if job.running is not None else ():
            for place in segment.allocation:
                found[place.node] = max(found.get(place.node, 0), segment.end)
    return found


def _meet(one: ReservationRecord, other: ReservationRecord, nodes: Mapping[str, Sequence[str]]) -> bool:
    is_at_once = one.start < other.end and other.start < one.end
    return is_at_once and not set(nodes[one.name]).isdisjoint(nodes[other.name])


def _plain(record: ReservationRecord, nodes: Sequence[str], cluster: Cluster, *, is_named: bool) -> Reservation | None:
    """Return a reservation of whole nodes, those that are up, or a downtime; None if it is neither."""
    is_downtime = "MAINT" in record.flags and not is_named
    kept = tuple(name for name in nodes if is_downtime or cluster.class_of[name].state is NodeState.UP)
    if not kept or (not is_downtime and (record.licenses or record.cores or "MAINT" in record.flags)):
        return None
    if not is_downtime and not _LOOSE.isdisjoint(record.flags):
        return None
    return Reservation(
        id=record.name,
        start=record.start,
        end=record.end,
        nodes=kept,
        users=() if is_downtime else tuple(user for user in record.users if user[:1] != "-"),
        kind=ReservationKind.DOWNTIME if is_downtime else ReservationKind.USERS,
    )


def _membership(name: str) -> str:
    """Return the licence that jobs of a reservation ask for."""
    return f"reservation {name}"


def _counter(name: str) -> str:
    """Return the resource of reserved nodes of which there is what is reserved on them."""
    return f"reservation.{name}"


def _with_counters(
    cluster: Cluster, pooled: Sequence[ReservationRecord], nodes: Mapping[str, Sequence[str]]
) -> Cluster:
    """Return the nodes with what is reserved on each of them, and the licences of the members."""
    has: dict[str, dict[str, int]] = {}
    for one in pooled:
        for name in nodes[one.name]:
            cores = cluster.class_of[name].resources.get("cores", 0)
            reserved = cores if one.cores is None else one.cores.get(name, 0)
            if reserved:
                has.setdefault(name, {})[_counter(one.name)] = min(reserved, cores)
    classes = []
    for one in cluster.classes:
        groups: dict[Amounts, list[str]] = {}
        for name in one.names:
            groups.setdefault(Amounts({**one.resources, **has.get(name, {})}), []).append(name)
        classes += [replace(one, names=tuple(names), resources=amounts) for amounts, names in groups.items()]
    members = {_membership(one.name): _ENOUGH for one in pooled}
    return Cluster(classes=tuple(classes), licenses=Amounts({**cluster.licenses, **members}))


def _member(job: Job, view: JobRecord | None, pooled: Sequence[ReservationRecord]) -> Job:
    """Return a job with what lets it into the reservations that it names, or that draw it."""
    if view is None or job.running is not None:
        return job
    for one in pooled:
        is_named = job.reservation == one.name
        if not is_named and (job.reservation or "MAGNETIC" not in one.flags or not _admits(one, view)):
            continue
        job = replace(job, licenses=Amounts({**job.licenses, _membership(one.name): 1}))
        if is_named and "FLEX" in one.flags:
            job = replace(job, reservation=None)
        elif is_named:
            inside = (
                job
                if not one.nodes
                else replace(job, steps=(replace(job.steps[0], request=_inside(job.request, one)),))
            )
            return replace(
                inside,
                reservation=None,
                not_before=max(one.start, job.not_before or one.start),
                deadline=min(one.end, job.deadline or one.end),
            )
    return job


def _admits(record: ReservationRecord, view: JobRecord) -> bool:
    """Tell whether a job is of the users, accounts or groups of a reservation."""
    for names, mine in ((record.users, view.user), (record.accounts, view.account), (record.groups, view.group)):
        barred = {name[1:] for name in names if name[:1] == "-"}
        if mine in names or (barred and mine not in barred):
            return True
    return False


def _inside(request: Request, record: ReservationRecord) -> Request:
    """Return a request for what is reserved."""
    counter = _counter(record.name)
    chunks = (
        replace(chunk, resources=Amounts({**chunk.resources, counter: chunk.resources.get("cores", 1)}))
        for chunk in request.chunks
    )
    return Request(chunks=tuple(chunks), place=request.place)


def _pools(
    record: ReservationRecord,
    pooled: Sequence[ReservationRecord],
    nodes: Mapping[str, Sequence[str]],
    cluster: Cluster,
) -> Iterator[FreePool]:
    """Yield what others leave free while a reservation lasts; jobs of all reservations of a node are let in."""
    during = Validity(from_=record.start, until=record.end)

    def pool(resource: str, items: ItemBound, members: Sequence[str], names: tuple[str, ...] | None) -> FreePool:
        let_in = Access(asks_for=tuple(map(_membership, members)))
        return FreePool(resource=resource, items=items, open_to=let_in, validity=during, nodes=names)

    for name, amount in record.licenses.items():
        if name in cluster.licenses:
            yield pool(name, ItemBound(least=amount), (record.name,), None)
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in nodes[record.name]:
        members = tuple(one.name for one in pooled if node in nodes[one.name] and _meet(record, one, nodes))
        if record.cores is None:
            groups.setdefault(members, []).append(node)
        elif reserved := record.cores.get(node, 0):
            yield pool("cores", ItemBound(least=reserved), members, (node,))
    for members, names in groups.items():
        yield pool("cores", ItemBound(percent=Fraction(100)), members, tuple(names))
