"""The nodes that reservations get."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.formats import parse_instance
from cpsched.planner import slices_of

BREAK = {"id": "v", "start": 10, "end": 60, "request": "2:ncpus=4", "place": "scatter", "kind": "downtime"}


def _nodes(reservation: dict[str, Any], **node: Any) -> list[str]:
    """Return the nodes that a reservation gets on two nodes of four cores."""
    instance = parse_instance(
        {
            "format": "cpsched-instance/1",
            "name": "two",
            "now": 0,
            "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4, "gpus": 1}, **node}]},
            "jobs": [],
            "reservations": [reservation],
        }
    )
    return [held.node for slice_ in slices_of(instance) for held in slice_.allocation]


@pytest.mark.parametrize(
    "node",
    [
        {"admits": [{"max_walltime": 20}]},
        {"admits": [{"min": {"gpus": 1}}]},
        {"keep_free": [{"resource": "cores", "items": 2, "for": "gpus"}]},
    ],
)
def test_guards_are_not_held_against_reservations(node: dict[str, Any]) -> None:
    """A reservation has nodes whose guard, or what they keep free, would keep a job of its kind away."""
    assert _nodes(BREAK, **node) == ["n1", "n2"]
    assert _nodes({**BREAK, "kind": "users", "place": "scatter:excl"}, **node) == ["n1", "n2"]


@pytest.mark.parametrize("state", ["down", "drain"])
def test_only_a_downtime_has_nodes_that_are_not_up(state: str) -> None:
    """Nodes are maintained while they are down; nobody else can have them."""
    assert _nodes(BREAK, state=state) == ["n1", "n2"]
    assert _nodes({**BREAK, "kind": "users"}, state=state) == []


def test_one_that_finds_nothing_chooses_once_more_before_the_others() -> None:
    """A reservation that could have any node leaves the one that is free to a later one, which needs that."""
    instance = parse_instance(
        {
            "format": "cpsched-instance/1",
            "name": "two",
            "now": 0,
            "cluster": {"nodes": [{"names": "a,b", "resources": {"cores": 1}, "properties": {"kind": "old"}}]},
            "jobs": [],
            "reservations": [
                {"id": "any", "start": 10, "end": 40, "request": "1:ncpus=1"},
                {"id": "first", "start": 20, "end": 60, "nodes": "a"},
                {"id": "both", "start": 60, "end": 70, "request": "2:ncpus=1", "place": "scatter"},
            ],
        }
    )
    slices = slices_of(instance)
    assert [(one.id, [held.node for held in one.allocation]) for one in slices] == [
        ("any", ["b"]),
        ("first", ["a"]),
        ("both", ["a", "b"]),
    ]
