"""Large-neighbourhood search: each plan that it finds is one, and no worse than the one before, on all windows."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from cpsched.cp import Neighbourhoods
from cpsched.cp.decode import decode_tasks
from cpsched.cp.encoding import encode
from cpsched.cp.neighbourhoods.descent import Descent
from cpsched.cp.neighbourhoods.occupation import Occupation
from cpsched.cp.neighbourhoods.positions import positions_in
from cpsched.domain import FrozenMap, Instance, Objective
from cpsched.engine import Board, Budget
from cpsched.formats import parse_instance
from cpsched.metrics import objective_value, suffered
from tests.cp.fixed_plans import Stand, broken_rules, instance_of, planned_jobs
from tests.cp.test_improvers import board_of, mixed_window
from tests.cp.test_model import OBJECTIVES, plan_of
from tests.oracle.random_evolving import evolving_instances
from tests.oracle.random_instances import instances, pressed
from tests.oracle.random_malleable import malleable_windows
from tests.sizes import examples

CASES = Path(__file__).parents[1] / "cases"
#: Neighbourhoods that are tried on each window.
STEPS = 12


@st.composite
def windows(draw: st.DrawFn) -> Instance:
    """Draw a window: rigid, evolving or malleable jobs; dependencies, deadlines, licences; any objective."""
    source = draw(st.sampled_from([instances(), instances(), evolving_instances(), malleable_windows()]))
    instance = draw(source)
    if draw(st.booleans()):
        instance = draw(pressed(instance))
    objective = Objective(weights=FrozenMap(draw(st.sampled_from(OBJECTIVES))))
    return replace(instance, objective=objective)


@pytest.mark.slow
@given(windows(), st.integers(0, 99))
@examples(150, deadline=None, suppress_health_check=list(HealthCheck))
def test_each_step_leaves_a_plan_that_is_no_worse(instance: Instance, seed: int) -> None:
    """After each neighbourhood the plan passes the verifier, and costs as much less as the step says."""
    plan = plan_of(instance)
    encoding = encode(instance, plan, by_class=True)
    assume(encoding.tasks)
    descent = Descent(Occupation(encoding, positions_in(encoding, {job.id: job for job in plan})), seed, is_timed=False)
    value = objective_value(instance, plan)
    for _ in range(STEPS):
        step = descent.step()
        placed = {n: one for n, one in enumerate(descent.occupation.placed) if one is not None}
        found = {job.id: job for job in plan} | decode_tasks(encoding, placed)
        jobs = [found[job.id] for job in plan]
        assert not broken_rules(instance, jobs)
        new = objective_value(instance, jobs)
        if step.moved:
            assert new < value or encoding.costs.slack
        else:
            assert new == pytest.approx(value, abs=1e-9)
        value = new


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [16, 64])
def test_jobs_that_the_whole_model_leaves_alone_are_planned_better(nodes: int) -> None:
    """24 jobs: on 64 nodes all start at once, on fewer ones cp finds a better plan than the planner's."""
    document = json.loads((CASES / "cp-24-jobs-64-nodes.json").read_text())
    document["cluster"]["nodes"][0]["names"] = f"n[1-{nodes}]"
    instance = parse_instance(document)
    board = board_of(instance, 60.0)
    Neighbourhoods(most=60).improve(instance, board, seed=0)
    assert board.events == ()
    least = suffered(instance, board.best.jobs)
    assert board.best.value - least < 0.8 * (board.incumbents[0].value - least) or board.best.value == least


@pytest.mark.slow
def test_a_number_of_neighbourhoods_gives_the_same_plan_each_time() -> None:
    """Where neighbourhoods are counted no clock decides: plans and values are the same."""
    instance = mixed_window(1, 30, 10)
    plans = []
    for _ in range(2):
        board = board_of(instance)
        Neighbourhoods(most=40).improve(instance, board, seed=3)
        plans.append(board.best.jobs)
    assert plans[0] == plans[1]
    assert objective_value(instance, plans[0]) < objective_value(instance, plan_of(instance))


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """The first worker is killed in the middle of its work: that is an event, and a second one finds better plans."""
    flag = tmp_path / "killed"
    script = (
        "import os, pathlib, signal; import cpsched.cp.neighbourhoods.descent as d, cpsched.cp.worker as w\n"
        "step, steps = d.Descent.step, []\n"
        "def counted(self):\n"
        f"    steps.append(1); flag = pathlib.Path({str(flag)!r})\n"
        "    if len(steps) == 60 and not flag.exists(): flag.touch(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return step(self)\n"
        "d.Descent.step, d._PAUSE = counted, 0\n"
        "w.main()"
    )
    instance = mixed_window(2, 30, 10)
    board = board_of(instance)
    command = (sys.executable, "-c", script)
    Neighbourhoods(100, command).improve(instance, board, seed=0)
    assert flag.exists()
    (event,) = board.events
    assert "SIGKILL" in event.what
    assert board.best.by == "cp"


@pytest.mark.slow
def test_a_job_without_a_start_gets_one_though_others_have_to_wait() -> None:
    """A job with a deadline that a plan has left out is planned, and so is what waits for it: others move back."""
    nodes = [{"names": "n[1-2]", "resources": {"cores": 4}}]
    jobs = [
        {"id": "a", "request": "2:ncpus=4", "walltime": 100},
        {"id": "b", "request": "ncpus=4", "walltime": 10, "deadline": 20},
        {"id": "c", "request": "ncpus=1", "walltime": 10, "after": [{"job": "b", "type": "afterok"}]},
    ]
    instance = instance_of(nodes, jobs)
    first = planned_jobs(instance_of(nodes, jobs[:1]), {"a": (0, [Stand("n1"), Stand("n2")])})
    board = Board(
        first,
        by="poor",
        budget=Budget(60.0),
        value_of=lambda plan: objective_value(instance, plan),
        judge=lambda plan: [],
        placeable={"a", "b", "c"},
    )
    Neighbourhoods(most=20).improve(instance, board, seed=0)
    assert board.best.ids == {"a", "b", "c"}
    assert not broken_rules(instance, list(board.best.jobs))
    assert {job.id: job.start for job in board.best.jobs} == {"a": 20, "b": 0, "c": 10}


@pytest.mark.slow
@given(instances(), st.integers(0, 99))
@examples(60, deadline=None, suppress_health_check=list(HealthCheck))
def test_jobs_that_lost_their_starts_are_planned_again(instance: Instance, seed: int) -> None:
    """Of a plan without some of its jobs, each step leaves a plan, and none has fewer jobs than the one before."""
    whole, rng = plan_of(instance), Random(seed)
    entries = {job.id: job for job in instance.elements()}
    awaited = {one.job for job in instance.jobs for one in job.after}
    left_out = {
        job.id for job in whole if entries[job.id].running is None and job.id not in awaited and rng.random() < 0.4
    }
    plan = [job for job in whole if job.id not in left_out]
    assume(left_out)
    encoding = encode(instance, plan, left_out, by_class=True)
    descent = Descent(Occupation(encoding, positions_in(encoding, {job.id: job for job in plan})), seed, is_timed=False)
    count = len(plan)
    for _ in range(STEPS):
        descent.step()
        placed = {n: one for n, one in enumerate(descent.occupation.placed) if one is not None}
        found = {job.id: job for job in plan} | decode_tasks(encoding, placed)
        jobs = [found[name] for name in entries if name in found]
        faults = broken_rules(instance, jobs)
        assert faults <= broken_rules(instance, plan)
        assert len(jobs) >= count
        count = len(jobs)
