"""Rigid windows are planned as they were before any job could change: to the second, and to the node."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest

from cpsched.domain import PlannedJob
from cpsched.formats import read_instance
from cpsched.planner import PlannerEngine
from cpsched.search import SearchParams
from tests.search.searched import searched

INSTANCES = Path(__file__).parents[2] / "instances"


def digest(jobs: Iterable[PlannedJob]) -> str:
    """Return a name for all that a plan says."""
    said = [[job.id, job.start, job.end, [_held(job, number) for number in range(len(job.segments))]] for job in jobs]
    return sha256(json.dumps(said).encode()).hexdigest()[:16]


def _held(job: PlannedJob, number: int) -> list[object]:
    segment = job.segments[number]
    return [segment.start, segment.end, [[held.node, held.chunk, held.count] for held in segment.allocation]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("0050", "4c0603f9d369cae6"), ("0200", "8474d945c592893c"), ("0800", "120d9646c21b9f3b")],
)
def test_the_planner_plans_as_before(name: str, expected: str) -> None:
    """The planner has the plans of the release before."""
    assert digest(PlannerEngine().plan(read_instance(INSTANCES / f"eurora-like-{name}.json.gz"), None).jobs) == expected


def test_the_search_finds_what_it_found() -> None:
    """2000 steps with seed 1 end in the same plan as ever, for they draw the same random numbers."""
    board = searched(
        read_instance(INSTANCES / "eurora-like-0050.json.gz"), SearchParams(max_steps=2000), seed=1, seconds=1000
    )
    assert digest(board.best.jobs) == "fa17601e1b853599"
