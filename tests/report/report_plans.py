"""Small plans by hand, for the tests of the reports."""

from __future__ import annotations

from datetime import UTC, datetime

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    EngineReport,
    Event,
    FrozenMap,
    Incumbent,
    Instance,
    Job,
    NodeClass,
    Plan,
    Queue,
    Request,
    ReservedSlice,
    Score,
    Step,
    WaitingJob,
    WaitingReason,
)
from tests.placed_job import placed_job

#: Names as an attacker would choose them: markup, script ends, comments, separators, template marks, terminal codes.
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "line\u2028separator & @DATA@ @SCRIPT@",
    "[red]markup[/red][/] \x1b[31mred\x1b]0;owned\x07\u202edenwo",
)


def a_plan(names: tuple[str, ...], *, nodes: int = 4, epoch: bool = True) -> tuple[Instance, Plan]:
    """Plan one 4-core job per name: the first one runs on two nodes, job k starts at k * 600 s on one; reserve a node.

    The names serve as ids, users, queues and node names (with a number) as well, and the last one as reason to wait, as
    proof, and as what else happened.
    """
    one = Amounts({"cores": 4, "mem": 2048})
    node_names = tuple(f"{names[k % len(names)]}{k}" for k in range(nodes))
    jobs, planned = [], []
    for k, name in enumerate(names):
        start = k * 600 - (60 if k == 0 else 0)
        hosts = node_names[:2] if k == 0 else (node_names[k % nodes],)
        step = Step(
            walltime=1200,
            request=Request(chunks=(Chunk(count=len(hosts), resources=one, where=FrozenMap({name: name})),)),
        )
        job = Job(id=name, user=name, group=name, queue=name, submit=-60, steps=(step,))
        job, place = placed_job(job, hosts, start, is_running=k == 0)
        jobs.append(job)
        planned.append(place)
    jobs.append(Job(id="w", user=names[0], submit=0, steps=(step,)))
    instance = Instance(
        name=names[0],
        epoch=datetime(2014, 3, 31, 18, tzinfo=UTC) if epoch else None,
        cluster=Cluster(
            classes=(NodeClass(names=node_names, resources=Amounts({"cores": 16, "mem": 16384})),),
            licenses=Amounts({"abaqus": 4}),
        ),
        queues=FrozenMap({name: Queue(expected_wait=1800) for name in names}),
        jobs=tuple(jobs),
    )
    plan = Plan(
        instance=names[0],
        now=0,
        objective=Score(
            name="weighted_wait",
            value=41.27,
            bound=40.02,
            gap=0.0303,
            proof=names[-1],
            planner=52.9,
            suffered=12.5,
        ),
        engine=EngineReport(name="cp", version="0.1.0", budget=10, elapsed=9.7, stopped="budget"),
        jobs=tuple(planned),
        reservations=(
            ReservedSlice(id=names[-1], start=2400, end=3000, allocation=planned[-1].segments[0].allocation),
        ),
        waiting_room=(WaitingJob(id="w", reason=WaitingReason.UNSATISFIABLE, detail=names[-1]),),
        incumbents=(
            Incumbent(at=0.5, value=52.9, by=names[0]),
            Incumbent(at=2, value=45, by=names[-1]),
            Incumbent(at=9.125, value=41.27, by=names[0]),
        ),
        events=(Event(at=1.25, by=names[0], what=names[-1]),),
    )
    return instance, plan
