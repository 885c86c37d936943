"""Tiny instances whose optimum is known by hand: one idea each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cpsched.domain import (
    Amounts,
    Arrangement,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    KeepFree,
    NodeClass,
    Place,
    Placement,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)

__all__ = ["TinyCase", "shipped_cases", "tiny_cases"]

_SCATTER = Place(arrangement=Arrangement.SCATTER)
_PACK = Place(arrangement=Arrangement.PACK)
_EXCLUSIVE = Place(exclusive=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyCase:
    """An instance and what is known about it; objective ``weighted_wait``."""

    instance: Instance
    #: The least value that any plan can have.
    optimum: float
    #: The starts of one optimal plan by job id; a job without start belongs to the waiting room.
    starts: Mapping[str, int]
    #: How the optimum is known, in one or two sentences.
    argument: str
    #: Which of its alternatives that plan chooses for each job that has some.
    alternatives: Mapping[str, int] = FrozenMap()


def tiny_cases() -> tuple[TinyCase, ...]:
    """Return all tiny instances, in the order of the table in ``instances/README.md``."""
    return (
        _bridi(),
        _occs30("free", Place(), 0, "two chunks on the idle B and one on C start at once"),
        _occs30(
            "scatter", _SCATTER, 1800, "one chunk per node needs all three nodes, and A has 8 free cores from 1800 on"
        ),
        _occs30(
            "pack", _PACK, 7200, "three chunks are 24 cores: only C is so large, from 7200 on, with its 4 kept free"
        ),
        _occs30(
            "excl", _EXCLUSIVE, 1800, "C keeps cores for GPU jobs and is not had exclusively; A is idle from 1800 on"
        ),
        _license(),
        _heterogeneous(),
        _pack_scatter(),
        _exclusive(),
        _order(),
        _hold_back(),
        _unsatisfiable(),
        _moldable(),
    )


def shipped_cases() -> tuple[TinyCase, ...]:
    """Return those, and the one with rules, which engines know only once it is compiled."""
    return (*tiny_cases(), _topology())


def _bridi() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "bridi",
            classes=[_nodes("node001 node002", cores=4)],
            queues={"debug": 30, "parallel": 360},
            jobs=[
                _running("r", -4, 10, {"node001": {"cores": 4}}, "debug"),
                _job("a", 10, [(1, {"cores": 4})], queue="debug"),
                _job("b", 20, [(2, {"cores": 2})], queue="parallel"),
                _job("c", 5, [(1, {"cores": 4})], queue="debug", submit=-3),
            ],
        ),
        optimum=3 / 30 + 5 / 30 + 6 / 360,
        starts={"c": 0, "a": 5, "b": 6},
        argument="Worked example of the specification (BRIDI-8): c and a follow each other on node002, shorter first; "
        "b has the lightest weight and waits for node001. 3/30 + 5/30 + 6/360.",
    )


def _occs30(variant: str, place: Place, start: int, why: str) -> TinyCase:
    return TinyCase(
        instance=_instance(
            f"mapping-{variant}",
            classes=[
                _nodes("A B", cores=16),
                _nodes("C", KeepFree(resource="cores", items=4, beneficiary="gpus"), cores=32, gpus=2),
            ],
            jobs=[
                _running("r1", 0, 1800, {"A": {"cores": 12}}),
                _running("r2", 0, 7200, {"C": {"cores": 16}}),
                _job("j", 3600, [(3, {"cores": 8})], place=place),
            ],
        ),
        optimum=start / 1800,
        starts={"j": start},
        argument=f"Worked example of the specification (OCCS-30), place {variant}: {why}.",
    )


def _license() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "license",
            classes=[_nodes("node001 node002", cores=4)],
            licenses={"abaqus": 3},
            queues={"q": 10},
            jobs=[
                _job("a", 10, [(1, {"cores": 2})], queue="q", licenses={"abaqus": 2}),
                _job("b", 4, [(1, {"cores": 2})], queue="q", licenses={"abaqus": 2}),
                _job("c", 10, [(1, {"cores": 2})], queue="q", licenses={"abaqus": 1}),
                _job("d", 10, [(1, {"cores": 2})], queue="q"),
            ],
        ),
        optimum=0.4,
        starts={"a": 4, "b": 0, "c": 0, "d": 0},
        argument="The cores hold all four jobs at once, but 3 licences do not allow a and b together: the shorter b "
        "goes first, with c and d beside it, and a waits 4 s.",
    )


def _heterogeneous() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "heterogeneous",
            classes=[
                _nodes("cpu1 cpu2", cores=4, mem=1024),
                _nodes("gpu1", cores=4, mem=4096, gpus=1),
            ],
            queues={"q": 10},
            jobs=[
                _job("a", 20, [(2, {"cores": 4, "mem": 512}), (1, {"cores": 1, "mem": 2048, "gpus": 1})], queue="q"),
                _job("b", 8, [(1, {"cores": 3, "gpus": 1})], queue="q"),
                _job("c", 6, [(1, {"cores": 3})], queue="q"),
            ],
        ),
        optimum=0.8,
        starts={"a": 8, "b": 0, "c": 0},
        argument="a needs both CPU nodes whole and the GPU beside them. With a first, c still fits beside it on gpu1 "
        "but b waits 20 s for the GPU; with b first, a waits 8 s and c runs meanwhile.",
    )


def _pack_scatter() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "pack-scatter",
            classes=[_nodes("node001 node002", cores=4), _nodes("node003", cores=8)],
            queues={"q": 10},
            jobs=[
                _job("a", 10, [(3, {"cores": 1})], queue="q", place=_SCATTER),
                _job("b", 5, [(2, {"cores": 4})], queue="q", place=_PACK),
            ],
        ),
        optimum=0.5,
        starts={"a": 5, "b": 0},
        argument="b packs 8 cores, which is the whole of node003; a scatters over three nodes and needs node003 too. "
        "The shorter b goes first and a waits 5 s; the other way round b waits 10 s.",
    )


def _exclusive() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "exclusive",
            classes=[_nodes("node001 node002", cores=4)],
            queues={"q": 10},
            jobs=[
                _running("r", -5, 12, {"node001": {"cores": 1}}, "q"),
                _job("a", 10, [(1, {"cores": 1})], queue="q", place=_EXCLUSIVE),
                _job(
                    "b", 6, [(2, {"cores": 1})], queue="q", place=Place(arrangement=Arrangement.SCATTER, exclusive=True)
                ),
                _job("c", 4, [(1, {"cores": 3})], queue="q"),
            ],
        ),
        optimum=1.0,
        starts={"a": 0, "b": 10, "c": 0},
        argument="c fits beside r on node001. b needs both nodes idle, so it comes after r (7) and not beside a. With "
        "a first b alone waits, for 10 s; with b first (7 s) a waits 13 s.",
    )


def _order() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "order",
            classes=[_nodes("node001", cores=4)],
            queues={"fast": 10, "slow": 100},
            jobs=[
                _job("a", 60, [(1, {"cores": 4})], queue="fast", submit=-3),
                _job("b", 20, [(1, {"cores": 3})], queue="slow", submit=-2),
                _job("c", 5, [(1, {"cores": 4})], queue="fast", submit=-1),
            ],
            now=0,
        ),
        optimum=8 / 10 + 67 / 100 + 1 / 10,
        starts={"a": 5, "b": 65, "c": 0},
        argument="One job at a time, so Smith's rule holds: ascending walltime x expected wait, which is c (50), a "
        "(600), b (2000). In queue order c would wait 81 s.",
    )


def _hold_back() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "hold-back",
            classes=[_nodes("node001", cores=4)],
            queues={"fast": 10, "slow": 100},
            jobs=[
                _running("r", -5, 10, {"node001": {"cores": 2}}, "slow"),
                _job("a", 50, [(1, {"cores": 2})], queue="slow"),
                _job("b", 2, [(1, {"cores": 4})], queue="fast"),
            ],
        ),
        optimum=0.57,
        starts={"a": 7, "b": 5},
        argument="a could start at once, but then b waits 50 s (5.0). Two cores stay idle until r ends: b at 5 and a "
        "at 7 make 5/10 + 7/100. No plan that starts whatever fits finds this.",
    )


def _unsatisfiable() -> TinyCase:
    return TinyCase(
        instance=_instance(
            "unsatisfiable",
            classes=[_nodes("node001 node002", cores=4, gpus=2)],
            queues={"q": 10},
            jobs=[
                _job("a", 10, [(1, {"cores": 1, "gpus": 3})], queue="q"),
                _job("b", 6, [(2, {"gpus": 2})], queue="q"),
                _job("c", 3, [(1, {"gpus": 1})], queue="q"),
            ],
        ),
        optimum=0.3,
        starts={"b": 3, "c": 0},
        argument="a asks for 3 GPUs in one chunk and no node has more than 2: it is left to the waiting room. b needs "
        "all four GPUs, so it follows c: 3/10, against 6/10 the other way round.",
    )


def _moldable() -> TinyCase:
    own = _job("a", 10, [(2, {"cores": 4})], queue="q")
    one_node = _job("a", 14, [(1, {"cores": 4})]).steps
    jobs = [replace(own, id=name, alternatives=one_node) for name in ("a", "b")]
    return TinyCase(
        instance=_instance("moldable", classes=[_nodes("node001 node002", cores=4)], queues={"q": 10}, jobs=jobs),
        optimum=0.8,
        starts={"a": 0, "b": 0},
        alternatives={"a": 1, "b": 1},
        argument="On both nodes a job takes 10 s, on one 14 s. One after the other the second waits 10 s (1.0); side "
        "by side each takes 4 s longer: 4/10 + 4/10. With one on each size the wide one waits for 14 s.",
    )


def _topology() -> TinyCase:
    made = _instance(
        "topology",
        classes=[_nodes("node001 node002 node003 node004", cores=4)],
        queues={"q": 10},
        jobs=[
            _running("r", -5, 10, {"node001": {"cores": 4}}, "q"),
            _running("s", -5, 15, {"node003": {"cores": 4}}, "q"),
            _job("a", 10, [(2, {"cores": 4})], queue="q", place=Place(within="switch")),
            _job("b", 8, [(1, {"cores": 4})], queue="q"),
        ],
    )
    switches: FrozenMap[str, tuple[str, ...]] = FrozenMap({"s1": ("node001", "node002"), "s2": ("node003", "node004")})
    return TinyCase(
        instance=replace(made, cluster=replace(made.cluster, topology=FrozenMap({"switch": switches}))),
        optimum=0.5,
        starts={"a": 5, "b": 0},
        argument="Two nodes are free, and none of the switches has both: a waits until r ends at 5. So b has to take "
        "node004, not node002, on which it would keep a waiting until 8.",
    )


def _instance(
    name: str,
    *,
    classes: list[NodeClass],
    jobs: list[Job],
    queues: Mapping[str, int] | None = None,
    licenses: Mapping[str, int] | None = None,
    now: int = 0,
) -> Instance:
    return Instance(
        name=f"tiny-{name}",
        now=now,
        cluster=Cluster(classes=tuple(classes), licenses=Amounts(licenses or {})),
        queues=FrozenMap({queue: Queue(expected_wait=seconds) for queue, seconds in (queues or {}).items()}),
        jobs=tuple(jobs),
    )


def _nodes(names: str, *keep_free: KeepFree, **resources: int) -> NodeClass:
    return NodeClass(names=tuple(names.split()), resources=Amounts(resources), keep_free=keep_free)


def _job(
    job_id: str,
    walltime: int,
    chunks: list[tuple[int, Mapping[str, int]]],
    *,
    queue: str | None = None,
    submit: int = 0,
    place: Place | None = None,
    licenses: Mapping[str, int] | None = None,
    running: Running | None = None,
) -> Job:
    request = Request(
        chunks=tuple(Chunk(count=count, resources=Amounts(resources)) for count, resources in chunks),
        place=place or Place(),
    )
    return Job(
        id=job_id,
        queue=queue,
        submit=submit,
        steps=(Step(walltime=walltime, request=request),),
        licenses=Amounts(licenses or {}),
        running=running,
    )


def _running(
    job_id: str, start: int, walltime: int, held: Mapping[str, Mapping[str, int]], queue: str | None = None
) -> Job:
    """Return a job that was submitted and started at `start`, one chunk on each node that it holds."""
    allocation = tuple(Placement(node=node, resources=Amounts(resources)) for node, resources in held.items())
    return _job(
        job_id,
        walltime,
        [(1, resources) for resources in held.values()],
        queue=queue,
        submit=start,
        running=Running(start=start, segments=(Segment(start=start, end=start + walltime, allocation=allocation),)),
    )
