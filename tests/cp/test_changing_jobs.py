"""Jobs that change, in the model: each constraint, the optimum by trying everything, and the worked examples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ortools.sat.python import cp_model

from cpsched.cp import Cp, ModelParams
from cpsched.cp.decode import decode, placed_as_in
from cpsched.cp.encoding import has_layers_only, num_pairs
from cpsched.cp.model import build
from cpsched.cp.solver import configured
from cpsched.domain import Amounts, FrozenMap, Instance, Objective, ObjectiveTerm, PlannedJob, Segment, repeated
from cpsched.engine import Board, Budget
from cpsched.formats import read_instance
from cpsched.metrics import objective_value
from tests.cp.fixed_plans import (
    Piece,
    Places,
    Stand,
    broken_rules,
    cost_of,
    encoding_of,
    instance_of,
    is_allowed,
    planned_jobs,
)
from tests.cp.test_constraints import BARE, FOUR, KEEPER, ONE, TWO, Case, job
from tests.cp.test_improvers import mixed_window
from tests.cp.test_model import ALL, HETEROGENEOUS, MODELS, optimum_of, plan_of, request_for
from tests.cp.trying_everything import best_plan
from tests.sizes import seeds

HALF = {"shares": [0.5]}


def evolving(name: str, *steps: tuple[int, str], place: str = "free", **more: Any) -> dict[str, Any]:
    """Return the document of an evolving job."""
    described = [{"walltime": walltime, "request": f"{request},place={place}"} for walltime, request in steps]
    return {"id": name, "submit": 0, "steps": described, **more}


def running(
    name: str, request: str, segments: Sequence[tuple[int, int, dict[str, int]]], **more: Any
) -> dict[str, Any]:
    """Return the document of a running malleable job, of one chunk on each node, with its cores there by segments."""
    described = [
        {
            "start": start,
            "end": end,
            "allocation": [{"node": n, "chunk": 0, "count": 1, "resources": {"cores": c}} for n, c in cores.items()],
        }
        for start, end, cores in segments
    ]
    start = segments[0][0]
    return {
        "id": name,
        "request": request,
        "submit": start,
        "malleable": HALF,
        "running": {"start": start, "segments": described},
        **more,
    }


def window(nodes: Sequence[dict[str, Any]], *jobs: dict[str, Any], **more: Any) -> Instance:
    """Return a window of some jobs."""
    return instance_of(nodes, jobs, **more)


ALONE = {"names": "n1", "resources": {"cores": 4, "mem": 4}}
GROWING = ((4, "ncpus=1"), (2, "2:ncpus=1"))
CASES = {
    "a step is held": Case(
        window([FOUR], evolving("a", *GROWING, expand_limit=2)),
        {"a": (0, [Piece(8, [ONE]), Piece(10, [ONE, TWO])])},
        {"a": (0, [Piece(9, [ONE]), Piece(11, [ONE, TWO])])},
        "evolving",
    ),
    "a step takes its time": Case(
        window([FOUR], evolving("a", *GROWING, expand_limit=2)),
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE, TWO])])},
        {"a": (0, [Piece(3, [ONE]), Piece(5, [ONE, TWO])])},
        "evolving",
    ),
    "the last step is not held": Case(
        window([FOUR], evolving("a", *GROWING, expand_limit=None)),
        {"a": (0, [Piece(40, [ONE]), Piece(42, [ONE, TWO])])},
        {"a": (0, [Piece(40, [ONE]), Piece(43, [ONE, TWO])])},
        "evolving",
    ),
    "who grows keeps its nodes": Case(
        window([{"names": "n[1-3]", "resources": {"cores": 4}}], evolving("a", *GROWING)),
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE, TWO])])},
        {"a": (0, [Piece(4, [Stand("n3")]), Piece(6, [ONE, TWO])])},
        "evolving",
    ),
    "who shrinks keeps some of its nodes": Case(
        window([{"names": "n[1-3]", "resources": {"cores": 4}}], evolving("a", *reversed(GROWING))),
        {"a": (0, [Piece(2, [ONE, TWO]), Piece(6, [TWO])])},
        {"a": (0, [Piece(2, [ONE, TWO]), Piece(6, [Stand("n3")])])},
        "evolving",
    ),
    "capacity in each step": Case(
        window([FOUR], evolving("a", (4, "ncpus=1"), (2, "ncpus=3")), job("b", "ncpus=2", walltime=4)),
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE])]), "b": (0, [ONE])},
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE])]), "b": (1, [ONE])},
        "capacity",
    ),
    "capacity while a step is held": Case(
        window([FOUR], evolving("a", (2, "ncpus=3"), (2, "ncpus=1"), expand_limit=2), job("b", "ncpus=2", walltime=4)),
        {"a": (0, [Piece(3, [ONE]), Piece(5, [ONE])]), "b": (3, [ONE])},
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE])]), "b": (3, [ONE])},
        "capacity",
    ),
    "scatter in each step": Case(
        window([FOUR], evolving("a", (2, "ncpus=1"), (2, "2:ncpus=1"), place="scatter")),
        {"a": (0, [Piece(2, [ONE]), Piece(4, [ONE, TWO])])},
        {"a": (0, [Piece(2, [ONE]), Piece(4, [Stand("n1", 2)])])},
        "place",
    ),
    "pack in each step": Case(
        window([FOUR], evolving("a", (2, "ncpus=1"), (2, "2:ncpus=1+ncpus=2"), place="pack")),
        {"a": (0, [Piece(2, [ONE]), Piece(4, [Stand("n1", 2), Stand("n1", 1, 1)])])},
        {"a": (0, [Piece(2, [ONE]), Piece(4, [Stand("n1", 2), Stand("n2", 1, 1)])])},
        "place",
    ),
    "exclusive as long as it is there": Case(
        window([FOUR], evolving("a", (2, "2:ncpus=1"), (2, "ncpus=1"), place="scatter:excl"), job("b", "ncpus=1")),
        {"a": (0, [Piece(2, [ONE, TWO]), Piece(4, [ONE])]), "b": (2, [TWO])},
        {"a": (0, [Piece(2, [ONE, TWO]), Piece(4, [ONE])]), "b": (1, [TWO])},
        "exclusive",
    ),
    "licences for the whole life": Case(
        window(
            [FOUR],
            evolving("a", *GROWING, expand_limit=2, licenses={"abaqus": 2}),
            job("b", "ncpus=1,abaqus=2"),
            licenses={"abaqus": 3},
        ),
        {"a": (0, [Piece(6, [ONE]), Piece(8, [ONE, TWO])]), "b": (8, [ONE])},
        {"a": (0, [Piece(6, [ONE]), Piece(8, [ONE, TWO])]), "b": (7, [ONE])},
        "licenses",
    ),
    "keep_free in each step": Case(
        window([KEEPER], evolving("a", (4, "ncpus=1"), (2, "ncpus=2")), job("b", "ncpus=1", walltime=4)),
        {"a": (0, [Piece(4, [Stand("k")]), Piece(6, [Stand("k")])]), "b": (0, [Stand("k")])},
        {"a": (0, [Piece(4, [Stand("k")]), Piece(6, [Stand("k")])]), "b": (1, [Stand("k")])},
        "keep_free",
    ),
    "guard in each step": Case(
        window(
            [{"names": "n[1-2]", "resources": {"cores": 4}, "admits": [{"min": {"cores": 2}}]}, ALONE | {"names": "m"}],
            evolving("a", (2, "ncpus=2"), (2, "ncpus=1")),
        ),
        {"a": (0, [Piece(2, [Stand("m")]), Piece(4, [Stand("m")])])},
        {"a": (0, [Piece(2, [ONE]), Piece(4, [ONE])])},
        "guard",
    ),
    "deadline of an evolving job": Case(
        window([FOUR], evolving("a", *GROWING, expand_limit=2, deadline=9)),
        {"a": (0, [Piece(7, [ONE]), Piece(9, [ONE, TWO])])},
        {"a": (0, [Piece(8, [ONE]), Piece(10, [ONE, TWO])])},
        "deadline",
    ),
    "after an evolving job": Case(
        window(
            [FOUR],
            evolving("a", *GROWING),
            job("b", "ncpus=1", after=[{"job": "a", "type": "afterok", "delay": 0}]),
        ),
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE, TWO])]), "b": (6, [ONE])},
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE, TWO])]), "b": (5, [ONE])},
        "dependency",
    ),
    "whole nodes are counted": Case(
        window([FOUR], evolving("a", (4, "ncpus=4"), (2, "2:ncpus=4")), job("b", "ncpus=4", walltime=4)),
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE, TWO])]), "b": (0, [TWO])},
        {"a": (0, [Piece(4, [ONE]), Piece(6, [ONE, TWO])]), "b": (1, [TWO])},
        "capacity",
    ),
    "work on a share": Case(
        window([FOUR], job("a", "ncpus=4", malleable=HALF, walltime=5)),
        {"a": (0, [Piece(10, [ONE], 0.5)])},
        {"a": (0, [Piece(9, [ONE], 0.5)])},
        "malleable",
    ),
    "work at full share": Case(
        window([FOUR], job("a", "ncpus=4", malleable=HALF, walltime=5)),
        {"a": (0, [Piece(5, [ONE])])},
        {"a": (0, [Piece(10, [ONE])])},
        "malleable",
    ),
    "capacity of two who shrink": Case(
        window([FOUR], *(job(name, "ncpus=4", malleable=HALF, walltime=5) for name in "ab")),
        {"a": (0, [Piece(10, [ONE], 0.5)]), "b": (3, [Piece(13, [ONE], 0.5)])},
        {"a": (0, [Piece(10, [ONE], 0.5)]), "b": (9, [Piece(14, [ONE])])},
        "capacity",
    ),
    "memory is not shrunk": Case(
        window([ALONE], *(job(name, "ncpus=4:mem=3m", malleable=HALF, walltime=5) for name in "ab")),
        {"a": (0, [Piece(10, [ONE], 0.5)]), "b": (10, [Piece(20, [ONE], 0.5)])},
        {"a": (0, [Piece(10, [ONE], 0.5)]), "b": (9, [Piece(19, [ONE], 0.5)])},
        "capacity",
    ),
    "deadline of who shrinks": Case(
        window([FOUR], job("a", "ncpus=4", malleable=HALF, walltime=5, deadline=12)),
        {"a": (2, [Piece(12, [ONE], 0.5)])},
        {"a": (3, [Piece(13, [ONE], 0.5)])},
        "deadline",
    ),
    "licences of who shrinks": Case(
        window(
            [FOUR],
            *(job(name, "ncpus=4,abaqus=2", malleable=HALF, walltime=5) for name in "ab"),
            licenses={"abaqus": 3},
        ),
        {"a": (0, [Piece(10, [ONE], 0.5)]), "b": (10, [Piece(15, [ONE])])},
        {"a": (0, [Piece(10, [ONE], 0.5)]), "b": (9, [Piece(14, [TWO])])},
        "licenses",
    ),
    "a guard looks at all cores": Case(
        window(
            [
                {"names": "n1", "resources": {"cores": 8}, "admits": [{"min": {"cores": 4}}]},
                {"names": "n2", "resources": {"cores": 8}, "admits": [{"min": {"cores": 5}}]},
            ],
            job("a", "ncpus=4", malleable=HALF, walltime=5),
        ),
        {"a": (0, [Piece(10, [ONE], 0.5)])},
        {"a": (0, [Piece(10, [TWO], 0.5)])},
        "guard",
    ),
    "a running job lends": Case(
        window([FOUR], running("r", "ncpus=4", [(-2, 8, {"n1": 4})]), job("a", "ncpus=2", walltime=4)),
        {"r": (0, [Piece(4, [ONE], 0.5), Piece(10, [ONE])]), "a": (0, [ONE])},
        {"r": (0, [Piece(3, [ONE], 0.5), Piece(10, [ONE])]), "a": (0, [ONE])},
        "capacity",
    ),
    "a running job does its work": Case(
        window([FOUR], running("r", "ncpus=4", [(-2, 8, {"n1": 4})])),
        {"r": (0, [Piece(3, [ONE], 0.5), Piece(10, [ONE])])},
        {"r": (0, [Piece(3, [ONE], 0.5), Piece(9, [ONE])])},
        "running",
    ),
    "a running job ends when its work is done": Case(
        window([FOUR], running("r", "ncpus=4", [(-2, 8, {"n1": 4})])),
        {"r": (0, [Piece(3, [ONE], 0.5), Piece(10, [ONE])])},
        {"r": (0, [Piece(3, [ONE], 0.5), Piece(11, [ONE])])},
        "running",
    ),
    "a running job takes its cores again": Case(
        window([FOUR], running("r", "ncpus=4", [(-2, 18, {"n1": 2})]), job("a", "ncpus=2", walltime=4)),
        {"r": (0, [Piece(9, [ONE])]), "a": (9, [ONE])},
        {"r": (0, [Piece(9, [ONE])]), "a": (8, [ONE])},
        "capacity",
    ),
    "deadline of a running job": Case(
        window([FOUR], running("r", "ncpus=4", [(-2, 8, {"n1": 4})], deadline=9)),
        {"r": (0, [Piece(2, [ONE], 0.5), Piece(9, [ONE])])},
        {"r": (0, [Piece(4, [ONE], 0.5), Piece(10, [ONE])])},
        "deadline",
    ),
}


@pytest.mark.parametrize("params", [ModelParams(breaks_nodes=False, breaks_jobs=False), BARE], ids=["all", "bare"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_plan_within_is_allowed_and_the_plan_beyond_is_refused(case: Case, params: ModelParams) -> None:
    """The model has the first plan among its solutions and not the second, and the verifier says the same."""
    assert broken_rules(case.instance, planned_jobs(case.instance, case.allowed)) == set()
    assert is_allowed(case.instance, case.allowed, params)
    assert case.rule in broken_rules(case.instance, planned_jobs(case.instance, case.refused))
    assert not is_allowed(case.instance, case.refused, params)


def test_a_job_that_is_waited_for_is_held_but_not_shrunk() -> None:
    """A job that waits for the end of an evolving one waits for the end of its held steps; a plan that shrinks such a
    malleable job is none of the model, though it is valid.
    """
    waits = [job(f"after {name}", "ncpus=1", after=[{"job": name, "type": "afterok", "delay": 0}]) for name in "ab"]
    jobs = (evolving("a", *GROWING, expand_limit=2), job("b", "ncpus=2", malleable=HALF, walltime=5), *waits)
    instance = window([FOUR], *jobs)
    plain: dict[str, Any] = {
        "a": (0, [Piece(4, [ONE]), Piece(6, [ONE, TWO])]),
        "b": (0, [TWO]),
        "after a": (9, [ONE]),
        "after b": (12, [ONE]),
    }
    held = plain | {"a": (0, [Piece(5, [ONE]), Piece(7, [ONE, TWO])])}
    shrunk = plain | {"b": (0, [Piece(10, [TWO], 0.5)])}
    for places in (plain, held, shrunk):
        assert broken_rules(instance, planned_jobs(instance, places)) == set()
        assert is_allowed(instance, places) == (places is not shrunk)
    too_soon = held | {"after a": (6, [ONE])}
    assert broken_rules(instance, planned_jobs(instance, too_soon)) == {"dependency"}
    assert not is_allowed(instance, too_soon)


# --- the optimum -----------------------------------------------------------------------------------------------------


def queued(instance: Instance) -> list[PlannedJob]:
    """Return a plan in which the jobs run one after another, each alone; running ones as they run."""
    places: dict[str, Any] = {}
    time = max([instance.now, *(repeated(j).end for j in instance.jobs if j.running is not None)])
    for entry in instance.elements():
        if entry.running is None:
            alone = best_plan(instance_of_one(instance, entry.id), keeps_share=True)[0]
            shift = max(time, entry.submit) - alone.start
            places[entry.id] = shifted(alone, shift)
            time = places[entry.id].end
    return [places.get(entry.id) or repeated(entry) for entry in instance.elements()]


def instance_of_one(instance: Instance, name: str) -> Instance:
    """Return the window with one job alone."""
    return replace(instance, jobs=tuple(entry for entry in instance.jobs if entry.id == name))


def shifted(planned: PlannedJob, seconds: int) -> PlannedJob:
    """Return a job that runs later."""
    segments = tuple(replace(one, start=one.start + seconds, end=one.end + seconds) for one in planned.segments)
    return replace(planned, start=segments[0].start, end=segments[-1].end, segments=segments)


OBJECTIVES: list[dict[str, float]] = [
    {"completion": 1.0},
    {"weighted_wait": 1.0},
    {"completion": 1.0, "waste": 0.3},
    {"makespan": 1.0, "wait": 0.25},
    {"completion": 0.1, "makespan": 1.0, "waste": 0.05},
]


def evolving_tiny(draw: Random) -> Instance:
    """Draw a window of two or three jobs, evolving ones among them."""
    nodes = [{"names": f"n[1-{draw.randint(1, 2)}]", "resources": {"cores": 2, "mem": 2}}]
    jobs = []
    num_jobs = draw.randint(2, 3)
    for name in "abc"[:num_jobs]:
        submit = draw.choice([0, 0, 1])
        if draw.random() < 0.3:
            jobs.append(job(name, f"ncpus={draw.randint(1, 2)}", walltime=draw.randint(1, 3), submit=submit))
            continue
        place = draw.choice(["free", "free", "scatter", "scatter:excl", "pack"])
        most = 1 if "scatter" in place and nodes[0]["names"] == "n[1-1]" else 2
        steps = [
            (draw.randint(1, 2), f"{draw.randint(1, most)}:ncpus=1" + draw.choice(["", ":mem=1m"]))
            for _ in range(draw.randint(2, 5 - num_jobs))
        ]
        jobs.append(evolving(name, *steps, place=place, submit=submit, expand_limit=draw.choice([1, 1.5, 2, None])))
    return window(nodes, *jobs, objective=draw.choice(OBJECTIVES))


def malleable_tiny(draw: Random) -> Instance:
    """Draw a window of two or three jobs, malleable ones among them, of which one may run."""
    nodes = [{"names": f"n[1-{draw.randint(1, 2)}]", "resources": {"cores": 4, "mem": 2}}]
    jobs = []
    if draw.random() < 0.6:
        cores, work = draw.choice([(4, 1), (2, 2)]), draw.randint(2, 4)
        jobs.append(running("r", "ncpus=4", [(-1, cores[1] * work - 1, {"n1": cores[0]})], walltime=work))
    for name in "abc"[: draw.randint(1, 3 - len(jobs))]:
        more: dict[str, Any] = {}
        if draw.random() < 0.7:
            more["malleable"] = {"shares": draw.choice([[0.5], [0.5, 0.25]]), "model": draw.choice(["ideal", "worst"])}
            if draw.random() < 0.4:
                more["malleable"]["stretch"] = {"0.5": draw.choice([1.3, 3])}
        place = draw.choice(["free", "free", "free", "free:excl", "pack"])
        request = draw.choice(["ncpus=4", "ncpus=3", "ncpus=2", "2:ncpus=2", "ncpus=2+ncpus=1", "2:ncpus=2:mem=1m"])
        described = job(
            name, f"{request},place={place}", walltime=draw.randint(1, 4), submit=draw.randint(-3, 1), **more
        )
        jobs.append(described)
    return window(
        nodes, *jobs, objective=draw.choice([*OBJECTIVES[:2], {"slowdown": 1.0}, {"slowdown": 5, "wait": 0.1}])
    )


@pytest.mark.parametrize("draw", [evolving_tiny, malleable_tiny], ids=["evolving", "malleable"])
@pytest.mark.parametrize("seed", seeds(40))
def test_the_optimum_is_that_of_trying_everything(draw: Any, seed: int) -> None:
    """On random tiny windows the model finds what trying all starts, holds, shares and nodes finds (EVO-17)."""
    instance = draw(Random(seed))
    expected = best_plan(instance)
    assert broken_rules(instance, expected) == set()
    best, bound = optimum_of(instance, queued(instance), [ALL, *MODELS][seed % (1 + len(MODELS))])
    value = objective_value(instance, expected)
    assert objective_value(instance, best) == pytest.approx(value, abs=1e-9)
    assert bound == pytest.approx(value, abs=1e-9)


# --- worked examples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "times"), [(1, (12, 14, 16, 19)), (2, (12, 14, 16, 19)), (None, (4, 6, 12, 15))])
def test_worked_example(limit: int | None, times: tuple[int, ...]) -> None:
    """EVO-10: 5 nodes, 3 of them busy until 2 and from 6 to 12; without much expansion the job waits until 12, else it
    is held from 6 to 12, and where waste costs a little it starts as late as 4 for that.
    """
    nodes = [{"names": "n[1-5]", "resources": {"cores": 1}}]
    job_ = evolving("e", (2, "4:ncpus=1"), (2, "2:ncpus=1"), (3, "4:ncpus=1"), expand_limit=limit)
    busy = [
        job("first", "3:ncpus=1", walltime=2, start_at=0),
        job("then", "3:ncpus=1", walltime=6, start_at=6),
    ]
    instance = window(nodes, *busy, job_, objective={"completion": 1.0, "waste": 0.001})
    stands = [Stand(f"n{number}") for number in range(1, 6)]
    late = [Piece(14, stands[:4]), Piece(16, stands[:2]), Piece(19, stands[:4])]
    plan = planned_jobs(instance, {"first": (0, stands[:3]), "then": (6, stands[:3]), "e": (12, late)})
    best, _ = optimum_of(instance, plan)
    found = best[-1]
    assert (found.start, *(segment.end for segment in found.segments)) == times


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, None])
@pytest.mark.parametrize("memory", [4, 0], ids=["nodes", "number of nodes"])
def test_nobody_blocks_another(limit: int | None, memory: int) -> None:
    """EVO-18: two jobs that would block each other step by step run one after the other, at 0 and at 10."""
    more: dict[str, Any] = {} if not memory else {"mem": memory}
    jobs = [evolving(name, (5, "2:ncpus=1"), (5, "3:ncpus=1"), expand_limit=limit) for name in "ab"]
    nodes = [{"names": "n[1-2]", "resources": {"cores": 1}}, {"names": "n[3-4]", "resources": {"cores": 1, **more}}]
    instance = window(nodes, *jobs, objective="completion")
    plan = queued(instance)
    assert (encoding_of(instance, plan).machine is None) == bool(memory)
    best, bound = optimum_of(instance, plan)
    assert sorted((one.start, one.end) for one in best) == [(0, 10), (10, 20)]
    assert bound == 30


@pytest.mark.parametrize(("model", "left"), [("ideal", 1800), ("worst", 3600)])
def test_a_running_job_that_was_shrunk(model: str, left: int) -> None:
    """SD-3: two hours with 24 and 48 of 48 cores are 1.5 h of work, or 1 h in the worst case; what is left of 2 h is
    done with all cores, but for the 10 minutes for which a guest has a half of them.
    """
    shrunk = [(-7200, 0, {"n1": 24, "n2": 48}), (0, 2 * left, {"n1": 24, "n2": 24})]
    entry = running("r", "2:ncpus=48", shrunk, walltime=7200, malleable=HALF | {"model": model})
    nodes = [{"names": "n[1-2]", "resources": {"cores": 48}}]
    alone = window(nodes, entry, objective="completion")
    best, _ = optimum_of(alone, queued(alone))
    assert (best[0].end, objective_value(alone, best)) == (left, -left)
    visited = window(nodes, entry, job("g", "2:ncpus=24,place=scatter", walltime=600), objective="completion")
    best, _ = optimum_of(visited, queued(visited))
    assert [(one.start, one.end) for one in best] == [(-7200, left + 300), (0, 600)]
    assert objective_value(visited, best) == 600 + 300 - left


# --- hints, sizes, and what the improver says -------------------------------------------------------------------------

CHANGING = window(
    [
        {"names": "a[1-2]", "resources": {"cores": 8, "mem": 16, "gpus": 1}},
        {"names": "b[1-3]", "resources": {"cores": 6, "mem": 32}},
    ],
    running("r", "2:ncpus=4", [(-2, 18, {"a1": 2, "a2": 2})]),
    evolving("e", (4, "2:ncpus=3"), (3, "4:ncpus=3"), (5, "ncpus=4"), expand_limit=2, licenses={"abaqus": 1}),
    evolving("x", (4, "ncpus=1"), (3, "3:ncpus=2"), (5, "2:ncpus=2"), place="scatter:excl", expand_limit=None),
    evolving("p", (2, "ncpus=1:mem=1m+ncpus=2"), (4, "2:ncpus=2+ncpus=2"), place="pack", expand_limit=1.5),
    job("m", "3:ncpus=4:mem=4m", walltime=7, malleable={"shares": [0.5, 0.25], "model": "worst"}, submit=-9),
    job("l", "2:ncpus=3,abaqus=1", walltime=8, malleable=HALF, array={"indices": "0-1"}),
    job("d", "ncpus=6", walltime=3, after=[{"job": "p", "type": "afterok", "delay": 1}]),
    licenses={"abaqus": 1},
    objective={"completion": 1.0, "slowdown": 3.0, "makespan": 0.5, "waste": 0.01, "tardiness": 0.25},
)
A1, B1, B2, B3 = Stand("a1"), Stand("b1"), Stand("b2"), Stand("b3")
CHANGING_PLAN: Places = {
    "e": (0, [Piece(6, [B1, B2]), Piece(9, [B1, B2, Stand("b3", 2)]), Piece(14, [B1])]),
    "x": (20, [Piece(30, [A1]), Piece(33, [A1, B1, B2]), Piece(38, [A1, B1])]),
    "p": (40, [Piece(42, [A1, Stand("a1", 1, 1)]), Piece(46, [Stand("a1", 2), Stand("a1", 1, 1)])]),
    "m": (50, [Piece(64, [Stand("b1", 2), B2], 0.5)]),
    "l[0]": (70, [B1, B2]),
    "l[1]": (78, [Piece(102, [B1, B2], 0.5)]),
    "d": (110, [B3]),
}


@pytest.mark.parametrize("params", MODELS, ids=lambda params: str([f for f in params.__slots__ if getattr(params, f)]))
def test_the_solver_says_that_the_hint_is_complete_and_feasible(params: ModelParams) -> None:
    """The log of CP-SAT speaks of a complete and feasible hint, with every kind of variable in the model."""
    plan = planned_jobs(CHANGING, CHANGING_PLAN)
    assert broken_rules(CHANGING, plan) == set()
    encoding = encoding_of(CHANGING, plan)
    request = request_for(encoding, plan, params)
    assert request.hint is not None
    model, variables = build(encoding, params, request.hint)
    for made in (
        variables.modes,
        variables.borders,
        variables.sizes,
        variables.ends,
        variables.hosts,
        variables.totals,
    ):
        assert made
    assert variables.mode_delays
    assert len(model.proto.solution_hint.vars) == len(model.proto.variables)
    solver = configured(request)
    solver.parameters.stop_after_first_solution = True
    lines: list[str] = []
    solver.parameters.log_search_progress = True
    solver.parameters.log_to_stdout = False
    solver.log_callback = lines.append
    assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    assert any("The solution hint is complete and is feasible" in line for line in lines), "\n".join(lines)


def test_the_hint_is_the_plan() -> None:
    """A model whose only solution is the hint has the plan's value; decoded it is the plan, node by node."""
    plan = planned_jobs(CHANGING, CHANGING_PLAN)
    encoding = encoding_of(CHANGING, plan)
    params = ModelParams(breaks_nodes=False, breaks_jobs=False)
    hint = placed_as_in(encoding, {one.id: one for one in plan})
    assert hint is not None
    model, _ = build(encoding, params, hint)
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(model) == cp_model.OPTIMAL
    assert solver.objective_value == cost_of(encoding, hint)
    assert decode(encoding, hint) == {one.id: one for one in plan}


@pytest.mark.parametrize(
    "objective", ["slowdown", "completion", {"slowdown": 2.0, "weighted_wait": 1.0, "makespan": 0.5}]
)
@pytest.mark.parametrize("submit", [-50, 0])
def test_whole_numbers_mean_the_objective(objective: Any, submit: int) -> None:
    """On each share, a job costs in whole numbers what it costs, also one that has waited for long."""
    entry = job("a", "ncpus=4", malleable={"shares": [0.5, 0.25]}, walltime=8, submit=submit)
    instance = window([FOUR], entry, objective=objective)
    for share, seconds in ((1.0, 8), (0.5, 16), (0.25, 32)):
        plan = planned_jobs(instance, {"a": (3, [Piece(3 + seconds, [ONE], share)])})
        encoding = encoding_of(instance, plan)
        placed = placed_as_in(encoding, {one.id: one for one in plan})
        assert placed is not None
        value = encoding.costs.base + cost_of(encoding, placed) / encoding.costs.scale
        assert float(value) == pytest.approx(objective_value(instance, plan), rel=1e-12)


def test_a_plan_of_another_kind_is_no_hint() -> None:
    """A valid plan in which a unit leaves that was there first, or a share is rounded up, is none of the model."""
    jobs = evolving("a", (2, "ncpus=1"), (2, "2:ncpus=1"), (2, "ncpus=1")), job("b", "ncpus=3", malleable=HALF)
    instance = window([FOUR], *jobs)
    other: dict[str, Any] = {
        "a": (0, [Piece(2, [ONE]), Piece(4, [ONE, TWO]), Piece(6, [TWO])]),
        "b": (6, [Piece(16, [ONE])]),
    }
    plan = planned_jobs(instance, other)
    assert broken_rules(instance, plan) == set()
    assert placed_as_in(encoding_of(instance, plan), {one.id: one for one in plan}) is None
    plan = planned_jobs(instance, other | {"a": (0, [Piece(2, [ONE]), Piece(4, [ONE, TWO]), Piece(6, [ONE])])})
    assert placed_as_in(encoding_of(instance, plan), {one.id: one for one in plan}) is not None
    held = replace(plan[1].segments[0].allocation[0], resources=Amounts({"cores": 2}))
    rounded_up = replace(plan[1], end=21, segments=(Segment(start=6, end=21, allocation=(held,)),))
    assert broken_rules(instance, [plan[0], rounded_up]) == set()
    assert placed_as_in(encoding_of(instance, plan), {"a": plan[0], "b": rounded_up}) is None


@pytest.mark.slow
def test_a_job_that_others_await_is_held(repository: Path) -> None:
    """A step may be held though another job waits for the end, and that waits for the end as it is then.

    Four nodes: `b` has two of them until 8; if `a` begins at once it gets its third node then, ends at 13, and lets
    `c` begin. Not held it would begin at 3, or `b` at 10.
    """
    instance = read_instance(repository / "tests" / "cases" / "evolving-unproven-3.json")
    best, bound = optimum_of(instance, queued(instance))
    assert {one.id: (one.start, one.end) for one in best} == {"a": (0, 13), "b": (0, 8), "c": (13, 23)}
    assert bound == pytest.approx(13 / 1800)
    assert encoding_of(instance, best).has_all_plans


def test_size_counts_lives_and_shares() -> None:
    """A pair is one of a node with the units that come and go together, or with a share; whole nodes are no pairs."""
    assert num_pairs(CHANGING, planned_jobs(CHANGING, CHANGING_PLAN)) == 5 * (3 + 3 + 1 + 4 + 2 * 3 + 1)
    whole = CASES["whole nodes are counted"]
    assert num_pairs(whole.instance, planned_jobs(whole.instance, whole.allowed)) == 3


UPS_AND_DOWNS = ((2, "ncpus=3"), (2, "2:ncpus=3"), (2, "ncpus=3"))
#: Plans of evolving jobs: one that the model has, and one that it has not, though no rule forbids it.
BEYOND_LAYERS = {
    "chunks that could change places": Case(
        window([FOUR], evolving("a", (2, "3:ncpus=1"), (2, "3:ncpus=2"))),
        {"a": (0, [Piece(2, [Stand("n1", 2), TWO]), Piece(4, [Stand("n1", 2), TWO])])},
        {"a": (0, [Piece(2, [Stand("n1", 2), TWO]), Piece(4, [ONE, Stand("n2", 2)])])},
        "",
    ),
    "other nodes than the last ones": Case(
        window([FOUR], evolving("a", *UPS_AND_DOWNS), job("b", "ncpus=1")),
        {"a": (0, [Piece(2, [ONE]), Piece(4, [ONE, TWO]), Piece(6, [ONE])]), "b": (0, [ONE])},
        {"a": (0, [Piece(2, [ONE]), Piece(4, [ONE, TWO]), Piece(6, [TWO])]), "b": (0, [ONE])},
        "",
    ),
    "two kinds of chunks": Case(
        window([FOUR], evolving("a", (2, "ncpus=3+ncpus=3"), (2, "ncpus=3+ncpus=3"))),
        {"a": (0, [Piece(2, [ONE, Stand("n2", 1, 1)]), Piece(4, [ONE, Stand("n2", 1, 1)])])},
        {"a": (0, [Piece(2, [ONE, Stand("n2", 1, 1)]), Piece(4, [TWO, Stand("n1", 1, 1)])])},
        "",
    ),
}


@pytest.mark.parametrize(
    ("name", "is_proven"),
    [
        ("whole nodes are counted", True),
        ("capacity in each step", True),
        ("pack in each step", True),
        ("chunks that could change places", False),
        ("other nodes than the last ones", False),
        ("two kinds of chunks", False),
        ("work on a share", False),
        ("a running job does its work", False),
    ],
)
def test_only_what_is_true_of_all_plans_is_proven(name: str, is_proven: bool) -> None:
    """A bound of the model is one of the window where the model has all plans, or no worse ones."""
    case = CASES.get(name) or BEYOND_LAYERS[name]
    assert encoding_of(case.instance, planned_jobs(case.instance, case.allowed)).has_all_plans == is_proven


@pytest.mark.parametrize("name", BEYOND_LAYERS)
def test_some_plans_are_no_layers(name: str) -> None:
    """Where the model says that it has not all plans, the verifier passes one that it has not."""
    case = BEYOND_LAYERS[name]
    for places, is_known in ((case.allowed, True), (case.refused, False)):
        plan = planned_jobs(case.instance, places)
        assert broken_rules(case.instance, plan) == set()
        assert (placed_as_in(encoding_of(case.instance, plan), {one.id: one for one in plan}) is not None) == is_known


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(200))
def test_all_plans_of_a_job_with_layers_only_are_layers(seed: int) -> None:
    """Any nodes that the verifier lets a job of one chunk on each node have are layers, if the model says so."""
    random = Random(seed)
    counts = [random.randint(1, 3) for _ in range(random.randint(2, 3))]
    cores = [random.choice([3, 4]) for _ in counts]
    place = random.choice(["free", "scatter"])
    entry = evolving("a", *((2, f"{count}:ncpus={c}") for count, c in zip(counts, cores, strict=True)), place=place)
    instance = window(
        [{"names": "n[1-3]", "resources": {"cores": 5}}, {"names": "m", "resources": {"cores": 4}}], entry
    )
    names = instance.cluster.node_names
    times = range(0, 2 * len(counts) + 1, 2)
    found = []
    for nodes in product(*(combinations(names, count) for count in counts)):
        pieces = [Piece(time, [Stand(node) for node in of]) for time, of in zip(times[1:], nodes, strict=True)]
        plan = planned_jobs(instance, {"a": (0, pieces)})
        if not broken_rules(instance, plan):
            found.append(placed_as_in(encoding_of(instance, plan), {"a": plan[0]}) is not None)
    assert found
    assert all(found) == has_layers_only(instance.cluster.classes, instance.jobs[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whole nodes are counted", "capacity in each step", "capacity of two who shrink"])
def test_the_improver_improves_such_windows(name: str) -> None:
    """The worker finds the optimum of a window of jobs that change; the board has a proof where one is honest."""
    case = CASES[name]
    instance = replace(case.instance, objective=Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0})))
    board = Board(
        queued(instance),
        by="first",
        budget=Budget(120.0),
        value_of=lambda jobs: objective_value(instance, jobs),
        judge=lambda jobs: sorted(broken_rules(instance, list(jobs))),
    )
    Cp().improve(instance, board, seed=0)
    assert board.events == ()
    assert board.best.by == "cp"
    assert board.best.value == pytest.approx(objective_value(instance, best_plan(instance)))
    assert board.is_optimal == (name != "capacity of two who shrink")


#: Of windows of rigid jobs: the mixed ones of the improvers' tests, and one with all that a rigid job can ask for.
RIGID = {"mixed": mixed_window(0, 8, 8), "all": HETEROGENEOUS}


def kinds_of(instance: Instance) -> set[str]:
    """Return the kinds of variables in the model of a window: their names up to the first number."""
    model, _ = build(encoding_of(instance, plan_of(instance)), ModelParams())
    return {re.split(r"[\d\[]", variable.name)[0] for variable in model.proto.variables}


@pytest.mark.parametrize("name", RIGID)
def test_rigid_windows_have_no_variables_of_jobs_that_change(name: str) -> None:
    """What jobs that change need costs others nothing: the model of rigid jobs has variables of its own kinds only."""
    kinds = {"count", "delay", "host", "makespan", "on", "start", "total"}
    assert kinds_of(RIGID[name]) <= kinds
    assert kinds_of(CHANGING) - kinds


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("malleable-expand", 105),
        ("malleable-two-guests", 30),
        ("cp-running-malleable-99", 104),
        ("cp-running-malleable-100", 104),
    ],
)
def test_malleable_jobs_change_share_several_times(repository: Path, name: str, value: float) -> None:
    """From a plan of the jobs one after the other the model finds the best one, in which jobs shrink and expand."""
    instance = read_instance(repository / "tests" / "cases" / f"{name}.json")
    best, bound = optimum_of(instance, queued(instance), ALL)
    assert objective_value(instance, best) == pytest.approx(value)
    assert bound == pytest.approx(value)
