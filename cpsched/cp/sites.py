"""Capacities and their present use: nodes on which new jobs may start, licences, and running jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cpsched.domain import Instance, NodeClass, NodeState, PlannedJob, resumable
from cpsched.problem import Machine, beyond_whole_nodes

__all__ = [
    "Column",
    "Hold",
    "Pool",
    "Site",
    "added_up",
    "columns_of",
    "licenses_of",
    "machine_of",
    "sites_of",
]

#: A resource of a node; with a beneficiary, the part of it that chunks which do not ask for the beneficiary may have
#: together (``keep_free``).
Column = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Hold:
    """An amount that is taken in ``[start, end)`` in every plan."""

    start: int
    end: int
    amount: int


@dataclass(frozen=True, slots=True)
class Pool:
    """An amount that tasks share, and what of it is taken already: holds in time order without overlap."""

    capacity: int
    holds: tuple[Hold, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A node on which new work may start."""

    name: str
    #: The number of its class: sites of a class differ in their names and in what is taken.
    group: int
    #: By column: what it has, and what of it is taken already.
    pools: Mapping[Column, Pool]


def sites_of(instance: Instance, running: Sequence[PlannedJob], horizon: int) -> tuple[Site, ...]:
    """Return the nodes that are up, with what is taken of them before the horizon."""
    holds = _holds_by_node(instance, running)
    return tuple(
        Site(
            name,
            group,
            {
                column: _pool(amount, holds.get((name, column), ()), horizon)
                for column, amount in columns_of(node_class).items()
            },
        )
        for group, node_class in enumerate(instance.cluster.classes)
        if node_class.state is NodeState.UP
        for name in node_class.names
    )


def machine_of(instance: Instance) -> Machine | None:
    """Return the nodes as a number of them, where they are alike and each job has its own; None elsewhere."""
    is_changing = any(resumable(job, instance.now) is not None for job in instance.jobs)
    if is_changing or beyond_whole_nodes(instance):
        return None
    return Machine.of(instance)


def columns_of(node_class: NodeClass) -> dict[Column, int]:
    """Return the capacity of each column of a node."""
    columns: dict[Column, int] = {(name, None): amount for name, amount in node_class.resources.items()}
    for rule in node_class.keep_free:
        key = (rule.resource, rule.beneficiary)
        left = max(0, node_class.resources.get(rule.resource, 0) - rule.items)
        columns[key] = min(left, columns.get(key, left))
    return columns


def _holds_by_node(instance: Instance, running: Sequence[PlannedJob]) -> Mapping[tuple[str, Column], list[Hold]]:
    """Return the amounts of each column of each node that running jobs take or that are set aside; an exclusive job
    takes all of its nodes.
    """
    exclusive = {element: job.steps[0].request.place.exclusive for job in instance.jobs for element in job.element_ids}
    holds: defaultdict[tuple[str, Column], list[Hold]] = defaultdict(list)
    columns = {name: of_class for c in instance.cluster.classes for of_class in [columns_of(c)] for name in c.names}
    for planned in running:
        for segment in planned.segments:
            start, end = max(0, segment.start - instance.now), segment.end - instance.now
            for held in segment.allocation if end > 0 else ():
                for (name, kept_for), capacity in columns[held.node].items():
                    amount = 0 if kept_for in held.resources else held.resources.get(name, 0)
                    if exclusive.get(planned.id, False):
                        amount = capacity
                    if amount:
                        holds[held.node, (name, kept_for)].append(Hold(start, end, amount))
    for aside in instance.set_aside:
        for held in aside.allocation:
            for name, kept_for in columns[held.node]:
                amount = 0 if kept_for in held.resources else held.resources.get(name, 0)
                if amount and aside.end > instance.now:
                    span = max(0, aside.start - instance.now), aside.end - instance.now
                    holds[held.node, (name, kept_for)].append(Hold(*span, amount))
    return holds


def licenses_of(instance: Instance, running: Sequence[PlannedJob], horizon: int) -> dict[str, Pool]:
    """Return the licences of the cluster, and what of them running jobs take or is set aside."""
    asked = {element: job.licenses for job in instance.jobs for element in job.element_ids}
    return {
        name: _pool(
            amount,
            [
                Hold(max(0, start - instance.now), end - instance.now, amounts[name])
                for start, end, amounts in [
                    *((planned.start, planned.end, asked[planned.id]) for planned in running),
                    *((aside.start, aside.end, aside.licenses) for aside in instance.set_aside),
                ]
                if amounts.get(name, 0) and end > instance.now
            ],
            horizon,
        )
        for name, amount in instance.cluster.licenses.items()
    }


def _pool(capacity: int, holds: Iterable[Hold], horizon: int) -> Pool:
    """Return a pool of which something is taken before the horizon.

    Running work is a fact, even where it breaks a rule: what it takes counts up to the capacity.
    """
    return Pool(
        capacity,
        tuple(
            Hold(hold.start, min(hold.end, horizon), min(hold.amount, capacity))
            for hold in added_up(holds)
            if hold.start < horizon
        ),
    )


def added_up(holds: Iterable[Hold]) -> Iterator[Hold]:
    """Yield holds that do not overlap, in time order, and take together what the given ones take."""
    changes: defaultdict[int, int] = defaultdict(int)
    for hold in holds:
        changes[hold.start] += hold.amount
        changes[hold.end] -= hold.amount
    level, since = 0, 0
    for time, change in sorted(changes.items()):
        if change:
            if level:
                yield Hold(since, time, level)
            level, since = level + change, time
