"""What the daemon tells readers of its store: the window and the living plan, written anew only where they are new."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import Instance, Plan
from cpsched.formats import instance_to_document, parse_instance, parse_plan
from cpsched.portfolio import solve
from cpsched.site.bridge import LeftJob, Snapshot
from cpsched.site.daemon import State
from cpsched.site.daemon import journal as module
from cpsched.site.daemon.journal import Presenter
from cpsched.site.daemon.state import PlannedStart
from tests.bridge.small_world import job, site

WINDOW = site(*(job(f"j{number}", walltime=10 + number) for number in range(5)), job("never", "ncpus=9"), now=3)


def state_of(instance: Instance, plan: Plan | None) -> State:
    """Return the state of a daemon that has seen an instance, and follows a plan."""
    left = (LeftJob(id="held", reason="it is held"),)
    snapshot = Snapshot(instance=instance, left=left, taken_at=instance.now, jobs={})
    jobs = () if plan is None else plan.jobs
    return State(snapshot=snapshot, plan={one.id: PlannedStart(planned=one, revision="0") for one in jobs})


def read(content: bytes | None) -> Any:
    """Return what was written."""
    assert content is not None
    return json.loads(gzip.decompress(content))


def test_a_reader_gets_the_window_and_the_plan() -> None:
    """Both documents can be read again, and say what the state says."""
    plan = solve(WINDOW, engine="planner", budget=0)
    found = read(Presenter().document(state_of(WINDOW, plan), plan, budget=2.5))
    assert parse_instance({**found["instance"], "now": 3}) == parse_instance(instance_to_document(WINDOW))
    told = parse_plan(found["plan"])
    assert (told.jobs, told.waiting_room, told.objective) == (plan.jobs, plan.waiting_room, plan.objective)
    assert found["left"] == [{"id": "held", "reason": "it is held"}]
    assert (found["budget"], found["dry_run"]) == (2.5, True)


def test_half_a_pair_of_utf_16_in_a_name_is_written() -> None:
    """Slurm's JSON can have such an escape in a name; it is no reason not to tell of the others."""
    window = replace(WINDOW, jobs=(WINDOW.jobs[0], replace(WINDOW.jobs[1], user="x\ud800")))
    found = read(Presenter().document(state_of(window, None), None, budget=0))
    assert [one.get("user") for one in found["instance"]["jobs"]] == [None, "x\ud800"]


def test_before_the_first_plan_there_is_none() -> None:
    """A daemon that has just begun has no plan, or that of the daemon before."""
    assert read(Presenter().document(state_of(WINDOW, None), None, budget=0))["plan"] is None
    plan = solve(WINDOW, engine="planner", budget=0)
    found = read(Presenter().document(state_of(WINDOW, plan), None, budget=0))
    assert parse_plan(found["plan"]).jobs == plan.jobs


def test_a_job_that_has_a_start_by_now_is_not_in_the_waiting_room() -> None:
    """The reasons are those of the last plan that was made; a start that is newer counts."""
    plan = solve(WINDOW, engine="planner", budget=0)
    waited = replace(plan, waiting_room=(*plan.waiting_room, replace(plan.waiting_room[0], id="j1")))
    found = read(Presenter().document(state_of(WINDOW, plan), waited, budget=0))
    assert [one["id"] for one in found["plan"]["waiting_room"]] == ["never"]


def test_only_what_is_new_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another second alone is no news; of a window with one changed job that one is written."""
    written: list[list[str]] = []

    def counted(instance: Instance) -> dict[str, Any]:
        written.append([one.id for one in instance.jobs])
        return instance_to_document(instance)

    monkeypatch.setattr(module, "instance_to_document", counted)
    plan = solve(WINDOW, engine="planner", budget=0)
    presenter, state = Presenter(), state_of(WINDOW, plan)
    presenter.document(state, plan, budget=0)
    later = replace(state, snapshot=replace(state.snapshot, instance=replace(WINDOW, now=50)))  # type: ignore[type-var]  # there is one
    assert presenter.document(later, plan, budget=0) is None
    jobs = (replace(WINDOW.jobs[0], priority=7), *WINDOW.jobs[1:-1])
    written.clear()
    changed = replace(state, snapshot=replace(state.snapshot, instance=replace(WINDOW, jobs=jobs)))  # type: ignore[type-var]  # there is one
    found = read(presenter.document(changed, plan, budget=0))
    assert [jobs for jobs in written if jobs] == [["j0"]]
    assert [(one["id"], one.get("priority")) for one in found["instance"]["jobs"]][:2] == [("j0", 7), ("j1", None)]
    assert len(found["instance"]["jobs"]) == 5
