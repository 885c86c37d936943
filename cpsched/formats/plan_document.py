"""The plan document: from JSON to a `Plan` and back."""

from collections.abc import Mapping
from typing import Any, Literal

from cpsched.domain import Instance, Name, Plan, PlannedJob, ReservedSlice, Segment
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import Faults, refuse_other_kind
from cpsched.formats.kinds import FORMS, Form, Object, kind_of, schema_of

_Entry = Mapping[str, Any]


def _rule_of_intervals(entry: _Entry) -> str | None:
    start, end = entry["start"], entry["end"]
    return None if start < end else f"Expected start < end, got {start} and {end}"


def _rule_of_jobs(job: _Entry) -> str | None:
    ends = [job["start"], *(segment["end"] for segment in job["segments"])]
    if [*(segment["start"] for segment in job["segments"]), job["end"]] != ends:
        return "Expected segments from start to end of the job, each beginning where the one before ends"
    return None


def _rule_of_slices(entry: _Entry) -> str | None:
    if ("allocation" in entry) == ("reason" in entry):
        return _rule_of_intervals(entry) or "Expected either allocation or reason"
    return _rule_of_intervals(entry)


def _rule_of_plans(plan: _Entry) -> str | None:
    if not plan.get("record", False) and any(job["reason"] == "not_started" for job in plan.get("waiting_room", ())):
        return "Expected a job that is not_started only in a record"
    return None


FORMS[Segment] = Form(rule=_rule_of_intervals)
FORMS[PlannedJob] = Form(rule=_rule_of_jobs)
FORMS[ReservedSlice] = Form(rule=_rule_of_slices)
FORMS[Plan] = Form(
    without=("judgement",),
    instead={"instance": {"format": Literal["cpsched-plan/1"], "instance": Name}},
    rule=_rule_of_plans,
    read=lambda reading, at, plan, said: Plan(instance=plan["instance"], **said),
    write=lambda plan, writing: {"format": "cpsched-plan/1", "instance": plan.instance},
)


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of the plan document."""
    return schema_of(kind_of(Plan))


def parse_plan(document: object, *, source: str = "<memory>") -> Plan:
    """Return what a plan document says. Raises `DocumentError` with all faults of it alone, in document order."""
    refuse_other_kind(document, source, "plan")
    kind: Object = kind_of(Plan)
    faults = Faults(document, kind.all_keys)
    if not kind.accepts(document):
        kind.explain(document, (), faults)
        faults.refuse(source)
    plan: Plan = kind.read(document, (), None)
    ids = {"jobs": [job.id for job in plan.jobs], "waiting_room": [job.id for job in plan.waiting_room]}
    faults.add_repeated(
        "every job once", (((key, i, "id"), id) for key, listed in ids.items() for i, id in enumerate(listed))
    )
    slices = ((("reservations", i, "id"), f"{one.id} at {one.start}") for i, one in enumerate(plan.reservations))
    faults.add_repeated("every time of a reservation once", slices)
    faults.raise_if_any(source)
    return plan


def plan_to_document(plan: Plan) -> dict[str, Any]:
    """Return the canonical plan document; reading it gives `plan` again."""
    document: dict[str, Any] = kind_of(Plan).write(plan, None)
    return document


def check_belongs(plan: Plan, instance: Instance, source: str) -> None:
    """Refuse a plan of another instance, or with jobs or nodes that this one does not have. Raises `DocumentError`."""
    jobs, nodes = {job.id for job in instance.elements()}, set(instance.cluster.node_names)
    faults = []
    if plan.instance != instance.name:
        faults.append(Fault("instance", f"Expected a plan of {instance.name!r}, got one of {plan.instance!r}"))
    for index, job in enumerate(plan.jobs):
        if job.id not in jobs:
            faults.append(Fault(f"jobs[{index}].id", f"Expected a job of the instance, got {job.id!r}"))
        faults += [
            Fault(f"jobs[{index}].segments", f"Expected nodes of the cluster, got {node!r}")
            for node in sorted(set(job.nodes) - nodes)
        ]
    faults += [
        Fault(f"waiting_room[{index}].id", f"Expected a job of the instance, got {job.id!r}")
        for index, job in enumerate(plan.waiting_room)
        if job.id not in jobs
    ]
    for index, slice_ in enumerate(plan.reservations):
        faults += [
            Fault(f"reservations[{index}].allocation", f"Expected nodes of the cluster, got {node!r}")
            for node in sorted({placement.node for placement in slice_.allocation} - nodes)
        ]
    if faults:
        raise DocumentError(source, faults)
