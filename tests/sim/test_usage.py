"""Fair shares in a simulation: usage decays while it runs, and the weights of jobs follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cpsched.domain import Instance
from cpsched.errors import UnsupportedError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Checkpoint, History, simulate, unkept
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.usage import DecayingUsage
from cpsched.lab.sim.world import SimWorld
from cpsched.verify import verify

HALF_LIFE = 1000


def workload(*, before: int = 0, shares: bool = True) -> Instance:
    """Return a machine on which ann runs for 150 s; then a job of hers and one of bob's wait, hers first. Small jobs of
    others start beside them: whenever a job starts or ends weights may change.

    `before`: the core-seconds that bob has had. `shares`: whether both have shares, equal ones.
    """
    jobs = [
        {"id": "first", "user": "ann", "submit": 0, "walltime": 150, "runtime": 150, "request": "ncpus=4"},
        {"id": "ann", "user": "ann", "submit": 10, "walltime": 100, "runtime": 100, "request": "ncpus=4"},
        {"id": "bob", "user": "bob", "submit": 12, "walltime": 100, "runtime": 100, "request": "ncpus=4"},
        *({"id": f"{at}", "submit": at, "walltime": 9, "runtime": 9, "request": "ncpus=1"} for at in (40, 60, 80)),
    ]
    document: dict[str, Any] = {
        "format": "cpsched-instance/1",
        "name": "two users",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 5}}]},
        "jobs": jobs,
    }
    if shares:
        users = [{"user": "ann"}, {"user": "bob", "usage": before}]
        document["fair_share"] = {"half_life": HALF_LIFE, "users": users}
    return parse_instance(document)


def starts(history: History) -> dict[str, int]:
    """Return when each job started; the record keeps every rule."""
    return dict(zip(history.runs.ids, history.runs.start.tolist(), strict=True))


def usage_at(instance: Instance, history: History, now: int) -> dict[str, float]:
    """Work out the usage second by second, each in its middle."""
    assert instance.fair_share is not None
    found = {one.user: one.usage * 2 ** (-now / HALF_LIFE) for one in instance.fair_share.users}
    rows = zip(history.runs.users, history.runs.start.tolist(), history.runs.end.tolist(), strict=True)
    for user, start, end in rows:
        if user in found:
            found[user] += sum(4 * 2 ** (-(now - second - 0.5) / HALF_LIFE) for second in range(start, min(end, now)))
    return found


@pytest.mark.parametrize("now", [0, 100, 150, 300, 5000])
def test_usage_is_that_of_each_second(now: int) -> None:
    """At any time, with what was used before, up to half a core-second."""
    instance = workload(before=3000)
    history = simulate(instance, make_scheduler("fcfs"))
    load = Load(instance)
    world = SimWorld(load)
    world.state.runs[:, 0] = history.runs.start
    world.state.runs[:, 1] = history.runs.end
    assert instance.fair_share is not None
    found = DecayingUsage(load, instance.fair_share).at(now, world.state)
    assert {one.user: one.usage for one in found.users} == pytest.approx(usage_at(instance, history, now), abs=0.51)


@pytest.mark.parametrize(
    "policy", ["smith", "wspt", "portfolio", "wspt_list", "slurm weight_fair_share=1000", "slurm weight_age=1000"]
)
def test_who_has_had_the_machine_waits(policy: str) -> None:
    """Ann has had it for 150 s, and her other job comes first: without shares it runs first, with shares bob's does.

    Slurm counts them where they have a weight. What bob had before the simulation counts as well.
    """
    name, _, setting = policy.partition(" ")
    parameters = {setting.partition("=")[0]: 1000} if setting else {}

    def order(instance: Instance) -> list[str]:
        history = simulate(instance, make_scheduler(name, parameters))
        assert not verify(instance_to_document(instance), plan_to_document(history.record()))
        found = starts(history)
        return sorted(("ann", "bob"), key=found.__getitem__)

    assert order(workload(shares=False)) == ["ann", "bob"]
    assert order(workload()) == (["ann", "bob"] if "age" in setting else ["bob", "ann"])
    assert order(workload(before=10**6)) == ["ann", "bob"]


def test_what_does_not_weigh_jobs_says_so() -> None:
    """EASY, and Slurm without a weight for fair share; rules by Smith's index and planners keep it."""
    said = {name: unkept(workload(), make_scheduler(name)) for name in ("easy", "slurm", "smith", "wspt", "planner")}
    assert said == {
        "easy": ("fair_share, which it does not weigh",),
        "slurm": ("fair_share, which it does not weigh",),
        "smith": (),
        "wspt": (),
        "planner": (),
    }
    assert unkept(workload(), make_scheduler("slurm", {"weight_fair_share": 5})) == ()


def test_usage_is_not_in_a_checkpoint(tmp_path: Path) -> None:
    """A simulation with shares cannot be interrupted and resumed."""
    checkpoint = Checkpoint(path=tmp_path / "state", scheduler="smith", interval=60, resume=False)
    with pytest.raises(UnsupportedError, match="with a checkpoint"):
        simulate(workload(), make_scheduler("smith"), checkpoint=checkpoint)


def test_weights_of_slurm_are_checked() -> None:
    """A weight below 0, or a period of nothing, is refused."""
    for name, value in (("weight_age", -1), ("max_age", 0), ("calc_period", 0)):
        with pytest.raises(Exception, match=name):
            make_scheduler("slurm", {name: value})
