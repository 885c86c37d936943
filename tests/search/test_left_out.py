"""The search where jobs must start by some time: more jobs beat fewer, and any of them may be left out for others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpsched.domain import Instance, Job, WaitingJob, WaitingReason
from cpsched.engine import Outcome
from cpsched.formats import read_instance
from cpsched.metrics import objective_value
from cpsched.search import Search
from cpsched.search.chain import Chain
from cpsched.search.engine import optional_in
from tests.oracle.random_instances import instances, pressed
from tests.search.searched import board_of, planned
from tests.sizes import examples
from tests.workloads.deadlines import with_deadlines
from tests.workloads.eurora_windows import eurora_window

CASES = Path(__file__).parents[1] / "cases"


def waiting_in(instance: Instance) -> list[Job]:
    """Return the jobs that wait."""
    return [job for job in instance.elements() if job.running is None]


def without(outcome: Outcome, names: set[str]) -> Outcome:
    """Return a plan without some jobs."""
    kept = tuple(job for job in outcome.jobs if job.id not in names)
    late = tuple(WaitingJob(id=name, reason=WaitingReason.TOO_LATE, detail="late") for name in sorted(names))
    return replace(outcome, jobs=kept, waiting_room=outcome.waiting_room + late)


@pytest.mark.parametrize("name", ["deadline-order", "deadline-wide", "deadline-dependency"])
def test_takes_back_jobs_that_a_plan_leaves_out(name: str) -> None:
    """From a plan without one of the jobs that must end in time, the search comes to one of all jobs."""
    instance = read_instance(CASES / f"{name}.json")
    whole = planned(instance)
    late = next(job for job in waiting_in(instance) if instance.latest_start(job) is not None)
    behind = {job.id for job in waiting_in(instance) if any(one.job == late.id for one in job.after)}
    board = board_of(instance, without(whole, {late.id, *behind}))
    Search(max_steps=2000).improve(instance, board, seed=0)
    assert not board.events
    assert board.best.ids == {job.id for job in whole.jobs}


def test_lists_let_late_jobs_pass() -> None:
    """In a window in which each list by price makes jobs too late, lists are found, and are better than
    the planner's order by latest start.
    """
    instance = with_deadlines(eurora_window(60, 6, busy=0.5), 6, share=0.7)
    outcome = planned(instance)
    board = board_of(instance, outcome)
    Search(max_steps=0).improve(instance, board, seed=0)
    assert not board.events
    assert board.best.by.startswith("list:")
    assert len(board.best.jobs) >= len(outcome.jobs)


@examples(100)
@given(data=st.data())
def test_the_price_of_a_plan_is_its_value_and_a_fine_for_each_job_left_out(data: st.DataObject) -> None:
    """After any steps the best plan is worth what the chain says, and a plan of more jobs is always cheaper."""
    instance = data.draw(instances().flatmap(pressed))
    board = board_of(instance, planned(instance))
    optional = optional_in(instance, board)
    assume(optional)
    names = board.best.ids | optional
    jobs = [job for job in waiting_in(instance) if job.id in names]
    chain = Chain(instance, jobs, 3, optional)
    assert chain.plan_list(np.array([data.draw(st.floats(0, 1)) for _ in jobs])) is not None
    chain.run(200, 0.3)
    running = [job for job in board.best.jobs if job.id not in {job.id for job in jobs}]
    best = [*running, *chain.best()]
    ids = {job.id for job in best}
    dearest = chain.fine(names - {next(iter(sorted(optional)))})
    if len(chain.late()) == 0:
        assert chain.fine(ids) == 0.0
    assert objective_value(instance, best) < objective_value(instance, running) + dearest
    again = Chain(instance, jobs, 3, optional)
    assert again.adopt(best)
    assert {job.id for job in again.best()} | {job.id for job in running} == ids
    assert again.best_value + again.offset() == pytest.approx(objective_value(instance, best) + again.fine(ids))


@examples(60)
@given(instance=instances(max_jobs=10).flatmap(pressed))
def test_a_chain_that_leaves_jobs_out_leaves_the_timeline_as_its_plan_says(instance: Instance) -> None:
    """After any number of steps nothing is booked but the jobs that have a place."""
    board = board_of(instance, planned(instance))
    optional = optional_in(instance, board)
    jobs = [job for job in waiting_in(instance) if job.id in board.best.ids | optional]
    assume(optional and len(jobs) > 1)
    chain = Chain(instance, jobs, 5, optional)
    if chain.plan_list(np.arange(len(jobs), dtype=np.float64)) is None:
        return
    chain.run(300, 0.5)
    assert chain.best_value <= chain.value_of(chain.starts) + 1e-6 * abs(chain.best_value)
    chain.clear()
    timeline, empty = chain.ledger.timeline, Chain(instance, jobs, 5, optional).ledger.timeline
    assert timeline.breakpoints().tolist() == empty.breakpoints().tolist()
    for second in empty.breakpoints().tolist():
        for mine, theirs in zip(timeline.free_at(second), empty.free_at(second), strict=True):
            assert mine.tolist() == theirs.tolist()


def test_no_job_is_optional_where_none_can_be_late() -> None:
    """A window without last starts is searched as before: all of its jobs are in each plan."""
    instance = eurora_window(20, 1)
    assert not optional_in(instance, board_of(instance, planned(instance)))
