"""Small windows, written briefly: nodes, requests, jobs that wait and jobs that run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
    PlannedJob,
    Request,
    Running,
    Segment,
    Step,
)

FREE = Place()
PACK = Place(arrangement=Arrangement.PACK)
SCATTER = Place(arrangement=Arrangement.SCATTER)
EXCLUSIVE = Place(exclusive=True)


def nodes(names: str, **options: Any) -> NodeClass:
    """Return a class of nodes; an option that is no field of it is a resource."""
    fields = {"properties", "priority", "state", "admits", "keep_free"}
    return NodeClass(
        names=tuple(names.split()),
        resources=Amounts({name: amount for name, amount in options.items() if name not in fields}),
        **{name: value for name, value in options.items() if name in fields},
    )


def cores_for_gpus(items: int) -> tuple[KeepFree, ...]:
    """Return the rule that jobs which ask for no GPU leave so many cores free."""
    return (KeepFree(resource="cores", items=items, beneficiary="gpus"),)


def chunk(count: int = 1, where: Mapping[str, str] | None = None, **resources: int) -> Chunk:
    """Return equal chunks."""
    return Chunk(count=count, resources=Amounts(resources), where=FrozenMap(where or {}))


def waiting(job_id: str, walltime: int, *chunks: Chunk, place: Place = FREE, **options: Any) -> Job:
    """Return a job that has not started, submitted at 0."""
    request = Request(chunks=chunks, place=place)
    return Job(**{"id": job_id, "submit": 0, "steps": (Step(walltime=walltime, request=request),), **options})


def running(job_id: str, end: int, place: Place = FREE, licenses: Mapping[str, int] | None = None, **held: Any) -> Job:
    """Return a job that runs in ``[0, end)`` and holds amounts by node name."""
    allocation = tuple(Placement(node=name, resources=Amounts(amounts)) for name, amounts in held.items())
    chunks = tuple(Chunk(count=1, resources=placement.resources) for placement in allocation)
    return Job(
        id=job_id,
        submit=0,
        steps=(Step(walltime=end, request=Request(chunks=chunks, place=place)),),
        licenses=Amounts(licenses or {}),
        running=Running(start=0, segments=(Segment(start=0, end=end, allocation=allocation),)),
    )


def window(
    classes: Iterable[NodeClass], *jobs: Job, licenses: Mapping[str, int] | None = None, **options: Any
) -> Instance:
    """Return an instance whose clock stands at 0."""
    cluster = Cluster(classes=tuple(classes), licenses=Amounts(licenses or {}))
    return Instance(name="small", cluster=cluster, jobs=jobs, **options)


def where_it_stands(instance: Instance, planned: PlannedJob) -> tuple[int, list[tuple[str, int, int]]]:
    """Return a job's start and its (node, kind, chunks), in the order of the nodes in the document."""
    index = {name: place for place, name in enumerate(instance.cluster.node_names)}
    (segment,) = planned.segments
    held = [(index[part.node], part.chunk or 0, part.count or 0) for part in segment.allocation]
    return planned.start, [(instance.cluster.node_names[node], kind, count) for node, kind, count in sorted(held)]
