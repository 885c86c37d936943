"""The least objective value of a tiny instance, by trying everything.

Why serial insertion is enough: the objective grows with the starts (it is regular), so some optimal plan is active:
no job alone can start earlier on its own nodes. Take the jobs of such a plan by ascending start, and insert each, on
its nodes, at the first second at which it fits beside those inserted before. By induction those stand where the plan
has them, so the job's start in the plan fits. An earlier start cannot fit: up to the job's start nobody runs who is
not yet inserted, and from there on the job holds its nodes in the plan anyway, so it would fit in the whole plan as
well, which was active. Hence trying all orders and, for each job, all ways to lay its chunks on nodes meets an
optimal plan. What a job needs is constant over its life and all rules speak of one moment (capacities, licences,
keep_free, exclusive nodes), so a start fits if it fits at that start and wherever another job begins in between; and
the first one that fits is the earliest allowed or the end of another job.

Known to it: rigid jobs, places, topology, node states, guards, properties, keep_free, licences, running jobs, submit,
not_before, the prices of max_wait (not hard) and of told starts, and alternatives that take longer than the job's own
request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

from cpsched.domain import Arrangement, Chunk, Cluster, Instance, Job, NodeState, PlannedJob
from cpsched.metrics import objective_value

Nodes = tuple[str, ...]

#: For each kind of chunk the node of each of its chunks.
Layout = tuple[Nodes, ...]


@dataclass(frozen=True)
class Booking:
    """What one job holds during ``[start, end)``: on each node per resource, and of each licence."""

    start: int
    end: int
    held: Mapping[str, Mapping[str, int]]
    #: The part of `held` that stands behind each keep_free rule: by node and beneficiary.
    outsiders: Mapping[tuple[str, str], Mapping[str, int]]
    licenses: Mapping[str, int]
    exclusive: bool


@dataclass(frozen=True)
class Best:
    """The least value, and a plan that has it: start and layout by job; jobs without any layout are missing."""

    value: float
    starts: Mapping[str, int]
    layouts: Mapping[str, Layout]
    #: Which of its choices each job has.
    choices: Mapping[str, int]


def least_weighted_wait(instance: Instance) -> Best:
    """Return the least sum of (start - submit) / expected wait, and of what overdue and postponed jobs cost beside it,
    over the jobs that can be placed at all.
    """
    running = [_running_booking(instance.cluster, job) for job in instance.jobs if job.running is not None]
    waiting = [job for job in instance.jobs if job.running is None]
    layouts = {
        job.id: [(n, one, layout) for n, one in enumerate(job.choices) for layout in _layouts(instance.cluster, one)]
        for job in waiting
    }
    placeable = [job for job in waiting if layouts[job.id]]
    best = Best(float("inf"), {}, {}, {})

    @cache
    def cost(job: Job, start: int) -> float:
        return objective_value(instance, [PlannedJob(id=job.id, start=start, end=start + job.walltime, segments=())])

    def insert(
        rest: list[Job], booked: list[Booking], value: float, chosen: dict[str, tuple[int, Layout, int]]
    ) -> None:
        nonlocal best
        if value >= best.value:
            return
        if not rest:
            starts = {job: start for job, (start, _, _) in chosen.items()}
            laid = {job: layout for job, (_, layout, _) in chosen.items()}
            best = Best(value, starts, laid, {job: number for job, (_, _, number) in chosen.items()})
            return
        for job in rest:
            others = [other for other in rest if other is not job]
            for number, one, layout in layouts[job.id]:
                booking = _earliest(instance, one, layout, booked)
                after = value + cost(one, booking.start)
                insert(others, [*booked, booking], after, {**chosen, job.id: (booking.start, layout, number)})

    insert(placeable, running, 0.0, {})
    return best


def _layouts(cluster: Cluster, job: Job) -> Iterator[Layout]:
    """Yield every way to lay the chunks of a job on nodes that would be possible on an idle cluster."""
    if any(amount > cluster.licenses.get(name, 0) for name, amount in job.licenses.items()):
        return
    per_kind = [list(_choices(cluster, job, chunk)) for chunk in job.request.chunks]
    place = job.request.place
    for layout in product(*per_kind):
        nodes = [node for kind in layout for node in kind]
        if place.arrangement is Arrangement.PACK and len(set(nodes)) > 1:
            continue
        if place.arrangement is Arrangement.SCATTER and len(set(nodes)) < len(nodes):
            continue
        if place.within is not None and not any(
            set(nodes) <= set(group) for group in cluster.topology[place.within].values()
        ):
            continue
        alone = _booking(cluster, job, layout, 0)
        if _fits(cluster, alone, []):
            yield layout


def _choices(cluster: Cluster, job: Job, chunk: Chunk) -> Iterator[Nodes]:
    """Yield the multisets of nodes for the chunks of one kind, as tuples in node order."""
    usable = [
        name
        for name, node_class in cluster.class_of.items()
        if node_class.state is NodeState.UP
        and node_class.is_admitted(chunk.resources, job.walltime)
        and all(node_class.properties.get(key) == value for key, value in chunk.where.items())
    ]
    yield from (
        nodes for nodes in product(usable, repeat=chunk.count) if list(nodes) == sorted(nodes, key=usable.index)
    )


def _earliest(instance: Instance, job: Job, layout: Layout, booked: list[Booking]) -> Booking:
    earliest = instance.earliest_start(job)
    for start in sorted({earliest, *(other.end for other in booked if other.end > earliest)}):
        booking = _booking(instance.cluster, job, layout, start)
        if _fits(instance.cluster, booking, booked):
            return booking
    raise AssertionError(f"{job.id} fits on the idle cluster, so it fits after all others")


def _booking(cluster: Cluster, job: Job, layout: Layout, start: int) -> Booking:
    held: dict[str, dict[str, int]] = {}
    outsiders: dict[tuple[str, str], dict[str, int]] = {}
    for chunk, nodes in zip(job.request.chunks, layout, strict=True):
        for node in nodes:
            _add(held.setdefault(node, {}), chunk.resources)
            for beneficiary in {rule.beneficiary for rule in cluster.class_of[node].keep_free}:
                if not chunk.resources.get(beneficiary):
                    _add(outsiders.setdefault((node, beneficiary), {}), chunk.resources)
    return Booking(start, start + job.walltime, held, outsiders, job.licenses, job.request.place.exclusive)


def _running_booking(cluster: Cluster, job: Job) -> Booking:
    assert job.running is not None
    (segment,) = job.running.segments
    held = {placement.node: dict(placement.resources) for placement in segment.allocation}
    outsiders = {
        (node, rule.beneficiary): amounts
        for node, amounts in held.items()
        for rule in cluster.class_of[node].keep_free
        if not amounts.get(rule.beneficiary)
    }
    return Booking(segment.start, segment.end, held, outsiders, job.licenses, job.request.place.exclusive)


def _add(amounts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount


def _fits(cluster: Cluster, booking: Booking, booked: list[Booking]) -> bool:
    beside = [other for other in booked if other.start < booking.end and booking.start < other.end]
    moments = {booking.start, *(other.start for other in beside if other.start > booking.start)}
    return all(
        _is_allowed(cluster, booking, [other for other in beside if other.start <= moment < other.end])
        for moment in moments
    )


def _is_allowed(cluster: Cluster, booking: Booking, others: list[Booking]) -> bool:
    """Return whether `booking` may stand beside `others` at one moment."""
    everyone = [booking, *others]
    for name in booking.licenses:
        if sum(each.licenses.get(name, 0) for each in everyone) > cluster.licenses.get(name, 0):
            return False
    for node in booking.held:
        node_class = cluster.class_of[node]
        present = [other for other in others if node in other.held]
        if present and (booking.exclusive or any(other.exclusive for other in present)):
            return False
        for name in booking.held[node]:
            if sum(each.held.get(node, {}).get(name, 0) for each in everyone) > node_class.resources.get(name, 0):
                return False
        for rule in node_class.keep_free:
            key = (node, rule.beneficiary)
            if booking.exclusive and key in booking.outsiders:
                return False
            taken = sum(each.outsiders.get(key, {}).get(rule.resource, 0) for each in everyone)
            if key in booking.outsiders and taken > max(0, node_class.resources.get(rule.resource, 0) - rule.items):
                return False
    return True
