"""Instances that were built in Python: checked before an engine sees them, with all faults at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

import cpsched
from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Queue,
    Request,
    Step,
)
from cpsched.errors import DocumentError
from cpsched.formats import checked, instance_to_document, parse_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from tests.sizes import some
from tests.workloads.tiny import tiny_cases

NODES = NodeClass(names=("n1", "n2"), resources=Amounts({"cores": 4}))


def _built(walltime: Any = 600, nodes: NodeClass = NODES, **members: Any) -> Instance:
    """Return an instance of one job, as a user writes it in Python."""
    request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 4})),))
    job = Job(**{"id": "a", "submit": 0, "steps": (Step(walltime=walltime, request=request),), **members})
    return Instance(name="built", cluster=Cluster(classes=(nodes,)), jobs=(job,))


FAULTY = [
    (_built(0), "jobs[0].walltime", "Expected an integer > 0 (seconds), got 0"),
    (_built(-5), "jobs[0].walltime", "Expected an integer > 0 (seconds), got -5"),
    (_built(600.5), "instance.jobs[0].steps[0].walltime", "Expected an integer, got 600.5"),
    (_built(np.int64(600)), "instance.jobs[0].steps[0].walltime", "int() makes an integer of it"),
    (_built(True), "instance.jobs[0].steps[0].walltime", "Expected an integer, got true"),
    (_built(10**11), "jobs[0].walltime", "10000000000"),
    (_built(steps=()), "instance.jobs[0].steps", "Expected at least one element, got none"),
    (_built(steps=[]), "instance.jobs[0].steps", "Expected a tuple"),
    (_built(queue="nowhere"), "jobs[0].queue", "nowhere"),
    (_built(licenses={"lic": 1}), "instance.jobs[0].licenses", "Expected a FrozenMap"),
    (
        _built(licenses=Amounts({"lic": cast(Any, 1.5)})),
        'instance.jobs[0].licenses["lic"]',
        "Expected an integer, got 1.5",
    ),
    (_built(id="a\n"), "jobs[0].id", "control characters"),
    (_built(nodes=replace(NODES, names=())), "cluster.nodes[0].names", ""),
    (
        _built(nodes=replace(NODES, names=cast(Any, "n[1-4]"))),
        "instance.cluster.classes[0].names",
        "expand_hostlist makes names of a host list",
    ),
    (_built(nodes=replace(NODES, resources=Amounts({"cores": -1}))), "cluster.nodes[0].resources.cores", "-1"),
]


@pytest.mark.parametrize(
    ("instance", "path", "words"), FAULTY, ids=lambda value: value if isinstance(value, str) else ""
)
def test_faults_are_told_with_their_paths(instance: Instance, path: str, words: str) -> None:
    """What an instance built in Python has that no document may have is refused, with where it is."""
    with pytest.raises(DocumentError) as caught:
        cpsched.solve(instance, engine="planner", budget=0)
    assert [fault for fault in caught.value.faults if fault.path.startswith(path) and words in fault.message]


def test_all_faults_come_at_once() -> None:
    """Two faults in two jobs are told together."""
    one, other = _built(600.5).jobs[0], replace(_built(600).jobs[0], id=cast(Any, 7))
    with pytest.raises(DocumentError) as caught:
        checked(replace(_built(), jobs=(one, other)))
    assert [fault.path for fault in caught.value.faults] == [
        "instance.jobs[0].steps[0].walltime",
        "instance.jobs[1].id",
    ]


def test_a_simulation_is_checked_too() -> None:
    """A workload built in Python is checked before it is simulated."""
    with pytest.raises(DocumentError, match="walltime"):
        simulate(_built(0), make_scheduler("fcfs"))


def test_replanning_is_checked_too() -> None:
    """A window built in Python is checked before it is planned anew."""
    plan = cpsched.solve(_built(), engine="planner", budget=0)
    with pytest.raises(DocumentError, match="walltime"):
        cpsched.replan(_built(0), plan)


@pytest.mark.parametrize("case", tiny_cases(), ids=lambda case: case.instance.name)
def test_what_is_in_order_stays_as_it_is(case: Any) -> None:
    """An instance that is in order is the same after the check; what a reader made is not even looked at."""
    assert checked(case.instance) == case.instance
    read = parse_instance(instance_to_document(case.instance))
    assert checked(read) is read


def _mutations(value: Any) -> Iterator[Any]:
    """Yield values like one, each with one thing changed to something odd somewhere inside."""
    odd: tuple[Any, ...] = (
        0,
        -1,
        2**63,
        1.5,
        float("nan"),
        None,
        "",
        "x\n",
        (),
        True,
        Fraction(1, 2),
        FrozenMap(),
        "a" * 300,
        ("a", "a"),
    )
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            for one in (*odd, *_mutations(getattr(value, field.name))):
                yield replace(value, **{field.name: one})
    elif isinstance(value, tuple):
        for index in range(len(value)):
            for one in (*odd, *_mutations(value[index])):
                yield (*value[:index], one, *value[index + 1 :])
    elif isinstance(value, FrozenMap):
        for key in value:
            for one in (*odd, *_mutations(value[key])):
                yield FrozenMap({**value, key: one})
                if one.__hash__ is not None:
                    yield FrozenMap({one: value[key]})


@pytest.mark.slow
@pytest.mark.parametrize("case", some(tiny_cases()[:6], 2), ids=lambda case: case.instance.name)
def test_odd_values_are_refused_or_in_order(case: Any) -> None:
    """Whatever one field of an instance is changed to: it is refused as a document is, or its document is in order."""
    queues = FrozenMap({**case.instance.queues, "q": Queue(expected_wait=5)})
    for instance in _mutations(replace(case.instance, queues=queues)):
        with suppress(DocumentError):
            result = checked(instance)
            assert parse_instance(instance_to_document(result)) == result
