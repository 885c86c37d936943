"""Random tiny instances for property tests: few nodes, small amounts, much that stands in each other's way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from cpsched.domain import (
    AdmitCondition,
    Amounts,
    Arrangement,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    KeepFree,
    MaxWait,
    NodeClass,
    NodeState,
    Place,
    Placement,
    PromisedStart,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)

LICENSE = "solver"
#: One in so many jobs, nodes or chunks has something rare.
RARELY = 8


def rarely() -> st.SearchStrategy[bool]:
    """Draw True once in a while (and shrink to False)."""
    return st.sampled_from([False] * (RARELY - 1) + [True])


@st.composite
def node_classes(draw: st.DrawFn, letter: str, num_nodes: int) -> NodeClass:
    """Draw a class of `num_nodes` equal nodes, named by a letter and a number."""
    resources = {"cores": draw(st.sampled_from([4, 6, 8, 2])), "mem": draw(st.sampled_from([4, 8, 8, 0]))}
    if draw(st.booleans()):
        resources[draw(st.sampled_from(["gpus", "mics"]))] = draw(st.integers(1, 2))
    conditions = st.builds(
        AdmitCondition,
        min=st.sampled_from([Amounts(), Amounts({"cores": 2}), Amounts({"mem": 2}), Amounts({"gpus": 1})]),
        max_walltime=st.none() | st.integers(3, 8),
    )
    rules = st.builds(
        KeepFree,
        resource=st.sampled_from(["cores", "cores", "mem"]),
        items=st.integers(0, 3),
        beneficiary=st.sampled_from(["gpus", "gpus", "mics", "mem"]),
    )
    return NodeClass(
        names=tuple(f"{letter}{number}" for number in range(1, num_nodes + 1)),
        resources=Amounts(resources),
        properties=FrozenMap({"arch": draw(st.sampled_from(["x", "y"]))}),
        priority=draw(st.sampled_from([0, 0, 0, 1, -1])),
        state=draw(st.sampled_from([NodeState.UP] * 16 + [NodeState.DRAIN, NodeState.DOWN])),
        admits=tuple(draw(st.lists(conditions, min_size=1, max_size=2))) if draw(rarely()) else (),
        keep_free=tuple(draw(st.lists(rules, min_size=1, max_size=2, unique=True))) if draw(rarely()) else (),
    )


@st.composite
def clusters(draw: st.DrawFn, max_nodes: int) -> Cluster:
    """Draw up to three classes of nodes, sometimes with a licence."""
    sizes = draw(st.lists(st.sampled_from([2, 1, 3, 4]), min_size=1, max_size=min(3, max_nodes)))
    sizes = [min(size, max_nodes - sum(sizes[:place])) for place, size in enumerate(sizes)]
    classes = tuple(draw(node_classes(letter, size)) for letter, size in zip("abc", sizes, strict=False) if size > 0)
    return Cluster(
        classes=classes, licenses=Amounts({LICENSE: draw(st.sampled_from([2, 3, 1]))} if draw(st.booleans()) else {})
    )


@st.composite
def chunks(draw: st.DrawFn, cluster: Cluster) -> Chunk:
    """Draw some equal chunks that ask for what the cluster has, mostly for a few cores."""
    resources = {"cores": draw(st.sampled_from([1, 2, 1, 2, 3, 4, 0]))}
    for name in ("mem", "gpus", "mics"):
        if cluster.totals.get(name, 0) and draw(rarely()):
            resources[name] = draw(st.integers(1, 2 if name == "mem" else 1))
    asked = {name: amount for name, amount in resources.items() if amount}
    return Chunk(
        count=draw(st.sampled_from([1, 2, 1, 3, 4])),
        resources=Amounts(asked or {"cores": 1}),
        where=FrozenMap({"arch": draw(st.sampled_from(["x", "y"]))} if draw(rarely()) else {}),
    )


@st.composite
def requests(draw: st.DrawFn, cluster: Cluster) -> Request:
    """Draw one to three kinds of chunks and any place."""
    kinds = draw(st.sampled_from([1, 1, 1, 2, 3]))
    arrangement = draw(st.sampled_from([Arrangement.FREE] * 4 + [Arrangement.PACK, Arrangement.SCATTER]))
    return Request(
        chunks=tuple(draw(chunks(cluster)) for _ in range(kinds)),
        place=Place(arrangement=arrangement, exclusive=draw(rarely())),
    )


@st.composite
def waiting_jobs(draw: st.DrawFn, job_id: str, cluster: Cluster, now: int) -> Job:
    """Draw a rigid job, or an array, that has not started; three in four have no bounds in time."""
    is_bounded = draw(st.sampled_from([False, False, False, True]))
    start_at, not_before, deadline = (
        now + draw(st.integers(least, most)) if is_bounded and draw(st.booleans()) else None
        for least, most in ((-1, 15), (-3, 12), (3, 30))
    )
    has_license = bool(cluster.licenses) and draw(st.booleans())
    return Job(
        id=job_id,
        user=draw(st.sampled_from(["ann", "bob"])),
        queue=draw(st.sampled_from([None, "long", "long", "short"])),
        submit=now + draw(st.integers(-9, 4)),
        steps=(Step(walltime=draw(st.integers(1, 9)), request=draw(requests(cluster))),),
        licenses=Amounts({LICENSE: draw(st.integers(1, 2))} if has_license else {}),
        priority=draw(st.none() | st.integers(-1, 12)),
        weight=draw(st.sampled_from([None, None, None, 3, 0.1])),
        not_before=not_before,
        start_at=start_at,
        deadline=deadline,
        array=tuple(sorted(draw(st.sets(st.integers(0, 9), min_size=1, max_size=3)))) if draw(rarely()) else None,
    )


@st.composite
def running_jobs(
    draw: st.DrawFn, job_id: str, cluster: Cluster, left: dict[str, dict[str, int]], licenses: dict[str, int], now: int
) -> Job | None:
    """Draw a job that runs on what is `left` of the nodes and `licenses` (both are lowered), or None if nothing fits.

    It runs where it runs: guards, place, states and what a node keeps free are not asked.
    """
    asked = draw(requests(cluster))
    held: dict[str, dict[str, int]] = {}
    kinds = []
    for chunk in asked.chunks:
        placed = 0
        for node in draw(st.permutations(cluster.node_names)):
            while placed < chunk.count and all(left[node].get(name, 0) >= n for name, n in chunk.resources.items()):
                for name, amount in chunk.resources.items():
                    left[node][name] -= amount
                    held.setdefault(node, {})[name] = held.get(node, {}).get(name, 0) + amount
                placed += 1
        if placed:
            kinds.append(Chunk(count=placed, resources=chunk.resources, where=chunk.where))
    if not kinds:
        return None
    taken = {name: draw(st.integers(0, amount)) for name, amount in licenses.items()}
    for name, amount in taken.items():
        licenses[name] -= amount
    start, walltime = now - draw(st.integers(0, 6)), draw(st.integers(1, 15))
    allocation = tuple(
        Placement(node=name, resources=Amounts(held[name])) for name in cluster.node_names if name in held
    )
    end = max(start + walltime, now + 1)
    return Job(
        id=job_id,
        submit=start - draw(st.integers(0, 5)),
        steps=(Step(walltime=walltime, request=Request(chunks=tuple(kinds), place=asked.place)),),
        licenses=Amounts({name: amount for name, amount in taken.items() if amount}),
        running=Running(start=start, segments=(Segment(start=start, end=end, allocation=allocation),)),
    )


@st.composite
def dependencies(draw: st.DrawFn, others: Sequence[Job]) -> tuple[Dependency, ...]:
    """Draw whom a job waits for out of some others, mostly nobody: a job, an array, or one of its elements."""
    names = [name for job in others for name in dict.fromkeys((job.id, *job.element_ids))]
    drawn = st.builds(
        Dependency,
        job=st.sampled_from(names),
        type=st.sampled_from(DependencyType),
        delay=st.sampled_from([0, 0, 0, 1, 5]),
    )
    count = draw(st.sampled_from([0, 0, 0, 1, 1, 2])) if names else 0
    return tuple(draw(drawn) for _ in range(count))


@st.composite
def instances(draw: st.DrawFn, max_nodes: int = 5, max_jobs: int = 8, max_running: int = 3) -> Instance:
    """Draw a checked instance of rigid jobs on at most `max_nodes` nodes.

    `max_jobs` bounds the waiting entries (an array counts once and has up to three elements), `max_running` those that
    run.
    """
    now = draw(st.sampled_from([0, 0, 100, -50]))
    cluster = draw(clusters(max_nodes))
    queues = FrozenMap(
        {
            "short": Queue(expected_wait=30, priority=5, max_walltime=7),
            "long": Queue(
                expected_wait=360, priority=draw(st.integers(0, 5)), weight=draw(st.sampled_from([1, 1, 2, 0.5]))
            ),
        }
    )
    left = {name: dict(cluster.class_of[name].resources) for name in cluster.node_names}
    licenses = dict(cluster.licenses)
    running = [
        draw(running_jobs(f"r{n}", cluster, left, licenses, now)) for n in range(draw(st.integers(0, max_running)))
    ]
    jobs = [job for job in running if job is not None]
    for number in range(draw(st.integers(1, max_jobs))):
        job = draw(waiting_jobs(f"w{number}", cluster, now))
        jobs.append(replace(job, after=draw(dependencies(jobs))))
    jobs = draw(st.permutations(jobs))
    return Instance(name="random", now=now, cluster=cluster, queues=queues, jobs=tuple(jobs))


@st.composite
def pressed(draw: st.DrawFn, instance: Instance, *, can_be_hard: bool = True) -> Instance:
    """Let some queues of an instance bound the wait of their jobs, and tell some users a start."""
    prices = st.sampled_from([0, 1, 10, 0.1, 2.5])
    bounds = st.builds(
        MaxWait,
        seconds=st.integers(1, 20),
        price=prices,
        is_hard=st.booleans() if can_be_hard else st.just(False),
    )
    told = st.builds(PromisedStart, start=st.integers(instance.now - 5, instance.now + 20), price=prices)
    return replace(
        instance,
        queues=FrozenMap(
            {name: replace(queue, max_wait=draw(st.none() | bounds)) for name, queue in instance.queues.items()}
        ),
        jobs=tuple(
            replace(job, told=draw(told)) if job.running is None and draw(st.booleans()) else job
            for job in instance.jobs
        ),
    )
