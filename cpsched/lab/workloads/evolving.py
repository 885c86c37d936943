"""The random applications of Klein and Pérez, Towards Scheduling Evolving Applications, as windows (EVO-14)."""

from random import Random

from cpsched.domain import (
    Amounts,
    Arrangement,
    Chunk,
    FrozenMap,
    Instance,
    Job,
    Objective,
    ObjectiveTerm,
    Place,
    Request,
    Step,
)
from cpsched.lab.workloads.assembly import like_nodes

#: Least and most, drawn evenly and independently: of a window, of an application, and of a step (seconds and nodes).
APPLICATIONS = (15, 20)
STEPS = (1, 10)
DURATION = (500, 3600)
NODES = (1, 75)

#: Ours: the published applications count nodes only.
_CORES = 16
_WHOLE_NODES = Place(arrangement=Arrangement.SCATTER, exclusive=True)


def evolving_window(seed: int, *, nodes: int = 100) -> Instance:
    """Generate a test case of the paper's experiment: evolving jobs, submitted at 0, with holds without limit.

    The same arguments give the same window, on any Python: only `Random.random` is used, whose sequence is documented
    as stable. The objective is the sum of completion times.

    Raises `ValueError` if the machine is smaller than the widest step can be.

    `seed`: of the random numbers. `nodes`: of the machine; the paper does not state the number.
    """
    if nodes < NODES[1]:
        raise ValueError(f"Expected at least {NODES[1]} nodes, got {nodes}")
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    return Instance(
        name=f"evolving-{seed:04d}",
        cluster=like_nodes(nodes, _CORES),
        jobs=tuple(_application(draw, str(number)) for number in range(1, _between(draw, APPLICATIONS) + 1)),
        objective=Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0})),
    )


def _between(draw: Random, bounds: tuple[int, int]) -> int:
    """Draw an integer within bounds, both included."""
    least, most = bounds
    return least + int(draw.random() * (most - least + 1))


def _application(draw: Random, job_id: str) -> Job:
    steps = tuple(
        Step(walltime=_between(draw, DURATION), request=_nodes(_between(draw, NODES)))
        for _ in range(_between(draw, STEPS))
    )
    return Job(id=job_id, submit=0, steps=steps, expand_limit=None)


def _nodes(count: int) -> Request:
    """Return the request for this number of whole nodes."""
    return Request(chunks=(Chunk(count=count, resources=Amounts({"cores": _CORES})),), place=_WHOLE_NODES)
