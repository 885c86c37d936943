"""The literal planner: worked examples of the specification, and a search that tries every second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given

from cpsched.domain import (
    AdmitCondition,
    Amounts,
    Arrangement,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    KeepFree,
    Malleability,
    NodeClass,
    NodeState,
    Place,
    Placement,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from tests.oracle.literal_planner import (
    Mapped,
    chunk_weight,
    mapping_orders,
    node_weight,
    plan_literally,
    planning_order,
    search_interval,
    start_after_awaited,
)
from tests.oracle.random_instances import instances
from tests.sizes import examples

FOREVER = 10**9
FREE = Place()
EXCLUSIVE = Place(exclusive=True)
PACK = Place(arrangement=Arrangement.PACK)
SCATTER = Place(arrangement=Arrangement.SCATTER)


def nodes(names: str, **options: Any) -> NodeClass:
    """Return a class of nodes; what is no field of it is a resource."""
    fields = {"properties", "priority", "state", "admits", "keep_free"}
    resources = {name: amount for name, amount in options.items() if name not in fields}
    return NodeClass(
        names=tuple(names.split()),
        resources=Amounts(resources),
        **{name: value for name, value in options.items() if name in fields},
    )


def request(*chunks: tuple[int, dict[str, int]], place: Place = FREE) -> Request:
    """Return a request of (count, resources)."""
    return Request(
        chunks=tuple(Chunk(count=count, resources=Amounts(resources)) for count, resources in chunks), place=place
    )


def waiting(job_id: str, walltime: int, asked: Request, **options: Any) -> Job:
    """Return a job that has not started, submitted at 0."""
    return Job(**{"id": job_id, "submit": 0, "steps": (Step(walltime=walltime, request=asked),), **options})


def running(job_id: str, end: int, held: Mapping[str, Mapping[str, int]], place: Place = FREE, **options: Any) -> Job:
    """Return a job that runs in ``[0, end)`` on what it holds."""
    allocation = tuple(Placement(node=name, resources=Amounts(amounts)) for name, amounts in held.items())
    return Job(
        id=job_id,
        submit=0,
        steps=(Step(walltime=end, request=request((1, {"cores": 1}), place=place)),),
        running=Running(start=0, segments=(Segment(start=0, end=end, allocation=allocation),)),
        **options,
    )


def window(classes: list[NodeClass], *jobs: Job, licenses: Mapping[str, int] | None = None) -> Instance:
    """Return an instance whose clock stands at 0."""
    return Instance(name="worked", cluster=Cluster(classes=tuple(classes), licenses=Amounts(licenses or {})), jobs=jobs)


# ---- weights and order ----


def test_node_weights() -> None:
    """OCCS-26: 16 cores of 9,920 weigh 16, with 2 of 32 GPUs 620, with priority 1 9,936; else 16, 16, 64."""
    plain, gpus = nodes("p", cores=16), nodes("g", cores=16, gpus=2)
    rest = nodes("r", cores=9920 - 2 * 16, gpus=30)
    large = Cluster(classes=(plain, gpus, rest))
    assert [9920 * node_weight(large, node) for node in (plain, gpus)] == [16, 620]
    assert 9920 * node_weight(large, replace(plain, priority=1)) == 9936
    a, b, c = nodes("a", cores=16), nodes("b", cores=16), nodes("c", cores=32, gpus=2)
    small = Cluster(classes=(a, b, c))
    assert [64 * node_weight(small, node) for node in (a, b, c)] == [16, 16, 64]


def test_chunk_weight() -> None:
    """OCCS-27: a chunk weighs its largest share of what the largest node has."""
    cluster = Cluster(classes=(nodes("a", cores=16, mem=64), nodes("b", cores=8, mem=128, gpus=2)))
    asked = request((1, {"cores": 4, "mem": 16}), (1, {"cores": 1, "gpus": 1}))
    assert [chunk_weight(cluster, chunk) for chunk in asked.chunks] == [Fraction(1, 4), Fraction(1, 2)]


def test_planning_order() -> None:
    """Fixed starts come first, then deadlines, then the rest; each by priority, submit time and document order."""
    asked = request((1, {"cores": 1}))
    jobs = [
        waiting("rest", 5, asked),
        waiting("earlier", 5, asked, submit=-5),
        waiting("twin", 5, asked),
        waiting("important", 5, asked, priority=3),
        waiting("deadline", 5, asked, deadline=50),
        waiting("fixed", 5, asked, start_at=9, deadline=50, priority=-1),
        waiting("array", 5, asked, array=(2, 7), priority=2),
        running("runs", 5, {"a": {"cores": 1}}),
    ]
    order = [job.id for job in planning_order(window([nodes("a", cores=4)], *jobs))]
    assert order == ["fixed", "deadline", "important", "array[2]", "array[7]", "earlier", "rest", "twin"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (0, 1 << 60)),
        ({"not_before": 7}, (7, 1 << 60)),
        ({"submit": 9, "not_before": 7}, (9, 1 << 60)),
        ({"deadline": 10}, (0, 10)),
        ({"deadline": 9}, None),
        ({"start_at": 5}, (5, 15)),
        ({"start_at": 5, "deadline": 15}, (5, 15)),
        ({"start_at": 5, "deadline": 14}, None),
        ({"start_at": -1}, None),
        ({"start_at": 5, "submit": 6}, None),
        ({"queue": "short"}, None),
    ],
)
def test_search_interval(options: dict[str, Any], expected: tuple[int, int] | None) -> None:
    """OCCS-20: a job of 10 s lies between its earliest start and its deadline, exactly at a fixed start, or nowhere."""
    job = waiting("j", 10, request((1, {"cores": 1})), **options)
    instance = replace(
        window([nodes("a", cores=4)], job), queues=FrozenMap({"short": Queue(expected_wait=60, max_walltime=9)})
    )
    assert search_interval(instance, job) == expected
    assert (plan_literally(instance)["j"] is None) == (expected is None)


# ---- worked examples ----


def test_windows_of_the_system() -> None:
    """OCCS-23: with 80, 90 and 70 of 100 cores in use, 20 cores are free in [0, 3600) and from 5400 on."""
    busy = [
        running("r1", FOREVER, {"a": {"cores": 70}}),
        running("r2", 3600, {"a": {"cores": 10}}),
        waiting("between", 1800, request((1, {"cores": 20})), start_at=3600),
    ]
    jobs = [waiting(f"j{number}", 1800, request((1, {"cores": 20}))) for number in range(3)]
    plan = plan_literally(window([nodes("a", cores=100)], *busy, *jobs))
    assert [plan[job.id] for job in jobs] == [(start, [("a", 0, 1)]) for start in (0, 1800, 5400)]


def test_windows_of_the_system_with_a_licence() -> None:
    """OCCS-23: what else the job needs, here a licence that is free from 5000 on, leaves only the later window."""
    busy = [
        running("r1", FOREVER, {"a": {"cores": 70}}),
        running("r2", 3600, {"a": {"cores": 10}}),
        running("r3", 5000, {"b": {"cores": 1}}, licenses=Amounts({"solver": 2})),
        waiting("between", 1800, request((1, {"cores": 20})), start_at=3600),
    ]
    job = waiting("j", 1800, request((1, {"cores": 20})), licenses=Amounts({"solver": 1}))
    plan = plan_literally(window([nodes("a", cores=100), nodes("b", cores=1)], *busy, job, licenses={"solver": 2}))
    assert plan["j"] == (5400, [("a", 0, 1)])


@pytest.mark.parametrize(
    ("not_before", "start", "node"), [(0, 0, "a"), (5, 5, "a"), (6, 12, "b"), (12, 12, "b"), (20, 20, "b")]
)
def test_exact_start_check(not_before: int, start: int, node: str) -> None:
    """OCCS-29: A is free in [0, 15), B in [12, 30): 10 s cannot start in 6…11, though a node is always free."""
    jobs = [
        running("b1", 12, {"b": {"cores": 1}}),
        waiting("a1", FOREVER, replace(request((1, {"cores": 1})), chunks=(at("a"),)), start_at=15),
        waiting("b2", FOREVER, replace(request((1, {"cores": 1})), chunks=(at("b"),)), start_at=30),
        waiting("j", 10, request((1, {"cores": 1})), not_before=not_before),
    ]
    classes = [nodes(name, cores=1, properties=FrozenMap({"host": name})) for name in "ab"]
    assert plan_literally(window(classes, *jobs))["j"] == (start, [(node, 0, 1)])


def at(host: str, **resources: int) -> Chunk:
    """Return one chunk (of one core) that asks for a node by its property."""
    return Chunk(count=1, resources=Amounts(resources or {"cores": 1}), where=FrozenMap({"host": host}))


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (FREE, (0, [("B", 0, 2), ("C", 0, 1)])),
        (SCATTER, (1800, [("A", 0, 1), ("B", 0, 1), ("C", 0, 1)])),
        (PACK, (7200, [("C", 0, 3)])),
        (EXCLUSIVE, (1800, [("A", 0, 2), ("B", 0, 1)])),
    ],
)
def test_placements(place: Place, expected: tuple[int, Mapped]) -> None:
    """OCCS-30: 3:ncpus=8 for 3600 s, placed in four ways on A (12 of 16 used), B and C (16 of 32 used)."""
    classes = [
        nodes("A B", cores=16),
        nodes("C", cores=32, gpus=2, keep_free=(KeepFree(resource="cores", items=4, beneficiary="gpus"),)),
    ]
    jobs = [
        running("r1", 1800, {"A": {"cores": 12}}),
        running("r2", 7200, {"C": {"cores": 16}}),
        waiting("j", 3600, request((3, {"cores": 8}), place=place)),
    ]
    assert plan_literally(window(classes, *jobs))["j"] == expected


@pytest.mark.parametrize(
    ("held", "asked", "start"),
    [
        ({"cores": 10}, {"cores": 4}, 0),
        ({"cores": 10}, {"cores": 5}, 100),
        ({"cores": 10}, {"cores": 6, "gpus": 1}, 0),
        ({"cores": 10}, {"cores": 7, "gpus": 1}, 100),
        ({"cores": 10, "gpus": 1}, {"cores": 6}, 0),
        ({"cores": 15}, {"cores": 1}, 100),
        ({"cores": 15}, {"gpus": 1}, 0),
    ],
)
def test_cores_kept_for_gpu_jobs(held: dict[str, int], asked: dict[str, int], start: int) -> None:
    """OCCS-40: of 16 cores, 2 kept and 10 used, others see 4 and GPU jobs 6; the use by GPU jobs is not counted."""
    node = nodes("g", cores=16, gpus=2, keep_free=(KeepFree(resource="cores", items=2, beneficiary="gpus"),))
    plan = plan_literally(window([node], running("r", 100, {"g": held}), waiting("j", 10, request((1, asked)))))
    assert plan["j"] == (start, [("g", 0, 1)])


def test_kept_cores_do_not_depend_on_the_order() -> None:
    """With a GPU job on 4 cores and others on 10, no further core is there for the others, in either order."""
    node = nodes("g", cores=16, gpus=2, keep_free=(KeepFree(resource="cores", items=4, beneficiary="gpus"),))
    gpu, other = request((1, {"cores": 4, "gpus": 1})), request((1, {"cores": 10}))
    last = waiting("last", 10, request((1, {"cores": 3})), priority=-1)
    for first, second in ((gpu, other), (other, gpu)):
        plan = plan_literally(window([node], waiting("a", 10, first), waiting("b", 10, second), last))
        assert {name: found and found[0] for name, found in plan.items()} == {"a": 0, "b": 0, "last": 10}


def test_no_exclusive_use_of_kept_nodes() -> None:
    """OCCS-40: a job without GPU never has a node exclusively that keeps something for GPU jobs; a GPU job may."""
    node = nodes("g", cores=16, gpus=2, keep_free=(KeepFree(resource="cores", items=2, beneficiary="gpus"),))
    jobs = [
        waiting("plain", 10, request((1, {"cores": 1}), place=EXCLUSIVE)),
        waiting("gpu", 10, request((1, {"cores": 1, "gpus": 1}), place=EXCLUSIVE)),
    ]
    assert plan_literally(window([node], *jobs)) == {"plain": None, "gpu": (0, [("g", 0, 1)])}


@pytest.mark.parametrize(
    ("asked", "hours", "is_let_in"),
    [
        ({"cores": 8, "mem": 20}, 72, False),
        ({"cores": 8, "mem": 20}, 10, True),
        ({"cores": 8, "mem": 20}, 12, True),
        ({"cores": 17, "mem": 20}, 72, True),
        ({"cores": 8, "mem": 66}, 72, True),
        ({"cores": 8, "vmem": 80}, 72, True),
        ({"cores": 8, "vmem": 79, "mem": 65}, 72, False),
    ],
)
def test_node_specific_limits(asked: dict[str, int], hours: int, is_let_in: bool) -> None:
    """OCCS-41: an SMP node only for vmem >= 80g, mem >= 66g, ncpus >= 17 or up to 12 h."""
    admits = (
        AdmitCondition(min=Amounts({"vmem": 80})),
        AdmitCondition(min=Amounts({"mem": 66})),
        AdmitCondition(min=Amounts({"cores": 17})),
        AdmitCondition(max_walltime=12 * 3600),
    )
    node = nodes("smp", cores=32, mem=1024, vmem=2048, admits=admits)
    plan = plan_literally(window([node], waiting("j", hours * 3600, request((1, asked)))))
    assert (plan["j"] is not None) == is_let_in


def test_two_nodes_and_three_jobs() -> None:
    """BRIDI-8's machine: in the order c, a, b the planner finds the optimum, 0, 5 and 6."""
    jobs = [
        running("r", 6, {"n0": {"cores": 4}}),
        waiting("a", 10, request((1, {"cores": 4})), priority=1),
        waiting("b", 20, request((2, {"cores": 2}))),
        waiting("c", 5, request((1, {"cores": 4})), priority=2, submit=-3),
    ]
    assert plan_literally(window([nodes("n0 n1", cores=4)], *jobs)) == {
        "c": (0, [("n1", 0, 1)]),
        "a": (5, [("n1", 0, 1)]),
        "b": (6, [("n0", 0, 2)]),
    }


# ---- what else the rules say ----


def test_kinds_share_a_node() -> None:
    """Later kinds see what earlier kinds took: the large chunk leaves room for two small ones on its node."""
    asked = request((3, {"cores": 1}), (1, {"cores": 4}))
    plan = plan_literally(window([nodes("a b", cores=6)], waiting("j", 10, asked)))
    assert plan["j"] == (0, [("a", 0, 2), ("a", 1, 1), ("b", 0, 1)])


def test_scatter_holds_for_all_kinds() -> None:
    """At most one chunk, of any kind, stands on a node."""
    asked = request((1, {"cores": 1}), (1, {"cores": 2}), place=SCATTER)
    plan = plan_literally(window([nodes("a b", cores=6)], waiting("j", 10, asked)))
    assert plan["j"] == (0, [("a", 1, 1), ("b", 0, 1)])
    assert plan_literally(window([nodes("a", cores=6)], waiting("j", 10, asked)))["j"] is None


def test_licences_are_held_by_planned_jobs() -> None:
    """Of three jobs with one licence each, of two, the third waits; a job that needs three has no start."""
    asked = request((1, {"cores": 1}))
    jobs = [waiting(f"j{number}", 10, asked, licenses=Amounts({"solver": 1})) for number in range(3)]
    greedy = waiting("greedy", 10, asked, licenses=Amounts({"solver": 3}))
    plan = plan_literally(window([nodes("a", cores=4)], *jobs, greedy, licenses={"solver": 2}))
    assert {name: found and found[0] for name, found in plan.items()} == {"j0": 0, "j1": 0, "j2": 10, "greedy": None}


def test_exclusive_jobs_are_alone() -> None:
    """Nobody is let onto a node that a job has exclusively, running or planned, and it waits until the node is idle."""
    one = request((1, {"cores": 1}))
    jobs = [
        running("r", 5, {"a": {"cores": 1}}, place=EXCLUSIVE),
        waiting("first", 10, one, priority=3),
        waiting("alone", 10, request((1, {"cores": 1}), place=EXCLUSIVE), priority=2),
        waiting("last", 10, one, priority=1),
    ]
    plan = plan_literally(window([nodes("a", cores=4)], *jobs))
    assert {name: found and found[0] for name, found in plan.items()} == {"first": 5, "alone": 15, "last": 5}


def test_running_work_may_share_what_is_exclusive() -> None:
    """Two running jobs on one node, one of them exclusive: the node opens to others when that one ends."""
    jobs = [
        running("r1", 5, {"a": {"cores": 1}}, place=EXCLUSIVE),
        running("r2", 9, {"a": {"cores": 2}}),
        waiting("small", 10, request((1, {"cores": 2}))),
        waiting("large", 10, request((1, {"cores": 3}))),
    ]
    plan = plan_literally(window([nodes("a", cores=4)], *jobs))
    assert {name: found and found[0] for name, found in plan.items()} == {"small": 5, "large": 15}


@pytest.mark.parametrize("state", [NodeState.DRAIN, NodeState.DOWN])
def test_nodes_that_are_not_up(state: NodeState) -> None:
    """Nothing new goes to a node that is drained or down; what runs there takes nothing from the others."""
    jobs = [running("r", 50, {"a": {"cores": 4}}), waiting("j", 10, request((1, {"cores": 4})))]
    plan = plan_literally(window([nodes("a", cores=4, state=state), nodes("b", cores=4, priority=9)], *jobs))
    assert plan["j"] == (0, [("b", 0, 1)])


def test_priority_of_nodes() -> None:
    """The administrator's bias outweighs any share of resources."""
    classes = [nodes("a", cores=1, priority=1), nodes("b", cores=100)]
    assert plan_literally(window(classes, waiting("j", 10, request((1, {"cores": 1})))))["j"] == (0, [("b", 0, 1)])


@pytest.mark.parametrize(
    "asked",
    [
        request((1, {"gpus": 1})),
        request((1, {"cores": 5})),
        request((3, {"cores": 4})),
        Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1}), where=FrozenMap({"arch": "z"})),)),
    ],
)
def test_what_can_never_run(asked: Request) -> None:
    """A resource that no node has, a chunk too large, too many chunks for pack, an unknown property: no start."""
    pack = replace(asked, place=PACK)
    assert plan_literally(window([nodes("a b", cores=4)], waiting("j", 10, pack)))["j"] is None


def test_what_it_does_not_plan() -> None:
    """A malleable job is refused, not planned as if it were rigid."""
    job = waiting("m", 10, request((1, {"cores": 1})), malleability=Malleability(shares=(0.5,)))
    with pytest.raises(ValueError, match="Expected rigid jobs, got m"):
        plan_literally(window([nodes("a", cores=4)], job))


def test_other_orders_find_room() -> None:
    """The paper's order alone would fail: the two-core chunk would take A, the only node for the other chunk.

    Nodes that fewer kinds may use come first then: the two-core chunk, placed first again, goes to B.
    """
    classes = [nodes("a", cores=2, properties=FrozenMap({"host": "a"})), nodes("b", cores=4)]
    pair = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 2})), at("a")))
    assert plan_literally(window(classes, waiting("pair", 5, pair)))["pair"] == (0, [("a", 1, 1), ("b", 0, 1)])


# ---- a search that tries every second ----


@dataclass(frozen=True)
class Held:
    """What one job holds on one node, second by second."""

    node: str
    start: int
    end: int
    #: One entry per chunk; the allocation of a running job as one.
    parts: tuple[Mapping[str, int], ...]
    exclusive: bool


class EverySecond:
    """Plans by trying every second, every node, and one chunk at a time, against all seconds of the job."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.held: list[Held] = []
        self.licensed: list[tuple[int, int, Mapping[str, int]]] = []
        cluster = instance.cluster
        names = cluster.node_names
        self.nodes = sorted(names, key=lambda name: (node_weight(cluster, cluster.class_of[name]), names.index(name)))
        for job in instance.jobs:
            for segment in job.running.segments if job.running else ():
                self.licensed.append((segment.start, segment.end, job.licenses))
                for part in segment.allocation:
                    self.held.append(
                        Held(part.node, segment.start, segment.end, (part.resources,), job.request.place.exclusive)
                    )

    def plan(self) -> dict[str, tuple[int, Mapped] | None]:
        """Return what `plan_literally` should return."""
        plan: dict[str, tuple[int, Mapped] | None] = {
            job.id: None for job in self.instance.elements() if job.running is None
        }
        for job in planning_order(self.instance):
            plan[job.id] = self._plan_job(job, start_after_awaited(self.instance, job, plan))
        return plan

    def _plan_job(self, job: Job, released: int | None) -> tuple[int, Mapped] | None:
        interval = search_interval(self.instance, job)
        if interval is None or released is None:
            return None
        first, end = max(interval[0], released), interval[1]
        ends = {held.end for held in self.held}
        for start in range(first, min(max({first, *ends}), end - job.walltime) + 1):
            # Several kinds on several nodes: greedy is not monotone, and only these seconds are candidates.
            is_simple = len(job.request.chunks) == 1 or job.request.place.arrangement is Arrangement.PACK
            if not (is_simple or start == first or start in ends) or not self._has_licenses(job, start):
                continue
            for kinds, names in self._choices(job):
                placed = self._place(job, start, kinds, names)
                if placed is not None:
                    return start, self._book(job, start, placed)
        return None

    def _choices(self, job: Job) -> Iterator[tuple[Sequence[int], list[str]]]:
        """Yield the kinds and the nodes to choose from, in order: each node by itself for pack."""
        if job.request.place.arrangement is Arrangement.PACK:
            yield from ((range(len(job.request.chunks)), [name]) for name in self.nodes)
        else:
            yield from mapping_orders(self.instance.cluster, job)

    def _has_licenses(self, job: Job, start: int) -> bool:
        return all(
            amount + sum(held.get(name, 0) for since, until, held in self.licensed if since <= second < until)
            <= self.instance.cluster.licenses.get(name, 0)
            for name, amount in job.licenses.items()
            for second in range(start, start + job.walltime)
        )

    def _place(self, job: Job, start: int, kinds: Sequence[int], names: list[str]) -> list[tuple[str, int]] | None:
        """Return (node, kind) for each chunk, or None."""
        placed: list[tuple[str, int]] = []
        for kind in kinds:
            missing = job.request.chunks[kind].count
            for name in names:
                while missing and self._fits(job, start, name, kind, placed):
                    placed.append((name, kind))
                    missing -= 1
            if missing:
                return None
        return placed

    def _fits(self, job: Job, start: int, name: str, kind: int, placed: list[tuple[str, int]]) -> bool:
        """Return whether one more chunk may stand on a node, beside what is held there and what the job has there."""
        node = self.instance.cluster.class_of[name]
        chunk, place = job.request.chunks[kind], job.request.place
        own = [job.request.chunks[other].resources for where, other in placed if where == name]
        if node.state is not NodeState.UP or not node.is_admitted(chunk.resources, job.walltime):
            return False
        if any(node.properties.get(key) != value for key, value in chunk.where.items()):
            return False
        if place.arrangement is Arrangement.SCATTER and own:
            return False
        if place.exclusive and any(not chunk.resources.get(rule.beneficiary) for rule in node.keep_free):
            return False
        for second in range(start, start + job.walltime):
            there = [held for held in self.held if held.node == name and held.start <= second < held.end]
            if any(held.exclusive for held in there) or (place.exclusive and there):
                return False
            parts = [part for held in there for part in held.parts] + own + [chunk.resources]
            if any(sum(part.get(res, 0) for part in parts) > node.resources.get(res, 0) for res in chunk.resources):
                return False
            for rule in node.keep_free:
                if rule.resource not in chunk.resources or rule.beneficiary in chunk.resources:
                    continue
                others = sum(part.get(rule.resource, 0) for part in parts if not part.get(rule.beneficiary))
                if others > node.resources.get(rule.resource, 0) - rule.items:
                    return False
        return True

    def _book(self, job: Job, start: int, placed: list[tuple[str, int]]) -> Mapped:
        end, chunks = start + job.walltime, job.request.chunks
        self.licensed.append((start, end, job.licenses))
        for name in {name for name, _ in placed}:
            parts = tuple(chunks[kind].resources for where, kind in placed if where == name)
            self.held.append(Held(name, start, end, parts, job.request.place.exclusive))
        index = self.instance.cluster.node_names.index
        ordered = sorted(set(placed), key=lambda entry: (index(entry[0]), entry[1]))
        return [(name, kind, placed.count((name, kind))) for name, kind in ordered]


@examples(80)
@given(instances(max_nodes=5, max_jobs=6))
def test_every_second_finds_the_same(instance: Instance) -> None:
    """A search that tries every second, against what is held in every second, finds the same starts and nodes."""
    assert plan_literally(instance) == EverySecond(instance).plan()
