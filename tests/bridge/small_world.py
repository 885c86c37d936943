"""A small machine for tests of managers: two nodes of four cores, and jobs that ask for some of them."""

from __future__ import annotations

from typing import Any

from cpsched.domain import Amounts, Instance, Placement
from cpsched.formats import parse_instance
from cpsched.site.bridge import Snapshot
from tests.bridge.played_world import PlayedWorld

__all__ = ["job", "on", "site", "starts", "world"]


def job(name: str, request: str = "ncpus=4", *, walltime: int = 100, submit: int = 0, **more: Any) -> dict[str, Any]:
    """Write the entry of a job."""
    return {"id": name, "submit": submit, "walltime": walltime, "request": request, "queue": "q", **more}


def site(*jobs: dict[str, Any], nodes: str = "n[1-2]", **more: Any) -> Instance:
    """Read the instance of two nodes with these jobs."""
    return parse_instance(
        {
            "format": "cpsched-instance/1",
            "name": "small",
            "cluster": {"nodes": [{"names": nodes, "resources": {"cores": 4}}], "licenses": {"matlab": 1}},
            "queues": {"q": {"expected_wait": 100}},
            "jobs": list(jobs),
            **more,
        },
        source="small",
    )


def world(*jobs: dict[str, Any], gate_is_closed: bool = True, **more: Any) -> PlayedWorld:
    """Make a world of two nodes, in which jobs wait for orders."""
    return PlayedWorld(site(*jobs, **more), gate_is_closed=gate_is_closed)


def on(*nodes: str, cores: int = 4) -> tuple[Placement, ...]:
    """Place one chunk of some cores on each of these nodes."""
    return tuple(Placement(node=node, resources=Amounts({"cores": cores}), chunk=0, count=1) for node in nodes)


def starts(snapshot: Snapshot) -> dict[str, int | None]:
    """Return when each job has started, by id."""
    return {name: facts.start for name, facts in snapshot.jobs.items()}
