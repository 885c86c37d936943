"""Compiling the event loop ahead of time."""

from __future__ import annotations

from cpsched.domain import Amounts, Chunk, Cluster, Instance, Job, NodeClass, Request, Step
from cpsched.lab.sim.rules import BackfillRule, Order, QueueRule
from cpsched.lab.sim.simulation import simulate


def warm_up_simulation() -> None:
    """Compile the kernels of queue rules, or load them: what is timed afterwards is the simulation alone."""
    request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1})),))
    job = Job(id="warm-up", submit=0, steps=(Step(walltime=1, request=request),))
    node = NodeClass(names=("node",), resources=Amounts({"cores": 1}))
    instance = Instance(name="warm-up", cluster=Cluster(classes=(node,)), jobs=(job,))
    simulate(instance, QueueRule(name="warm-up", backfill=BackfillRule.NOT_DELAYING, order=Order.WFP3))
