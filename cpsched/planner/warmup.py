"""Compiling the kernels ahead of time, by planning a window that uses all of them."""

from __future__ import annotations

from cpsched.domain import Amounts, Chunk, Cluster, Instance, Job, NodeClass, Request, Step
from cpsched.planner.planner import Planner

__all__ = ["warmup"]


def warmup() -> None:
    """Compile all kernels, for both row types, or load them if they are compiled already."""
    for amount in (2, 1 << 20 | 1):  # narrow and wide rows
        nodes = NodeClass(names=("a",), resources=Amounts({"cores": 2, "mem": amount}))
        request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 2, "mem": 1})),))
        jobs = tuple(Job(id=str(n), submit=0, steps=(Step(walltime=10, request=request),)) for n in range(3))
        planner = Planner(Instance(name="warm-up", cluster=Cluster(classes=(nodes,)), jobs=jobs))
        planner.plan()
        planner.cancel("0")
