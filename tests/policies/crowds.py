"""Random workloads of equal nodes on which many wait, for schedulers that keep reservations."""

from __future__ import annotations

import numpy as np

from cpsched.domain import Amounts, Chunk, Cluster, Instance, Job, NodeClass, Request, Step


def crowd(seed: int, num_jobs: int = 30, *, gap: float = 15.0) -> Instance:
    """Draw a workload: a few nodes of four cores, and jobs that mostly end before their walltimes are over."""
    rng = np.random.Generator(np.random.PCG64(seed))
    num_nodes = int(rng.integers(2, 6))
    submit, jobs = 0, []
    for number in range(num_jobs):
        submit += int(rng.exponential(gap)) if rng.random() < 0.7 else 0
        cores = int(rng.choice([1, 1, 2, 3, 4]))
        chunk = Chunk(count=int(rng.integers(1, num_nodes * (4 // cores) + 1)), resources=Amounts({"cores": cores}))
        walltime = int(rng.choice([20, 60, 61, 119, 300]))
        jobs.append(
            Job(
                id=f"j{number}",
                user=str(rng.choice(["ann", "bob"])),
                submit=submit,
                steps=(Step(walltime=walltime, request=Request(chunks=(chunk,))),),
                priority=1 if rng.random() < 0.2 else None,
                runtime=None if rng.random() < 0.3 else int(rng.integers(1, walltime + 2)),
            )
        )
    names = tuple(f"n{number}" for number in range(num_nodes))
    cluster = Cluster(classes=(NodeClass(names=names, resources=Amounts({"cores": 4})),))
    return Instance(name="crowd", cluster=cluster, jobs=tuple(jobs))
