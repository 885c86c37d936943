"""Capacities and their present use: nodes on which new jobs may start, licences, and running jobs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cpsched.domain import FrozenMap, Instance, PlannedJob, resumable
from cpsched.problem import Column, Hold, Machine, beyond_equal_nodes, columns_of, taken_licenses, taken_on_nodes


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
    #: With its group of each level of the topology that a job asks for.
    properties: Mapping[str, str] = FrozenMap()


def sites_of(instance: Instance, running: Sequence[PlannedJob], horizon: int) -> tuple[Site, ...]:
    """Return the nodes that are up, with what is taken of them before the horizon."""
    holds = _holds_by_node(instance, running)
    return tuple(
        Site(
            name,
            group,
            {
                column: pool_of(amount, holds.get((name, column), ()), horizon)
                for column, amount in columns_of(node_class).items()
            },
            node_class.properties,
        )
        for group, node_class in enumerate(instance.cluster.classes)
        if node_class.is_up
        for name in node_class.names
    )


def machine_of(instance: Instance) -> Machine | None:
    """Return the nodes as a number of them, where they are alike and each job has its own; None elsewhere."""
    is_changing = any(resumable(job, instance.now) is not None for job in instance.jobs)
    if is_changing or beyond_equal_nodes(instance):
        return None
    return Machine.of(instance)


def _holds_by_node(instance: Instance, running: Sequence[PlannedJob]) -> Mapping[tuple[str, Column], list[Hold]]:
    """Return the amounts of each column of each node that are taken in every plan; an exclusive job takes all of it."""
    holds: defaultdict[tuple[str, Column], list[Hold]] = defaultdict(list)
    columns = {name: of_class for c in instance.cluster.classes for of_class in [columns_of(c)] for name in c.names}
    for taken in taken_on_nodes(instance, running):
        for (name, kept_for), capacity in columns[taken.node].items():
            amount = 0 if kept_for in taken.resources else taken.resources.get(name, 0)
            if taken.is_exclusive:
                amount = capacity
            if amount:
                holds[taken.node, (name, kept_for)].append(Hold(taken.start, taken.end, amount))
    return holds


def licenses_of(instance: Instance, running: Sequence[PlannedJob], horizon: int) -> dict[str, Pool]:
    """Return the licences of the cluster that come back, and what of them running jobs take or is set aside."""
    holds: defaultdict[str, list[Hold]] = defaultdict(list)
    for taken in taken_licenses(instance, running):
        holds[taken.name].append(Hold(taken.start, taken.end, taken.amount))
    return {
        name: pool_of(amount, holds.get(name, ()), horizon)
        for name, amount in instance.cluster.licenses.items()
        if name not in instance.cluster.consumed
    }


def pool_of(capacity: int, holds: Iterable[Hold], horizon: int) -> Pool:
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
