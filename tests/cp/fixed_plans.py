"""A plan that is given, and two who judge it: the model, with every decision fixed, and the verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from cpsched.cp import ModelParams
from cpsched.cp.decode import placed_as_in
from cpsched.cp.encoding import Encoding, encode
from cpsched.cp.model import build
from cpsched.domain import Instance, Placement, PlannedJob, Segment
from cpsched.formats import instance_to_document, parse_instance
from cpsched.metrics import objective_value, suffered
from cpsched.verify import verify

#: All that is true of every plan, and nothing that chooses between equal ones: any plan can be asked about.
NO_SYMMETRY = ModelParams(breaks_nodes=False, breaks_jobs=False)


class Stand(NamedTuple):
    """So many chunks of a kind on a node."""

    node: str
    count: int = 1
    kind: int = 0


Places = Mapping[str, tuple[int, Sequence[Stand]]]


def instance_of(nodes: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]], **more: Any) -> Instance:
    """Return an instance from parts of its document; jobs are submitted at 0, for 10 s, if not told otherwise."""
    cluster = {"nodes": list(nodes), "licenses": more.pop("licenses", {})}
    described = [{"submit": 0, "walltime": 10, **job} for job in jobs]
    return parse_instance({"format": "cpsched-instance/1", "name": "w", "cluster": cluster, "jobs": described, **more})


def planned_jobs(instance: Instance, places: Places) -> list[PlannedJob]:
    """Return the running jobs as they run, and the others as `places` has them."""
    planned = []
    for job in instance.elements():
        if job.running is not None:
            segments = job.running.segments
            planned.append(PlannedJob(id=job.id, start=job.running.start, end=segments[-1].end, segments=segments))
            continue
        start, stands = places[job.id]
        allocation = tuple(
            Placement(node=node, chunk=kind, count=count, resources=job.request.chunks[kind].taken(count))
            for node, count, kind in stands
        )
        segment = Segment(start=start, end=start + job.walltime, allocation=allocation)
        planned.append(PlannedJob(id=job.id, start=start, end=segment.end, segments=(segment,)))
    return planned


def encoding_of(instance: Instance, planned: Sequence[PlannedJob]) -> Encoding:
    """Return the encoding in which all jobs of a plan are free that do not run."""
    return encode(instance, planned)


def is_allowed(instance: Instance, places: Places, params: ModelParams = NO_SYMMETRY) -> bool:
    """Tell whether the model has the plan among its solutions."""
    planned = planned_jobs(instance, places)
    encoding = encoding_of(instance, planned)
    up = {site.name for site in encoding.sites}
    if any(held.node not in up for job in planned if job.id in places for held in job.segments[0].allocation):
        return False
    model, variables = build(encoding, params)
    for number, placed in enumerate(placed_as_in(encoding, {job.id: job for job in planned})):
        model.add(variables.starts[number] == placed.start)
        counts = {(number, part, site): count for part, site, count in placed.counts}
        if not counts.keys() <= variables.counts.keys():
            return False
        for key, variable in variables.counts.items():
            if key[0] == number:
                model.add(variable == counts.get(key, 0))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), status
    return bool(status == cp_model.OPTIMAL)


def broken_rules(instance: Instance, planned: Sequence[PlannedJob]) -> set[str]:
    """Return the names of the rules that the verifier says a plan breaks."""
    value = objective_value(instance, planned)
    ids = {job.id for job in planned}
    document = {
        "format": "cpsched-plan/1",
        "instance": instance.name,
        "now": instance.now,
        "objective": {
            "name": instance.objective.name,
            "value": value,
            "bound": None,
            "gap": None,
            "planner": value,
            "suffered": suffered(instance, planned),
        },
        "engine": {"name": "test", "version": "1", "budget": 1.0, "elapsed": 1.0, "stopped": "done"},
        "jobs": [_job_document(job) for job in planned],
        "waiting_room": [
            {"id": job.id, "reason": "not_mapped", "detail": "left out"}
            for job in instance.elements()
            if job.id not in ids
        ],
    }
    found = {violation.rule for violation in verify(instance_to_document(instance), document)}
    return {rule for rule in found if not rule.startswith(("waiting_room", "not_mapped"))}


def _job_document(job: PlannedJob) -> dict[str, Any]:
    """Write a planned job."""
    segments = []
    for segment in job.segments:
        allocation = []
        for held in segment.allocation:
            described: dict[str, Any] = {"node": held.node, "resources": dict(held.resources)}
            if held.chunk is not None:
                described |= {"chunk": held.chunk, "count": held.count}
            allocation.append(described)
        segments.append({"start": segment.start, "end": segment.end, "allocation": allocation})
    return {"id": job.id, "start": job.start, "end": job.end, "segments": segments}
