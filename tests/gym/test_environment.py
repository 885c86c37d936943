"""The environment: an agent that picks as a rule picks gives the rule's starts, and it is one of gymnasium."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cpsched
from cpsched.domain import Instance
from cpsched.errors import UnsupportedError
from cpsched.lab.gym import SchedulingEnv
from cpsched.lab.sim import Picks
from cpsched.lab.workloads import lublin

Key = Callable[[Picks, int], float]
#: The orders of rules, as agents know them.
KEYS: dict[str, Key] = {
    "fcfs": lambda picks, job: job,
    "sjf": lambda picks, job: int(picks.walltime[job]),
    "saf": lambda picks, job: int(picks.walltime[job] * picks.cores[job]),
}


def machine_with_licenses() -> Instance:
    """Return jobs on two kinds of nodes, each for one kind, some of which need a licence."""
    model = cpsched.Model("licences")
    model.add_nodes("a[1-4]", cores=4, gpus=1)
    model.add_nodes("b[1-8]", cores=8)
    model.add_license("tool", 2)
    random = np.random.default_rng(1)
    for number in range(60):
        on_gpus = bool(random.integers(2))
        model.add_job(
            f"{random.integers(1, 5)}:{'ncpus=4:ngpus=1' if on_gpus else 'ncpus=8:ngpus=0'}",
            walltime=int(random.integers(10, 90)),
            runtime=int(random.integers(1, 120)),
            submit=int(random.integers(0, 400)),
            licenses={"tool": 1} if number % 3 == 0 and not on_gpus else None,
        )
    return model.instance()


WORKLOADS = {
    "processors": lambda: lublin(300, 1, nodes=64, cores=1),
    "nodes": lambda: lublin(300, 2, nodes=64),
    "licences": machine_with_licenses,
}


def starts_of(env: SchedulingEnv, key: Key, seed: int = 0) -> dict[str, int]:
    """Play an episode with the agent that picks the job of the least key; return the starts."""
    env.reset(seed=seed)
    picks, is_over = env.picks, False
    while not is_over:
        place = min(range(len(picks.queue)), key=lambda place: (key(picks, picks.queue[place]), place))
        _, _, is_over, _, _ = env.step(place)
    return {picks.ids[job]: start for job, start in picks.starts.items()}


@pytest.mark.parametrize("rule", KEYS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_an_agent_that_picks_as_a_rule_gives_its_starts(workload: str, rule: str) -> None:
    """Each job starts in the very second in which `simulate` starts it."""
    instance = WORKLOADS[workload]()
    runs = cpsched.simulate(instance, cpsched.make_scheduler(rule)).runs
    expected = {name: start for name, start in zip(runs.ids, runs.start.tolist(), strict=True) if start >= 0}
    env = SchedulingEnv(instance, window=len(instance.jobs))
    assert starts_of(env, KEYS[rule]) == expected
    assert len(expected) > 50


def test_rewards_are_less_the_mean_bounded_slowdown() -> None:
    """Their sum is the figure of the simulation."""
    workload = lublin(200, 3, nodes=32, cores=1)
    env = SchedulingEnv(workload, window=200)
    env.reset(seed=0)
    total, is_over = 0.0, False
    while not is_over:
        _, reward, is_over, _, _ = env.step(0)
        total += reward
    found = cpsched.simulate(workload, cpsched.make_scheduler("fcfs")).summary().total.bounded_slowdown
    assert found is not None
    assert -total == pytest.approx(found.mean)


def test_it_is_an_environment_of_gymnasium() -> None:
    """Its checker finds nothing: spaces, seeds and types are as they should be."""
    check_env(SchedulingEnv(lublin(60, 1, nodes=32), window=16, jobs=20), skip_render_check=True)


def test_what_is_seen() -> None:
    """A row for each waiting job, in the order of submission; rows of other places are 0."""
    model = cpsched.Model()
    model.add_nodes("n[1-4]", cores=1)
    model.add_job("2:ncpus=1", walltime=3600, runtime=3600)
    model.add_job("3:ncpus=1", walltime=1200, runtime=600, submit=1200)
    model.add_job("2:ncpus=1", walltime=3600, runtime=60, submit=3000)
    env = SchedulingEnv(model.instance(), window=3)
    seen, _ = env.reset(options={"first": 0})
    assert seen.tolist() == [[1, 0, 0.5, 0.5, 1, 1], [0] * 6, [0] * 6]
    env.step(0)
    seen, reward, *_ = env.step(0)
    assert reward == 0
    assert seen[0] == pytest.approx([1, 1800 / 5400, 0.25, 0.75, 0, 0.5])
    assert seen[1] == pytest.approx([1, 0, 0.5, 0.5, 1, 0.5])
    assert env.action_mask().tolist() == [1, 1, 0]
    seen, reward, is_over, *_ = env.step(2)  # the last place with a job
    assert (reward, is_over, env.picks.starts) == (pytest.approx(-1 / 3), False, {0: 0, 2: 3000})


def test_what_cannot_be_counted_is_refused() -> None:
    """With what it is."""
    model = cpsched.Model()
    model.add_nodes("n[1-2]", cores=4)
    first = model.add_job("ncpus=4", walltime=60)
    model.add_job("ncpus=4", walltime=60, after=[first])
    with pytest.raises(UnsupportedError, match="dependencies"):
        SchedulingEnv(model.instance())
    with pytest.raises(ValueError, match="from 1 to 60, got 128 and 61"):
        SchedulingEnv(lublin(60, 1, nodes=32), jobs=61)
