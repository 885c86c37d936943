"""Admission: every reason in words, and never a refusal of what the literal planner can place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from cpsched.domain import (
    AdmitCondition,
    Amounts,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    NodeState,
    Queue,
    Request,
    Step,
    WaitingReason,
)
from cpsched.problem import refusal
from tests.booking.small_windows import EXCLUSIVE, PACK, SCATTER, chunk, cores_for_gpus, nodes, waiting, window
from tests.oracle.literal_planner import plan_literally
from tests.oracle.random_instances import instances
from tests.sizes import examples

PLAIN = nodes("p1 p2", cores=16, mem=64, properties=FrozenMap({"rack": "1"}))
GPUS = nodes("g1", cores=8, gpus=2, keep_free=cores_for_gpus(2))
DOWN = nodes("d1", cores=32, mem=128, state=NodeState.DOWN)
DRAINED = nodes("d2", cores=16, mics=2, state=NodeState.DRAIN)
LARGE = nodes(
    "s1", cores=64, mem=1024, admits=(AdmitCondition(min=Amounts({"mem": 512})), AdmitCondition(max_walltime=60))
)
QUEUES = FrozenMap({"short": Queue(expected_wait=60, max_walltime=100)})


def verdict(job: Job, *classes: Any, now: int = 0) -> tuple[WaitingReason, str] | None:
    """Return what is said of a job on PLAIN, GPUS, DOWN and DRAINED nodes, or others, with three licences."""
    cluster = classes or (PLAIN, GPUS, DOWN, DRAINED)
    return refusal(window(cluster, job, licenses={"solver": 3}, queues=QUEUES, now=now), job)


ONE = chunk(cores=1)

REFUSED = [
    (waiting("j", 101, ONE, queue="short"), "walltime", "asks for 101 s; the queue short accepts 100 s at the most"),
    (
        waiting("j", 9, ONE, licenses=Amounts({"solver": 4})),
        "unsatisfiable",
        "asks for 4 solver licenses; there are 3",
    ),
    (
        waiting("j", 9, chunk(cores=33)),
        "unsatisfiable",
        "asks for 33 cores in one chunk; the largest node has 32",
    ),
    (
        waiting("j", 9, chunk(cores=1, fpgas=1)),
        "unsatisfiable",
        "asks for 1 fpgas in one chunk; the largest node has 0",
    ),
    (waiting("j", 9, chunk(cores=1, where={"rack": "9"})), "unsatisfiable", "asks for rack=9; no node has it"),
    (
        waiting("j", 9, chunk(cores=1, gpus=1, where={"rack": "1"})),
        "unsatisfiable",
        "asks for 1 cores + 1 gpus + rack=1 in one chunk; no node has all of it",
    ),
    (
        waiting("j", 9, chunk(9, cores=16)),
        "unsatisfiable",
        "asks for 9 chunks of 16 cores; at most 5 fit at a time",
    ),
    (
        waiting("j", 9, chunk(3, cores=1, mem=1, where={"rack": "1"}), place=SCATTER),
        "unsatisfiable",
        "asks for 3 chunks of 1 cores + 1 mem + rack=1; at most 2 fit at a time",
    ),
    (
        waiting("j", 9, chunk(3, cores=1), chunk(3, cores=2), place=SCATTER),
        "unsatisfiable",
        "asks for 6 chunks on as many nodes; 5 nodes can hold one",
    ),
    (
        waiting("j", 9, chunk(3, cores=16), place=PACK),
        "unsatisfiable",
        "asks for 3 chunks of 16 cores packed on one node; no node holds so many",
    ),
    (
        waiting("j", 9, chunk(1, gpus=1), chunk(1, mem=1), place=PACK),
        "unsatisfiable",
        "asks for all its chunks packed on one node; no node holds them together",
    ),
    (
        waiting("j", 9, chunk(cores=64), ONE, place=PACK),
        "unsatisfiable",
        "asks for 64 cores in one chunk; the largest node has 32",
    ),
    (
        waiting("j", 9, chunk(cores=17)),
        "unavailable",
        "with the nodes that are up now: asks for 17 cores in one chunk; the largest node has 16",
    ),
    (
        waiting("j", 9, chunk(mics=1)),
        "unavailable",
        "with the nodes that are up now: asks for 1 mics in one chunk; the largest node has 0",
    ),
    (
        waiting("j", 9, chunk(3, cores=16)),
        "unavailable",
        "with the nodes that are up now: asks for 3 chunks of 16 cores; at most 2 fit at a time",
    ),
    (waiting("j", 9, ONE, start_at=3, not_before=4), "too_late", "may start only at 3, which is before 4"),
    (waiting("j", 9, ONE, start_at=-1), "too_late", "may start only at -1, which is before 0"),
    (
        waiting("j", 9, ONE, submit=2, deadline=10),
        "too_late",
        "starts at 2 at the earliest and takes 9 s; its deadline is 10",
    ),
    (
        waiting("j", 9, ONE, start_at=5, deadline=13),
        "too_late",
        "starts at 5 at the earliest and takes 9 s; its deadline is 13",
    ),
]


@pytest.mark.parametrize(("job", "reason", "detail"), REFUSED)
def test_refusals_in_words(job: Job, reason: str, detail: str) -> None:
    """A job that can have no start is told why, with what it asks for and what there is (BRIDI-10, PBS-5)."""
    assert verdict(job) == (WaitingReason(reason), detail)


@pytest.mark.parametrize(
    ("job", "classes", "detail"),
    [
        (
            waiting("j", 61, chunk(cores=8, mem=20)),
            (LARGE,),
            "the guards of all nodes that could hold 8 cores + 20 mem keep it out",
        ),
        (
            waiting("j", 9, ONE, place=EXCLUSIVE),
            (GPUS,),
            "asks for nodes of its own; those that could hold 1 cores keep resources free for others",
        ),
        (
            waiting("j", 9, chunk(cores=7)),
            (GPUS,),
            "what the nodes keep free for others leaves no room for 7 cores",
        ),
        (
            waiting("j", 9, chunk(4, cores=2), place=PACK),
            (GPUS,),
            "asks for 4 chunks of 2 cores packed on one node; no node holds so many",
        ),
        (
            waiting("j", 9, chunk(2, cores=2), chunk(1, cores=3), place=PACK),
            (GPUS,),
            "asks for all its chunks packed on one node; no node holds them together",
        ),
    ],
)
def test_rules_of_nodes_in_words(job: Job, classes: tuple[Any, ...], detail: str) -> None:
    """What guards and kept resources forbid is said as such."""
    assert verdict(job, *classes) == (WaitingReason.UNSATISFIABLE, detail)


@pytest.mark.parametrize(
    "job",
    [
        waiting("j", 100, ONE, queue="short"),
        waiting("j", 9, ONE, licenses=Amounts({"solver": 3})),
        waiting("j", 9, chunk(2, cores=16)),
        waiting("j", 9, chunk(3, cores=6)),
        waiting("j", 9, chunk(cores=8, gpus=2)),
        waiting("j", 9, chunk(1, cores=2, gpus=1), chunk(1, cores=6), place=PACK),
        waiting("j", 9, chunk(2, cores=1), chunk(1, gpus=1), place=SCATTER),
        waiting("j", 9, chunk(cores=1, gpus=1), place=EXCLUSIVE),
        waiting("j", 9, ONE, start_at=0),
        waiting("j", 9, ONE, start_at=4, deadline=13),
        waiting("j", 9, ONE, submit=1, deadline=10),
    ],
)
def test_what_just_fits_is_let_in(job: Job) -> None:
    """At the very limit a job is admitted."""
    assert verdict(job) is None


@pytest.mark.parametrize(
    ("asked", "walltime", "is_let_in"),
    [
        ({"cores": 8, "mem": 511}, 60, True),
        ({"cores": 8, "mem": 511}, 61, False),
        ({"cores": 8, "mem": 512}, 10**10, True),
    ],
)
def test_guards_compare_one_chunk(asked: dict[str, Any], walltime: int, is_let_in: bool) -> None:
    """OCCS-41: one of the conditions must hold, for one chunk and the whole walltime, the limits included."""
    assert (verdict(waiting("j", walltime, chunk(2, **asked)), LARGE) is None) == is_let_in


def test_the_clock_stands_elsewhere() -> None:
    """Times are compared with now, also where it is negative or large."""
    job = waiting("j", 9, ONE, submit=-(10**12), deadline=5)
    assert verdict(job, now=-4) is None
    late = verdict(job, now=-3)
    assert late == (WaitingReason.TOO_LATE, "starts at -3 at the earliest and takes 9 s; its deadline is 5")


def test_steps_are_named() -> None:
    """What one step of an evolving job asks for is told with its number; the walltime is that of all steps."""
    small, wide, gpus = (Request(chunks=(one,)) for one in (chunk(cores=1), chunk(6, cores=16), chunk(mics=2)))

    def evolving(*requests: Request, walltime: int = 10, **options: Any) -> Job:
        steps = tuple(Step(walltime=walltime, request=request) for request in requests)
        return Job(id="e", submit=0, steps=steps, **options)

    assert verdict(evolving(small, small)) is None
    assert verdict(evolving(small, wide)) == (
        WaitingReason.UNSATISFIABLE,
        "step 1: asks for 6 chunks of 16 cores; at most 5 fit at a time",
    )
    assert verdict(evolving(small, small, gpus)) == (
        WaitingReason.UNAVAILABLE,
        "with the nodes that are up now: step 2: asks for 2 mics in one chunk; the largest node has 0",
    )
    assert verdict(evolving(small, small, walltime=60, queue="short")) == (
        WaitingReason.WALLTIME,
        "asks for 120 s; the queue short accepts 100 s at the most",
    )
    guarded = nodes("s1", cores=64, admits=(AdmitCondition(max_walltime=60),))
    assert verdict(evolving(small, small, walltime=30), guarded) is None
    found = verdict(evolving(small, small, walltime=31), guarded)
    assert found == (WaitingReason.UNSATISFIABLE, "step 0: the guards of all nodes that could hold 1 cores keep it out")


def alone(instance: Instance, job: Job, *, all_up: bool = False) -> Instance:
    """Return a window in which nothing runs and nobody else waits."""
    cluster = instance.cluster
    if all_up:
        classes = tuple(replace(node_class, state=NodeState.UP) for node_class in cluster.classes)
        cluster = Cluster(classes=classes, licenses=cluster.licenses)
    return replace(instance, cluster=cluster, jobs=(job,))


@examples(150)
@given(instances())
def test_agrees_with_the_literal_planner(instance: Instance) -> None:
    """On the empty cluster the literal planner finds no place for what is refused, and one for what is not.

    Only requests of several kinds may be let in and yet find none. What is unsatisfiable finds none either when all
    nodes are up; what is unavailable then does.
    """
    for job in instance.elements():
        if job.running is not None:
            continue
        found = refusal(instance, job)
        place = plan_literally(alone(instance, job))[job.id]
        if found is None:
            assert place is not None or len(job.request.chunks) > 1
            continue
        assert place is None
        unbound = replace(job, start_at=None, deadline=None)
        place = plan_literally(alone(instance, unbound, all_up=True))[job.id]
        if found[0] is WaitingReason.UNSATISFIABLE:
            assert place is None
        elif found[0] is WaitingReason.UNAVAILABLE:
            assert place is not None or len(job.request.chunks) > 1
