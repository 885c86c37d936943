"""Large-neighbourhood search: each plan that it finds is one, and no worse than the one before, on all windows."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from cpsched.cp import NeighbourhoodParams, Neighbourhoods
from cpsched.cp.decode import decode_tasks
from cpsched.cp.encoding import encode
from cpsched.cp.neighbourhoods.descent import Descent
from cpsched.cp.neighbourhoods.occupation import Occupation
from cpsched.cp.neighbourhoods.positions import positions_in
from cpsched.domain import FrozenMap, Instance, Objective
from cpsched.formats import parse_instance
from cpsched.metrics import objective_value, suffered
from tests.cp.fixed_plans import broken_rules
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


@pytest.mark.parametrize("nodes", [16, 64])
def test_jobs_that_the_whole_model_leaves_alone_are_planned_better(nodes: int) -> None:
    """24 jobs: on 64 nodes all start at once, on fewer ones cp finds a better plan than the planner's."""
    document = json.loads((CASES / "cp-24-jobs-64-nodes.json").read_text())
    document["cluster"]["nodes"][0]["names"] = f"n[1-{nodes}]"
    instance = parse_instance(document)
    board = board_of(instance, 60.0)
    Neighbourhoods(NeighbourhoodParams(most=60)).improve(instance, board, seed=0)
    assert board.events == ()
    least = suffered(instance, board.best.jobs)
    assert board.best.value - least < 0.8 * (board.incumbents[0].value - least) or board.best.value == least


def test_a_number_of_neighbourhoods_gives_the_same_plan_each_time() -> None:
    """Where neighbourhoods are counted no clock decides: plans and values are the same."""
    instance = mixed_window(1, 30, 10)
    plans = []
    for _ in range(2):
        board = board_of(instance)
        Neighbourhoods(NeighbourhoodParams(most=40)).improve(instance, board, seed=3)
        plans.append(board.best.jobs)
    assert plans[0] == plans[1]
    assert objective_value(instance, plans[0]) < objective_value(instance, plan_of(instance))


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
    Neighbourhoods(NeighbourhoodParams(most=100), command).improve(instance, board, seed=0)
    assert flag.exists()
    (event,) = board.events
    assert "SIGKILL" in event.what
    assert board.best.by == "cp"
