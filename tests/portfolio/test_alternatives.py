"""Jobs with alternatives through the recipe: with rules, dependencies, rules of queueing systems, and later windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched import solve
from cpsched.answers import Answers
from cpsched.formats import instance_to_document, parse_instance, parse_plan, plan_to_document
from cpsched.planner import advanced
from cpsched.verify import verify

NARROW = {"walltime": 18, "request": "1:ncpus=4"}


def window(*jobs: dict[str, Any], **keys: Any) -> Any:
    """Return a window of two nodes with these jobs, each of which asks for both for 10 s where it does not say else."""
    asked = [{"submit": 0, "walltime": 10, "request": "2:ncpus=4"} | job for job in jobs]
    nodes = {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]}
    return parse_instance(
        {"format": "cpsched-instance/1", "name": "w", "now": 0, "cluster": nodes, "jobs": asked, **keys}
    )


def planned(instance: Any, engine: str = "planner") -> dict[str, tuple[int, int, int]]:
    """Return start, end and alternative of each planned job, in a plan that the verifier passes again."""
    plan = solve(instance, engine=engine, budget=0)
    document = plan_to_document(plan)
    assert not verify(instance_to_document(instance), document)
    assert parse_plan(document) == plan
    return {job.id: (job.start, job.end, job.alternative) for job in plan}


def test_the_planner_chooses_for_those_behind() -> None:
    """A job takes the alternative in which it loses less than the jobs behind it gain."""
    jobs = [{"id": name, "alternatives": [NARROW | {"walltime": 11}]} for name in "abc"]
    assert planned(window(*jobs)) == {"a": (0, 11, 1), "b": (0, 11, 1), "c": (11, 21, 0)}


@pytest.mark.parametrize("engine", ["fcfs", "easy", "conservative", "conservative_on_nodes"])
def test_queue_rules_take_the_first_that_fits(engine: str) -> None:
    """While one node is taken, a job starts at once by its narrow alternative, however long that takes."""
    taken = {"node": "n1", "resources": {"cores": 4}}
    running = {"id": "r", "request": "1:ncpus=4", "running": {"start": -1, "allocation": [taken]}}
    found = planned(window(running, {"id": "a", "alternatives": [NARROW]}), engine)
    assert found["a"] == (0, 18, 1)
    assert planned(window({"id": "a", "alternatives": [NARROW]}), engine)["a"] == (0, 10, 0)


@pytest.mark.parametrize("engine", ["fcfs", "wspt_list", "conservative_on_nodes"])
def test_queue_rules_wait_for_the_choice_that_starts_first(engine: str) -> None:
    """Where none fits at once it is not the first of the document that has its time."""
    taken = [{"node": f"n{number}", "resources": {"cores": 4}} for number in (1, 2)]
    ends = [
        {"id": f"r{number}", "walltime": end, "request": "1:ncpus=4", "running": {"start": -1, "allocation": [one]}}
        for number, (end, one) in enumerate(zip((5, 50), taken, strict=True))
    ]
    assert planned(window(*ends, {"id": "a", "alternatives": [NARROW]}), engine)["a"] == (4, 22, 1)


def test_dependencies_leave_no_choice() -> None:
    """Where others wait for its end, a job runs by the first request that is possible."""
    wide = {"id": "a", "request": "3:ncpus=4", "alternatives": [NARROW, {"walltime": 9, "request": "2:ncpus=4"}]}
    after = {"id": "b", "after": [{"job": "a", "type": "afterok"}]}
    assert planned(window(wide, after)) == {"a": (0, 18, 1), "b": (18, 28, 0)}


@pytest.mark.parametrize("engine", ["planner", "fcfs", "easy"])
def test_rules_count_what_is_chosen(engine: str) -> None:
    """A limit that the own request exceeds leaves a job its alternative, and one that this exceeds the own request."""
    job = {"id": "a", "user": "eve", "alternatives": [NARROW]}
    cores = {"consumer": {"each": "user"}, "resource": "cores", "items": "4"}
    assert planned(window(job, limits=[cores]), engine) == {"a": (0, 18, 1)}
    seconds = {"consumer": {"user": "eve"}, "resource": "cores", "duration": 10}
    assert planned(window(job, limits=[seconds]), engine) == {"a": (0, 10, 0)}
    pool = {"resource": "cores", "items": "4", "open_to": {"max": {"cores": 8}, "max_walltime": 10}}
    assert planned(window(job, free_pools=[pool]), engine) == {"a": (0, 10, 0)}
    pool["nodes"] = "n1"
    assert planned(window(job, free_pools=[pool]), engine) == {"a": (0, 10, 0)}


def test_the_planner_chooses_under_rules() -> None:
    """Beside a limit that leaves room, and in a reservation, jobs choose as they do without rules."""
    jobs = [{"id": name, "user": "eve", "alternatives": [NARROW | {"walltime": 11}]} for name in "abc"]
    limit = {"consumer": {"each": "user"}, "resource": "cores", "items": "8"}
    best = {"a": (0, 11, 1), "b": (0, 11, 1), "c": (11, 21, 0)}
    assert planned(window(*jobs, limits=[limit])) == best
    slot = {"id": "r", "start": 5, "end": 40, "nodes": "n[1-2]", "users": ["eve"]}
    guests = [job | {"reservation": "r"} for job in jobs]
    assert planned(window(*guests, reservations=[slot])) == {
        name: (start + 5, end + 5, number) for name, (start, end, number) in best.items()
    }
    short = slot | {"end": 16}
    assert planned(window(*guests, reservations=[short])) == {"a": (5, 16, 1), "b": (5, 16, 1)}


def test_an_outstanding_area_is_given_to_one_choice_of_a_job() -> None:
    """The area pays for the own requests first; what is left of it for alternatives that ask for more."""
    job = {"id": "a", "user": "eve", "alternatives": [{"walltime": 30, "request": "1:ncpus=4"}]}
    limit = {"consumer": {"user": "eve"}, "resource": "cores", "area": 100, "area_scope": "outstanding"}
    other = {"id": "b", "user": "eve", "walltime": 5, "request": "1:ncpus=4"}
    assert planned(window(job, other, limits=[limit])).keys() == {"a", "b"}
    narrow = job | {"request": "2:ncpus=4", "walltime": 20}
    assert planned(window(narrow, limits=[limit])) == {}
    assert planned(window(narrow | {"alternatives": [NARROW]}, limits=[limit])) == {"a": (0, 18, 1)}


def test_a_job_that_has_started_has_no_choice_any_more() -> None:
    """In the window some seconds later it runs as the rigid job of its alternative, and the plan still holds."""
    instance = window(*({"id": name, "alternatives": [NARROW | {"walltime": 11}]} for name in "abc"))
    plan = solve(instance, engine="planner", budget=0)
    later = advanced(instance, plan, 5)
    ran = {job.id: job for job in later.jobs if job.running is not None}
    assert {name: (job.walltime, job.alternatives) for name, job in ran.items()} == {"a": (11, ()), "b": (11, ())}
    assert parse_instance(instance_to_document(later)) == later
    assert solve(later, engine="planner", budget=0, warm=plan)["c"].start == 11


def test_an_explanation_looks_for_each_alternative() -> None:
    """Beside a running job only the narrow alternative can start at once, which the answer says."""
    taken = {"node": "n1", "resources": {"cores": 4}}
    running = {"id": "r", "request": "1:ncpus=4", "running": {"start": -1, "allocation": [taken]}}
    instance = window(running)
    (job,) = window({"id": "x", "alternatives": [NARROW]}).jobs
    found = Answers(instance, solve(instance, engine="planner", budget=0)).submit(job).planned
    assert found is not None
    assert (found.start, found.end, found.alternative) == (0, 18, 1)


def test_an_answer_counts_what_each_alternative_takes() -> None:
    """Beside a job of the same user a limit leaves room for the narrow alternative, for the wide one later."""
    limit = {"consumer": {"each": "user"}, "resource": "cores", "items": "8"}
    taken = {"node": "n1", "resources": {"cores": 4}}
    running = {"id": "r", "user": "eve", "request": "1:ncpus=4", "running": {"start": -1, "allocation": [taken]}}
    nodes = {"nodes": [{"names": "n[1-3]", "resources": {"cores": 4}}]}
    documents = [{"id": "x", "user": "eve", "alternatives": choices} for choices in ([NARROW], [])]
    found = []
    for document in documents:
        (job,) = window({key: value for key, value in document.items() if value}).jobs
        base = window(running, limits=[limit], cluster=nodes)
        planned_job = Answers(base, solve(base, engine="planner", budget=0)).submit(job).planned
        assert planned_job is not None
        found.append((planned_job.start, planned_job.alternative))
    assert found == [(0, 1), (9, 0)]
    instance = window(running, {"id": "x", "user": "eve", "alternatives": [NARROW]}, limits=[limit], cluster=nodes)
    answers = Answers(instance, solve(instance, engine="planner", budget=0))
    assert answers.explain("x").blocked == ()


@pytest.mark.slow
def test_jobs_of_all_kinds_in_one_window() -> None:
    """Beside malleable and evolving jobs, those with alternatives have one of them, in planner and search."""
    kinds: list[dict[str, Any]] = [
        {"id": "a", "alternatives": [NARROW | {"walltime": 11}]},
        {"id": "b", "alternatives": [NARROW | {"walltime": 11}]},
        {"id": "m", "malleable": {"shares": [0.5]}},
    ]
    steps = [{"walltime": 5, "request": "1:ncpus=4"}, {"walltime": 5, "request": "2:ncpus=4"}]
    instance = window(*kinds)
    assert planned(instance).keys() == {"a", "b", "m"}
    searched = solve(instance, engine="search", budget=60, steps=40)
    assert searched.objective.value <= solve(instance, engine="planner", budget=0).objective.value
    document = instance_to_document(instance)
    document["jobs"].append({"id": "e", "submit": 0, "steps": steps})
    assert len(solve(parse_instance(document), engine="search", budget=60, steps=40)) == 4


@pytest.mark.parametrize(("engine", "steps"), [("planner", None), ("search", 5)])
def test_an_earlier_plan_keeps_a_choice_that_engines_do_not_have(engine: str, steps: int | None) -> None:
    """Under rules engines know one choice of a job for whose end another waits; the earlier plan has another one, which
    is kept, also as a start is looked for beside it.
    """
    jobs = [{"id": "a", "alternatives": [NARROW, {"walltime": 4, "request": "1:ncpus=2"}]}]
    jobs += [{"id": "b", "after": [{"job": "a", "type": "afterok"}]}, {"id": "c", "user": "x", "request": "3:ncpus=4"}]
    instance = window(*jobs, limits=[{"consumer": {"user": "x"}, "resource": "cores", "items": "8"}])
    (place,) = solve(window({"id": "a", "walltime": 4, "request": "1:ncpus=2"}), engine="planner", budget=0).jobs
    earlier = solve(instance, engine="planner", budget=0)
    others = [job for job in earlier.jobs if job.id != "a"]
    earlier = replace(earlier, jobs=(replace(place, alternative=2), *others))
    found = solve(instance, engine=engine, budget=30 if steps else 0, steps=steps, workers=1, warm=earlier)
    assert not verify(instance_to_document(instance), plan_to_document(found))
    assert [(job.end, job.alternative) for job in found.jobs if job.id == "a"] == [(place.end, 2)]
    assert not [event for event in found.events if event.by == "verify"]
