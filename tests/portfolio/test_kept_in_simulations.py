"""What schedulers keep of a workload: promised starts go through every one, and what one does not keep is named."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched import Model, verify_plan
from cpsched.errors import UnsupportedError
from cpsched.lab.policies import factory_of, make_scheduler, scheduler_names
from cpsched.lab.sim import simulate, unkept

#: Rules for evolving jobs, which begin where a job has steps.
EVOLVING = ("ep_rigid", "ep_nox", "ep_2x", "ep_2xc", "ep_infx", "ep_infxc", "planner", "search")


def made(name: str) -> Any:
    """Return a scheduler; one with a budget has none."""
    factory = factory_of(name)
    assert factory is not None
    has_budget = name in ("portfolio", "search", "cp", "minizinc")
    return make_scheduler(name, {"budget": 0} if has_budget else {})


def workload(**job: Any) -> Model:
    """Return three jobs on two nodes, which had their starts promised, and a fourth one that runs."""
    model = Model(name="promised")
    model.add_nodes("n[1-2]", cores=4)
    held = [{"node": "n1", "resources": {"cores": 4}}]
    model.add_job("ncpus=4", 20, runtime=15, running={"start": 0, "allocation": held})
    for number in range(3):
        model.add_job("2:ncpus=4", 10, submit=9 * number, runtime=8, told={"start": 20 + 10 * number}, **job)
    return model


@pytest.mark.parametrize("name", scheduler_names())
def test_promised_starts_are_simulated_by_every_scheduler(name: str) -> None:
    """A promise is over when its job runs: the next window has the start as a fact, and no promise beside it."""
    instance = workload().instance()
    record = simulate(instance, made(name)).record()
    assert not verify_plan(instance, record)
    assert len(record.jobs) == 4


@pytest.mark.parametrize("name", [name for name in scheduler_names() if name not in (*EVOLVING[:6], "minizinc")])
def test_promised_starts_of_malleable_jobs(name: str) -> None:
    """The same holds for jobs whose cores change as they run."""
    instance = workload(malleable=[0.5]).instance()
    record = simulate(instance, made(name)).record()
    assert not verify_plan(instance, record)
    assert len(record.jobs) == 4


@pytest.mark.parametrize("name", EVOLVING)
def test_promised_starts_of_evolving_jobs(name: str) -> None:
    """And for jobs of several steps."""
    model = Model(name="promised")
    model.add_nodes("n[1-2]", cores=4)
    for number in range(3):
        told = {"start": 10 * number}
        steps = [(5, "1:ncpus=4"), (5, "2:ncpus=4")]
        model.add_job(steps=steps, place="excl", submit=4 * number, runtime=9, told=told)
    instance = model.instance()
    record = simulate(instance, made(name)).record()
    assert not verify_plan(instance, record)


def bound() -> Model:
    """Return a workload with all that some scheduler does not keep."""
    model = Model(name="bound", priorities="strict")
    model.add_nodes("n1", cores=1)
    model.add_queue("soon", 10, max_wait={"seconds": 5, "hard": True})
    model.add_queue("later", 10, max_wait={"seconds": 5})
    model.add_job("ncpus=1", 10, runtime=10)
    model.add_job("ncpus=1", 10, runtime=10, submit=1, queue="soon", priority=1)
    model.add_job("ncpus=1", 10, runtime=10, submit=1, queue="later", told=30)
    return model


@pytest.mark.parametrize("name", scheduler_names())
def test_what_is_not_kept_is_named(name: str) -> None:
    """A scheduler whose record breaks a hard ``max_wait`` has named it; planners of windows have nothing to name.
    Rules for evolving jobs refuse one.
    """
    instance = bound().instance()
    scheduler = made(name)
    named = unkept(instance, scheduler)
    if name in EVOLVING[:6]:
        with pytest.raises(UnsupportedError, match="hard max_wait"):
            simulate(instance, scheduler)
        return
    record = simulate(instance, scheduler).record()
    rules = {violation.rule for violation in verify_plan(instance, record)}
    plans = name in ("planner", "portfolio", "search", "cp", "minizinc", "wspt_list")
    assert bool(named) != plans
    if "max_wait" in rules and not plans:
        assert any("max_wait of the queue soon (1 job)" in part for part in named)
    if not plans:
        assert [part.split()[0] for part in named] == ["the", "strict", "promised"]


def test_a_plain_workload_is_kept_by_all() -> None:
    """Without hard limits of waiting, classes and promises there is nothing to name."""
    model = Model()
    model.add_nodes("n1", cores=1)
    model.add_queue("q", 10, max_wait={"seconds": 5})
    model.add_job("ncpus=1", 10, queue="q", priority=3)
    for name in scheduler_names():
        assert unkept(model.instance(), made(name)) == ()
