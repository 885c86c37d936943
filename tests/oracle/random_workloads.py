"""Random tiny workloads for simulators: jobs that come over time, run shorter than asked for, and nodes that fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from cpsched.domain import (
    Access,
    Amounts,
    AreaScope,
    Arrangement,
    Chunk,
    Cluster,
    Consumer,
    ConsumerKind,
    Dependency,
    DependencyType,
    FreePool,
    FrozenMap,
    Instance,
    ItemBound,
    Job,
    KeepFree,
    Limit,
    NodeClass,
    Outage,
    Place,
    Placement,
    Queue,
    Request,
    Reservation,
    ReservationKind,
    Running,
    Segment,
    SetAside,
    Step,
    Validity,
)
from cpsched.lab.sim import BackfillRule, Expectation, Order, QueueRule
from tests.oracle.literal_planner import Node
from tests.oracle.random_instances import LICENSE, clusters, dependencies, rarely, requests, running_jobs

T = TypeVar("T")

#: Seconds of a unit of time: with minutes, estimates are raised several times before they reach the walltime.
UNITS = (1, 60)


@st.composite
def coming_jobs(draw: st.DrawFn, job_id: str, instance: Instance, unit: int) -> Job:
    """Draw a rigid job, or an array, that comes before or after the beginning."""
    now, cluster = instance.now, instance.cluster
    submit = now + unit * draw(st.integers(-3, 9))
    walltime = unit * draw(st.integers(1, 12))
    has_license = bool(cluster.licenses) and draw(st.booleans())
    return Job(
        id=job_id,
        user=draw(st.sampled_from(["ann", "bob", None])),
        queue=draw(st.sampled_from([None, None, None, "short"])),
        submit=submit,
        steps=(Step(walltime=walltime, request=draw(requests(cluster))),),
        licenses=Amounts({LICENSE: draw(st.integers(1, 2))} if has_license else {}),
        not_before=submit + unit * draw(st.integers(-2, 9)) if draw(rarely()) else None,
        array=(0, 3, 5) if draw(rarely()) else None,
        runtime=draw(runtimes(walltime)),
    )


def runtimes(walltime: int) -> st.SearchStrategy[int | None]:
    """Draw how long a job of some walltime really runs: mostly less, sometimes as long, unknown, or longer."""
    shorter = st.integers(1, walltime)
    return shorter | shorter | shorter | st.sampled_from([None, walltime, walltime + 1])


@st.composite
def tidy_running_jobs(draw: st.DrawFn, instance: Instance, most: int) -> list[Job]:
    """Draw jobs that run at the beginning; each leaves alone what others have for themselves, or are to find free."""
    cluster = instance.cluster
    left = {name: dict(cluster.class_of[name].resources) for name in cluster.node_names}
    licenses = dict(cluster.licenses)
    found: list[Job] = []
    for number in range(draw(st.integers(0, most))):
        job = draw(running_jobs(f"r{number}", cluster, left, licenses, instance.now))
        if job is not None and is_tidy(instance, [*found, job]):
            found.append(replace(job, user="ann", runtime=draw(runtimes(job.walltime + 5))))
    return found


def is_tidy(instance: Instance, running: list[Job]) -> bool:
    """Return whether jobs that run keep the rules of their nodes, as far as others are concerned."""
    for name in instance.cluster.node_names:
        node = Node.empty(name, 0, instance.cluster.class_of[name])
        held = [
            (job, placement.resources)
            for job in running
            if job.running is not None
            for placement in job.running.segments[0].allocation
            if placement.node == name
        ]
        if len({job.id for job, _ in held}) > 1 and any(job.request.place.exclusive for job, _ in held):
            return False
        demands = [node.demands(resources) for _, resources in held]
        if any(sum(d.get(counter, 0) for d in demands) > vector.max_avl for counter, vector in node.used.items()):
            return False
    return True


@st.composite
def outages(draw: st.DrawFn, instance: Instance, unit: int) -> tuple[Outage, ...]:
    """Draw some failures of nodes; no job runs on those that an outage has taken already."""
    names, now = instance.cluster.node_names, instance.now
    used = {
        placement.node
        for job in instance.jobs
        for segment in (job.running.segments if job.running else ())
        for placement in segment.allocation
    }
    found = []
    for _ in range(draw(st.sampled_from([0, 0, 1, 2, 3]))):
        start = now + unit * draw(st.integers(-3, 15))
        among = [name for name in names if start > now or name not in used]
        if among:
            chosen = draw(st.lists(st.sampled_from(among), min_size=1, max_size=2, unique=True))
            end = max(start, now) + unit * draw(st.integers(1, 12))
            found.append(Outage(nodes=tuple(chosen), start=start, end=end))
    return tuple(found)


@st.composite
def workloads(draw: st.DrawFn, max_nodes: int = 3, max_jobs: int = 16, max_running: int = 3) -> Instance:
    """Draw a checked workload; `max_jobs` bounds the entries that come, `max_running` those that run already."""
    now, unit = draw(st.sampled_from([0, 0, 100])), draw(st.sampled_from(UNITS))
    instance = Instance(
        name="random",
        now=now,
        cluster=draw(clusters(max_nodes)),
        queues=FrozenMap({"short": Queue(expected_wait=30, max_walltime=9 * unit, weight=2.5)}),
    )
    jobs = draw(tidy_running_jobs(instance, max_running))
    for number in range(draw(st.sampled_from([max_jobs, max_jobs // 2, 2, 1]))):
        job = draw(coming_jobs(f"w{number}", instance, unit))
        jobs.append(replace(job, after=draw(dependencies(jobs)) if draw(rarely()) else ()))
    instance = replace(instance, jobs=tuple(draw(st.permutations(jobs))))
    return replace(instance, outages=draw(outages(instance, unit)))


@st.composite
def set_asides(draw: st.DrawFn, cluster: Cluster) -> SetAside:
    """Draw amounts of one to all nodes and of a licence that are set aside for a time."""
    names = draw(st.lists(st.sampled_from(cluster.node_names), unique=True))
    start = draw(st.integers(0, 20)) * draw(st.sampled_from(UNITS))
    return SetAside(
        start=start,
        end=start + draw(st.integers(1, 12)) * draw(st.sampled_from(UNITS)),
        allocation=tuple(
            Placement(
                node=name,
                resources=Amounts(
                    {
                        resource: draw(st.sampled_from([amount, draw(st.integers(1, amount))]))
                        for resource, amount in cluster.class_of[name].resources.items()
                        if amount and draw(st.booleans())
                    }
                ),
            )
            for name in names
        ),
        licenses=Amounts({name: draw(st.integers(0, amount)) for name, amount in cluster.licenses.items()}),
    )


@st.composite
def restricted_workloads(draw: st.DrawFn) -> Instance:
    """Draw a workload in which amounts are set aside, and jobs have deadlines or one start."""
    instance = draw(workloads())

    def bound(job: Job) -> Job:
        if job.running is not None:
            return job
        start = max(job.submit, instance.now) + draw(st.integers(0, 9)) * draw(st.sampled_from(UNITS))
        how = draw(st.sampled_from(["not", "not", "not", "deadline", "start_at"]))
        if how == "deadline":
            return replace(job, deadline=start + job.walltime)
        return replace(job, start_at=start) if how == "start_at" else job

    return replace(
        instance,
        jobs=tuple(bound(job) for job in instance.jobs),
        set_aside=tuple(draw(st.lists(set_asides(instance.cluster), max_size=3))),
    )


#: The orders of rules that reserve for one job at the most, and of those that reserve for several.
_USUAL = [order for order in Order if order is not Order.SMITH]
_RESERVING = [Order.SUBMISSION, Order.WALLTIME, Order.AREA, Order.WSPT, Order.SMITH, Order.SMITH]
#: Those under which jobs may be due.
_DUE = [Order.SMITH, Order.SMITH, Order.WALLTIME, Order.AREA, Order.WSPT]
_DUE_AFTER = [0.0, 0.5, 1.0, 2.0]


def rules() -> st.SearchStrategy[QueueRule]:
    """Draw a queue rule; some look only at a few jobs, and some know starving jobs."""
    usual = st.builds(
        QueueRule,
        name=st.just("random"),
        backfill=st.sampled_from(
            [BackfillRule.NOT_DELAYING, BackfillRule.ANYBODY, BackfillRule.NOT_DELAYING, BackfillRule.NOBODY]
        ),
        order=st.sampled_from([Order.SUBMISSION, *_USUAL]),
        depth=st.none() | st.integers(0, 4),
        max_starve=st.none() | st.none() | st.integers(0, 30) | st.integers(0, 1200),
        expect=st.sampled_from(Expectation),
    )
    reserving = st.builds(
        QueueRule,
        name=st.just("random"),
        backfill=st.just(BackfillRule.RESERVING),
        order=st.sampled_from(_RESERVING),
        gate=st.none() | st.sampled_from([0.0, 0.5, 2.0]),
        expect=st.sampled_from(Expectation),
    )
    return (
        usual
        | reserving
        | st.builds(replace, reserving, order=st.sampled_from(_DUE), due_after=st.sampled_from(_DUE_AFTER))
    )


class BusyMachine:
    """Draws workloads from a seed in which nearly everybody has to wait: few nodes, and jobs on each other's heels."""

    def __init__(self, seed: int, num_jobs: int = 20) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._unit = self._one_of(UNITS)
        self._num_jobs = num_jobs

    def _one_of(self, values: Sequence[T]) -> T:
        return values[int(self._rng.integers(len(values)))]

    def _happens(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def workload(self) -> Instance:
        """Draw a workload."""
        classes = tuple(
            NodeClass(
                names=tuple(f"{letter}{number}" for number in range(self._one_of([1, 2]))),
                resources=Amounts({"cores": self._one_of([2, 4]), "mem": self._one_of([4, 8]), **others}),
                keep_free=(KeepFree(resource="cores", items=1, beneficiary="gpus"),) if others else (),
            )
            for letter, others in zip("abc", ({}, {}, self._one_of(({}, {"gpus": 1}))), strict=True)
        )
        cluster = Cluster(classes=classes, licenses=Amounts({LICENSE: 2}))
        jobs = [self._running(name, cluster) for name in cluster.node_names if self._happens(0.3)]
        submit = 10
        for number in range(self._num_jobs):
            submit += self._unit * self._one_of([0, 0, 0, 1, 1, 2])
            jobs.append(self._job(f"j{number}", submit, cluster, jobs))
        return Instance(name="busy", now=10, cluster=cluster, jobs=tuple(jobs), outages=self._outages(cluster))

    def _running(self, node: str, cluster: Cluster) -> Job:
        """Draw a job that runs on a node at the beginning; one in five can never start again."""
        start, walltime = 10 - self._one_of([0, 5, 15]), self._unit * self._one_of([1, 3, 6])
        held = Amounts({"cores": self._one_of([1, cluster.class_of[node].resources["cores"] - 1])})
        chunk = Chunk(count=1, resources=held, where=FrozenMap({"arch": "old"} if self._happens(0.2) else {}))
        segment = Segment(
            start=start, end=max(start + walltime, 11), allocation=(Placement(node=node, resources=held),)
        )
        return Job(
            id=f"on-{node}",
            user="ann",
            submit=start - 5,
            steps=(Step(walltime=walltime, request=Request(chunks=(chunk,), place=Place())),),
            running=Running(start=start, segments=(segment,)),
            runtime=self._runtime(walltime),
        )

    def _runtime(self, walltime: int) -> int | None:
        """Draw how long a job really runs: as long as it may, longer, or less."""
        shorter = self._rng.integers(1, walltime, 4, endpoint=True).tolist()
        return self._one_of([None, walltime, walltime + 1, *shorter])

    def _job(self, job_id: str, submit: int, cluster: Cluster, others: Sequence[Job]) -> Job:
        """Draw a job; one in ten waits for others."""
        walltime = self._unit * self._one_of([1, 2, 3, 4, 6, 8, 12])
        arrangement = self._one_of([*[Arrangement.FREE] * 6, Arrangement.SCATTER, Arrangement.PACK])
        kinds = self._one_of([1, 1, 1, 1, 2, 3])
        place = Place(arrangement=arrangement, exclusive=self._happens(0.1))
        request = Request(chunks=tuple(self._chunk(cluster) for _ in range(kinds)), place=place)
        awaits = self._one_of([1, 2]) if others and self._happens(0.1) else 0
        return Job(
            id=job_id,
            user=self._one_of(["ann", "bob"]),
            submit=submit,
            steps=(Step(walltime=walltime, request=request),),
            licenses=Amounts({LICENSE: self._one_of([1, 2])} if self._happens(0.2) else {}),
            after=tuple(
                Dependency(
                    job=self._one_of(others[-6:]).id,
                    type=self._one_of(list(DependencyType)),
                    delay=self._one_of([0, 0, self._unit]),
                )
                for _ in range(awaits)
            ),
            runtime=self._runtime(walltime),
        )

    def _chunk(self, cluster: Cluster) -> Chunk:
        """Draw a kind of chunks; some fill the machine."""
        asked = {"cores": self._one_of([1, 1, 2])}
        if self._happens(0.1):
            asked["mem"] = self._one_of([1, 4])
        if "gpus" in cluster.totals and self._happens(0.15):
            asked["gpus"] = 1
        many = cluster.totals["cores"] // 2 if self._happens(0.15) else 1
        return Chunk(count=self._one_of([1, 1, 2, many]), resources=Amounts(asked))

    def _outages(self, cluster: Cluster) -> tuple[Outage, ...]:
        starts = [10 + self._unit * self._one_of(range(1, 30)) for _ in range(self._one_of([0, 0, 1, 2, 3]))]
        return tuple(
            Outage(
                nodes=(self._one_of(cluster.node_names),),
                start=start,
                end=start + self._unit * self._one_of(range(1, 9)),
            )
            for start in starts
        )

    def restricted(self) -> Instance:
        """Draw a workload in which amounts are set aside, and some jobs have deadlines or one start."""
        instance = self.workload()
        return replace(
            instance,
            jobs=tuple(job if job.running is not None else self._bound(job) for job in instance.jobs),
            set_aside=tuple(self._set_aside(instance.cluster) for _ in range(self._one_of([1, 2, 4]))),
        )

    def _bound(self, job: Job) -> Job:
        start = job.submit + self._unit * self._one_of([0, 1, 4, 9])
        if self._happens(0.1):
            return replace(job, deadline=start + job.walltime)
        return replace(job, start_at=start) if self._happens(0.1) else job

    def _set_aside(self, cluster: Cluster) -> SetAside:
        """Draw amounts of some nodes, or licences, that are set aside for a time."""
        start = 10 + self._unit * self._one_of([-1, 0, 2, 5, 11, 20])
        names = [name for name in cluster.node_names if self._happens(0.4)]
        return SetAside(
            start=start,
            end=start + self._unit * self._one_of([1, 2, 6]),
            allocation=tuple(
                Placement(
                    node=name,
                    resources=cluster.class_of[name].resources if self._happens(0.5) else Amounts({"cores": 1}),
                )
                for name in names
            ),
            licenses=Amounts({LICENSE: self._one_of([1, 2])} if self._happens(0.5) else {}),
        )

    def ruled(self) -> Instance:
        """Draw a workload of a site with limits, free pools, reservations, and nodes of a queue."""
        instance = self.workload()
        cluster = instance.cluster
        reservations = tuple(self._reservation(f"r{number}", cluster) for number in range(self._one_of([0, 1, 2])))
        guests = [one.id for one in reservations if one.kind is ReservationKind.USERS]
        queues = {
            "short": Queue(expected_wait=30, nodes=cluster.node_names[: self._one_of([1, 2])]),
            "long": Queue(expected_wait=300),
        }
        return replace(
            instance,
            epoch=datetime(2026, 3, 2, 8, 0, tzinfo=UTC),
            queues=FrozenMap(queues),
            limits=tuple(self._limit() for _ in range(self._one_of([0, 1, 3]))),
            free_pools=tuple(self._pool(cluster) for _ in range(self._one_of([0, 0, 1]))),
            reservations=reservations,
            jobs=tuple(
                job
                if job.running is not None
                else replace(
                    job,
                    queue=self._one_of(["short", "long", "long", None]),
                    reservation=self._one_of(guests)
                    if guests and self._happens(0.2) and not job.request.place.exclusive
                    else None,
                )
                for job in instance.jobs
            ),
        )

    def _validity(self) -> Validity:
        """Draw when a rule holds: always, for a time, or in each second minute."""
        start = 10 + self._unit * self._one_of([0, 3, 9])
        return self._one_of(
            [
                Validity(),
                Validity(),
                Validity(from_=start, until=start + self._unit * self._one_of([1, 5, 12])),
                Validity(cron="*/2 * * * *", until=3000),
            ]
        )

    def _limit(self) -> Limit:
        consumer = Consumer(kind=ConsumerKind.USER, name=self._one_of(["ann", "bob", None]))
        resource = self._one_of(["cores", "cores", "mem", "jobs", LICENSE, "*"])
        bounds: dict[str, Any] = self._one_of(
            [
                {"items": ItemBound(least=self._one_of([1, 2, 4]))},
                {"items": ItemBound(percent=Fraction(self._one_of([25, 50])))},
                {"duration": self._unit * self._one_of([2, 6])},
                {"area": self._unit * self._one_of([4, 16])},
                {"area": self._unit * self._one_of([8, 32]), "area_scope": AreaScope.OUTSTANDING},
            ]
        )
        return Limit(consumer=consumer, resource=resource, validity=self._validity(), soft=self._happens(0.1), **bounds)

    def _pool(self, cluster: Cluster) -> FreePool:
        access = self._one_of(
            [Access(users=("ann",)), Access(max=Amounts({"cores": 1})), Access(max_walltime=2 * self._unit)]
        )
        nodes = cluster.node_names[1:] if self._happens(0.5) else None
        items = ItemBound(least=self._one_of([1, 3]))
        return FreePool(resource="cores", items=items, open_to=access, validity=self._validity(), nodes=nodes)

    def _reservation(self, name: str, cluster: Cluster) -> Reservation:
        start = 10 + self._unit * self._one_of([0, 2, 5, 11])
        kind = self._one_of([ReservationKind.USERS, ReservationKind.DOWNTIME])
        chunk = Chunk(count=self._one_of([1, 2]), resources=Amounts({"cores": self._one_of([1, 2])}))
        return Reservation(
            id=name,
            start=start,
            end=start + self._unit * self._one_of([3, 8, 20]),
            request=Request(chunks=(chunk,), place=Place(exclusive=kind is ReservationKind.DOWNTIME)),
            kind=kind,
            users=("ann",) if self._happens(0.2) else (),
        )

    def rule(self) -> QueueRule:
        """Draw a rule; most let others past the head, and some look at a few jobs only, or know starving ones."""
        if self._happens(0.3):
            return QueueRule(
                name="drawn",
                backfill=BackfillRule.RESERVING,
                order=(order := self._one_of(_RESERVING)),
                gate=self._one_of([None, None, 0.0, 1.0, 2.0]),
                due_after=self._one_of([None, *_DUE_AFTER]) if order in _DUE else None,
                expect=self._one_of([*Expectation]),
            )
        return QueueRule(
            name="drawn",
            backfill=self._one_of(
                [
                    BackfillRule.NOT_DELAYING,
                    BackfillRule.NOT_DELAYING,
                    BackfillRule.NOT_DELAYING,
                    BackfillRule.ANYBODY,
                    BackfillRule.NOBODY,
                ]
            ),
            order=self._one_of([Order.SUBMISSION, Order.SUBMISSION, *_USUAL]),
            depth=self._one_of([None, None, 1, 2, 4]),
            max_starve=self._one_of([None, None, None, 4 * self._unit, 20 * self._unit]),
            expect=self._one_of([Expectation.WALLTIME, *Expectation]),
        )
