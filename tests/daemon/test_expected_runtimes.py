"""How long jobs are expected to run: what is learnt survives a restart, and counts in the order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cpsched import solve
from cpsched.forecast import Kind
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.portfolio import WindowPlanner
from cpsched.site.bridge import JobFacts, JobState, MemoryManager
from cpsched.site.daemon import Planner
from cpsched.site.daemon.window import planning_window
from cpsched.verify import verify
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site, world
from tests.daemon.making import LIVE, daemon_on, finish


def test_what_was_learnt_survives_a_restart(tmp_path: Path) -> None:
    """A daemon that begins reads from its store how long jobs ran, and expects what the one before did."""
    there = world(*(job(f"j{number}", walltime=100, runtime=10, submit=number) for number in range(6)))
    daemon, _ = daemon_on(there, tmp_path)
    finish(daemon)
    (kind,) = {Kind.of(entry.job) for entry in there.jobs.values()}
    assert kind is not None
    expected = daemon._learner.expected(kind)
    assert expected < 80
    again, _ = daemon_on(PlayedWorld(site()), tmp_path)
    assert again._learner.expected(kind) == expected


def test_a_choice_that_takes_another_time_expects_nothing(tmp_path: Path) -> None:
    """What is learnt of a job counts where each of its choices takes as long as it asks for itself."""
    there = world(*(job(f"j{number}", walltime=100, runtime=10, submit=number) for number in range(6)))
    daemon, _ = daemon_on(there, tmp_path)
    finish(daemon)
    snapshot = MemoryManager(there).snapshot()
    jobs = site(
        *(job(str(time), walltime=100, alternatives=[{"walltime": time, "request": "2:ncpus=1"}]) for time in (100, 90))
    ).jobs
    facts = JobFacts(state=JobState.WAITING, revision="0")
    seen = replace(snapshot, instance=replace(snapshot.instance, jobs=jobs), jobs={one.id: facts for one in jobs})
    window = planning_window(replace(daemon.state, snapshot=seen), learner=daemon._learner)
    same, other = window.instance.jobs
    assert same.expected is not None
    assert same.expected < 80
    assert other.expected is None
    plan = solve(parse_instance(instance_to_document(window.instance)), engine="planner", budget=0)
    assert verify(instance_to_document(window.instance), plan_to_document(plan)) == ()


def test_a_rule_starts_first_what_is_expected_to_be_short(tmp_path: Path) -> None:
    """Engine wspt_list plans each window anew, by what was learnt: the job of a careless user is first."""
    past = [job(f"p{number}", "2:ncpus=4", user="ann", walltime=900, runtime=9) for number in range(8)]
    there = world(*past)
    engine = WindowPlanner(name="wspt_list", budget=0.0)

    def fail(what: str, error: Exception) -> None:
        raise AssertionError(what) from error

    daemon, _ = daemon_on(there, tmp_path, LIVE, planner=Planner(engine, gain=0.01, report=fail))
    finish(daemon)
    jobs = site(
        job("careful", "2:ncpus=4", user="bob", walltime=400, runtime=400, submit=there.now),
        job("careless", "2:ncpus=4", user="ann", walltime=900, runtime=9, submit=there.now),
    ).jobs
    for one in jobs:
        there.submit(replace(one, submit=there.now))
    finish(daemon)
    starts = {name: there.jobs[name].start for name in ("careful", "careless")}
    assert {there.jobs[name].state for name in starts} == {JobState.COMPLETED}
    assert starts["careless"] is not None
    assert starts["careful"] is not None
    assert starts["careless"] < starts["careful"]
