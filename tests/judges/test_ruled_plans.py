"""Each plan of the table is asked of the oracle, the verifier, the planner, CP-SAT and MiniZinc: all say the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from cpsched.domain import Amounts, Job, Placement, PlannedJob, ReservedSlice, Segment, repeated
from cpsched.formats import parse_instance
from cpsched.mzn import Window
from cpsched.planner import problem_of
from cpsched.portfolio import solve
from cpsched.problem import Problem, compiled
from cpsched.verify import Judge
from tests.cp.fixed_plans import has_plan
from tests.judges.ruled_plans import RULED_PLANS, Document, RuledPlan
from tests.judges.rules import plan_document
from tests.mzn.modelled import needs_minizinc, printed_by
from tests.oracle.brute_force import Window as Oracle
from tests.oracle.literal_rules import Booked
from tests.sizes import LARGE

#: The least number of plans of each rule.
LEAST = 12
#: One plan of so many is asked of MiniZinc by default, which takes a process each time.
PART = 1 if LARGE else 24

plans = pytest.mark.parametrize("case", RULED_PLANS, ids=lambda case: f"{case.rule}: {case.sentence}: {case.plan}")


def _read(case: RuledPlan) -> tuple[Oracle, list[Booked], list[Booked]]:
    """Return the instance, slices and planned jobs of a case."""
    oracle = Oracle(case.document)
    slices: list[Booked] = []
    jobs: list[Booked] = []
    for words in filter(None, map(str.strip, case.plan.split(","))):
        name, *rest = words.replace("=", " ").split()
        if "=" in words:
            slices.append(oracle.slice_of(name, _chunks(rest)))
        elif rest:
            jobs.append(oracle.booked(name, int(rest[0]), _chunks(rest[1:])))
    return oracle, slices, jobs


def _chunks(words: Sequence[str]) -> list[tuple[str, int, int]]:
    """Read nodes, each with the number of chunks on it."""
    pairs = [word.partition("*") for word in words]
    return [(node, 0, int(count or 1)) for node, _, count in pairs]


def _pinned(entry: Document, booked: Booked) -> Document:
    """Return a job or reservation that asks for the nodes that it has in the plan."""
    chunk = entry["request"][0]
    request = [
        {**chunk, "count": count, "where": {**chunk.get("where", {}), "name": node}} for node, _, count in booked.chunks
    ]
    return {**entry, "request": request}


def _fixed(case: RuledPlan) -> tuple[Document, list[Booked]]:
    """Return an instance whose only plan, if it has any, is the case's: starts and nodes are asked for."""
    oracle, slices, jobs = _read(case)
    document = dict(case.document)
    nodes = [{**node, "properties": {**node["properties"], "name": node["names"]}} for node in oracle.nodes.values()]
    document["cluster"] = {**document["cluster"], "nodes": nodes}
    waiting = []
    for one in jobs:
        job = {**_pinned(one.job, one), "start_at": one.start}
        if "array" in job:  # all elements would start at once: each is an array of its own
            job |= {"id": one.id.replace("[", "-").replace("]", ""), "array": {"indices": "0"}}
        waiting.append(job)
    document["jobs"] = [job for job in document["jobs"] if "running" in job] + waiting
    if slices:
        document["reservations"] = [_pinned(oracle.reservations[one.id], one) for one in slices]
    return document, slices


def test_each_rule_has_enough_plans() -> None:
    """Each rule has twelve plans or more, some allowed and some refused; no plan is there twice."""
    count = Counter(case.rule for case in RULED_PLANS)
    assert min(count.values()) >= LEAST, count
    assert {case.rule for case in RULED_PLANS if case.is_allowed} == set(count)
    assert {case.rule for case in RULED_PLANS if not case.is_allowed} == set(count)
    assert len({json.dumps(case._replace(sentence="")) for case in RULED_PLANS}) == len(RULED_PLANS)


@plans
def test_oracle(case: RuledPlan) -> None:
    """The oracle allows the plan, or refuses it."""
    oracle, slices, jobs = _read(case)
    faults = [*oracle.faults(slices, jobs), *oracle.forgotten(slices)]
    assert bool(faults) != case.is_allowed, faults


@plans
def test_verifier(case: RuledPlan) -> None:
    """The verifier allows the plan, or refuses it."""
    oracle, slices, jobs = _read(case)
    violations = Judge(case.document).violations(plan_document(oracle, slices, jobs), claims=False)
    assert bool(violations) != case.is_allowed, violations


def _planned(case: RuledPlan) -> tuple[Problem, list[PlannedJob], list[str]]:
    """Return the problem of the engines, and the plan's jobs as they would have it."""
    oracle, slices, jobs = _read(case)
    instance = parse_instance(case.document)
    got = [
        ReservedSlice(id=one.id, start=one.start, end=one.end, allocation=_allocation(oracle.reservations[one.id], one))
        for one in slices
    ]
    problem = compiled(instance, got, soft=False)
    planned = [repeated(job) for job in instance.elements() if job.running is not None]
    for one in jobs:
        segment = Segment(start=one.start, end=one.end, allocation=_allocation(one.job, one))
        planned.append(PlannedJob(id=one.id, start=one.start, end=one.end, segments=(segment,)))
    return problem, list(problem.to_held(planned)), [one.id for one in jobs]


def _allocation(entry: Document, booked: Booked) -> tuple[Placement, ...]:
    amounts = entry["request"][0]["resources"]
    return tuple(
        Placement(node=node, chunk=0, count=count, resources=Amounts({name: count * amounts[name] for name in amounts}))
        for node, _, count in booked.chunks
    )


@pytest.mark.slow
@plans
def test_planner(case: RuledPlan) -> None:
    """The planner plans all jobs that ask for these starts and nodes, or one of them waits."""
    document, slices = _fixed(case)
    plan = solve(parse_instance(document), engine="planner", budget=0, document=document)
    had = {one.id for one in plan.reservations if one.reason is None} == {one.id for one in slices}
    assert (had and not plan.waiting_room) == case.is_allowed, plan.waiting_room


@pytest.mark.slow
@plans
def test_cp(case: RuledPlan) -> None:
    """The model of CP-SAT has the plan among its solutions, or has not."""
    oracle, slices, _ = _read(case)
    if oracle.forgotten(slices) or oracle.faults(slices, []):
        return  # the engines see the reservations that were had, and do not judge them
    problem, planned, decided = _planned(case)
    has = has_plan(problem.instance, planned, decided)
    assert has == case.is_allowed or not (problem.has_all_plans or has)


@needs_minizinc
@pytest.mark.parametrize("case", RULED_PLANS[::PART], ids=lambda case: f"{case.rule}: {case.sentence}: {case.plan}")
def test_minizinc(case: RuledPlan, tmp_path: Path) -> None:
    """The model of MiniZinc can be satisfied with these starts and nodes, or cannot."""
    oracle, slices, jobs = _read(case)
    document = _fixed(case)[0]
    if oracle.forgotten(slices) or oracle.faults(slices, []) or not jobs:
        return  # the engines see the reservations that were had, and do not judge them
    parsed = parse_instance(document)
    problem = problem_of(parsed, soft=False)
    instance = problem.instance
    known = [repeated(job) if job.running is not None else _somewhere(job) for job in instance.elements()]
    printed = printed_by("window", Window.of(instance, known), tmp_path)
    has = "UNSATISFIABLE" not in printed
    assert has == case.is_allowed or not (problem.has_all_plans or has), printed


def _somewhere(job: Job) -> PlannedJob:
    """Return a job at its start, without nodes: the model looks for them."""
    start = job.start_at or 0
    segment = Segment(start=start, end=start + job.walltime, allocation=())
    return PlannedJob(id=job.id, start=start, end=segment.end, segments=(segment,))
