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
from cpsched.planner import Planner, PlannerEngine, changing, unsupported
from cpsched.portfolio import solve
from cpsched.rules import POLICIES
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.planner.checked import solved

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


#: From two chunks of a core to one of four.
MOVING = tuple(
    Step(walltime=5, request=Request(chunks=(chunk(count, cores=cores),))) for count, cores in ((2, 1), (1, 4))
)

UNCOMPILED = "which engines know only as `cpsched.problem.compiled` has them"

#: What `solve` compiles for its engines, which refuse it.
RULES = {
    f"limits: limits of consumers, {UNCOMPILED}": replace(SUPPORTED, limits=(LIMIT,)),
    f"free_pools: free pools, {UNCOMPILED}": replace(SUPPORTED, free_pools=(POOL,)),
    f"reservations: reservations and downtimes, {UNCOMPILED}": replace(SUPPORTED, reservations=(RESERVATION,)),
}

ASKS_FOR = {
    "job j: cannot keep its nodes from step to step: step 1 asks for more in fewer chunks": with_job(steps=MOVING),
}


@pytest.mark.parametrize("feature", RULES)
def test_rules_are_compiled_before_an_engine_sees_them(feature: str) -> None:
    """`solve` plans an instance with rules; the engines by themselves refuse it, and never ignore a rule."""
    assert unsupported(RULES[feature]) == (feature,)
    with pytest.raises(UnsupportedError) as caught:
        Planner(RULES[feature])
    assert feature in str(caught.value)
    solve(RULES[feature], engine="planner", budget=0)


@pytest.mark.parametrize("feature", ASKS_FOR)
def test_each_is_refused_by_name(feature: str) -> None:
    """The error names the feature and the job that asks for it, from the engine, the planner and `solve` alike."""
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
    instance = replace(with_job(steps=MOVING, reservation="r1"), limits=(LIMIT,), reservations=(downtime,))
    assert unsupported(instance) == (
        f"limits: limits of consumers, {UNCOMPILED}",
        f"reservations: reservations and downtimes, {UNCOMPILED}",
        "job j: cannot keep its nodes from step to step: step 1 asks for more in fewer chunks",
    )


def test_the_rest_is_supported() -> None:
    """Rigid, evolving and malleable jobs are planned, beside running ones that have changed; what only a simulator
    reads is no reason to refuse a window.
    """
    steps = (Step(walltime=5, request=REQUEST),) * 2
    for instance in (SUPPORTED, EVOLVING, MALLEABLE, moved(), with_job(runtime=3, steps=steps)):
        assert unsupported(instance) == ()
        assert len(solved(instance).jobs) == 2


EVOLVING = with_job(steps=(Step(walltime=5, request=REQUEST),) * 2)
MALLEABLE = with_job(malleability=Malleability(shares=(0.5,)))


def test_who_takes_all_jobs_as_rigid_refuses_evolving_ones() -> None:
    """Rules name the evolving jobs that wait; malleable ones have all their cores there."""
    (feature,) = changing(EVOLVING)
    assert feature == "job j: evolves over several steps"
    assert changing(MALLEABLE) == changing(moved()) == ()
    for engine in ("fcfs", "easy"):
        with pytest.raises(UnsupportedError, match=feature):
            solve(EVOLVING, engine=engine)
    with pytest.raises(UnsupportedError, match=feature):
        POLICIES["sjf_list"].plan(EVOLVING, None)
