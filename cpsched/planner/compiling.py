"""Compiling the kernels ahead of time, by planning a window that uses all of them."""

from dataclasses import replace

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    Instance,
    Job,
    NodeClass,
    Placement,
    Request,
    Running,
    Segment,
    SetAside,
    Step,
)
from cpsched.planner.live import LivePlanner
from cpsched.planner.planner import Planner
from cpsched.rusv import interpret

#: The most jobs, each element and each step counted, and the most of these times nodes of a window whose kernels Python
#: interprets: that takes less than to load compiled ones.
_MOST_JOBS, _MOST_PAIRS = 30, 3000


def interprets(instance: Instance) -> bool:
    """Interpret kernels from now on if the window is small and none is compiled (in an `own_interpretation`); tell."""
    jobs = sum(len(job.steps) * len(job.array or "1") for job in instance.jobs)
    return interpret(wanted=jobs <= _MOST_JOBS and jobs * len(instance.cluster.class_of) <= _MOST_PAIRS)


def compile_from_now_on() -> None:
    """Have kernels compiled from now on, which a search needs."""
    interpret(wanted=False)


def warmup() -> None:
    """Compile the kernels for rigid jobs, or load them if they are compiled already."""
    planner = Planner(warmup_window())
    planner.plan()
    planner.cancel("0")


def warmup_following() -> None:
    """Compile what a plan that follows its window needs besides, or load it; and where nodes are set aside."""
    window = warmup_window()
    planner = Planner(window)
    planner.plan()
    live = LivePlanner(window, planner.outcome().jobs, 0)
    live.follow(replace(window, jobs=window.jobs[1:]))  # the others move up
    live.follow(replace(window, now=5, jobs=window.jobs[1:]))
    held = Placement(node="a", resources=Amounts({"cores": 1}))
    aside = SetAside(start=20, end=30, allocation=(held,))
    for names in ("a", "abcdefghi"):  # much of the nodes, and little: they are booked otherwise
        nodes = NodeClass(names=tuple(names), resources=Amounts({"cores": 2}))
        Planner(replace(window, cluster=Cluster(classes=(nodes,)), jobs=window.jobs[:-1], set_aside=(aside,))).plan()


def warmup_evolving() -> None:
    """Compile what evolving jobs need beside those, or load it: few windows have such jobs, and it takes as long."""
    steps = tuple(Step(walltime=5, request=_cores(cores)) for cores in (1, 2))
    evolving = Job(id="evolving", submit=0, steps=steps, expand_limit=None)
    Planner(replace(warmup_window(), jobs=(evolving,))).plan()


def warmup_window() -> Instance:
    """Return a window of rigid jobs that is small, and uses all that is compiled for them."""
    nodes = NodeClass(names=("a",), resources=Amounts({"cores": 2}))
    held = Placement(node="a", resources=Amounts({"cores": 1}))
    running = Running(start=0, segments=(Segment(start=0, end=10, allocation=(held,)),))
    jobs = [Job(id=str(n), submit=0, steps=(Step(walltime=10, request=_cores(2)),)) for n in range(3)]
    jobs.append(replace(jobs[0], id="running", running=running))
    return Instance(name="warm-up", cluster=Cluster(classes=(nodes,)), jobs=tuple(jobs))


def _cores(count: int) -> Request:
    return Request(chunks=(Chunk(count=1, resources=Amounts({"cores": count})),))
