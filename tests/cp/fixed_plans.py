"""A plan that is given, and two judges of it: the model, with every decision fixed, and the verifier."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from cpsched.cp import ModelParams
from cpsched.cp.decode import placed_as_in
from cpsched.cp.encoding import Encoding, encode
from cpsched.cp.model import build
from cpsched.cp.solution import Placed
from cpsched.domain import Amounts, Instance, Job, Placement, PlannedJob, Request, Segment, repeated
from cpsched.formats import instance_to_document, parse_instance
from cpsched.metrics import objective_value, suffered
from cpsched.verify import verify

#: All that is true of every plan, and nothing that chooses between equal ones: any plan can be asked about.
NO_SYMMETRY = ModelParams(breaks_nodes=False, breaks_jobs=False, has_tight_starts=False)


class Stand(NamedTuple):
    """So many chunks of a kind on a node."""

    node: str
    count: int = 1  # type: ignore[assignment]  # a field here, not the method of tuples
    kind: int = 0


class Piece(NamedTuple):
    """Where a job stands until some second, and on which share of its cores."""

    until: int
    stands: Sequence[Stand]
    share: float = 1.0


#: Of each job its start, and where it stands; of one that changes, what it does from its start (from now on, if it
#: runs) until it ends.
Places = Mapping[str, tuple[int, Sequence[Stand] | Sequence[Piece]]]


def instance_of(nodes: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]], **more: Any) -> Instance:
    """Return an instance from parts of its document; jobs are submitted at 0, for 10 s, if not told otherwise."""
    cluster = {"nodes": list(nodes), "licenses": more.pop("licenses", {})}
    cluster |= {key: more.pop(key) for key in ("topology",) if key in more}
    described = [{"submit": 0, **({} if "steps" in job else {"walltime": 10}), **job} for job in jobs]
    return parse_instance({"format": "cpsched-instance/1", "name": "w", "cluster": cluster, "jobs": described, **more})


def planned_jobs(instance: Instance, places: Places) -> list[PlannedJob]:
    """Return the jobs as `places` has them, and those that run as they run, if it does not say how they go on."""
    planned = []
    for job in instance.elements():
        if job.id not in places:
            planned.append(repeated(job))
            continue
        begin, described = places[job.id]
        pieces = [one for one in described if isinstance(one, Piece)]
        if not pieces:
            pieces = [Piece(begin + job.walltime, [one for one in described if isinstance(one, Stand)])]
        segments = _gone(job, instance.now)
        for number, piece in enumerate(pieces):
            step = job.steps[min(number, len(job.steps) - 1)]
            segments.append(Segment(start=begin, end=piece.until, allocation=_allocation(job, step.request, piece)))
            begin = piece.until
        start = segments[0].start
        planned.append(PlannedJob(id=job.id, start=start, end=segments[-1].end, segments=tuple(segments)))
    return planned


def _gone(job: Job, now: int) -> list[Segment]:
    """Return the past segments of a running job."""
    if job.running is None:
        return []
    return [replace(segment, end=min(now, segment.end)) for segment in repeated(job).segments if segment.start < now]


def _allocation(job: Job, request: Request, piece: Piece) -> tuple[Placement, ...]:
    """Return what chunks hold, on a share of their cores rounded down."""
    found = []
    for node, count, kind in piece.stands:
        taken = dict(request.chunks[kind].taken(count))
        if piece.share < 1:
            taken["cores"] = count * int(piece.share * request.chunks[kind].resources["cores"])
        stated = job.running is None or job.running.segments[0].allocation[0].chunk is not None
        if not stated:
            found.append(Placement(node=node, resources=Amounts(taken)))
        else:
            found.append(Placement(node=node, chunk=kind, count=count, resources=Amounts(taken)))
    return tuple(found)


def encoding_of(instance: Instance, planned: Sequence[PlannedJob]) -> Encoding:
    """Return the encoding in which all jobs of a plan are free that do not run."""
    return encode(instance, planned)


def is_allowed(instance: Instance, places: Places, params: ModelParams = NO_SYMMETRY) -> bool:
    """Return whether the model has the plan among its solutions."""
    return has_plan(instance, planned_jobs(instance, places), places.keys(), params)


def has_plan(
    instance: Instance, planned: Sequence[PlannedJob], decided: Collection[str], params: ModelParams = NO_SYMMETRY
) -> bool:
    """Return whether the model has some jobs as they are planned; those that are not `decided` run as they run."""
    ran = {job.id: repeated(job) for job in instance.jobs if job.running is not None}
    encoding = encoding_of(instance, [ran.get(job.id, job) for job in planned])
    up = {site.name for site in encoding.sites}
    changed = [job for job in planned if job.id in decided]
    if any(held.node not in up for job in changed for segment in job.segments for held in segment.allocation):
        return False
    fixed = placed_as_in(encoding, {job.id: job for job in planned})
    if fixed is None:
        return False
    model, variables = build(encoding, params)
    for number, placed in enumerate(fixed):
        model.add(variables.is_run_so(number, placed.mode) == 1)
        for time, variable in zip(placed.times, variables.times[number, placed.mode], strict=True):
            model.add(variable == time)
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
    document = {"id": job.id, "start": job.start, "end": job.end, "segments": segments}
    return document | ({"alternative": job.alternative} if job.alternative else {})


def cost_of(encoding: Encoding, solution: Sequence[Placed]) -> int:
    """Return the cost of a solution (one entry for each task) in whole numbers."""
    costs, tasks = encoding.costs, encoding.tasks
    return costs.makespan * costs.makespan_of(solution, tasks) + sum(
        costs.places[number] + costs.cost_of(number, placed, task)
        for number, (placed, task) in enumerate(zip(solution, tasks, strict=True))
        if not placed.is_absent
    )
