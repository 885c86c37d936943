"""A job of the waiting room that the verifier finds a start for: what is said of those that wait for it stays true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import Instance, PlannedJob, WaitingJob, WaitingReason
from cpsched.engine import Board, Outcome, Progress
from cpsched.formats import parse_instance, plan_to_document
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, solve
from tests.portfolio.fake_solver import Solver
from tests.verify.openings import strictly_verified


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
    assert strictly_verified(document, plan_to_document(plan)) == ()
    assert {waiting.id: str(waiting.reason) for waiting in plan.waiting_room} == left
    starts = {job.id: (job.start, job.end) for job in plan.jobs}
    assert starts == {"first": (0, 20)} | ({} if left else {"next": (20, 25)})


def test_a_solver_plans_other_jobs() -> None:
    """A plan of two other jobs replaces the planner's plan of one: these leave the waiting room, the displaced one and
    the one that waits for it enter it, and value and suffered part are those of the planned jobs.
    """
    entries: list[dict[str, Any]] = [
        {"id": "long", "submit": 0, "walltime": 20, "start_at": 0, "request": "ncpus=4"},
        {"id": "one", "submit": -2, "walltime": 5, "deadline": 6, "request": "ncpus=4"},
        {"id": "two", "submit": 0, "walltime": 5, "deadline": 10, "request": "ncpus=4"},
        {"id": "behind", "submit": 0, "walltime": 5, "deadline": 24, "request": "ncpus=4"},
    ]
    entries[-1]["after"] = [{"job": "long", "type": "after"}]
    document = {**_document(), "jobs": entries, "objective": "wait"}

    def rescue(board: Board) -> None:
        template = board.best.jobs[0]
        assert board.offer([_moved(template, "one", 0, 5), _moved(template, "two", 5, 10)], by="rescue")

    team = Team(first=_First(), lanes=((Solver(rescue),),))
    plan = solve(parse_instance(document, source="others"), team=team, budget=5)
    assert strictly_verified(document, plan_to_document(plan)) == ()
    assert {job.id: job.start for job in plan.jobs} == {"one": 0, "two": 5}
    assert {job.id: str(job.reason) for job in plan.waiting_room} == {"long": "too_late", "behind": "dependency"}
    assert (plan.objective.value, plan.objective.suffered) == (7, 2)
    assert [found.planned for found in plan.incumbents] == [1, 2]
    assert plan.engine.stopped != "optimal"
    assert plan.events == ()


class _First(PlannerEngine):
    """Plans the first job alone."""

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Put all jobs but the first into the waiting room."""
        first, *others = instance.elements()
        outcome = super().plan(replace(instance, jobs=(first,)), progress)
        room = (WaitingJob(id=job.id, reason=WaitingReason.TOO_LATE, detail="is left out") for job in others)
        return Outcome(jobs=outcome.jobs, waiting_room=tuple(room))


def _moved(job: PlannedJob, name: str, start: int, end: int) -> PlannedJob:
    """Return another job on the same nodes."""
    segment = replace(job.segments[0], start=start, end=end)
    return replace(job, id=name, start=start, end=end, segments=(segment,))
