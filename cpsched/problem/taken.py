"""What of nodes and licences is taken in every plan: by running jobs as they continue, and by what is set aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cpsched.domain import Amounts, Chunk, Instance, NodeClass, PlannedJob

#: A resource of a node; with a beneficiary, the part of it that chunks which do not ask for the beneficiary may have
#: together (``keep_free``).
Column = tuple[str, str | None]


class TakenOnNode(NamedTuple):
    """Amounts of a node that are taken in ``[start, end)``, in seconds from now."""

    node: str
    resources: Amounts
    start: int
    end: int
    #: Whether nothing else may be on the node then.
    is_exclusive: bool


class TakenLicense(NamedTuple):
    """An amount of a licence that is taken in ``[start, end)``, in seconds from now."""

    name: str
    amount: int
    start: int
    end: int


def taken_on_nodes(instance: Instance, running: Sequence[PlannedJob]) -> Iterator[TakenOnNode]:
    """Yield the amounts of nodes that running jobs take from now on, and those that are set aside.

    `running`: running jobs as they continue.
    """
    now = instance.now
    exclusive = {element: job.steps[0].request.place.exclusive for job in instance.jobs for element in job.element_ids}
    for planned in running:
        for segment in planned.segments:
            for held in segment.allocation if segment.end > now else ():
                start, end = max(0, segment.start - now), segment.end - now
                yield TakenOnNode(held.node, held.resources, start, end, exclusive.get(planned.id, False))
    for aside in instance.set_aside:
        for held in aside.allocation if aside.end > now else ():
            yield TakenOnNode(held.node, held.resources, max(0, aside.start - now), aside.end - now, False)


def taken_licenses(instance: Instance, running: Sequence[PlannedJob]) -> Iterator[TakenLicense]:
    """Yield the licences that running jobs take from now on, and those that are set aside."""
    now = instance.now
    asked = {element: job.licenses for job in instance.jobs for element in job.element_ids}
    spans: list[tuple[int, int, Mapping[str, int]]] = [
        *((planned.start, planned.end, asked[planned.id]) for planned in running),
        *((aside.start, aside.end, aside.licenses) for aside in instance.set_aside),
    ]
    for start, end, amounts in spans:
        for name, amount in amounts.items() if end > now else ():
            if amount:
                yield TakenLicense(name, amount, max(0, start - now), end - now)


def amount_of(column: Column, unit: Sequence[tuple[Chunk, int]]) -> int:
    """Return what a unit, of a number of chunks of some kinds together on a node, takes of a column."""
    name, kept_for = column
    return sum(count * chunk.resources.get(name, 0) for chunk, count in unit if kept_for not in chunk.resources)


def columns_of(node_class: NodeClass) -> dict[Column, int]:
    """Return the capacity of each column of a node."""
    columns: dict[Column, int] = {(name, None): amount for name, amount in node_class.resources.items()}
    for rule in node_class.keep_free:
        key = (rule.resource, rule.beneficiary)
        left = max(0, node_class.resources.get(rule.resource, 0) - rule.items)
        columns[key] = min(left, columns.get(key, left))
    return columns
