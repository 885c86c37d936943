"""Users as agents: each kind behaves as it is said to, and does as much as it is said to."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Instance, Job
from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import agent_workload
from cpsched.lab.workloads.agents import NODE_HOURS
from tests.sizes import examples


def jobs_by_user(workload: Instance) -> dict[str, list[Job]]:
    """Return the jobs of each user, in order of submission."""
    users: dict[str, list[Job]] = {}
    for job in workload.jobs:
        users.setdefault(job.user or "", []).append(job)
    return users


def node_seconds(job: Job) -> int:
    """Return what a job uses."""
    return job.request.chunks[0].count * (job.runtime or 0)


@given(st.integers(0, 2**64), st.integers(8, 200), st.integers(1, 3))
@examples(10)
def test_every_agent_does_its_node_hours(seed: int, nodes: int, agents: int) -> None:
    """The last job of each agent is the one that reaches its node hours; documents read back, same seed, same jobs
    (MIX-5).
    """
    made = agent_workload(seed, nodes=nodes, agents=agents)
    assert made == agent_workload(seed, nodes=nodes, agents=agents)
    assert parse_instance(instance_to_document(made)) == made
    users = jobs_by_user(made)
    assert set(users) == {f"{kind}{number}" for kind in NODE_HOURS for number in range(1, agents + 1)}
    for user, jobs in users.items():
        assert {job.queue for job in jobs} == {job.group for job in jobs} == {user.rstrip("123")}
        work = [node_seconds(job) for job in jobs]
        assert sum(work) >= 3600 * NODE_HOURS[user.rstrip("123")]
        # the jobs of a heavy user that come together stand in one order or another
        assert sum(work) - max(work) < 3600 * NODE_HOURS[user.rstrip("123")]
        assert all(job.runtime is not None and job.runtime <= job.walltime for job in jobs)
        assert all(job.request.chunks[0].count <= nodes for job in jobs)


def test_developers_work_by_day_and_wait_for_results() -> None:
    """Weekdays from 9 to 17; the next trial comes after the last one would have ended; small and short ones."""
    jobs = [jobs_by_user(agent_workload(seed))["developer1"] for seed in range(5)]
    for mine in jobs:
        assert all(job.submit // 86400 % 7 < 5 and 9 <= job.submit % 86400 / 3600 < 17 for job in mine)
        assert all(later.submit >= job.submit + (job.runtime or 0) for job, later in pairwise(mine))
        assert all(job.walltime == 1800 and job.request.chunks[0].count <= 4 for job in mine)
        assert len({job.submit // 86400 for job in mine}) > 3
    assert any(job.submit > 7 * 86400 for mine in jobs for job in mine)


def test_heavy_users_come_with_much_at_once() -> None:
    """Five jobs in one second, of a quarter to a half of the machine, for hours."""
    for seed in range(5):
        mine = jobs_by_user(agent_workload(seed))["heavy1"]
        submits = [job.submit for job in mine]
        assert sorted(submits.count(submit) for submit in set(submits))[1:] == [5] * (len(set(submits)) - 1)
        assert all(16 <= job.request.chunks[0].count <= 32 for job in mine)
        assert all(0.69 < (job.runtime or 0) / job.walltime <= 1 and (job.runtime or 0) >= 4 * 3600 for job in mine)


def test_greedy_users_fill_holes() -> None:
    """Narrow jobs of up to an hour with exact walltimes, day and night."""
    mine = jobs_by_user(agent_workload(1))["greedy1"]
    assert all(job.walltime == job.runtime and job.walltime <= 3600 for job in mine)
    assert {job.request.chunks[0].count for job in mine} == {1, 2}
    assert {job.submit // 3600 % 24 for job in mine} == set(range(24))


def test_senseless_arguments_are_refused() -> None:
    """No agents, or a machine smaller than developers need: a programmer's mistake."""
    for nodes, agents in ((7, 1), (8, 0)):
        with pytest.raises(ValueError, match=f"got {nodes}, {agents}"):
            agent_workload(0, nodes=nodes, agents=agents)
