"""Other machines, rules and limits: how they are written, and what they make of an instance."""

from __future__ import annotations

import pytest

from cpsched.answers import WhatIf, changed_instance, check_limits, parse_history_change
from cpsched.domain import Instance
from cpsched.errors import CpschedError, DocumentError
from cpsched.formats import parse_instance

#: Two kinds of nodes; the queue `gpu` has those with GPUs, the queue `rest` the others.
DOCUMENT = {
    "format": "cpsched-instance/1",
    "name": "two kinds",
    "cluster": {
        "nodes": [
            {"names": "c[1-3]", "resources": {"cores": 16, "mem": 100}, "properties": {"net": "eth"}},
            {"names": "g[1-2]", "resources": {"cores": 8, "gpus": 4}, "properties": {"net": "ib"}},
        ]
    },
    "queues": {
        "gpu": {"expected_wait": 100, "nodes": "g[1-2]"},
        "rest": {"expected_wait": 100, "nodes": {"net": "eth"}},
        "all": {"expected_wait": 100},
    },
    "jobs": [
        {"id": "1", "user": "ann", "group": "ph", "submit": 0, "walltime": 9, "request": "ncpus=1", "licenses": {}},
        {
            "id": "2",
            "user": "bob",
            "submit": 0,
            "walltime": 9,
            "request": "ncpus=1:ngpus=1",
            "array": {"indices": "0-1"},
        },
    ],
}


@pytest.fixture
def instance() -> Instance:
    """Return the instance."""
    return parse_instance(DOCUMENT)


def changed(instance: Instance, *nodes: str) -> Instance:
    """Return the instance with other nodes."""
    return changed_instance(instance, WhatIf(nodes=nodes))


def test_new_nodes_are_like_those_that_are_asked_for(instance: Instance) -> None:
    """They have all that the others of their kind have, in the same queues, under free names."""
    found = changed(instance, "add 2 nodes with gpus=4")
    new = found.cluster.classes[-1]
    assert (new.names, dict(new.resources), dict(new.properties)) == (
        ("added1", "added2"),
        {"cores": 8, "gpus": 4},
        {"net": "ib"},
    )
    assert found.queues["gpu"].nodes == ("g1", "g2", "added1", "added2")
    assert found.queues["rest"].nodes == ("c1", "c2", "c3")
    assert found.queues["all"].nodes is None
    assert changed(found, "add 1 node").cluster.classes[-1].names == ("added3",)


def test_new_nodes_of_a_new_kind_are_like_most(instance: Instance) -> None:
    """With what is asked for in addition, ncpus for cores; properties are asked for as amounts are."""
    new = changed(instance, "add 1 node with gpus=2, ncpus=64, net=opa").cluster.classes[-1]
    assert dict(new.resources) == {"cores": 64, "mem": 100, "gpus": 2}
    assert dict(new.properties) == {"net": "opa"}
    assert dict(changed(instance, "add 1 node with net=ib").cluster.classes[-1].resources) == {"cores": 8, "gpus": 4}


def test_nodes_are_removed_by_kind_or_by_name(instance: Instance) -> None:
    """Of a kind the last ones; their queues lose them."""
    found = changed(instance, "remove 1 nodes with cores=16", "remove node g1")
    assert found.cluster.node_names == ("c1", "c2", "g2")
    assert (found.queues["gpu"].nodes, found.queues["rest"].nodes) == (("g2",), ("c1", "c2"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("add 0 nodes", "Expected 1 node or more"),
        ("add 2 nodes with gpus", "Expected a resource with an amount"),
        ("remove 3 nodes with gpus=4", "at most 2 nodes with gpus=4"),
        ("remove 9 nodes", "at most 5 nodes, as the cluster has"),
        ("remove c[1-3],g[1-2]", "Expected a cluster that keeps a node"),
        ("remove z1", "Expected nodes of the cluster, got z1"),
        ("double everything", "Expected 'add 20 nodes with gpus=4'"),
    ],
)
def test_other_nodes_that_cannot_be_are_refused(instance: Instance, text: str, said: str) -> None:
    """The message says what there is."""
    with pytest.raises(CpschedError) as refusal:
        changed(instance, text)
    assert said in str(refusal.value)


def test_an_alternative_has_parts() -> None:
    """A scheduler, and what is different about the machine; limits stay texts."""
    found = parse_history_change(' policy=sjf backfill=easy ; limit={"a": 1};drain=c[1-2]; drain=g1 ;add 2 nodes')
    assert found.scheduler == "sjf backfill=easy"
    assert found.request == WhatIf(drain=("c1", "c2", "g1"), limit=('{"a": 1}',), nodes=("add 2 nodes",))
    assert parse_history_change("engine=planner").request.is_empty


@pytest.mark.parametrize("text", ["", "engine=", "speed=2", "engine=easy;policy=fcfs", "easy"])
def test_what_is_no_alternative_is_refused(text: str) -> None:
    """With what could be there."""
    with pytest.raises(DocumentError, match="Expected"):
        parse_history_change(text)


@pytest.mark.parametrize(
    ("consumer", "resource", "said"),
    [
        ({"user": "ann"}, "cores", ""),
        ({"each": "user"}, "gpus", ""),
        ({"group": "ph"}, "jobs", ""),
        ({"each": "user"}, "arrayjobs", ""),
        ({"user": "anne"}, "cores", "the user 'anne'"),
        ({"group": "chem"}, "*", "the group 'chem'"),
        ({"user": "ann"}, "mem", "'mem'"),
    ],
)
def test_limits_that_nobody_meets_are_named(
    instance: Instance, consumer: dict[str, str], resource: str, said: str
) -> None:
    """A consumer without jobs, or a resource for which no job asks."""
    limit = {"consumer": consumer, "resource": resource, "items": "1"}
    limits = parse_instance(DOCUMENT | {"limits": [limit]}).limits
    if not said:
        check_limits(limits, instance)
        return
    with pytest.raises(DocumentError) as refusal:
        check_limits(limits, instance)
    assert said in str(refusal.value)
