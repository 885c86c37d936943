"""``max_delay``: a job starts at most so long after another one; all plans of tiny windows say which is the best."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from cpsched.answers import Answers, CauseKind, WhatIf, what_if
from cpsched.domain import Plan
from cpsched.errors import DocumentError, UnsupportedError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from cpsched.portfolio import replan, solve
from cpsched.verify import Judge, verify
from tests.sizes import seeds

Document = dict[str, Any]


def document(*jobs: Document, cores: int = 4, **rest: Any) -> Document:
    """Return a window of one node."""
    nodes = [{"names": "n1", "resources": {"cores": cores}}]
    jobs_of = [{"id": "abcdef"[place], "submit": 0, "request": "ncpus=4", **job} for place, job in enumerate(jobs)]
    return {"format": "cpsched-instance/1", "name": "w", "now": 0, "cluster": {"nodes": nodes}, "jobs": jobs_of, **rest}


def follows(job: str, most: int | None, *, kind: str = "afterok", delay: int = 0) -> Document:
    """Return an entry of ``after``."""
    entry: Document = {"job": job, "type": kind, "delay": delay}
    return entry if most is None else entry | {"max_delay": most}


#: The second has to start 5 s after the end of the first at the latest; the third comes first, and takes 50 s.
BESIDE = document(
    {"walltime": 10},
    {"walltime": 10, "after": [follows("a", 5)]},
    {"walltime": 50, "priority": 5, "not_before": 12},
)


def starts_of(source: Document, **options: Any) -> dict[str, int]:
    """Return the starts of a plan that keeps all rules."""
    plan = solve(parse_instance(source), **options)
    assert verify(source, plan_to_document(plan)) == ()
    return {job.id: job.start for job in plan.jobs}


def test_the_planner_lets_the_first_one_wait() -> None:
    """The second has no room until 62, so the first starts no sooner than 5 s before its end may be."""
    assert starts_of(BESIDE, engine="planner") == {"a": 62, "b": 72, "c": 12}


def test_the_search_finds_the_best_plan() -> None:
    """Both come before the third, which nothing but a fixed order of lists puts first."""
    assert starts_of(BESIDE, engine="search", budget=60, steps=100) == {"a": 0, "b": 10, "c": 20}


def test_a_start_after_a_running_job_that_is_too_late() -> None:
    """Where the awaited job runs already nothing can be moved: the other one is left out, and why is said."""
    running = {"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 2}}]}
    source = document(
        {"walltime": 10, "request": "ncpus=2", "running": running},
        {"walltime": 10, "after": [follows("a", 5, kind="after")]},
    )
    plan = solve(parse_instance(source), engine="planner")
    assert [(one.id, one.reason.value, one.detail) for one in plan.waiting_room] == [
        ("b", "too_late", "no start was found at most max_delay after another job")
    ]
    assert verify(source, plan_to_document(plan)) == ()


@pytest.mark.parametrize(("kind", "latest"), [("after", 5), ("afterok", 15)])
def test_the_judge_sees_a_start_that_is_a_second_late(kind: str, latest: int) -> None:
    """At the last second that is allowed it has nothing to say, and one later it names the job and the bound."""
    source = document({"walltime": 10, "request": "ncpus=1"}, {"walltime": 10, "request": "ncpus=1", "after": []})
    plan = plan_to_document(solve(parse_instance(source), engine="planner"))
    source["jobs"][1]["after"] = [follows("a", 5, kind=kind)]
    late = {}
    for start in (latest, latest + 1):
        job = plan["jobs"][1]
        job |= {"start": start, "end": start + 10}
        job["segments"][0] |= {"start": start, "end": start + 10}
        late[start] = [one for one in verify(source, plan) if one.rule == "dependency"]
    assert late[latest] == []
    assert [one.message for one in late[latest + 1]] == [
        f"starts at {latest + 1}, expected {latest} or earlier: {kind} a, max_delay 5 s"
    ]


@pytest.mark.parametrize("engine", ["easy", "minizinc"])
def test_engines_that_do_not_know_it_refuse_it_by_name(engine: str) -> None:
    """No plan that breaks it is made in silence."""
    with pytest.raises(UnsupportedError, match=r"job b: starts at most some time after another \(max_delay\)"):
        solve(parse_instance(BESIDE), engine=engine, budget=1)


def test_a_simulation_refuses_it_by_name() -> None:
    """A scheduler that decides job by job cannot promise it."""
    source = document({"walltime": 10, "runtime": 5}, {"walltime": 10, "runtime": 5, "after": [follows("a", 5)]})
    with pytest.raises(UnsupportedError, match=r"job b: .* \(max_delay\)"):
        simulate(parse_instance(source), make_scheduler("easy"))


ARRAY = {"walltime": 5, "array": {"indices": "0-2"}}


@pytest.mark.parametrize(
    ("jobs", "path", "message"),
    [
        (
            [{"walltime": 9}, {"walltime": 9, "after": [follows("a", 5)], "preemptible": {"by": "requeue"}}],
            "jobs[1].after",
            "Expected no max_delay in a job that is preemptible",
        ),
        (
            [
                {"walltime": 9},
                {
                    "walltime": 9,
                    "after": [follows("a", 5)],
                    "moldable": {"sizes": [2], "model": "none"},
                    "resizable": {},
                },
            ],
            "jobs[1].after",
            "Expected no max_delay in a job that is resizable",
        ),
        (
            [{"walltime": 9}, {"walltime": 9, "after": [follows("a", 5, delay=6)]}],
            "jobs[1].after[0].max_delay",
            "Expected at least delay = 6, got 5",
        ),
        ([ARRAY, {"walltime": 9, "after": [follows("a", 5)]}], "jobs[1].after[0].max_delay", "Expected a single job"),
        (
            [
                {"walltime": 9},
                {"walltime": 9, "after": [follows("a", None)]},
                {"walltime": 9, "after": [follows("b", None), follows("a", 5)]},
            ],
            "jobs[2].after",
            "Expected max_delay that starts can keep together, got 4 s too little in c -> b -> a -> c",
        ),
        (
            [
                ARRAY,
                {"walltime": 9, "after": [follows("a[1]", None)]},
                {"walltime": 9, "after": [follows("b", None), follows("a[1]", 5)]},
            ],
            "jobs[2].after",
            "got 4 s too little in c -> b -> a -> c",
        ),
    ],
    ids=["stopped", "resized", "below-delay", "array", "cycle", "element"],
)
def test_faults_are_named(jobs: list[Document], path: str, message: str) -> None:
    """What no plan could keep is a fault with its path; the judge's reader refuses the same."""
    source = document(*jobs)
    with pytest.raises(DocumentError) as error:
        parse_instance(source)
    assert [str(fault.path).startswith(path) and message in fault.message for fault in error.value.faults] == [True]
    plan = plan_to_document(solve(parse_instance(document({"walltime": 1})), engine="planner"))
    with pytest.raises(DocumentError):
        verify(source, plan)


def random_window(seed: int) -> Document:
    """Return four jobs, most of which wait for others, on three cores."""
    random = Random(f"longest delays {seed}")
    jobs: list[Document] = []
    for number in range(4):
        after = []
        for other in range(number):
            if random.random() < 0.5:
                delay = random.randint(0, 2)
                most = delay + random.randint(0, 3) if random.random() < 0.7 else None
                after.append(follows("abcd"[other], most, kind=random.choice(["after", "afterok"]), delay=delay))
        job = {"walltime": random.randint(1, 4), "request": f"ncpus={random.randint(1, 3)}"}
        jobs.append(job | ({"after": after} if after else {}))
    return document(*jobs, cores=3, objective=random.choice([{"makespan": 1}, {"wait": 1}]))


def best_of(source: Document) -> tuple[int, float]:
    """Return the most jobs of a plan, and the least value of a plan of so many: all starts are tried."""
    jobs = source["jobs"]
    horizon = sum(job["walltime"] + sum(one["delay"] for one in job.get("after", [])) for job in jobs)
    found = (0, 0.0)
    for starts in product([None, *range(horizon)], repeat=len(jobs)):
        start = {job["id"]: one for job, one in zip(jobs, starts, strict=True) if one is not None}
        end = {job["id"]: start[job["id"]] + job["walltime"] for job in jobs if job["id"] in start}
        value = max(end.values(), default=0) if "makespan" in source["objective"] else sum(start.values())
        if (-len(start), value) < (-found[0], found[1]) and _is_plan(source, start, end):
            found = (len(start), value)
    return found


def _is_plan(source: Document, start: dict[str, int], end: dict[str, int]) -> bool:
    placed = [job for job in source["jobs"] if job["id"] in start]
    for job in placed:
        for one in job.get("after", []):
            moments = start if one["type"] == "after" else end
            if one["job"] not in moments:
                return False
            waited = start[job["id"]] - moments[one["job"]]
            if not one["delay"] <= waited <= one.get("max_delay", waited):
                return False
        second = start[job["id"]]
        running = [one for one in placed if start[one["id"]] <= second < end[one["id"]]]
        if sum(int(one["request"].removeprefix("ncpus=")) for one in running) > 3:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(100))
def test_what_cp_proves_is_the_best_of_all_plans(seed: int) -> None:
    """CP-SAT's plan is as good as trying everything; the planner's is no better than the search's, nor that than it."""
    source = random_window(seed)
    try:
        instance = parse_instance(source)
    except DocumentError:
        return
    most, least = best_of(source)
    first, second = solve(instance, engine="planner"), solve(instance, engine="search", budget=60, steps=200)
    assert [verify(source, plan_to_document(one)) for one in (first, second)] == [(), ()]
    (worst, better), best = [(-len(one.jobs), one.objective.value) for one in (first, second)], (-most, least - 1e-9)
    assert (worst[0], worst[1] + 1e-9) >= better >= best
    plan = solve(instance, engine="cp", budget=60)
    assert verify(source, plan_to_document(plan)) == ()
    assert (len(plan.jobs), plan.objective.value) == (most, pytest.approx(least))
    assert plan.engine.stopped == "optimal"


@pytest.mark.parametrize("seed", seeds(20))
def test_causes_are_true_at_every_second(seed: int) -> None:
    """Beside all others where they are, a job could start, say the answers, exactly where the judge lets it."""
    source = random_window(seed)
    try:
        instance = parse_instance(source)
    except DocumentError:
        return
    plan = solve(instance, engine="planner", budget=0)
    answers = Answers(instance, plan)
    for place, job in enumerate(plan.jobs):
        allowed = [second for second in range(30) if _may_start(source, plan, place, second)]
        causes = [answers.explain(job.id, at=second).blocked[0].cause.kind for second in range(30)]
        assert [second for second, cause in enumerate(causes) if cause is CauseKind.NOTHING] == allowed
        assert answers.explain(job.id).free_start == allowed[0]


def _may_start(source: Document, plan: Plan, place: int, second: int) -> bool:
    """Tell whether a job of a plan may start at another second; how long others wait for it is not asked."""
    moved = plan_to_document(plan)
    job = moved["jobs"][place]
    end = second + job["end"] - job["start"]
    job |= {"start": second, "end": end}
    job["segments"][0] |= {"start": second, "end": end}
    found = [one for one in verify(source, moved) if one.rule != "objective"]
    return all(one.rule == "dependency" and one.subject != job["id"] and "later" in one.message for one in found)


@pytest.mark.parametrize("seed", seeds(30))
def test_replanned_windows_keep_it(seed: int) -> None:
    """Where all goes as planned no job moves; other windows get plans that keep all distances too, as they then are."""
    source, random = random_window(seed), Random(seed)
    try:
        instance = parse_instance(source)
    except DocumentError:
        return
    plan = solve(instance, engine="planner", budget=0)
    moved, new = replan(instance, plan, at=random.randint(0, max(job.end for job in plan.jobs)))
    assert verify(instance_to_document(moved), plan_to_document(new)) == ()
    before = {job.id: job.start for job in plan.jobs if job.end > moved.now}
    assert before.items() <= {job.id: job.start for job in new.jobs}.items()
    hurried = '{"walltime": 2, "request": "ncpus=3", "after": [{"job": "a", "type": "afterok", "max_delay": 2}]}'
    for change in WhatIf(walltime={random.choice("abcd"): 6}), WhatIf(drop=("a",)), WhatIf(add=(hurried,)):
        found = what_if(instance, plan, change)
        assert verify(instance_to_document(found.instance), plan_to_document(found.plan)) == ()


def test_what_follows_an_ended_job_has_a_deadline() -> None:
    """The window after its end knows the last start that is left; once that is over, the job is too late."""
    source = document({"walltime": 10}, {"walltime": 10, "after": [follows("a", 5)]}, {"walltime": 3, "start_at": 10})
    plan = solve(parse_instance(source), engine="planner", budget=0)
    assert {job.id: job.start for job in plan.jobs} == {"a": 0, "b": 13, "c": 10}
    moved, new = replan(parse_instance(source), plan, at=12)
    assert [(job.id, job.deadline, job.after) for job in moved.jobs if job.running is None] == [("b", 25, ())]
    found = what_if(moved, new, WhatIf(walltime={"c": 6}))
    assert [(job.id, job.reason.value) for job in found.plan.waiting_room] == [("b", "too_late")]


def test_it_holds_across_strict_classes() -> None:
    """A job of a lower class is planned beside the higher ones, and within its time of the one that it follows."""
    source = document(
        {"walltime": 10, "priority": 5},
        {"walltime": 10, "after": [follows("a", 5)]},
        {"walltime": 8, "priority": 3, "not_before": 5},
        priorities="strict",
    )
    plan = solve(parse_instance(source), engine="planner")
    assert [(one.id, one.reason.value) for one in plan.waiting_room] == [("b", "too_late")]
    assert verify(source, plan_to_document(plan)) == ()


def test_arrays_that_wait_for_arrays_are_read_as_fast_as_before() -> None:
    """The distances of arrays are one for all pairs of elements, also where one job may wait for some time only."""
    many = {"walltime": 5, "array": {"indices": "0-9999"}}
    source = document(many, {**many, "after": [follows("a", None)]}, {"walltime": 5, "after": [follows("a[7]", 9)]})
    instance = parse_instance(source)
    assert len(instance.elements()) == 20001
    Judge(source)
