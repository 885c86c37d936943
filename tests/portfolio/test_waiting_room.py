"""A job of the waiting room that the verifier finds a start for: what is said of those that wait for it stays true."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.formats import parse_instance, plan_to_document
from cpsched.portfolio import solve
from cpsched.verify import verify


def _document(**more: Any) -> dict[str, Any]:
    """Write a window in which `first` fits on its node at half of its cores only, and `next` waits for its end."""
    first = {"id": "first", "submit": 0, "walltime": 10, "request": "4:ncpus=2", "place": "pack"}
    after = {
        "id": "next",
        "submit": 0,
        "walltime": 5,
        "request": "ncpus=4",
        "after": [{"job": "first", "type": "afterok"}],
    }
    return {
        "format": "cpsched-instance/1",
        "name": "opened",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 4}}]},
        "jobs": [{**first, "malleable": {"shares": [0.5]}}, {**after, **more}],
    }


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ({}, {}),
        ({"deadline": 25}, {}),
        ({"deadline": 24}, {"next": "too_late"}),
        ({"start_at": 5}, {"next": "too_late"}),
    ],
)
def test_a_job_that_is_too_late_behind_one_that_was_found_a_start(more: dict[str, Any], left: dict[str, str]) -> None:
    """The first job runs from 0 to 20; the next one has a start at 20, or is too late, and no window is lost for it."""
    document = _document(**more)
    plan = solve(parse_instance(document, source="opened"), engine="planner", budget=0)
    assert verify(document, plan_to_document(plan)) == ()
    assert {waiting.id: str(waiting.reason) for waiting in plan.waiting_room} == left
    starts = {job.id: (job.start, job.end) for job in plan.jobs}
    assert starts == {"first": (0, 20)} | ({} if left else {"next": (20, 25)})
