"""Calendars are followed up to some second: engines plan no later start, and prove no plan the best one without it."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Instance, Plan
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, solve
from cpsched.verify import verify
from tests.cp.cp_here import CpHere

DAY = 86_400
#: Until December a job of user u takes a minute at most.
UNTIL_DECEMBER = {"resource": "cores", "duration": 60, "validity": {"cron": "* * * 1-11 *"}}
#: Jobs of user u run in the first hour of a Sunday, one at a time.
ON_SUNDAYS = (
    {"resource": "cores", "items": "0", "validity": {"cron": "* * * * 1-6"}},
    {"resource": "cores", "items": "0", "validity": {"cron": "* 1-23 * * 0"}},
    {"resource": "cores", "items": "1"},
)


def window(walltimes: list[int], *limits: dict[str, Any], later: int = 0) -> Instance:
    """Return a window of four cores, limits of user u, and jobs of the user, from the first of January on.

    `later`: a second before which no job starts but the last four; calendars are then followed for longer.
    """
    request = {"count": 1, "resources": {"cores": 1}}
    document = {
        "format": "cpsched-instance/1",
        "name": "calendars",
        "epoch": "2024-01-01T00:00:00+00:00",
        "objective": "wait",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 4}}]},
        "jobs": [
            {
                "id": f"j{number}",
                "submit": 0,
                "walltime": walltime,
                "user": "u",
                "request": [request],
                **({"not_before": later} if later and number < len(walltimes) - 4 else {}),
            }
            for number, walltime in enumerate(walltimes)
        ],
        "limits": [{"consumer": {"user": "u"}, **limit} for limit in limits],
    }
    return parse_instance(document, source="calendars")


def solved(instance: Instance) -> Plan:
    """Return the plan of CP-SAT after the planner, which the verifier passes."""
    team = Team(first=PlannerEngine(), lanes=((CpHere(5.0),),))
    plan = solve(instance, engine="portfolio", budget=20.0, workers=1, team=team)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    return plan


def test_a_limit_on_all_resources_joins_one_that_is_no_longer_followed() -> None:
    """`*` holds for a minute a day, and leaves a job of a day no start: the other limit, which does not forbid it, is
    about another minute, and does not suspend `*` for ever after what is followed.
    """
    own = {"resource": "cores", "items": "2", "validity": {"cron": "0 12 * * *"}}
    every = {"resource": "*", "duration": 1200, "validity": {"cron": "0 6 * * *"}}
    plan = solved(window([DAY, 60], every, own))
    assert {job.id: job.start for job in plan.jobs} == {"j1": 0}
    assert [str(waiting.reason) for waiting in plan.waiting_room] == ["limit"]
    assert plan.events == ()


@pytest.mark.parametrize(
    ("walltimes", "limits", "later"),
    [([100, 30, 30, 30, 30], (UNTIL_DECEMBER,), 336 * DAY), ([3600] * 8, ON_SUNDAYS, 31 * DAY)],
    ids=["december", "sundays"],
)
def test_a_plan_without_a_job_that_could_start_later_is_not_proven(
    walltimes: list[int], limits: tuple[dict[str, Any], ...], later: int
) -> None:
    """A job has a start in December, and four on Sundays after the four that are followed: the verifier accepts a plan
    of all jobs, so none without these is proven the best one.
    """
    instance = window(walltimes, *limits)
    whole = solve(window(walltimes, *limits, later=later), engine="planner", budget=0)
    assert len(whole.jobs) == len(walltimes)
    assert verify(instance_to_document(instance), plan_to_document(whole)) == ()
    for plan in (solved(instance), solve(instance, engine="planner", budget=0)):
        assert len(plan.jobs) == 4
        assert plan.engine.stopped != "optimal"


def test_a_plan_of_all_jobs_is_proven() -> None:
    """Four jobs have the four Sundays that are followed."""
    plan = solved(window([3600] * 4, *ON_SUNDAYS))
    assert len(plan.jobs) == 4
    assert plan.engine.stopped == "optimal"
