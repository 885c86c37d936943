"""Simulations of jobs whose chunks are within one group of nodes."""

from __future__ import annotations

import pytest

from cpsched.lab.policies import make_scheduler
from tests.problem.test_topology import job, window
from tests.sim.played import played


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "maui", "slurm", "planner"])
def test_simulations_keep_jobs_in_groups(policy: str) -> None:
    """Whatever rule starts a job, the judge finds it within one group in the record, and none is left."""
    instance = window(
        *(
            job(f"j{number}", f"{1 + number % 3}:ncpus={1 + number % 2},place=within={level}", 10 + number)
            | {"submit": 3 * number}
            for number, level in enumerate(["switch", "rack"] * 8)
        )
    )
    assert len(played(instance, make_scheduler(policy)).record().jobs) == 16
