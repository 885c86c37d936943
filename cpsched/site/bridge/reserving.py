"""Reservations as free pools: what others leave free while they last, whatever runs there when they begin.

A reservation of an instance is had as a whole or not at all. So those of managers that are on nodes on which jobs still
run, on nodes of several reservations, of some cores or of licences are pools that only their own jobs have access to.
These ask for a licence that says so, and on the reserved nodes for what is reserved there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from cpsched.domain import Access, Amounts, Cluster, FreePool, Instance, ItemBound, Job, Step, Validity

#: There are so many of the licences that say whose job a job is.
_ENOUGH = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What is reserved."""

    name: str
    #: None: not known, it has begun or has no end.
    start: int | None
    end: int | None
    #: Nodes of the cluster.
    nodes: tuple[str, ...]
    #: How many cores of each node; None: all.
    cores: Amounts | None = None
    licenses: Amounts = Amounts()
    #: The times at which it comes again.
    again: tuple[Validity, ...] = ()

    def meets(self, other: "Reserved") -> bool:
        """Tell whether two of them are at the same time on the same nodes."""
        for one, two in ((self, other), (other, self)):
            if one.end is not None and not one.again and two.start is not None and one.end <= two.start:
                return False
        return not set(self.nodes).isdisjoint(other.nodes)


def for_members_only(
    instance: Instance,
    reserved: Sequence[Reserved],
    inside: Mapping[str, Reserved],
    let_in: Mapping[str, Sequence[Reserved]],
) -> Instance:
    """Return an instance in which only their jobs have what is reserved.

    `inside`: by id the jobs that run in a reservation, and in which one. `let_in`: those that may be in some.
    """
    if not reserved:
        return instance

    def member(job: Job) -> Job:
        mine = (*let_in.get(job.id, ()), *((inside[job.id],) if job.id in inside else ()))
        if not mine or job.running is not None:
            return job
        job = replace(
            job, licenses=Amounts({**job.licenses, **{_membership(one): 1 for one in mine}}), reservation=None
        )
        return _inside(job, inside[job.id]) if job.id in inside else job

    return replace(
        instance,
        cluster=_with_counters(instance.cluster, reserved),
        jobs=tuple(map(member, instance.jobs)),
        free_pools=(
            *instance.free_pools,
            *(pool for one in reserved for pool in _pools(one, reserved, instance.cluster)),
        ),
    )


def _membership(one: Reserved) -> str:
    """Return the licence that jobs of a reservation ask for."""
    return f"reservation {one.name}"


def _counter(one: Reserved) -> str:
    """Return the resource of reserved nodes of which there is what is reserved on them."""
    return f"reservation.{one.name}"


def _with_counters(cluster: Cluster, reserved: Sequence[Reserved]) -> Cluster:
    """Return the nodes with what is reserved on each of them, and the licences of the members."""
    has: dict[str, dict[str, int]] = {}
    for one in reserved:
        for name in one.nodes:
            cores = cluster.class_of[name].resources.get("cores", 0)
            mine = cores if one.cores is None else min(cores, one.cores.get(name, 0))
            if mine:
                has.setdefault(name, {})[_counter(one)] = mine
    classes = []
    for node_class in cluster.classes:
        groups: dict[Amounts, list[str]] = {}
        for name in node_class.names:
            groups.setdefault(Amounts({**node_class.resources, **has.get(name, {})}), []).append(name)
        classes += [replace(node_class, names=tuple(names), resources=amounts) for amounts, names in groups.items()]
    members = {_membership(one): _ENOUGH for one in reserved}
    return cluster.of(classes, Amounts({**cluster.licenses, **members}))


def _inside(job: Job, one: Reserved) -> Job:
    """Return a job that asks for what is reserved, and is over when its reservation is."""
    if one.nodes:
        steps, alternatives = (tuple(_reserved(step, one) for step in part) for part in (job.steps, job.alternatives))
        job = replace(job, steps=steps, alternatives=alternatives)
    begins = [at for at in (one.start, job.not_before) if at is not None]
    ends = [at for at in (one.end, job.deadline) if at is not None]
    return replace(job, not_before=max(begins, default=None), deadline=min(ends, default=None))


def _reserved(step: Step, one: Reserved) -> Step:
    chunks = (
        replace(part, resources=Amounts({**part.resources, _counter(one): part.resources.get("cores", 1)}))
        for part in step.request.chunks
    )
    return replace(step, request=replace(step.request, chunks=tuple(chunks)))


def _pools(one: Reserved, reserved: Sequence[Reserved], cluster: Cluster) -> Iterator[FreePool]:
    """Yield what others leave free while a reservation lasts; jobs of all reservations of a node are let in."""
    times = (Validity(from_=one.start, until=one.end), *one.again)

    def pools(
        resource: str, items: ItemBound, members: Sequence[str], names: tuple[str, ...] | None
    ) -> Iterator[FreePool]:
        access = Access(asks_for=tuple(members))
        for during in times:
            yield FreePool(resource=resource, items=items, open_to=access, validity=during, nodes=names)

    for name, amount in one.licenses.items():
        if name in cluster.licenses:
            yield from pools(name, ItemBound(least=amount), (_membership(one),), None)
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in one.nodes:
        members = tuple(_membership(other) for other in reserved if node in other.nodes and one.meets(other))
        if one.cores is None:
            groups.setdefault(members, []).append(node)
        elif amount := one.cores.get(node, 0):
            yield from pools("cores", ItemBound(least=amount), members, (node,))
    for members, names in groups.items():
        yield from pools("cores", ItemBound(percent=Fraction(100)), members, tuple(names))
