"""Fixed plans for every rule of a site, allowed or refused: what touches a border, amounts of zero, rules that begin or
end inside a job.

The machine has the nodes a1 and a2 with four cores and a GPU each, and b1 with four cores; there are two licences. A
job is one chunk of one core for 10 s, of user u and group g, unless told otherwise. A plan names each job with its
start and nodes, ``x 0 a1, y 10 a1*2 b1``, a reservation with its nodes only, ``r1 = a1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["RULED_PLANS", "Document", "RuledPlan"]

Document = dict[str, Any]


class RuledPlan(NamedTuple):
    """A plan of an instance, and whether the rules allow it."""

    rule: str
    #: What is the case.
    sentence: str
    document: Document
    #: The jobs and reservations with starts and nodes.
    plan: str
    is_allowed: bool


def _job(name: str, cores: int = 1, walltime: int = 10, count: int = 1, **members: Any) -> Document:
    resources = {"cores": cores, "gpus": members.pop("gpus", 0)}
    chunk: Document = {"count": count, "resources": {key: amount for key, amount in resources.items() if amount}}
    job = {"id": name, "submit": 0, "walltime": walltime, "user": "u", "group": "g", "request": [chunk], **members}
    return {key: value for key, value in job.items() if value is not None}


def _runs(name: str, cores: int, node: str, start: int, walltime: int, **members: Any) -> Document:
    allocation = [{"node": node, "resources": {"cores": cores}}]
    running = {"start": start, "allocation": allocation}
    return _job(name, cores, walltime, **members) | {"submit": start, "running": running}


#: What jobs are called in the tables below.
JOBS = {
    one["id"]: one
    for one in (
        *(_job(name) for name in "xyz"),
        *(_job(f"{name}{cores}", cores) for name in "xyz" for cores in (2, 3, 4)),
        *(_job(f"v{cores}", cores, user="v", group="h") for cores in (1, 2, 3, 4)),
        *(_job(f"nobody{cores}", cores, user=None, group=None) for cores in (1, 4)),
        *(_job(f"gpu{cores}", cores, gpus=1) for cores in (0, 1, 2, 4)),
        *(_job(f"lic{count}", licenses={"lic": count}) for count in (1, 2)),
        _job("other-lic", licenses={"lic": 1}),
        *(_job(f"long{seconds}", walltime=seconds) for seconds in (1, 4, 5, 6, 9, 11, 20)),
        *(_job(f"wide{count}", count=count) for count in (2, 3, 5, 6, 7)),
        _job("array", array={"indices": "0-1"}),
        *(_job(f"excl{cores}", cores, place="free:excl") for cores in (1, 4)),
        _job("gpu-excl", 2, gpus=1, place="free:excl"),
        _job("y2-11", 2, walltime=11),
        _job("y4-5", 4, walltime=5),
        _job("y3-7", 3, walltime=7),
        _job("x2-5", 2, walltime=5),
        _job("x2-6", 2, walltime=6),
        _job("twos", 2, count=2),
        _job("group-h", 2, group="h"),
        _job("v-long", user="v", walltime=20),
        _job("v-all", 4, count=3, user="v"),
        _job("gpu-long", gpus=1, walltime=20),
        _job("lic-long", licenses={"lic": 1}, walltime=20),
        *(_runs(f"run{cores}", cores, "a1", -5, 10) for cores in (1, 2, 3, 4)),
        _runs("run-late", 1, "a1", -10, 20),
        _runs("run-b", 2, "b1", -5, 10, queue="q"),
        *(_job(f"guest{cores}", cores, reservation="r1") for cores in (1, 2, 3, 4)),
        _job("guest-b", 2, reservation="r1"),
        _job("guest-v", user="v", reservation="r1"),
        _job("guest-long", walltime=11, reservation="r1"),
        _job("guest-wide", count=2, reservation="r1"),
        _job("guest-excl", 2, reservation="r1", place="free:excl"),
        *(_job(f"guest-lic{count}", reservation="r1", licenses={"lic": count}) for count in (1, 2)),
        *(_job(f"q{count}", count=count, queue="q") for count in (1, 2, 3)),
        _job("q-two", queue="q"),
        _job("q-long", queue="q", walltime=20),
        _job("q-b", queue="q", request=[{"count": 1, "resources": {"cores": 1}, "where": {"arch": "b"}}]),
        _job("q-guest", queue="q", reservation="r1"),
        _job("p1", queue="p"),
    )
}


def _document(names: list[str], nodes: dict[str, Document], **rules: Any) -> Document:
    """Return an instance with some jobs; `nodes` has more of the members of a node's entry."""
    has: dict[str, Document] = {"a1": {"gpus": 1}, "a2": {"gpus": 1}, "b1": {}}
    entries = [
        {"names": name, "resources": {"cores": 4, **more}, "properties": {"arch": name[0]}, **nodes.get(name, {})}
        for name, more in has.items()
    ]
    return {
        "format": "cpsched-instance/1",
        "name": "ruled",
        "now": 0,
        "cluster": {"nodes": entries, "licenses": {"lic": 2}},
        "queues": {"q": {"expected_wait": 100}, "p": {"expected_wait": 100}, **rules.pop("queues", {})},
        "jobs": [JOBS[name] for name in names],
        **rules,
    }


def _plans(
    rule: str, about: str, plans: str, *, nodes: dict[str, Document] | None = None, **rules: Any
) -> Iterator[RuledPlan]:
    """Yield the plans of a window, each on a line that begins with + if it is allowed, else with -, and says why."""
    for line in filter(None, map(str.strip, plans.splitlines())):
        plan, _, why = line[1:].partition("|")
        names = [word.split()[0] for word in plan.split(",") if "=" not in word and word.strip()]
        entries = list(dict.fromkeys(name.partition("[")[0] for name in names))
        document = _document(entries, nodes or {}, **rules)
        yield RuledPlan(rule, f"{about}: {why.strip()}", document, plan.strip(), line[0] == "+")


def _limit(resource: str = "cores", consumer: Document | None = None, **members: Any) -> Document:
    return {"consumer": consumer or {"user": "u"}, "resource": resource, **members}


EACH, GROUP = {"each": "user"}, {"group": "g"}
MORNING: Document = {"epoch": "2024-01-01T08:00:00+01:00"}


def _items() -> Iterator[RuledPlan]:
    yield from _plans(
        "items",
        "u has two cores at most",
        """
        + x2 0 a1, y 10 a1      | y starts when x2 ends
        - x2 0 a1, y 9 a1       | y starts a second before x2 ends
        - x2 0 a1, y 5 a2       | another node is no way out
        + x2 0 a1, v4 0 a2      | another user has no limit
        - x3 0 a1               | one job has too much
        + wide2 0 a1 a2         | two chunks on two nodes
        - wide3 0 a1 a2 b1      | three chunks on three nodes
        + nobody4 0 a1          | a job without user is nobody's
        - run2, y 4 a2          | running work counts until it ends
        + run2, y 5 a2          | and no longer
        - run3, y 4 a2          | running work that has too much leaves nothing
        + run3, v1 0 a1         | but is a fact
        """,
        limits=[_limit(items="2")],
    )
    yield from _plans(
        "items",
        "each user has two cores at most",
        """
        + x2 0 a1, v2 0 a2      | each has as much
        - x 0 a1, y2 0 a2       | u has three
        """,
        limits=[_limit(consumer=EACH, items="2")],
    )
    yield from _plans(
        "items",
        "group g has two cores at most",
        """
        + x2 0 a1, group-h 0 a1 | another group, of the same user
        - x2 0 a1, y 0 b1       | three cores of the group
        """,
        limits=[_limit(consumer=GROUP, items="2")],
    )
    yield from _plans(
        "items",
        "u has no cores, and v one",
        """
        - x 0 a1                | zero is nothing
        + gpu0 0 a1             | a job without cores takes none
        - v2 0 a1               | v has two
        + v1 0 a1               | v has one
        """,
        limits=[_limit(items="0"), _limit(consumer={"user": "v"}, items="1")],
    )
    yield from _plans(
        "items",
        "u has one licence at most",
        """
        - lic1 0 a1, other-lic 9 a1   | two at a time
        + lic1 0 a1, other-lic 10 a1  | one after the other
        - lic2 0 a1                   | two of one job
        """,
        limits=[_limit("lic", items="1")],
    )


def _duration() -> Iterator[RuledPlan]:
    yield from _plans(
        "duration",
        "u has cores for ten seconds at most",
        """
        + x 0 a1                | exactly as long
        - long11 0 a1           | a second longer
        + x 0 a1, y 10 a1       | two jobs, each as long
        + v-long 0 a1           | another user
        + run-late, y 0 a1      | running work is a fact
        """,
        limits=[_limit(duration=10)],
    )
    yield from _plans(
        "duration",
        "u has GPUs, licences and jobs for ten seconds at most, from 20 on",
        """
        - gpu-long 1 a1         | the limit begins in the last second of the job
        + gpu-long 0 a1         | the job ends as the limit begins
        - lic-long 20 a1        | a licence for too long
        + lic-long 0 a1         | before that
        + long9 15 a1           | short enough
        - long20 15 a1          | each job counts as one
        """,
        limits=[_limit(name, duration=10, validity={"from": 20}) for name in ("gpus", "lic", "jobs")],
    )
    yield from _plans(
        "duration",
        "each group has cores for ten seconds at most, until 5",
        """
        - long11 4 a1           | the limit ends inside the job
        + long11 5 a1           | the job starts as the limit ends
        + x 0 a1                | short enough
        """,
        limits=[_limit(consumer={"each": "group"}, duration=10, validity={"until": 5})],
    )


def _area() -> Iterator[RuledPlan]:
    yield from _plans(
        "area",
        "a request of u has an area of twenty core seconds at most",
        """
        + x2 0 a1               | two cores for ten seconds
        - y2-11 0 a1            | a second longer
        + y4-5 0 a1             | four cores for five seconds
        - y3-7 0 a1             | three for seven
        - wide3 0 a1 a2 b1      | three chunks of one core
        + wide2 0 a1 b1         | two chunks
        + x2 0 a1, y2 0 a2      | each request is judged by itself
        + v4 0 a1               | another user
        """,
        limits=[_limit(area=20)],
    )
    yield from _plans(
        "area",
        "a request of u has no area of cores from 10 to 20",
        """
        - x 9 a1                | the limit begins inside the job
        + x 0 a1                | the job ends as it begins
        - x 19 a1               | it ends inside the job
        + x 20 a1               | the job starts as it ends
        + gpu0 10 a1            | no cores, no area
        """,
        limits=[_limit(area=0, validity={"from": 10, "until": 20})],
    )
    yield from _plans(
        "area",
        "a request of u has ten licence seconds at most",
        """
        + lic1 0 a1             | one licence
        - lic2 0 a1             | two licences
        """,
        limits=[_limit("lic", area=10)],
    )


def _outstanding() -> Iterator[RuledPlan]:
    yield from _plans(
        "outstanding area",
        "u has thirty core seconds outstanding at most",
        """
        + x 0 a1, y2 0 a1               | ten and twenty
        - x 0 a1, y2 0 a1, long1 50 a1  | and one more, at whatever time
        + x 0 a1, y2 0 a1, v4 0 a2      | of another user
        - x4 0 a1                       | forty in one job
        + run-late, y 0 a1              | running work counts as a whole, from its start on
        - run-late, y2 0 a1             | twenty and twenty
        - run4, y 0 a2                  | running work that is too much by itself leaves nothing
        + run4, v1 0 a2                 | but is a fact
        """,
        limits=[_limit(area=30, area_scope="outstanding")],
    )
    yield from _plans(
        "outstanding area",
        "u has thirty core seconds outstanding at most, and used up ten",
        """
        - x 0 a1, y2 0 a1               | forty in all
        + y2 0 a1                       | thirty in all
        """,
        limits=[_limit(consumer=EACH, area=30, area_scope="outstanding")],
        usage=[
            {"consumer": {"user": "u"}, "resource": "cores", "area": 10},
            {"consumer": {"user": "v"}, "resource": "cores", "area": 100},
            {"consumer": {"group": "g"}, "resource": "cores", "area": 100},
            {"consumer": {"user": "u"}, "resource": "gpus", "area": 100},
        ],
    )
    yield from _plans(
        "outstanding area",
        "from 10 to 20, u has ten core seconds outstanding at most",
        """
        - x 10 a1, y 19 a1              | both are in that time
        + x 10 a1, y 20 a1              | y starts as the limit ends
        + x2 0 a1, y 10 a1              | x2 ends as the limit begins
        - x2 1 a1                       | the limit begins inside the job, all of which counts
        """,
        limits=[_limit(area=10, area_scope="outstanding", validity={"from": 10, "until": 20})],
    )
    yield from _plans(
        "outstanding area",
        "u has nothing outstanding",
        """
        - x 0 a1                        | zero is nothing
        + gpu0 0 a1                     | of another resource
        """,
        limits=[_limit(area=0, area_scope="outstanding")],
    )


def _jobs() -> Iterator[RuledPlan]:
    yield from _plans(
        "jobs",
        "u has one job at a time",
        """
        - x 0 a1, y 9 b1        | two at a time
        + x 0 a1, y 10 b1       | one after the other
        + x4 0 a1               | however large
        + x 0 a1, v1 0 a1       | of another user
        - array[0] 0 a1, array[1] 0 a2    | each element is a job
        + array[0] 0 a1, array[1] 10 a2   | one after the other
        - run1, y 4 a2          | what runs is a job
        + run1, y 5 a2          | until it ends
        + x 0 a1, nobody1 0 a1  | nobody's job
        """,
        limits=[_limit("jobs", items="1")],
    )
    yield from _plans(
        "jobs",
        "each group has two jobs at a time, until 15",
        """
        - x 0 a1, y 0 a1, z 5 a1    | a third one
        + x 0 a1, y 0 a1, z 10 a1   | a third one afterwards
        + x 15 a1, y 15 a1, z 15 a1 | the limit has ended
        - x 14 a1, y 14 a1, z 14 a1 | it ends inside the jobs
        """,
        limits=[_limit("jobs", {"each": "group"}, items="2", validity={"until": 15})],
    )
    yield from _plans(
        "jobs",
        "u has no jobs",
        """
        - gpu0 0 a1             | whatever it asks for
        + v1 0 a1               | another user
        """,
        limits=[_limit("jobs", items="0")],
    )


def _arrayjobs() -> Iterator[RuledPlan]:
    yield from _plans(
        "arrayjobs",
        "u has one element of an array at a time",
        """
        - array[0] 0 a1, array[1] 9 b1            | two at a time
        + array[0] 0 a1, array[1] 10 b1           | one after the other
        + array[0] 0 a1, x 0 a1, y 0 a1           | other jobs are none
        + array[1] 5 a1                           | the second one alone
        """,
        limits=[_limit("arrayjobs", items="1")],
    )
    yield from _plans(
        "arrayjobs",
        "u has no elements of arrays, from 10 to 20",
        """
        - array[0] 9 a1         | the limit begins inside it
        + array[0] 0 a1         | it ends as the limit begins
        - array[0] 19 a1        | the limit ends inside it
        + array[0] 20 a1        | it starts as the limit ends
        + x 10 a1               | another job
        """,
        limits=[_limit("arrayjobs", items="0", validity={"from": 10, "until": 20})],
    )
    yield from _plans(
        "arrayjobs",
        "u has ten seconds of elements of arrays outstanding, and each user one job at a time",
        """
        - array[0] 0 a1, array[1] 10 a1           | twenty seconds
        + array[0] 0 a1, x 10 a1                  | ten seconds, and another job
        - array[0] 0 a1, x 9 a1                   | two jobs at a time
        """,
        limits=[_limit("arrayjobs", area=10, area_scope="outstanding"), _limit("jobs", EACH, items="1")],
    )


def _star() -> Iterator[RuledPlan]:
    yield from _plans(
        "star",
        "u has one of each resource",
        """
        + x 0 a1                | one core
        - x2 0 a1               | two cores
        + gpu1 0 a1             | one core and one GPU
        - gpu1 0 a1, y 9 a2     | a second core
        + gpu1 0 a1, y 10 a2    | afterwards
        + x 0 a1, gpu0 0 a2     | two jobs are no resource
        - lic2 0 a1             | two licences
        + lic1 0 a1             | one licence
        """,
        limits=[_limit("*", items="1")],
    )
    own: Document = {"validity": {"from": 0, "until": 10}}
    for about, limit, plans in (
        (
            "u has a limit of its own for cores until 10",
            _limit(items="4", **own),
            "+ x2 0 a1 | then * rests\n- x2 1 a1 | it does so no longer",
        ),
        (
            "each user has a limit of its own for cores",
            _limit(consumer=EACH, items="4"),
            "+ x4 0 a1 | then * rests\n- wide5 0 a1*4 a2 | the own limit holds",
        ),
        (
            "another user has a limit for cores",
            _limit(consumer={"user": "v"}, items="4"),
            "- x2 0 a1 | which is not u's",
        ),
        ("the group has a limit for cores", _limit(consumer=GROUP, items="4"), "- x2 0 a1 | which is none of the user"),
        ("u has a soft limit for cores", _limit(items="1", soft=True), "+ x2 0 a1 | which is a limit of its own, too"),
        ("u has a limit for GPUs", _limit("gpus", items="2"), "- x2 0 a1 | which is not about cores"),
    ):
        yield from _plans(
            "star", f"u has one of each resource, but {about}", plans, limits=[_limit("*", items="1"), limit]
        )


def _percent() -> Iterator[RuledPlan]:
    for items, about, plans in (
        ("25%", "three of twelve cores", "+ x3 0 a1 | three\n- x4 0 a1 | four"),
        ("20%", "2.4 cores, rounded down", "+ x2 0 a1 | two\n- x3 0 a1 | three"),
        ("5/25%", "five, which is more than a quarter", "+ wide5 0 a1*4 a2 | five\n- wide6 0 a1*4 a2*2 | six"),
        ("1/25%", "a quarter, which is more than one", "+ x3 0 a1 | three\n- x4 0 a1 | four"),
        ("8%", "0.96 cores, rounded down", "- x 0 a1 | nothing is left"),
        ("12.5%", "1.5 cores, rounded down", "+ x 0 a1 | one\n- x2 0 a1 | two"),
        ("0%", "none", "- x 0 a1 | nothing is left"),
        ("100%", "all", "+ x4 0 a1, y4 0 a2, z4 0 b1 | all of them"),
    ):
        yield from _plans("percent", f"u has {items} of the cores, {about}", plans, limits=[_limit(items=items)])
    yield from _plans(
        "percent",
        "u has a quarter of the eight cores that are up",
        """
        + x2 0 a1               | two
        - x3 0 a1               | a quarter of what is up and what is not
        """,
        nodes={"b1": {"state": "drain"}},
        limits=[_limit(items="25%")],
    )
    yield from _plans(
        "percent",
        "u has half of the licences, and a share of jobs is none",
        """
        + v1 0 a1, lic1 0 a1    | one of two
        - lic2 0 a1             | both
        """,
        limits=[_limit("lic", items="50%")],
    )


def _validity() -> Iterator[RuledPlan]:
    yield from _plans(
        "validity",
        "u has one core from 10 to 20",
        """
        + x2 0 a1               | the job ends as the limit begins
        - x2 1 a1               | the limit begins in its last second
        - x2 19 a1              | the limit ends after its first second
        + x2 20 a1              | the job starts as the limit ends
        - x 5 a1, y 14 a1       | both in one second of that time
        + x 0 a1, y 0 a1, z 10 a1   | two before, one in that time
        """,
        limits=[_limit(items="1", validity={"from": 10, "until": 20})],
    )
    for about, validity, plans in (
        ("from 10 on", {"from": 10}, "- x2 1 a1 | it begins inside the job\n+ x2 0 a1 | as the job ends"),
        ("until 10", {"until": 10}, "- x2 9 a1 | it ends inside the job\n+ x2 10 a1 | as the job starts"),
        ("always", "always", "- x2 9 a1 | at whatever time"),
    ):
        yield from _plans("validity", f"u has one core {about}", plans, limits=[_limit(items="1", validity=validity)])
    yield from _plans(
        "validity",
        "at 8:00, u has one core from 9:00 to 9:59",
        """
        + x2 3590 a1            | the job ends as the hour begins
        - x2 3591 a1            | the hour begins in its last second
        - x2 7199 a1            | the hour ends after its first second
        + x2 7200 a1            | the job starts as the hour ends
        - x2 90000 a1           | on the next day, too
        """,
        limits=[_limit(items="1", validity={"cron": "* 9 * * *"})],
        **MORNING,
    )
    yield from _plans(
        "validity",
        "on a Monday at 8:00, u has one core in every tenth minute of a Tuesday",
        """
        + x2 0 a1               | on Monday
        - x2 57600 a1           | at midnight
        + x2 57660 a1           | a minute later
        - x2 58191 a1           | the tenth minute begins in its last second
        """,
        limits=[_limit(items="1", validity={"cron": "*/10 * * * tue"})],
        **MORNING,
    )


def _pools() -> Iterator[RuledPlan]:
    pool = {"resource": "cores", "items": "8", "open_to": {"users": ["v"]}}
    yield from _plans(
        "free pool",
        "eight of twelve cores are v's",
        """
        + x4 0 b1               | four are left
        - wide5 0 a1*4 b1       | five are too many
        - x2 0 a1, y3 9 a1      | of two jobs at a time
        + x2 0 a1, y3 10 a1     | one after the other
        + v-all 0 a1 a2 b1      | v has all
        + v4 0 a1, v3 0 a2, x4 0 b1 | v's jobs are not counted
        - nobody4 0 a1, x 0 a2  | nobody is not v
        - run4, y 4 a2          | running work counts
        + run4, y 5 a2          | until it ends
        """,
        free_pools=[pool],
    )
    for access, about, plans in (
        (
            {"groups": ["h"]},
            "of group h",
            """
            + v4 0 a1, v3 0 a2          | it is h's
            - x4 0 a1, y2 0 a2          | it is g's
            """,
        ),
        (
            {"asks_for": ["gpus"]},
            "for those who ask for GPUs",
            """
            + gpu4 0 a1, gpu2 0 a2      | they do
            - x4 0 a1, y2 0 a2          | they do not
            """,
        ),
        (
            {"asks_for": ["lic"]},
            "for those who ask for licences",
            """
            + x4 0 a1, lic1 0 a2        | one does
            - x4 0 a1, y 0 a2           | none does
            """,
        ),
        (
            {"max": {"cores": 2}},
            "for jobs of two cores",
            """
            + x4 0 a1, y2 0 a2          | y2 is small
            - x4 0 a1, y3 0 a2          | y3 is not
            - x4 0 a1, wide3 0 a2*3     | totals count
            """,
        ),
        (
            {"max_walltime": 5},
            "for five seconds",
            """
            + x4 0 a1, y4-5 0 a2        | short enough
            - x4 0 a1, long6 0 a2       | too long
            """,
        ),
        (
            {"max": {"cores": 2}, "max_walltime": 5},
            "for small and short jobs",
            """
            + x4 0 a1, x2-5 0 a2        | both
            - x4 0 a1, x2-6 0 a2        | small only
            - x4 0 a1, y4-5 0 a2        | short only
            """,
        ),
        (
            {"max": {"cores": 2}, "users": ["v"]},
            "for small jobs and for v",
            """
            + v4 0 a1, v3 0 a2, x4 0 b1 | v's are
            + x4 0 a1, y2 0 a2          | small ones are
            """,
        ),
        (
            {},
            "for nobody",
            """
            + v4 0 a1                   | four are left
            - v4 0 a1, x 0 a2           | five are too many
            """,
        ),
    ):
        yield from _plans(
            "free pool", f"eight of twelve cores are {about}", plans, free_pools=[{**pool, "open_to": access}]
        )
    yield from _plans(
        "free pool",
        "eight of twelve cores are v's, or anybody's for five seconds",
        """
        + y4-5 0 a1, x4 0 a2    | short enough
        - long6 0 a1, x4 0 a2   | a second too long
        """,
        free_pools=[{**pool, "otherwise": {"max_walltime": 5}}],
    )
    yield from _plans(
        "free pool",
        "three cores of a1 and a2 are v's",
        """
        + wide5 0 a1*4 a2           | five of eight are left
        - wide6 0 a1*4 a2*2         | six are too many
        + wide7 0 a1*4 a2 b1*2      | what is on b1 does not count
        + wide5 0 a1*3 a2*2         | on whichever of the nodes
        """,
        free_pools=[{**pool, "items": "3", "nodes": "a1,a2"}],
    )
    yield from _plans(
        "free pool",
        "all cores are v's from 10 to 20",
        """
        + x 0 a1                | the job ends as the pool begins
        - x 1 a1                | the pool begins in its last second
        - x 19 a1               | the pool ends after its first second
        + x 20 a1               | the job starts as the pool ends
        """,
        free_pools=[{**pool, "items": "100%", "validity": {"from": 10, "until": 20}}],
    )
    for items, plans in (
        ("0", "+ x4 0 a1, y4 0 a2, z4 0 b1 | zero keeps nothing"),
        ("99", "- x 0 a1 | more than there is leaves nothing\n+ gpu0 0 a1 | but of cores only"),
        ("50%", "+ wide6 0 a1*4 a2*2 | half are left\n- wide7 0 a1*4 a2*3 | one more"),
        ("1/10%", "+ x4 0 a1, y4 0 a2, z3 0 b1 | one is kept\n- x4 0 a1, y4 0 a2, z4 0 b1 | not more than one"),
    ):
        yield from _plans("free pool", f"{items} of twelve cores are v's", plans, free_pools=[{**pool, "items": items}])
    yield from _plans(
        "free pool",
        "one licence is v's",
        """
        + lic1 0 a1             | the other one
        - lic2 0 a1             | both
        - lic1 0 a1, other-lic 5 a1  | both, of two jobs
        """,
        free_pools=[{**pool, "resource": "lic", "items": "1"}],
    )


def _guards() -> Iterator[RuledPlan]:
    for guard, about, plans in (
        (
            [{"min": {"cores": 2}}, {"max_walltime": 5}],
            "chunks of two cores, and jobs of five seconds",
            """
            - x 0 a1            | neither
            + x 0 b1            | on another node
            + x2 0 a1           | two cores
            + long5 0 a1        | five seconds
            - long6 0 a1        | a second more
            - wide2 0 a1*2      | two chunks of one core
            + wide2 0 b1*2      | on another node
            - wide2 0 a1 b1     | one of them
            + twos 0 a1*2       | two chunks of two cores
            + run1              | running work is a fact
            """,
        ),
        (
            [{"min": {"cores": 2}, "max_walltime": 5}],
            "chunks of two cores for five seconds",
            """
            + x2-5 0 a1         | both
            - x2-6 0 a1         | two cores
            - long5 0 a1        | five seconds
            """,
        ),
        ([{"min": {"gpus": 1}}], "chunks with a GPU", "+ gpu1 0 a1 | with one\n- x 0 a1 | without"),
        ([{"min": {"cores": 1, "gpus": 1}}], "chunks with both", "+ gpu1 0 a1 | both\n- gpu0 0 a1 | one only"),
        ([], "everybody", "+ x 0 a1 | no condition is none"),
    ):
        yield from _plans("guard", f"a1 admits {about}", plans, nodes={"a1": {"admits": guard}})


def _keep_free() -> Iterator[RuledPlan]:
    def keeps(items: int) -> dict[str, Document]:
        return {"a1": {"keep_free": [{"resource": "cores", "items": items, "for": "gpus"}]}}

    yield from _plans(
        "keep_free",
        "a1 keeps two of four cores for GPUs",
        """
        + x2 0 a1               | two are left
        - x3 0 a1               | three are too many
        + x3 0 a2               | on another node
        + gpu4 0 a1             | with a GPU
        - x 0 a1, y2 9 a1       | of two jobs at a time
        + x 0 a1, y2 10 a1      | one after the other
        + x2 0 a1, gpu2 0 a1    | beside one with a GPU
        - excl1 0 a1            | not exclusively
        + gpu-excl 0 a1         | with a GPU exclusively
        + excl1 0 a2            | another node exclusively
        - run1, y2 4 a1         | running work counts
        + run1, y2 5 a1         | until it ends
        - run3, y 0 a1          | running work that has too much leaves nothing
        + run3, gpu1 0 a1       | but to those with a GPU
        """,
        nodes=keeps(2),
    )
    yield from _plans(
        "keep_free",
        "a1 keeps no cores for GPUs",
        """
        + x4 0 a1               | all are left
        - excl1 0 a1            | not exclusively
        """,
        nodes=keeps(0),
    )
    yield from _plans(
        "keep_free",
        "a1 keeps more cores for GPUs than it has",
        """
        - x 0 a1                | none is left
        + gpu4 0 a1             | but to those with a GPU
        """,
        nodes=keeps(9),
    )


def _reserved(
    cores: int = 4, count: int = 1, start: int = 10, end: int = 20, name: str = "r1", **members: Any
) -> Document:
    chunk = {"count": count, "resources": {"cores": cores}}
    return {"id": name, "start": start, "end": end, "request": [chunk], **members}


def _reservations() -> Iterator[RuledPlan]:
    yield from _plans(
        "reservation",
        "r1 has four cores from 10 to 20",
        """
        + r1 = a1, x 0 a1       | the job ends as it begins
        - r1 = a1, x 1 a1       | it begins in the last second of the job
        - r1 = a1, x 19 a1      | it ends after the first second of the job
        + r1 = a1, x 20 a1      | the job starts as it ends
        + r1 = a1, x4 10 a2     | on another node
        + r1 = a2, x4 10 a1     | it is elsewhere
        - x 0 a1                | it could be had, and is left out
        """,
        reservations=[_reserved()],
    )
    yield from _plans(
        "reservation",
        "r1 has three cores from 10 to 20",
        """
        + r1 = a1, x 10 a1      | one is left
        - r1 = a1, y2 10 a1     | two are not
        - r1 = a1, excl1 10 a1  | a job wants the node for itself
        + r1 = a1, excl1 0 a1   | and has it before
        """,
        reservations=[_reserved(3)],
    )
    yield from _plans(
        "reservation",
        "r1 has a core of two nodes, which are its own",
        """
        - r1 = a1 a2, x 15 a1   | nobody else is there
        + r1 = a1 a2, x 15 b1   | elsewhere
        - r1 = a1*2, x 15 b1    | they are two nodes
        """,
        reservations=[_reserved(1, 2, place="scatter:excl")],
    )
    yield from _plans(
        "reservation",
        "r1 and r2 have two and three cores",
        """
        + r1 = a1, r2 = a2      | each on a node
        - r1 = a1, r2 = a1      | both on one node
        """,
        reservations=[_reserved(2), _reserved(3, name="r2", start=19, end=30)],
    )
    yield from _plans(
        "reservation",
        "r1 has a core and both licences",
        """
        - r1 = a1, lic1 10 a2   | none is left
        + r1 = a1, lic1 20 a2   | after that
        + r1 = a1, lic1 0 a1    | before that
        """,
        reservations=[_reserved(1, licenses={"lic": 2})],
    )
    yield from _plans(
        "reservation",
        "r1 has four cores from 4 to 20, a1 is drained",
        """
        - r1 = a1               | nodes are up
        + r1 = a2, x 0 b1       | as this one is
        """,
        nodes={"a1": {"state": "drain"}},
        reservations=[_reserved(start=4)],
    )
    yield from _plans(
        "reservation",
        "r1 has four cores from 4 to 20, a job runs until 5",
        """
        - run1, r1 = a1         | running work is a fact
        + run1, r1 = a2         | it is not there
        """,
        reservations=[_reserved(start=4)],
    )
    yield from _plans(
        "reservation",
        "r1 has five cores of a node",
        """
        + x4 10 a1              | which none has
        - r1 = a1               | nor this one
        """,
        reservations=[_reserved(5)],
    )


def _downtimes() -> Iterator[RuledPlan]:
    down: Document = {"kind": "downtime", "place": "scatter:excl"}
    yield from _plans(
        "downtime",
        "two nodes are maintained from 10 to 20",
        """
        + r1 = a1 a2, x 0 a1    | the job ends as it begins
        - r1 = a1 a2, x 1 a1    | it begins in the last second of the job
        - r1 = a1 a2, x 19 a2   | it ends after the first second of the job
        + r1 = a1 a2, x 20 a2   | the job starts as it ends
        + r1 = a1 a2, x4 10 b1  | on another node
        - r1 = a1*2             | they are two nodes
        - x 0 b1                | it is left out
        """,
        reservations=[_reserved(4, 2, **down)],
    )
    yield from _plans(
        "downtime",
        "two nodes are maintained from 4 to 20, a job runs until 5",
        """
        - run4, r1 = a1 a2      | running work is a fact
        + run4, r1 = a2 b1      | it is not there
        """,
        reservations=[_reserved(4, 2, start=4, **down)],
    )
    yield from _plans(
        "downtime",
        "a node that is down is maintained from 0 to 20",
        """
        + r1 = a1, x 0 a2       | a downtime may have it
        + r1 = a2, x 0 b1       | or another one
        - r1 = a2, x 0 a2       | which nobody else has then
        """,
        nodes={"a1": {"state": "down"}},
        reservations=[_reserved(4, 1, 0, 20, **down)],
    )
    yield from _plans(
        "downtime",
        "all nodes are maintained from 10 to 20, whatever their guards are",
        """
        + r1 = a1 a2 b1, x 0 b1         | before that
        - r1 = a1 a2 b1, x 5 b1         | in that time
        + r1 = a1 a2 b1, x4 20 b1       | after that
        """,
        nodes={"a1": {"admits": [{"max_walltime": 1}]}},
        reservations=[_reserved(4, 3, **down)],
    )


def _guests() -> Iterator[RuledPlan]:
    yield from _plans(
        "guest",
        "r1 has three cores from 10 to 20",
        """
        + r1 = a1, guest3 10 a1                 | it is inside
        - r1 = a1, guest1 9 a1                  | a second too early
        - r1 = a1, guest1 11 a1                 | a second too late
        - r1 = a1, guest-long 10 a1             | a second too long
        - r1 = a1, guest1 10 a2                 | on another node
        - r1 = a1, guest4 10 a1                 | a core too many
        + r1 = a1, guest1 10 a1, guest2 10 a1   | two of them
        - r1 = a1, guest2 10 a1, guest-b 10 a1  | a core too many, of two
        + r1 = a1, guest3 10 a1, x 10 a1        | the rest of the node is the others'
        - r1 = a1, guest3 10 a1, y2 10 a1       | but not more
        - r1 = a1, guest-excl 10 a1, x 10 a1    | a guest that wants the node for itself
        + r1 = a1, guest-excl 10 a1, x 10 a2    | and has it
        - guest1 10 a1                          | the reservation is left out
        """,
        reservations=[_reserved(3)],
    )
    yield from _plans(
        "guest",
        "r1 has two cores from 10 to 20 for v, and a licence",
        """
        + r1 = a1, guest-v 10 a1                | it is v's
        - r1 = a1, guest1 10 a1                 | it is u's
        """,
        reservations=[_reserved(2, users=["v"], licenses={"lic": 1})],
    )
    yield from _plans(
        "guest",
        "r1 has two cores from 10 to 20, and a licence",
        """
        + r1 = a1, guest-lic1 10 a1             | which is for its jobs
        + r1 = a1, guest-lic1 10 a1, other-lic 10 a2  | the other one is for the others
        - r1 = a1, guest-lic2 10 a1             | it has no more
        """,
        reservations=[_reserved(2, licenses={"lic": 1})],
    )
    yield from _plans(
        "guest",
        "r1 has a core of two nodes, whose guards admit nobody for ten seconds",
        """
        - r1 = a1 b1, guest-wide 10 a1 b1       | guards are held against its jobs
        + r1 = a2 b1, guest-wide 10 a2 b1       | there is none
        """,
        nodes={"a1": {"admits": [{"max_walltime": 9}]}},
        reservations=[_reserved(1, 2, place="scatter")],
    )
    yield from _plans(
        "guest",
        "r1 has four cores from 10 to 20, and u two cores at most",
        """
        + r1 = a1, guest2 10 a1                 | as many
        - r1 = a1, guest3 10 a1                 | limits are held against its jobs
        - r1 = a1, guest2 10 a1, x 10 a2        | together with the others
        """,
        reservations=[_reserved(4)],
        limits=[_limit(items="2")],
    )


def _queue_nodes() -> Iterator[RuledPlan]:
    for about, nodes in (("a1 and a2", "a1,a2"), ("those with arch=a", {"arch": "a"})):
        yield from _plans(
            "queue nodes",
            f"queue q has {about}",
            """
            + q1 0 a1               | it is there
            - q1 0 b1               | it is elsewhere
            + q2 0 a1 a2            | both chunks
            - q2 0 a1 b1            | one of them
            + x 0 b1                | no queue, no rule
            + p1 0 b1               | another queue
            + run-b                 | running work is a fact
            - q-b 0 b1              | what it asks for is elsewhere
            + q1 0 a1, q-two 0 a1   | two of them
            - q3 0 a1 a2 b1         | three chunks
            """,
            queues={"q": {"expected_wait": 100, "nodes": nodes}},
        )
    yield from _plans(
        "queue nodes",
        "queue q has a1, and r1 four cores from 10 to 20",
        """
        + r1 = a1, q-guest 10 a1    | both agree
        - r1 = a2, q-guest 10 a2    | also inside a reservation
        - r1 = a1, q-guest 0 a1     | before that
        """,
        queues={"q": {"expected_wait": 100, "nodes": "a1"}},
        reservations=[_reserved()],
    )


def _soft() -> Iterator[RuledPlan]:
    yield from _plans(
        "soft limit",
        "u should have one core, one job, no GPU and no area",
        """
        + x2 0 a1               | nobody else is there
        + x 0 a1, y 0 a1        | two jobs
        + gpu1 0 a1             | a GPU
        + long11 0 a1           | however long
        + array[0] 0 a1, array[1] 0 a1  | both elements
        + x4 0 a1, v4 0 a2      | v has what v wants
        + run4, y4 0 a2         | beside running work
        + lic2 0 a1             | of another resource
        - x4 0 a1, y 9 a1       | what there is remains
        """,
        limits=[
            _limit(items="1", soft=True),
            _limit("jobs", items="1", soft=True),
            _limit("gpus", items="0", soft=True),
            _limit(area=0, area_scope="outstanding", soft=True),
            _limit(duration=5, soft=True),
        ],
    )
    yield from _plans(
        "soft limit",
        "u should have one core, and has two at most until 15",
        """
        + x2 0 a1               | the hard limit holds
        - x3 0 a1               | and is exceeded
        + x3 15 a1              | until it ends
        - x3 14 a1              | inside the job
        """,
        limits=[_limit(items="1", soft=True), _limit(items="2", validity={"until": 15})],
    )


RULED_PLANS = tuple(
    one
    for plans in (
        *(_items, _duration, _area, _outstanding, _jobs, _arrayjobs, _star, _percent, _validity, _pools, _guards),
        *(_keep_free, _reservations, _downtimes, _guests, _queue_nodes, _soft),
    )
    for one in plans()
)
