"""Every rule of the judge: a tiny plan that is allowed, and what is refused when one thing in it changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from cpsched.verify import verify
from tests.verify.openings import strictly_verified
from tests.verify.small_documents import (
    Document,
    at,
    cluster,
    instance,
    job,
    on,
    plan,
    planned,
    segment,
    stretched,
    waiting,
)


class Trial(NamedTuple):
    """An instance, a plan that keeps the contract, and one like it that breaks the rule."""

    name: str
    rule: str
    instance: Document
    allowed: Document
    refused: Document


ONE = instance(job())
TWO = instance(job("a"), job("b"))
FACT = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 2}}]}
RUNNING = instance(job("r", running=FACT))
RUNS = planned("r", segment(-50, 50, on("n1", None, None, cores=2)))
OVERRUN = instance(job("r", running={**FACT, "start": -500}))
CHANGED = {
    "start": -50,
    "segments": [
        {"start": -50, "end": -10, "allocation": [{"node": "n1", "resources": {"cores": 2}}]},
        {"start": -10, "end": 50, "allocation": [{"node": "n2", "resources": {"cores": 2}}]},
    ],
}
#: Two nodes under a switch, one under another one, one under none.
SWITCHES = {**cluster({"names": "n[1-4]"}), "topology": {"switch": {"s1": "n[1-2]", "s2": "n3"}}}
RACKS = cluster({"names": "n1", "properties": {"rack": "1"}}, {"names": "n2", "properties": {"rack": "2"}})
FULL = job("big", "2:ncpus=4")
ON_BOTH = (on("n1", cores=4), on("n2", cores=4))
KEEPS = cluster({"names": "n[1-2]", "keep_free": [{"resource": "cores", "items": 1, "for": "gpus"}]})
#: Queues of which the jobs must, or should, start after 50 s.
HARD = {"q": {"expected_wait": 1800, "max_wait": {"seconds": 50, "hard": True}}}
SOFT = {"q": {"expected_wait": 1800, "max_wait": {"seconds": 50}}}
GUARD = [{"min": {"mem": 512}}, {"max_walltime": 50}]

TIMING = [
    Trial("a job is missing", "presence", ONE, plan([at("a", 0)]), plan()),
    Trial("a job occurs twice", "presence", ONE, plan([at("a", 0)]), plan([at("a", 0)], [waiting("a", "not_mapped")])),
    Trial("an unknown job", "presence", ONE, plan([at("a", 0)]), plan([at("a", 0), at("ghost", 0)])),
    Trial(
        "the elements of an array",
        "presence",
        instance(job(array={"indices": "0-4:4"})),
        plan([at("a[0]", 0), at("a[4]", 0)]),
        plan([at("a[0]", 0), at("a[4]", 0), at("a", 0, on("n2", cores=2))]),
    ),
    Trial("a running job keeps its end", "running", RUNNING, plan([RUNS]), plan([{**RUNS, "end": 60}])),
    Trial(
        "a running job does not move",
        "running",
        RUNNING,
        plan([RUNS]),
        plan([planned("r", segment(-50, 50, on("n2", None, None, cores=2)))]),
    ),
    Trial(
        "chunk is left out",
        "running",
        RUNNING,
        plan([RUNS]),
        plan([planned("r", segment(-50, 50, on("n1", 0, 1, cores=2)))]),
    ),
    Trial("a running job does not wait", "running", RUNNING, plan([RUNS]), plan([], [waiting("r", "not_mapped")])),
    Trial(
        "an overrun job ends at now + 1",
        "running",
        OVERRUN,
        plan([planned("r", segment(-500, 1, on("n1", None, None, cores=2)))]),
        plan([planned("r", segment(-500, -400, on("n1", None, None, cores=2)))]),
    ),
    Trial(
        "a running job that has changed",
        "running",
        instance(job("r", running=CHANGED)),
        plan(
            [
                planned(
                    "r",
                    segment(-50, -10, on("n1", None, None, cores=2)),
                    segment(-10, 50, on("n2", None, None, cores=2)),
                )
            ]
        ),
        plan([planned("r", segment(-50, 50, on("n2", None, None, cores=2)))]),
    ),
    Trial(
        "a hole between segments",
        "segments",
        ONE,
        plan([at("a", 0)]),
        plan([{**planned("a", segment(0, 50, on("n1", cores=2)), segment(60, 100, on("n1", cores=2)))}]),
    ),
    Trial(
        "a segment beyond the end",
        "segments",
        ONE,
        plan([at("a", 0)]),
        plan([{**at("a", 0), "segments": [segment(0, 90, on("n1", cores=2))]}]),
    ),
    Trial(
        "two segments of a rigid job",
        "segments",
        ONE,
        plan([at("a", 0)]),
        plan([planned("a", segment(0, 50, on("n1", cores=2)), segment(50, 100, on("n1", cores=2)))]),
    ),
    Trial("too short", "walltime", ONE, plan([at("a", 0)]), plan([at("a", 0, walltime=99)])),
    Trial(
        "longer than its queue accepts",
        "queue",
        instance(job(queue="q"), queues={"q": {"expected_wait": 1800, "max_walltime": 99}}),
        plan([], [waiting("a", "walltime")]),
        plan([at("a", 0)]),
    ),
    Trial("before now", "earliest_start", instance(job(not_before=-10)), plan([at("a", 0)]), plan([at("a", -1)])),
    Trial("before not_before", "earliest_start", instance(job(not_before=10)), plan([at("a", 10)]), plan([at("a", 9)])),
    Trial("elsewhere than start_at", "start_at", instance(job(start_at=10)), plan([at("a", 10)]), plan([at("a", 11)])),
    Trial("after the deadline", "deadline", instance(job(deadline=110)), plan([at("a", 10)]), plan([at("a", 11)])),
    Trial(
        "beyond max_wait", "max_wait", instance(job(queue="q"), queues=HARD), plan([at("a", 50)]), plan([at("a", 51)])
    ),
]


def _waits_for(kind: str, delay: int, name: str = "a", **members: Any) -> Document:
    return instance(job("a", **members), job("b", after=[{"job": name, "type": kind, "delay": delay}]))


def _second(start: int, first: str = "a") -> Document:
    return plan([at(first, 0), at("b", start, on("n2", cores=2))])


DEPENDENCIES = [
    Trial("after its start", "dependency", _waits_for("after", 5), _second(5), _second(4)),
    *(
        Trial(f"{kind} its end", "dependency", _waits_for(kind, 5), _second(105), _second(104))
        for kind in ("afterok", "afterany", "afternotok")
    ),
    Trial(
        "after all elements of an array",
        "dependency",
        _waits_for("afterany", 0, array={"indices": "1-2"}),
        plan([at("a[1]", 0), at("a[2]", 50), at("b", 150)]),
        plan([at("a[1]", 0), at("a[2]", 50), at("b", 100, on("n2", cores=2))]),
    ),
    Trial(
        "after one element",
        "dependency",
        _waits_for("afterany", 0, "a[1]", array={"indices": "1-2"}),
        plan([at("a[1]", 0), at("a[2]", 50), at("b", 100, on("n2", cores=2))]),
        plan([at("a[1]", 0), at("a[2]", 50), at("b", 99, on("n2", cores=2))]),
    ),
    Trial(
        "on a job without a start",
        "dependency",
        _waits_for("after", 0, request="1:ncpus=9"),
        plan([], [waiting("a", "unsatisfiable"), waiting("b", "not_mapped")]),
        plan([at("b", 0)], [waiting("a", "unsatisfiable")]),
    ),
]

ALLOCATION = [
    Trial(
        "too few chunks",
        "request",
        instance(job(request="2:ncpus=2")),
        plan([at("a", 0, on("n1", 0, 2, cores=4))]),
        plan([at("a", 0, on("n1", 0, 1, cores=2))]),
    ),
    Trial("too few cores", "request", ONE, plan([at("a", 0)]), plan([at("a", 0, on("n1", cores=1))])),
    Trial("something not asked for", "request", ONE, plan([at("a", 0)]), plan([at("a", 0, on("n1", cores=2, gpus=1))])),
    Trial("no such chunk", "request", ONE, plan([at("a", 0)]), plan([at("a", 0, on("n1", 1, 1, cores=2))])),
    Trial(
        "kinds are not mixed up",
        "request",
        instance(job(request="1:ncpus=2+2:mem=100m")),
        plan([at("a", 0, on("n1", cores=2), on("n2", 1, 2, mem=200))]),
        plan([at("a", 0, on("n1", 0, 2, cores=4), on("n2", 1, 1, mem=100))]),
    ),
    Trial(
        "another rack",
        "where",
        instance(job(request="1:ncpus=2:rack=2"), cluster=RACKS),
        plan([at("a", 0, on("n2", cores=2))]),
        plan([at("a", 0)]),
    ),
    *(
        Trial(
            f"a node that is {state}",
            "state",
            instance(job(), cluster=cluster({"names": "n1", "state": state}, {"names": "n2"})),
            plan([at("a", 0, on("n2", cores=2))]),
            plan([at("a", 0)]),
        )
        for state in ("drain", "down")
    ),
    Trial(
        "a guard by size",
        "guard",
        instance(
            job(request="1:ncpus=1:mem=512m"),
            job("b"),
            cluster=cluster({"names": "n1", "admits": GUARD}, {"names": "n2"}),
        ),
        plan([at("a", 0, on("n1", cores=1, mem=512)), at("b", 0, on("n2", cores=2))]),
        plan([at("a", 0, on("n1", cores=1, mem=512)), at("b", 0)]),
    ),
    Trial(
        "a guard by walltime",
        "guard",
        instance(
            job("a", walltime=50),
            job("b", walltime=51),
            cluster=cluster({"names": "n1", "admits": GUARD}, {"names": "n2"}),
        ),
        plan([at("a", 0, walltime=50), at("b", 0, on("n2", cores=2), walltime=51)]),
        plan([at("a", 0, walltime=50), at("b", 0, walltime=51)]),
    ),
    Trial(
        "pack",
        "place",
        instance(job(request="2:ncpus=2", place="pack")),
        plan([at("a", 0, on("n1", 0, 2, cores=4))]),
        plan([at("a", 0, on("n1", cores=2), on("n2", cores=2))]),
    ),
    Trial(
        "scatter",
        "place",
        instance(job(request="2:ncpus=2,place=scatter")),
        plan([at("a", 0, on("n1", cores=2), on("n2", cores=2))]),
        plan([at("a", 0, on("n1", 0, 2, cores=4))]),
    ),
    Trial(
        "within one switch",
        "place",
        instance(job(request="2:ncpus=2,place=within=switch"), cluster=SWITCHES),
        plan([at("a", 0, on("n1", cores=2), on("n2", cores=2))]),
        plan([at("a", 0, on("n2", cores=2), on("n3", cores=2))]),
    ),
    Trial(
        "within a switch, on nodes of none",
        "place",
        instance(job(request="2:ncpus=2,place=within=switch"), cluster=SWITCHES),
        plan([at("a", 0, on("n2", 0, 2, cores=4))]),
        plan([at("a", 0, on("n4", 0, 2, cores=4))]),
    ),
    Trial(
        "scatter over kinds",
        "place",
        instance(job(request="1:ncpus=1+1:ngpus=1", place="scatter")),
        plan([at("a", 0, on("n1", cores=1), on("n2", 1, gpus=1))]),
        plan([at("a", 0, on("n1", cores=1), on("n1", 1, gpus=1))]),
    ),
]

CAPACITY = [
    Trial(
        "more than a node has",
        "capacity",
        instance(job("a", "1:ncpus=3"), job("b")),
        plan([at("a", 0, on("n1", cores=3)), at("b", 100)]),
        plan([at("a", 0, on("n1", cores=3)), at("b", 99)]),
    ),
    Trial(
        "beside running work",
        "capacity",
        instance(job("r", running=FACT), job("a", "1:ncpus=3")),
        plan([RUNS, at("a", 50, on("n1", cores=3))]),
        plan([RUNS, at("a", 49, on("n1", cores=3))]),
    ),
    Trial(
        "a resource that the node lacks",
        "capacity",
        instance(job("a", "1:nmics=1"), cluster=cluster({"names": "n1"}, {"names": "n2", "resources": {"mics": 1}})),
        plan([at("a", 0, on("n2", mics=1))]),
        plan([at("a", 0, on("n1", mics=1))]),
    ),
    Trial(
        "excl against a planned job",
        "exclusive",
        instance(job("a", place="free:excl"), job("b")),
        plan([at("a", 0), at("b", 100)]),
        plan([at("a", 0), at("b", 99)]),
    ),
    Trial(
        "excl against a running job",
        "exclusive",
        instance(job("r", running=FACT), job("a", place="free:excl")),
        plan([RUNS, at("a", 50)]),
        plan([RUNS, at("a", 49)]),
    ),
    Trial(
        "a running job that is exclusive",
        "exclusive",
        instance(job("r", place="free:excl", running=FACT), job("a")),
        plan([RUNS, at("a", 50)]),
        plan([RUNS, at("a", 49)]),
    ),
    Trial(
        "keep_free",
        "keep_free",
        instance(job("a", "1:ncpus=3"), job("b", "1:ncpus=1"), job("g", "1:ncpus=1:ngpus=1"), cluster=KEEPS),
        plan([at("a", 0, on("n1", cores=3)), at("b", 100, on("n1", cores=1)), at("g", 0, on("n1", cores=1, gpus=1))]),
        plan([at("a", 0, on("n1", cores=3)), at("b", 0, on("n1", cores=1)), at("g", 100, on("n1", cores=1, gpus=1))]),
    ),
    Trial(
        "keep_free beside running work",
        "keep_free",
        instance(job("r", running=FACT), job("a"), cluster=KEEPS),
        plan([RUNS, at("a", 50)]),
        plan([RUNS, at("a", 0)]),
    ),
    Trial(
        "keep_free and excl",
        "keep_free",
        instance(
            job("a", place="free:excl"),
            cluster=cluster(
                {"names": "n1", "keep_free": [{"resource": "cores", "items": 1, "for": "gpus"}]}, {"names": "n2"}
            ),
        ),
        plan([at("a", 0, on("n2", cores=2))]),
        plan([at("a", 0)]),
    ),
    Trial(
        "licences",
        "licenses",
        instance(
            job("a", licenses={"sim": 2}), job("b", "1:ncpus=2,sim=2"), cluster=cluster({"names": "n[1-2]"}, sim=3)
        ),
        plan([at("a", 0), at("b", 100)]),
        plan([at("a", 0), at("b", 99)]),
    ),
]


def _evolving(limit: object = 2) -> Document:
    steps = [
        {"walltime": 100, "request": "1:ncpus=4"},
        {"walltime": 50, "request": "2:ncpus=4"},
        {"walltime": 30, "request": "1:ncpus=4"},
    ]
    return instance(
        job(request=None, walltime=None, steps=steps, expand_limit=limit)
        if limit
        else {"id": "a", "submit": 0, "steps": steps, "expand_limit": None}
    )


def _evolved(
    first: int = 100, second: int = 50, third: int = 30, last: str = "n1", big: tuple[str, str] = ("n1", "n2")
) -> Document:
    ends = [first, first + second, first + second + third]
    return plan(
        [
            planned(
                "a",
                segment(0, ends[0], on("n1", cores=4)),
                segment(ends[0], ends[1], *(on(node, cores=4) for node in big)),
                segment(ends[1], ends[2], on(last, cores=4)),
            )
        ]
    )


THREE = cluster({"names": "n[1-3]"})
HALF = {"shares": [0.5], "model": "ideal"}


def _shrunk(*pieces: tuple[int, int], node: str = "n1", **resources: int) -> Document:
    time, segments = 0, []
    for length, cores in pieces:
        segments.append(segment(time, time + length, on(node, cores=cores, **resources)))
        time += length
    return plan([planned("a", *segments)])


def _malleable(malleable: Document = HALF, request: str = "1:ncpus=4") -> Document:
    return instance(job(request=request, malleable=malleable))


TWO_NODES = _malleable(request="2:ncpus=4")
TWO_NODES_WORST = _malleable({"shares": [0.5], "model": "worst"}, "2:ncpus=4")


def _uneven(length: int) -> Document:
    return plan([planned("a", segment(0, length, on("n1", cores=2), on("n2", cores=4)))])


CHANGING = [
    Trial("a step held too long", "evolving", _evolving(2), _evolved(200), _evolved(201)),
    Trial("a step cut short", "evolving", _evolving(), _evolved(100), _evolved(99)),
    Trial("the last step has nothing to wait for", "evolving", _evolving(None), _evolved(100_000), _evolved(third=31)),
    Trial(
        "growing keeps nodes",
        "evolving",
        {**_evolving(), "cluster": THREE},
        _evolved(),
        _evolved(big=("n2", "n3"), last="n2"),
    ),
    Trial(
        "shrinking keeps some", "evolving", {**_evolving(), "cluster": THREE}, _evolved(last="n2"), _evolved(last="n3")
    ),
    Trial("a step left out", "evolving", _evolving(), _evolved(), plan([at("a", 0, on("n1", cores=4))])),
    Trial("a shrunk job works longer", "malleable", _malleable(), _shrunk((200, 2)), _shrunk((199, 2))),
    Trial(
        "but not more than its work", "malleable", _malleable(), _shrunk((100, 2), (50, 4)), _shrunk((100, 2), (51, 4))
    ),
    Trial("only on its shares", "malleable", _malleable(), _shrunk((100, 4)), _shrunk((400, 1))),
    Trial("a change of share is a change", "malleable", _malleable(), _shrunk((200, 2)), _shrunk((100, 2), (100, 2))),
    Trial("ideal: all cores count", "malleable", TWO_NODES, _uneven(134), _uneven(200)),
    Trial("worst: the slowest node counts", "malleable", TWO_NODES_WORST, _uneven(200), _uneven(134)),
    Trial(
        "stretch is known",
        "malleable",
        _malleable({"shares": [0.5], "stretch": {"0.5": 1.8}}),
        _shrunk((180, 2)),
        _shrunk((200, 2)),
    ),
    Trial(
        "nothing but cores",
        "request",
        _malleable(request="1:ncpus=4:mem=100m"),
        _shrunk((200, 2), mem=100),
        _shrunk((200, 2), mem=50),
    ),
    Trial(
        "a malleable job does not move",
        "malleable",
        _malleable(),
        _shrunk((100, 2), (50, 4)),
        plan([planned("a", segment(0, 100, on("n1", cores=2)), segment(100, 150, on("n2", cores=4)))]),
    ),
]

SLICE = {"id": "v", "start": 0, "end": 300, "request": "1:ncpus=2", "users": ["u"]}
SLICED = {"reservations": [{"id": "v", "start": 0, "end": 300, "allocation": [on("n1", cores=2)]}]}


def _guest(**members: Any) -> Document:
    return instance(job(user="u", reservation="v", **members), job("b", "1:ncpus=3"), reservations=[SLICE])


def _guests(start: int = 0, node: str = "n1", other: int = 300, **sliced: Any) -> Document:
    slices = {"reservations": [{**SLICED["reservations"][0], **sliced}]}
    return plan([at("a", start, on(node, cores=2)), at("b", other, on("n1", cores=3))], **slices)


DOWNTIME = instance(
    job(), reservations=[{"id": "v", "start": 0, "end": 300, "request": "1:ncpus=4", "kind": "downtime"}]
)
FACT_OF_ALL = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}
RUNS_INSIDE = planned("r", segment(-50, 50, on("n1", None, None, cores=4)))
BREAK = {"reservations": [{"id": "v", "start": 0, "end": 300, "allocation": [on("n1", cores=4)]}]}


def _refused(name: str = "v", start: int = 0, end: int = 300) -> Document:
    return {"id": name, "start": start, "end": end, "reason": "in words"}


RESERVATIONS = [
    Trial("a reservation is left out", "reservation", instance(reservations=[SLICE]), plan(**SLICED), plan()),
    Trial(
        "a job inside a reservation that is left out",
        "reservation",
        instance(job(user="u", reservation="v"), reservations=[{**SLICE, "request": "1:ncpus=5"}]),
        plan(room=[waiting("a", "reservation")], reservations=[_refused()]),
        plan([at("a", 0)], reservations=[_refused()]),
    ),
    Trial(
        "a downtime of a node that is down and has a guard",
        "reservation",
        instance(
            cluster=cluster({"names": "n[1-2]", "state": "down", "admits": [{"max_walltime": 50}]}),
            reservations=[{"id": "v", "start": 0, "end": 300, "request": "1:ncpus=4", "kind": "downtime"}],
        ),
        plan(**BREAK),
        plan(reservations=[_refused()]),
    ),
    Trial(
        "a reservation in which a job runs",
        "reservation",
        instance(
            job("r", "1:ncpus=4", running=FACT_OF_ALL, reservation="v"),
            cluster=cluster({"names": "n1"}),
            reservations=[{"id": "v", "start": -100, "end": 300, "request": "1:ncpus=4"}],
        ),
        plan([RUNS_INSIDE], reservations=[{**BREAK["reservations"][0], "start": -100}]),
        plan([RUNS_INSIDE], reservations=[_refused(start=-100)]),
    ),
    Trial("a reservation moves", "reservation", _guest(), _guests(), _guests(end=301, other=301)),
    Trial(
        "a reservation gets less",
        "request",
        instance(reservations=[SLICE]),
        plan(**SLICED),
        plan(reservations=[{**SLICED["reservations"][0], "allocation": [on("n1", cores=1)]}]),
    ),
    Trial("others keep off the slice", "capacity", _guest(), _guests(), _guests(other=299)),
    Trial("a guest beside the slice", "capacity", _guest(), _guests(), _guests(node="n2")),
    Trial("a guest after the slice", "reservation", _guest(), _guests(200), _guests(201, other=400)),
    Trial(
        "a guest that is not invited",
        "reservation",
        instance(job(user="x", reservation="v"), reservations=[SLICE]),
        plan([], [waiting("a", "not_mapped")], **SLICED),
        plan([at("a", 0)], **SLICED),
    ),
    Trial(
        "nobody uses a downtime",
        "capacity",
        DOWNTIME,
        plan([at("a", 0, on("n2", cores=2))], **BREAK),
        plan([at("a", 299)], **BREAK),
    ),
    Trial(
        "excl against a foreign slice",
        "exclusive",
        instance(job(place="free:excl"), reservations=[SLICE]),
        plan([at("a", 300)], **SLICED),
        plan([at("a", 0)], **SLICED),
    ),
]

ALICE = {"user": "alice"}


def _limited(*limits: Document, **members: Any) -> Document:
    users = (job(name, user="alice", group="g") for name in ("a", "b"))
    return instance(*users, limits=list(limits), **members)


def _pair(second: int) -> Document:
    return plan([at("a", 0), at("b", second, on("n2", cores=2))])


def _limit(resource: str = "cores", consumer: Document = ALICE, **members: Any) -> Document:
    return {"consumer": consumer, "resource": resource, **members}


#: Second 0 is a Monday, 7:59 in the instance's own offset.
MONDAY = "2026-01-05T07:59:00+02:00"

LIMITS = [
    Trial("items of a user", "limit", _limited(_limit(items="3")), _pair(100), _pair(99)),
    Trial("items of a group", "limit", _limited(_limit(consumer={"group": "g"}, items="3")), _pair(100), _pair(99)),
    Trial("items of each user", "limit", _limited(_limit(consumer={"each": "user"}, items="3")), _pair(100), _pair(99)),
    Trial("per cents round down", "limit", _limited(_limit(items="1/49%")), _pair(100), _pair(99)),
    Trial("items by star", "limit", _limited(_limit("*", items="3"), _limit("mem", items="1")), _pair(100), _pair(99)),
    Trial("number of jobs", "limit", _limited(_limit("jobs", items="1")), _pair(100), _pair(99)),
    Trial(
        "number of array elements",
        "limit",
        instance(job(user="alice", array={"indices": "0,7"}), limits=[_limit("arrayjobs", items="1")]),
        plan([at("a[0]", 0), at("a[7]", 100)]),
        plan([at("a[0]", 0), at("a[7]", 99)]),
    ),
    Trial(
        "duration",
        "limit",
        instance(job(user="alice"), limits=[_limit(duration=99, validity={"from": 0, "until": 50})]),
        plan([at("a", 50)]),
        plan([at("a", 49)]),
    ),
    Trial("until", "limit", _limited(_limit(items="3", validity={"from": 0, "until": 50})), _pair(50), _pair(49)),
    Trial(
        "by cron",
        "limit",
        _limited(_limit(items="3", validity={"cron": "* 8-17 * * mon-fri"}), epoch=MONDAY),
        _pair(100),
        _pair(0),
    ),
]

POOL = {"resource": "cores", "items": "3/25%", "open_to": {"users": ["vip"]}}


def _pooled(user: str = "vip", **members: Any) -> Document:
    return instance(job("a", "1:ncpus=4"), job("b", user=user, **members), free_pools=[POOL])


def _pooling(second: int) -> Document:
    return plan([at("a", 0, on("n1", cores=4)), at("b", second, on("n2", cores=2))])


POOLS = [Trial("outsiders leave the pool free", "free_pool", _pooled("other"), _pooling(100), _pooling(99))]


ALL_DOWN = cluster({"names": "n[1-2]", "state": "down"})
HALF_DOWN = cluster({"names": "n1", "state": "drain"}, {"names": "n2"})
#: A claim, an instance where it is true, and one where it is false.
CLAIMS = [
    ("unsatisfiable", instance(job(request="1:ncpus=5")), ONE),
    ("unsatisfiable", instance(job(request="3:ncpus=3")), instance(job(request="2:ncpus=3"))),
    (
        "unsatisfiable",
        instance(job(request="2:ncpus=3", place="pack")),
        instance(job(request="2:ncpus=2", place="pack")),
    ),
    (
        "unsatisfiable",
        instance(job(request="3:ncpus=1", place="scatter")),
        instance(job(request="2:ncpus=1", place="scatter")),
    ),
    (
        "unsatisfiable",
        instance(job(request="3:ncpus=4,place=within=switch"), cluster=SWITCHES),
        instance(job(request="2:ncpus=4,place=within=switch"), cluster=SWITCHES),
    ),
    (
        "unsatisfiable",
        instance(job(request="1:ncpus=1:rack=3"), cluster=RACKS),
        instance(job(request="1:ncpus=1:rack=2"), cluster=RACKS),
    ),
    (
        "unsatisfiable",
        instance(job(request="1:ncpus=4"), cluster=KEEPS),
        instance(job(request="1:ncpus=4:ngpus=1"), cluster=KEEPS),
    ),
    ("unsatisfiable", instance(job(place="free:excl"), cluster=KEEPS), instance(job(place="free"), cluster=KEEPS)),
    (
        "unsatisfiable",
        instance(job(licenses={"sim": 1})),
        instance(job(licenses={"sim": 1}), cluster=cluster({"names": "n1"}, sim=1)),
    ),
    (
        "unsatisfiable",
        instance(job(request="1:ncpus=5+1:mem=1m")),
        instance(job(request="1:ncpus=4+1:ncpus=3+1:ncpus=1")),
    ),
    (
        "unsatisfiable",
        instance(job(user="alice"), limits=[_limit(items="1")]),
        instance(job(user="bob"), limits=[_limit(items="1")]),
    ),
    ("unavailable", instance(job(), cluster=ALL_DOWN), instance(job(), cluster=HALF_DOWN)),
    (
        "unavailable",
        instance(job(request="2:ncpus=3"), cluster=HALF_DOWN),
        instance(job(request="3:ncpus=3"), cluster=HALF_DOWN),
    ),
    (
        "walltime",
        instance(job(queue="q"), queues={"q": {"expected_wait": 1, "max_walltime": 99}}),
        instance(job(queue="q"), queues={"q": {"expected_wait": 1, "max_walltime": 100}}),
    ),
    ("too_late", instance(job(deadline=99)), ONE),
    ("too_late", instance(job(start_at=-1)), instance(job(start_at=0))),
    ("too_late", instance(job(queue="q", not_before=51), queues=HARD), instance(job(queue="q"), queues=HARD)),
    ("too_late", instance(job(queue="q", not_before=51), queues=HARD), instance(job(queue="q"), queues=SOFT)),
    (
        "too_late",
        instance(job(queue="q", submit=-50, not_before=1), queues=HARD),
        instance(job(queue="q", submit=-51, not_before=1), queues=HARD),  # overdue: not held to it
    ),
    ("not_mapped", instance(job(request="2:ncpus=3"), cluster=HALF_DOWN), ONE),
]

TRIALS = [*TIMING, *DEPENDENCIES, *ALLOCATION, *CAPACITY, *CHANGING, *RESERVATIONS, *LIMITS, *POOLS]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.rule}: {trial.name}")
def test_the_allowed_plan_is_valid(trial: Trial) -> None:
    """A plan that keeps the contract has no violation."""
    assert verify(trial.instance, stretched(trial.instance, trial.allowed)) == ()


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.rule}: {trial.name}")
def test_the_changed_plan_is_refused(trial: Trial) -> None:
    """The same plan with one thing changed breaks the rule that forbids it."""
    assert trial.rule in {violation.rule for violation in verify(trial.instance, trial.refused)}


@pytest.mark.parametrize(("reason", "true", "false"), CLAIMS)
def test_claims_of_the_waiting_room(reason: str, true: Document, false: Document) -> None:
    """A true reason stands, a false one is a violation."""
    room = plan([], [waiting("a", reason)])
    assert strictly_verified(true, room) == ()
    assert [violation.rule for violation in strictly_verified(false, room)] == ["waiting_room"]


TWO_OF_ONE = _waits_for("afterany", 0, array={"indices": "1-2"}, deadline=100)
ON_RUNNING = instance(job("r", running=FACT), job("b", after=[{"job": "r", "type": "after"}]))


@pytest.mark.parametrize(
    ("document", "answer", "rules"),
    [
        (_waits_for("after", 0, request="1:ncpus=9"), plan([], [waiting("a", "unsatisfiable")]), []),
        (_waits_for("after", 0), plan([at("a", 0)]), ["waiting_room"]),
        (instance(job("b")), plan(), ["waiting_room"]),
        (ON_RUNNING, plan([RUNS]), ["waiting_room"]),
        (TWO_OF_ONE, plan([at("a[1]", 0)], [waiting("a[2]", "not_mapped")]), []),
        (TWO_OF_ONE, plan([at("a[1]", 0), at("a[2]", 0, on("n2", cores=2))]), ["waiting_room"]),
    ],
)
def test_claims_about_dependencies(document: Document, answer: Document, rules: list[str]) -> None:
    """Job b, in the waiting room for a dependency, waits for a job that has no start; else that is a violation."""
    answer = {**answer, "waiting_room": [*answer["waiting_room"], waiting("b", "dependency")]}
    assert [violation.rule for violation in verify(document, answer) if violation.subject == "b"] == rules


def _rules(document: Document, answer: Document) -> list[str]:
    return [violation.rule for violation in verify(document, answer)]


def test_soft_limits_may_be_exceeded() -> None:
    """A soft limit is no violation, the hard one beside it is."""
    assert _rules(_limited(_limit(items="3", soft=True)), _pair(0)) == []
    assert _rules(_limited(_limit(items="3", soft=True), _limit("jobs", items="1")), _pair(0)) == ["limit"]


def test_a_limit_of_its_own_overrides_star_while_it_is_valid() -> None:
    """With 4 of its own cores alice may have 4 though ``*`` says 3, but only until second 50."""
    star, own = _limit("*", items="3"), _limit(items="4", validity={"from": 0, "until": 50})
    assert _rules(_limited(star, _limit(items="4")), _pair(0)) == []
    assert _rules(_limited(star, own), _pair(0)) == ["limit"]


def test_running_work_alone_breaks_no_limit() -> None:
    """Running work counts for a limit, but is no violation by itself."""
    limits = [_limit(items="1")]
    assert _rules(instance(job("r", user="alice", running=FACT), limits=limits), plan([RUNS])) == []
    beside = instance(job("r", user="alice", running=FACT), job("a", "1:ncpus=1", user="alice"), limits=limits)
    assert _rules(beside, plan([RUNS, at("a", 50, on("n1", cores=1))])) == []
    assert _rules(beside, plan([RUNS, at("a", 49, on("n1", cores=1))])) == ["limit"]


def test_outstanding_area_adds_usage() -> None:
    """Two jobs of 200 core seconds fit 400, but not with one used up before; each alone fits a request limit of 200."""
    used = [{"consumer": ALICE, "resource": "cores", "area": 1}]
    outstanding = _limit(area=400, area_scope="outstanding")
    assert _rules(_limited(outstanding), _pair(0)) == []
    assert _rules(_limited(outstanding, usage=used), _pair(0)) == ["limit"]
    assert _rules(_limited(_limit(area=200)), _pair(0)) == []
    assert _rules(_limited(_limit(area=199)), _pair(0)) == ["limit", "limit"]


@pytest.mark.parametrize(
    "open_to",
    [
        {"users": ["vip"]},
        {"groups": ["g"]},
        {"asks_for": ["cores"]},
        {"max": {"cores": 2}, "max_walltime": 100},
    ],
)
def test_who_is_let_into_a_free_pool(open_to: Document) -> None:
    """Of 8 cores 3 are kept free: 4 + 2 at a time are too many for outsiders, not for one who is let in."""
    jobs = (job("a", "1:ncpus=4"), job("b", user="vip", group="g"))
    assert _rules(instance(*jobs, free_pools=[{**POOL, "open_to": open_to}]), _pooling(0)) == []
    assert _rules(instance(*jobs, free_pools=[{**POOL, "open_to": {}}]), _pooling(0)) == ["free_pool"]


def test_a_pool_lets_others_in_for_a_short_time() -> None:
    """With ``otherwise`` 100 s jobs may use the pool, with 99 s they may not; a small job must also be short."""
    jobs = (job("a", "1:ncpus=4"), job("b"))
    for most, expected in ((100, []), (99, ["free_pool"])):
        pool = {**POOL, "otherwise": {"max_walltime": most}}
        assert _rules(instance(*jobs, free_pools=[pool]), _pooling(0)) == expected
        pool = {**POOL, "open_to": {"max": {"cores": 2}, "max_walltime": most}}
        assert _rules(instance(*jobs, free_pools=[pool]), _pooling(0)) == expected


def test_a_pool_may_speak_of_some_nodes() -> None:
    """All cores of n2 are kept free: a job on n1 does not touch that pool."""
    pool = {"resource": "cores", "items": "100%", "open_to": {}, "nodes": "n2"}
    assert _rules(instance(job(), free_pools=[pool]), plan([at("a", 0)])) == []
    assert _rules(instance(job(), free_pools=[pool]), plan([at("a", 0, on("n2", cores=2))])) == ["free_pool"]


def test_a_reservation_that_cannot_be_had() -> None:
    """No node has so many cores, too few nodes have, or running jobs, reservations and licences leave too little."""
    five, room = {"id": "v", "start": 0, "end": 300, "request": "1:ncpus=5"}, [_refused()]
    assert verify(instance(reservations=[five]), plan(reservations=room)) == ()
    assert verify(instance(reservations=[{**five, "request": "3:ncpus=3"}]), plan(reservations=room)) == ()
    assert verify(instance(reservations=[{**five, "request": "1:ncpus=1:rack=9"}]), plan(reservations=room)) == ()
    one = cluster({"names": "n1"}, sim=1)
    full = [{**five, "request": "1:ncpus=4"}]
    runs = job("r", "1:ncpus=4", running=FACT_OF_ALL)
    beside = instance(runs, cluster=one, reservations=full)
    assert verify(beside, plan([RUNS_INSIDE], reservations=room)) == ()
    later = instance(runs, cluster=one, reservations=[{**full[0], "start": 50}])
    said = verify(later, plan([RUNS_INSIDE], reservations=[_refused(start=50)]))
    assert [one.rule for one in said] == ["reservation"]
    both = instance(cluster=one, reservations=[*full, {**full[0], "id": "w"}])
    assert verify(both, plan(reservations=[*BREAK["reservations"], _refused("w")])) == ()
    licences = instance(cluster=one, reservations=[{**five, "request": "1:ncpus=1,sim=2"}])
    assert verify(licences, plan(reservations=room)) == ()


def test_place_is_not_held_against_running_work() -> None:
    """Two running jobs may share a node though one asked for it alone, and run on a drained node behind a guard."""
    fact = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 2}}]}
    jobs = (job("r", place="scatter:excl", running=fact), job("s", running=fact))
    node = {
        "names": "n1",
        "state": "drain",
        "admits": GUARD,
        "keep_free": [{"resource": "cores", "items": 1, "for": "gpus"}],
    }
    answer = plan([planned(name, segment(-50, 50, on("n1", None, None, cores=2))) for name in "rs"])
    assert _rules(instance(*jobs, cluster=cluster(node)), answer) == []


def test_a_reservation_has_licences_of_its_own() -> None:
    """Licences of a reservation are taken from the cluster, and only its guests hold them."""
    slice_ = {**SLICE, "request": "1:ncpus=2,sim=2"}
    guest = job(user="u", reservation="v", licenses={"sim": 2})
    other = job("b", licenses={"sim": 1})
    document = instance(guest, other, reservations=[slice_], cluster=cluster({"names": "n[1-2]"}, sim=2))
    free = plan([at("a", 0), at("b", 300, on("n2", cores=2))], **SLICED)
    taken = plan([at("a", 0), at("b", 299, on("n2", cores=2))], **SLICED)
    assert _rules(document, free) == []
    assert _rules(document, taken) == ["licenses"]
