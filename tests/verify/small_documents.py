"""Tiny instances and plans for the judge's tests: a cluster of two nodes, and plans whose numbers are right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Document = dict[str, Any]

NODE: Document = {"cores": 4, "mem": 1024, "gpus": 1}


def instance(*jobs: Document, **members: Any) -> Document:
    """Return an instance with nodes n1 and n2 of 4 cores, 1024 MiB and 1 GPU, at second 0."""
    return {
        "format": "cpsched-instance/1",
        "name": "tiny",
        "now": 0,
        "cluster": {"nodes": [{"names": "n[1-2]", "resources": dict(NODE)}]},
        "jobs": list(jobs),
        **members,
    }


def cluster(*nodes: Document, **licenses: int) -> Document:
    """Return a cluster of node classes; without `resources` they are like the others."""
    return {"nodes": [{"resources": dict(NODE), **node} for node in nodes], "licenses": licenses}


def job(name: str = "a", request: Any = "1:ncpus=2", walltime: int | None = 100, **members: Any) -> Document:
    """Return a waiting job; a member that is None is left out."""
    entry = {"id": name, "submit": 0, "walltime": walltime, "request": request, **members}
    return {key: value for key, value in entry.items() if value is not None}


def on(node: str, chunk: int | None = 0, count: int | None = 1, **resources: int) -> Document:
    """Return a placement."""
    placement = {"node": node, "chunk": chunk, "count": count, "resources": resources}
    return {key: value for key, value in placement.items() if value is not None}


def segment(start: int, end: int, *allocation: Document) -> Document:
    """Return a segment."""
    return {"start": start, "end": end, "allocation": list(allocation)}


def planned(name: str, *segments: Document) -> Document:
    """Return a job of a plan, from its first segment's start to its last one's end."""
    return {"id": name, "start": segments[0]["start"], "end": segments[-1]["end"], "segments": list(segments)}


def at(name: str, start: int, *allocation: Document, walltime: int = 100) -> Document:
    """Return a job of a plan with one segment; without an allocation it has two cores of n1."""
    return planned(name, segment(start, start + walltime, *(allocation or (on("n1", cores=2),))))


def waiting(name: str, reason: str) -> Document:
    """Return an entry of the waiting room."""
    return {"id": name, "reason": reason, "detail": "in words"}


def plan(jobs: Iterable[Document] = (), room: Iterable[Document] = (), **members: Any) -> Document:
    """Return a plan for an instance at second 0 whose jobs all came at second 0, have no queue and do not run yet."""
    listed = list(jobs)
    value = sum(entry["start"] for entry in listed if entry["start"] > 0) / 1800
    return {
        "format": "cpsched-plan/1",
        "instance": "tiny",
        "now": 0,
        "objective": {
            "name": "weighted_wait",
            "value": value,
            "bound": None,
            "gap": None,
            "planner": value,
            "suffered": 0.0,
        },
        "engine": {"name": "hand", "version": "1", "budget": 1.0, "elapsed": 0.5, "stopped": "done"},
        "jobs": listed,
        "waiting_room": list(room),
        **members,
    }


def stretched(instance: Document, plan: Document) -> Document:
    """Return a plan of `plan` with the price of stretching in its value: each second that a waiting malleable job takes
    longer than its walltime.
    """
    asked = {job["id"]: job for job in instance["jobs"] if "malleable" in job and "running" not in job}
    seconds = [
        entry["end"] - entry["start"] - asked[entry["id"]]["walltime"] for entry in plan["jobs"] if entry["id"] in asked
    ]
    value = plan["objective"]["value"] + sum(max(0, more) for more in seconds) / 1800
    return {**plan, "objective": {**plan["objective"], "value": value, "planner": value}}
