"""The plan document: from JSON to a `Plan` and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from cpsched.domain import (
    Amounts,
    EngineReport,
    Event,
    Incumbent,
    Placement,
    Plan,
    PlannedJob,
    ReservedSlice,
    Score,
    Segment,
    WaitingJob,
    WaitingReason,
    Work,
)
from cpsched.formats import plan_model
from cpsched.formats.faults import Faults, Location, path_of, refuse_other_kind, shown
from cpsched.formats.fields import FaultsLeft, keys_of_models, schema_of
from cpsched.formats.plan_model import PlacementModel, PlanModel, PlannedJobModel

__all__ = ["parse_plan", "plan_schema", "plan_to_document"]

_KEYS = keys_of_models(vars(plan_model))


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of the plan document."""
    return schema_of(PlanModel)


def parse_plan(document: object, *, source: str = "<memory>") -> Plan:
    """Check a plan document by itself and return what it says; whether it fits an instance is for the verifier.

    Raises
    ------
    DocumentError
        With all faults, in document order.
    """
    refuse_other_kind(document, source, "plan")
    faults = Faults(document)
    try:
        model = PlanModel.model_validate(document, context=FaultsLeft())
    except ValidationError as error:
        faults.add_shape(error, _KEYS)
        faults.refuse(source)
    _check_once(faults, "job", _job_ids(model))
    slices = ((("reservations", i, "id"), f"{r.id} at {r.start}") for i, r in enumerate(model.reservations))
    _check_once(faults, "time of a reservation", slices)
    faults.raise_if_any(source)
    return _read_plan(model)


def _job_ids(model: PlanModel) -> Iterable[tuple[Location, str]]:
    yield from ((("jobs", index, "id"), job.id) for index, job in enumerate(model.jobs))
    yield from ((("waiting_room", index, "id"), job.id) for index, job in enumerate(model.waiting_room))


def _check_once(faults: Faults, noun: str, ids: Iterable[tuple[Location, str]]) -> None:
    first: dict[str, Location] = {}
    for location, name in ids:
        if name in first:
            faults.add(location, f"Expected every {noun} once, got {shown(name)} as in {path_of(first[name])}")
        first.setdefault(name, location)


def _read_plan(model: PlanModel) -> Plan:
    return Plan(
        instance=model.instance,
        now=model.now,
        objective=Score(**model.objective.model_dump()),
        engine=EngineReport(**model.engine.model_dump()),
        jobs=tuple(map(_read_job, model.jobs)),
        waiting_room=tuple(
            WaitingJob(id=job.id, reason=WaitingReason(job.reason), detail=job.detail) for job in model.waiting_room
        ),
        reservations=tuple(
            ReservedSlice(
                id=r.id, start=r.start, end=r.end, allocation=_read_allocation(r.allocation or ()), reason=r.reason
            )
            for r in model.reservations
        ),
        incumbents=tuple(Incumbent(**incumbent.model_dump()) for incumbent in model.incumbents),
        events=tuple(Event(**event.model_dump()) for event in model.events),
        work=tuple(Work(**work.model_dump()) for work in model.work),
        record=model.record,
        attempts=tuple(map(_read_job, model.attempts)),
    )


def _read_job(model: PlannedJobModel) -> PlannedJob:
    return PlannedJob(
        id=model.id,
        start=model.start,
        end=model.end,
        segments=tuple(
            Segment(start=segment.start, end=segment.end, allocation=_read_allocation(segment.allocation))
            for segment in model.segments
        ),
    )


def _read_allocation(models: Sequence[PlacementModel]) -> tuple[Placement, ...]:
    return tuple(
        Placement(node=model.node, resources=Amounts(model.resources), chunk=model.chunk, count=model.count)
        for model in models
    )


def plan_to_document(plan: Plan) -> dict[str, Any]:
    """Return the canonical plan document; reading it gives `plan` again."""
    document: dict[str, Any] = {
        "format": "cpsched-plan/1",
        "instance": plan.instance,
        "now": plan.now,
        "objective": _write_score(plan.objective),
        "engine": asdict(plan.engine),
        "jobs": [_write_job(job) for job in plan.jobs],
        "waiting_room": [{"id": job.id, "reason": str(job.reason), "detail": job.detail} for job in plan.waiting_room],
    }
    if plan.reservations:
        document["reservations"] = [
            {"id": r.id, "start": r.start, "end": r.end}
            | ({"allocation": _write_allocation(r.allocation)} if r.reason is None else {"reason": r.reason})
            for r in plan.reservations
        ]
    if plan.incumbents:
        document["incumbents"] = [_stated(incumbent) for incumbent in plan.incumbents]
    if plan.events:
        document["events"] = [asdict(event) for event in plan.events]
    if plan.work:
        document["work"] = [_stated(work) for work in plan.work]
    if plan.record:
        document["record"] = True
    if plan.attempts:
        document["attempts"] = [_write_job(attempt) for attempt in plan.attempts]
    return document


def _stated(entry: Incumbent | Work) -> dict[str, Any]:
    return {key: value for key, value in asdict(entry).items() if value is not None}


def _write_job(job: PlannedJob) -> dict[str, Any]:
    return {
        "id": job.id,
        "start": job.start,
        "end": job.end,
        "segments": [
            {"start": segment.start, "end": segment.end, "allocation": _write_allocation(segment.allocation)}
            for segment in job.segments
        ],
    }


def _write_score(score: Score) -> dict[str, Any]:
    """Write the objective; a proof that there is none of is left out, a bound and a gap are null."""
    written = asdict(score)
    if score.proof is None:
        del written["proof"]
    return written


def _write_allocation(allocation: Sequence[Placement]) -> list[dict[str, Any]]:
    written = []
    for held in allocation:
        kind = {} if held.chunk is None else {"chunk": held.chunk, "count": held.count}
        written.append({"node": held.node, **kind, "resources": dict(held.resources)})
    return written
