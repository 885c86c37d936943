"""Small documents, and random instances and plans, for the tests of the formats."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from cpsched.domain import (
    Access,
    AdmitCondition,
    Amounts,
    AreaScope,
    Arrangement,
    Chunk,
    Cluster,
    Consumer,
    ConsumerKind,
    Dependency,
    DependencyType,
    EngineReport,
    Event,
    FreePool,
    FrozenMap,
    Incumbent,
    Instance,
    ItemBound,
    Job,
    KeepFree,
    Limit,
    Malleability,
    MaxWait,
    NodeClass,
    NodeState,
    Objective,
    ObjectiveTerm,
    Outage,
    Place,
    Placement,
    Plan,
    PlannedJob,
    PromisedStart,
    Queue,
    Request,
    Reservation,
    ReservationKind,
    ReservedSlice,
    Running,
    RuntimeModel,
    Score,
    Segment,
    Step,
    Usage,
    Validity,
    WaitingJob,
    WaitingReason,
)

_INSTANCE: dict[str, Any] = {
    "format": "cpsched-instance/1",
    "name": "small",
    "epoch": "2014-03-31T18:00:00+02:00",
    "time_zone": "Europe/Berlin",
    "now": 0,
    "cluster": {
        "nodes": [
            {"names": "cn[1-2]", "resources": {"cores": 16, "mem": 32768, "gpus": 2}, "properties": {"rack": "1"}},
            {
                "names": "fat1",
                "resources": {"cores": 32, "mem": 65536},
                "admits": [{"min": {"mem": 1024}}, {"max_walltime": 3600}],
                "keep_free": [{"resource": "cores", "items": 2, "for": "gpus"}],
            },
        ],
        "licenses": {"abaqus": 4},
        "states": {"cn2": "up", "fat1": "drain"},
    },
    "queues": {"debug": {"expected_wait": 1800, "priority": 20, "max_wait": {"seconds": 7200, "hard": True},
                         "nodes": "cn[1-2]"},
               "long": {"expected_wait": 86400, "weight": 0.5, "nodes": {"rack": "1"},
                        "max_wait": {"seconds": 604800, "price": 2.5}}},
    "jobs": [
        {
            "id": "1", "user": "u1", "queue": "debug", "submit": -900, "walltime": 1800, "request": "1:ncpus=16",
            "running": {"start": -600, "allocation": [{"node": "cn1", "resources": {"cores": 16}}]},
        },
        {"id": "2", "queue": "long", "weight": 2.5, "submit": -90, "walltime": 600,
         "request": "2:ncpus=4:mem=1g,place=scatter,abaqus=2", "preemptible": {"by": "checkpoint", "interval": 60},
         "told": {"start": 900, "price": 0.5}},
        {"id": "3", "submit": 0, "walltime": 60, "request": [{"count": 2, "resources": {"cores": 1}}],
         "array": {"indices": "0-9"}, "told": {"start": -5},
         "after": [{"job": "2", "type": "afterok", "max_delay": 900000}]},
        {"id": "4", "submit": 0, "expand_limit": None,
         "steps": [{"walltime": 50, "request": "2:ncpus=1"}, {"walltime": 60, "request": "1:ncpus=1"}]},
        {"id": "5", "submit": 0, "walltime": 60, "request": "ncpus=4",
         "malleable": {"shares": [0.5], "stretch": {"0.5": 1.8}}, "reservation": "r1"},
        {"id": "6", "submit": -90, "walltime": 600, "request": "2:ncpus=4:mem=1g", "malleable": {"shares": [0.5]},
         "running": {"start": -60, "segments": [
            {"start": -60, "end": -20, "allocation": [
                {"node": "cn2", "chunk": 0, "count": 2, "resources": {"cores": 8, "mem": 2048}}]},
            {"start": -20, "end": 1100, "allocation": [
                {"node": "cn2", "chunk": 0, "count": 2, "resources": {"cores": 4, "mem": 2048}}]}]}},
    ],
    "limits": [{"consumer": {"each": "user"}, "resource": "gpus", "items": "1/50%",
                "validity": {"cron": "* 8-17 * * mon-fri"}}],
    "free_pools": [{"resource": "cores", "items": "20%", "open_to": {"asks_for": ["gpus"]}, "nodes": "cn[1-2]"}],
    "reservations": [
        {"id": "r1", "start": 100, "end": 900, "request": "2:ncpus=8"},
        {"id": "maint", "kind": "downtime", "nodes": "cn2", "start": 9000, "end": 9900},
        {"id": "weekly", "nodes": "fat1", "validity": {"cron": "* 8 * * mon", "from": 0, "until": 10000000},
         "licenses": {"abaqus": 1}, "users": ["u1"]},
        {"id": "kept", "request": "2:ncpus=1", "start": -5, "end": 5000, "place": "scatter",
         "allocation": [{"node": "cn1", "chunk": 0, "count": 1, "resources": {"cores": 1}},
                        {"node": "fat1", "chunk": 0, "count": 1, "resources": {"cores": 1}}]},
    ],
    "usage": [{"consumer": {"user": "u1"}, "resource": "cores", "area": 1000}],
    "fair_share": {
        "half_life": 604800,
        "influence": 0.25,
        "accounts": {"physics": {"shares": 3}, "qcd": {"parent": "physics"}},
        "users": [{"user": "u1", "account": "qcd", "shares": 2, "usage": 3600}, {"user": "u2"}],
    },
    "objective": {"weighted_wait": 1.0, "makespan": 0.001},
    "preemption": {"queues": {"debug": ["long"]}, "stops": 2, "notice": 30, "exempt": 60, "resume": True},
    "outages": [{"nodes": "cn[1-2]", "start": 500, "end": 600}, {"nodes": "fat1", "start": -5, "end": 0}],
}  # fmt: skip

_PLAN: dict[str, Any] = {
    "format": "cpsched-plan/1",
    "instance": "small",
    "now": 0,
    "objective": {"name": "weighted_wait", "value": 2.5, "bound": None, "gap": None, "planner": 2.5, "suffered": 0.5},
    "engine": {"name": "planner", "version": "0.1.0", "budget": 10.0, "elapsed": 0.5, "stopped": "done"},
    "jobs": [
        {"id": "2", "start": 10, "end": 20, "segments": [{"start": 10, "end": 20, "allocation": [
            {"node": "cn1", "chunk": 0, "count": 2, "resources": {"cores": 4}}]}]},
    ],
    "waiting_room": [{"id": "1302", "reason": "unsatisfiable", "detail": "asks for 3 gpus"}],
}  # fmt: skip


def small_instance() -> dict[str, Any]:
    """Return a document with something of every section, valid, free to be changed."""
    return copy.deepcopy(_INSTANCE)


def small_plan() -> dict[str, Any]:
    """Return a small valid plan document, free to be changed."""
    return copy.deepcopy(_PLAN)


def minimal_instance(*jobs: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return an instance of two nodes cn1 and cn2 with 4 cores, and the given jobs and other keys."""
    nodes = [{"names": "cn[1-2]", "resources": {"cores": 4}}]
    return {"format": "cpsched-instance/1", "name": "m", "cluster": {"nodes": nodes}, "jobs": list(jobs)} | keys


def job(name: str, **keys: Any) -> dict[str, Any]:
    """Return a job of one core and 100 s, with other keys put in or (None) left out."""
    document = {"id": name, "submit": 0, "walltime": 100, "request": "ncpus=1"} | keys
    return {key: value for key, value in document.items() if value is not None}


#: Names with characters that the short notations use themselves.
names = st.text(st.sampled_from("ab1-_.:+,=[]é% "), min_size=1, max_size=6)
_times = st.integers(-1000, 10**6)
_durations = st.integers(1, 10**5)
_RESOURCES = ("cores", "mem", "gpus", "mics", "fpga")
_validities = st.one_of(
    st.just(Validity()),
    st.builds(lambda a, d: Validity(from_=a, until=a + d), _times, _durations),
    st.just(Validity(cron="0-59 8-17 * * 1-5")),
    st.builds(lambda a: Validity(from_=a, cron="0 */2 * * *"), _times),
)
_items = st.one_of(
    st.builds(ItemBound, least=st.integers(0, 99)),
    st.builds(
        ItemBound,
        least=st.none() | st.integers(0, 9),
        percent=st.builds(Fraction, st.integers(0, 1000), st.just(10)),
    ),
)
_consumers = st.builds(Consumer, kind=st.sampled_from(ConsumerKind), name=names)


_prices = st.sampled_from([0, 1, 10, 0.1]) | st.floats(0, 1e9)
_weights = st.sampled_from([1, 2, 0.1]) | st.floats(1e-9, 1e9)


def _amounts(smallest: int, most: int = 3, *, fewest: int = 0) -> st.SearchStrategy[Amounts]:
    keys = st.sampled_from(_RESOURCES)
    return st.dictionaries(keys, st.integers(smallest, 5000), min_size=fewest, max_size=most).map(Amounts)


_places = st.builds(Place, arrangement=st.sampled_from(Arrangement), exclusive=st.booleans())
_chunks = st.builds(
    Chunk,
    count=st.integers(1, 20),
    resources=_amounts(1, fewest=1),
    where=st.dictionaries(st.sampled_from(["rack", "net", "ncpus", "cores"]) | names, names, max_size=2).map(FrozenMap),
)
_chunk_lists = st.lists(_chunks, min_size=1, max_size=3).map(tuple)
requests = st.builds(Request, chunks=_chunk_lists, place=_places)
_guards = st.builds(AdmitCondition, min=_amounts(1, fewest=1)) | st.builds(AdmitCondition, max_walltime=_durations)
_licenses = st.dictionaries(names, st.integers(1, 9), max_size=2).map(Amounts)


@st.composite
def _clusters(draw: st.DrawFn) -> Cluster:
    prefixes = draw(st.lists(st.sampled_from(["cn", "fat", "n0", "r1-x"]), min_size=1, unique=True))
    classes = [
        NodeClass(
            names=tuple(f"{prefix}{number}" for number in draw(st.lists(st.integers(1, 120), min_size=1, unique=True))),
            resources=draw(_amounts(0, 5)) if index else Amounts(dict.fromkeys(_RESOURCES, 5)),
            properties=draw(st.dictionaries(names, names, max_size=2).map(FrozenMap)),
            priority=draw(st.integers(-2, 2)),
            state=draw(st.sampled_from(NodeState)),
            admits=tuple(draw(st.lists(_guards, max_size=2))),
            keep_free=draw(st.just(()) | st.just((KeepFree(resource="cores", items=2, beneficiary="gpus"),))),
        )
        for index, prefix in enumerate(prefixes)
    ]
    return Cluster(classes=tuple(classes), licenses=draw(_licenses))


@st.composite
def _jobs(draw: st.DrawFn, index: int, queue_names: list[str], earlier: list[str]) -> Job:
    place = draw(_places)
    steps = [
        Step(walltime=draw(_durations), request=Request(chunks=draw(_chunk_lists), place=place))
        for _ in range(draw(st.integers(1, 3)))
    ]
    malleability = None
    if len(steps) == 1 and draw(st.booleans()):
        model = draw(st.sampled_from(RuntimeModel))
        malleability = Malleability(shares=(0.75, 0.1), model=model, stretch=FrozenMap({0.1: 12.5}))
    types = st.sampled_from(DependencyType)
    after = [Dependency(job=name, type=draw(types), delay=draw(st.integers(0, 9))) for name in earlier[-2:]]
    is_rigid = len(steps) == 1 and malleability is None
    optional_times = st.none() | _times
    return Job(
        id=f"j{index}",
        user=draw(st.none() | names),
        group=draw(st.none() | names),
        queue=draw(st.sampled_from([None, *queue_names])),
        project=draw(st.none() | names),
        submit=draw(_times),
        steps=tuple(steps),
        licenses=draw(_licenses),
        priority=draw(st.none() | st.integers(-9, 9)),
        weight=draw(st.none() | _weights),
        not_before=draw(optional_times),
        start_at=draw(optional_times),
        deadline=draw(optional_times),
        after=tuple(after),
        told=draw(st.none() | st.builds(PromisedStart, start=_times, price=_prices)),
        array=draw(st.none() | st.lists(st.integers(0, 40), min_size=1, unique=True).map(lambda i: tuple(sorted(i)))),
        expand_limit=draw(st.sampled_from([1, 2.5, None])) if len(steps) > 1 else 1,
        malleability=malleability,
        expected=draw(st.none() | st.integers(1, steps[0].walltime)) if is_rigid else None,
        runtime=draw(st.none() | _durations),
        reservation=draw(st.sampled_from([None, "r1"])),
    )


def _running(index: int, node: str, now: int, has_changed: bool, share: float | None) -> Job:
    """Return a job that has run on one unit of a node since 10 s before now, once with a changed allocation.

    With a share it is malleable, asks for two units, and says so.
    """
    kind = {} if share is None else {"chunk": 0, "count": 1}
    held = (Placement(node=node, resources=Amounts({"cores": 1}), **kind),)
    seconds = 100 if share is None else 200
    cuts = [now - 10, now - 5, now + 7] if has_changed else [now - 10, now - 10 + seconds]
    segments = tuple(Segment(start=a, end=b, allocation=held) for a, b in pairwise(cuts))
    request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1 if share is None else 2})),))
    return Job(
        id=f"r{index}",
        submit=0,
        steps=(Step(walltime=100, request=request),),
        malleability=None if share is None else Malleability(shares=(share,)),
        running=Running(start=now - 10, segments=segments),
    )


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Draw a valid instance with something of everything."""
    cluster = draw(_clusters())
    queues = draw(
        st.dictionaries(
            names,
            st.builds(
                Queue,
                expected_wait=_durations,
                priority=st.integers(-3, 3),
                weight=_weights,
                max_walltime=st.none() | _durations,
                max_wait=st.none() | st.builds(MaxWait, seconds=_durations, price=_prices, is_hard=st.booleans()),
                nodes=st.none()
                | st.lists(st.sampled_from(cluster.node_names), min_size=1, max_size=3, unique=True).map(tuple),
            ),
            max_size=2,
        )
    )
    now = draw(_times)
    jobs: list[Job] = []
    for index in range(draw(st.integers(0, 3))):
        jobs.append(draw(_jobs(index, list(queues), [earlier.id for earlier in jobs])))
    jobs += [
        _running(i, cluster.node_names[0], now, draw(st.booleans()), draw(st.sampled_from([None, 0.5, 0.7])))
        for i in range(draw(st.integers(0, 3)))
    ]
    reservation = Reservation(
        id="r1",
        start=5,
        end=9,
        request=draw(requests),
        licenses=draw(_licenses),
        users=draw(st.lists(names).map(tuple)),
    )
    downtime = Reservation(id="d", start=5, end=9, request=draw(requests), kind=ReservationKind.DOWNTIME)
    validity = Validity(from_=draw(st.none() | _times), cron="0 */2 * * *")
    other = Reservation(id="other", validity=validity, **draw(st.sampled_from(_forms(cluster))))
    limits = st.builds(
        Limit,
        consumer=_consumers | st.just(Consumer(kind=ConsumerKind.GROUP, name=None)),
        resource=st.sampled_from(["cores", "*", "jobs"]),
        items=_items,
        duration=st.none() | _durations,
        area=st.none() | st.integers(0, 10**15),
        area_scope=st.sampled_from(AreaScope),
        validity=_validities,
        soft=st.booleans(),
    )
    pools = st.builds(
        FreePool,
        resource=st.sampled_from(_RESOURCES),
        items=_items,
        open_to=st.builds(Access, users=st.lists(names, max_size=2).map(tuple), max=st.none() | _amounts(0)),
        validity=_validities,
        nodes=st.none() | st.just(cluster.node_names[:2]),
        otherwise_max_walltime=st.none() | _durations,
    )
    weights = st.dictionaries(st.sampled_from(ObjectiveTerm), st.floats(0.001, 9), min_size=1)
    return Instance(
        name=draw(names),
        epoch=datetime(2024, 2, 29, 12, tzinfo=UTC),
        time_zone=draw(st.sampled_from([None, "Europe/Berlin", "Australia/Lord_Howe"])),
        now=now,
        cluster=cluster,
        queues=FrozenMap(queues),
        jobs=tuple(jobs),
        limits=tuple(draw(st.lists(limits, max_size=2))),
        free_pools=tuple(draw(st.lists(pools, max_size=2))),
        reservations=(reservation, downtime, other),
        usage=tuple(
            draw(st.lists(st.builds(Usage, consumer=_consumers, resource=st.just("mem"), area=st.integers(0, 9))))
        ),
        objective=Objective(weights=draw(weights.map(FrozenMap))),
        has_strict_priorities=draw(st.booleans()),
        outages=tuple(draw(st.lists(_outages(cluster, now), max_size=2))),
    )


def _forms(cluster: Cluster) -> list[dict[str, Any]]:
    """Return what a reservation may have: whole nodes, or what it asks for, or has already."""
    held, node = Amounts({"cores": 1}), cluster.node_names[-1]
    request = Request(chunks=(Chunk(count=1, resources=held),))
    return [
        {"nodes": cluster.node_names[:3], "licenses": cluster.licenses},
        {"nodes": cluster.node_names[-1:], "kind": ReservationKind.DOWNTIME},
        {"request": request, "allocation": (Placement(node=node, resources=held),)},
        {"request": request, "allocation": (Placement(node=node, resources=held, chunk=0, count=1),)},
        {"request": request, "users": ("a",)},
    ]


@st.composite
def _outages(draw: st.DrawFn, cluster: Cluster, now: int) -> Outage:
    """Draw an outage that does not go on at now, when some node of it may have a running job."""
    nodes = draw(st.lists(st.sampled_from(cluster.node_names), min_size=1, max_size=3, unique=True))
    start = now + draw(st.integers(1, 1000))
    return Outage(nodes=tuple(nodes), start=start, end=start + draw(_durations))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw a valid plan of jobs with several segments."""
    numbers = st.floats(0, 1e9)
    counted = st.builds(
        Placement, node=names, resources=_amounts(0), chunk=st.integers(0, 5), count=st.integers(1, 9)
    ) | st.builds(Placement, node=names, resources=_amounts(0))
    allocations = st.lists(counted, min_size=1, max_size=3).map(tuple)
    jobs, record = [], draw(st.booleans())
    for index in range(draw(st.integers(0, 3))):
        cuts = sorted(draw(st.lists(_times, min_size=2, max_size=4, unique=True)))
        segments = [Segment(start=a, end=b, allocation=draw(allocations)) for a, b in pairwise(cuts)]
        jobs.append(PlannedJob(id=f"j{index}", start=cuts[0], end=cuts[-1], segments=tuple(segments)))
    reasons = st.sampled_from([reason for reason in WaitingReason if record or reason != "not_started"])
    return Plan(
        instance=draw(names),
        now=draw(_times),
        objective=Score(
            name="wait",
            value=draw(numbers),
            bound=draw(st.none() | numbers),
            proof=draw(st.none() | names),
            planner=draw(numbers),
            suffered=0.0,
        ),
        engine=EngineReport(name="planner", version="1", budget=draw(numbers), elapsed=draw(numbers), stopped="done"),
        jobs=tuple(jobs),
        waiting_room=(WaitingJob(id="w", reason=draw(reasons), detail=f"no {draw(names)}"),),
        reservations=(
            ReservedSlice(id="r", start=1, end=2, allocation=draw(allocations)),
            ReservedSlice(id="r", start=2, end=9, reason=f"no {draw(names)}"),
        ),
        incumbents=(Incumbent(at=draw(numbers), value=draw(numbers), by="planner"),),
        events=tuple(draw(st.lists(st.builds(Event, at=numbers, by=names, what=names), max_size=2))),
        record=record,
        attempts=tuple(jobs[:1] * draw(st.integers(0, 2))) if record else (),
    )
