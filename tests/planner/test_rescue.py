"""Which jobs are too late in every plan, and in which orders the others are served."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Instance
from cpsched.formats import parse_instance
from cpsched.planner import Planner, placeable_beside
from cpsched.planner.rescue import latest_starts
from tests.judges.deadline_windows import deadline_window
from tests.oracle.brute_force import Window
from tests.workloads.deadlines import with_deadlines
from tests.workloads.eurora_windows import eurora_window


def window(*jobs: dict[str, Any]) -> Instance:
    """Return a window of a node with two cores of which one is busy until 10; each job takes both for 5 s."""
    runs = {
        "id": "runs",
        "submit": 0,
        "walltime": 10,
        "request": "ncpus=1",
        "running": {"start": 0, "allocation": [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 1}}]},
    }
    usual = {"submit": 0, "walltime": 5, "request": "ncpus=2"}
    document = {
        "format": "cpsched-instance/1",
        "name": "rescue",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 2}}]},
        "jobs": [runs, *({"id": f"j{number}", **usual, **job} for number, job in enumerate(jobs))],
    }
    return parse_instance(document, source="rescue")


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([{"deadline": 14}], set()),
        ([{"deadline": 15}], {"j0"}),
        ([{"deadline": 14, "request": "ncpus=1"}], {"j0"}),
        ([{}, {"deadline": 19, "after": [{"job": "j0", "type": "afterok"}]}], {"j0"}),
        ([{}, {"deadline": 20, "after": [{"job": "j0", "type": "afterok"}]}], {"j0", "j1"}),
        ([{"request": "ncpus=3"}, {"after": [{"job": "j0", "type": "after"}]}], set()),
        ([{"deadline": 14}, {"after": [{"job": "j0", "type": "after"}]}], set()),
        # several kinds of chunks: the ledger may miss a place, so that nothing is proven
        ([{"deadline": 14, "request": "ncpus=1+1:ncpus=1"}], {"j0"}),
    ],
)
def test_jobs_that_no_plan_has(jobs: list[dict[str, Any]], expected: set[str]) -> None:
    """A job is placeable if it ends in time beside the running one and after those for which it waits."""
    assert placeable_beside(window(*jobs), {"runs"}) == {"runs"} | expected


@pytest.mark.parametrize("seed", range(60))
def test_all_jobs_of_the_best_plan_are_placeable(seed: int) -> None:
    """What trying everything finds a place for is never said to have none."""
    document = deadline_window(seed)
    best = Window(document).best()
    instance = parse_instance(document, source=f"case {seed}")
    assert placeable_beside(instance, ()) >= best.ids


def test_latest_starts_count_those_who_wait() -> None:
    """A job starts in time for the one that waits for its end, and one without a limit has no latest start."""
    last = {"deadline": 40, "after": [{"job": "j0", "type": "afterok", "delay": 3}]}
    instance = window({"deadline": 100}, last, {})
    assert latest_starts(instance, instance.elements()[1:]) == {"j0": 27, "j1": 35}


def test_jobs_with_deadlines_are_served_in_time() -> None:
    """In a window with many deadlines the first order leaves four jobs out, further ones none."""
    instance = with_deadlines(eurora_window(60, 6, busy=0.5), 6, share=0.7)
    first, planner = Planner(instance), Planner(instance)
    first.ledger.plan(first._order)
    planner.plan()
    assert [sum(map(one.ledger.is_booked, one._order)) for one in (first, planner)] == [56, 60]
