"""What the planner cannot honour is refused by name, never ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import (
    Access,
    Amounts,
    Consumer,
    ConsumerKind,
    FreePool,
    Instance,
    ItemBound,
    Limit,
    Malleability,
    Placement,
    Request,
    Reservation,
    ReservationKind,
    Running,
    Segment,
    Step,
)
from cpsched.errors import UnsupportedError
from cpsched.planner import Planner, PlannerEngine, unsupported
from cpsched.portfolio import solve
from tests.booking.small_windows import chunk, nodes, running, waiting, window

REQUEST = Request(chunks=(chunk(cores=1),))
SUPPORTED = window([nodes("a", cores=4)], running("r", 5, a={"cores": 1}), waiting("j", 9, chunk(cores=1)))

LIMIT = Limit(consumer=Consumer(kind=ConsumerKind.USER, name="ann"), resource="cores", items=ItemBound(least=1))
POOL = FreePool(resource="cores", items=ItemBound(least=1), open_to=Access(users=("ann",)))
RESERVATION = Reservation(id="r1", start=0, end=10, request=REQUEST, users=("ann",))


def with_job(**options: Any) -> Instance:
    """Return the window in which the waiting job has something more."""
    return replace(SUPPORTED, jobs=(SUPPORTED.jobs[0], replace(SUPPORTED.jobs[1], **options)))


def moved() -> Instance:
    """Return the window in which the running job has shrunk once."""
    segments = tuple(
        Segment(start=start, end=end, allocation=(Placement(node="a", resources=Amounts({"cores": cores})),))
        for start, end, cores in ((-5, 0, 2), (0, 5, 1))
    )
    job = replace(SUPPORTED.jobs[0], running=Running(start=-5, segments=segments))
    return replace(SUPPORTED, jobs=(job, SUPPORTED.jobs[1]))


ASKS_FOR = {
    "limits: limits of consumers": replace(SUPPORTED, limits=(LIMIT,)),
    "free_pools: free pools": replace(SUPPORTED, free_pools=(POOL,)),
    "reservations: reservations and downtimes": replace(SUPPORTED, reservations=(RESERVATION,)),
    "job j: evolves over several steps": with_job(steps=(Step(walltime=5, request=REQUEST),) * 2),
    "job j: malleable": with_job(malleability=Malleability(shares=(0.5,))),
    "job j: runs inside a reservation": with_job(reservation="r1"),
    "job r: its running allocation has changed over time": moved(),
}


@pytest.mark.parametrize("feature", ASKS_FOR)
def test_each_is_refused_by_name(feature: str) -> None:
    """The error names the feature and who asks for it, from the engine, the planner and `solve` alike."""
    instance = ASKS_FOR[feature]
    assert unsupported(instance) == (feature,)
    assert PlannerEngine().unsupported(instance) == (feature,)
    for refuse, engine in ((solve, "portfolio"), (Planner, "planner")):
        with pytest.raises(UnsupportedError) as caught:
            refuse(instance)
        assert caught.value.engine == engine
        assert caught.value.features == (feature,)
        assert feature in str(caught.value)


def test_all_are_named_at_once() -> None:
    """An instance that asks for several things is told all of them."""
    downtime = replace(RESERVATION, kind=ReservationKind.DOWNTIME)
    instance = replace(
        with_job(malleability=Malleability(shares=(0.5,)), reservation="r1"), limits=(LIMIT,), reservations=(downtime,)
    )
    assert unsupported(instance) == (
        "limits: limits of consumers",
        "reservations: reservations and downtimes",
        "job j: malleable",
        "job j: runs inside a reservation",
    )


def test_the_rest_is_supported() -> None:
    """A window of rigid jobs is planned; what only a simulator reads is no reason to refuse it."""
    assert unsupported(SUPPORTED) == ()
    assert len(solve(with_job(runtime=3), engine="planner").jobs) == 2
