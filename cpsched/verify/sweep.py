"""The event sweep: when do overlapping uses together take more than there is."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

Owner = TypeVar("Owner")


class Use(NamedTuple, Generic[Owner]):
    """Amounts by resource that `owner` takes during ``[start, end)``."""

    start: int
    end: int
    amounts: Mapping[str, int]
    owner: Owner


class Overload(NamedTuple):
    """During ``[start, end)`` the uses take `level` of a resource, of which there is less."""

    start: int
    end: int
    resource: str
    level: int


def overloads(uses: Sequence[Use[Owner]], capacity: Mapping[str, int]) -> Iterator[Overload]:
    """Yield every moment, in order of time, at which `uses` take more of a resource than its `capacity`.

    A resource without capacity has none. One event per start and end: ``O(n log n)`` for n uses.
    """
    # An end is a negative number, so at equal times ends come before starts: intervals are half-open.
    events: list[tuple[int, int]] = []
    for index, use in enumerate(uses, 1):
        events.append((use.start, index))
        events.append((use.end, -index))
    events.sort()
    levels: dict[str, int] = {}
    over: set[str] = set()
    last = 0
    for time, index in events:
        if over and time > last:
            for resource in sorted(over):
                yield Overload(last, time, resource, levels[resource])
        last = time
        if index > 0:
            for resource, amount in uses[index - 1].amounts.items():
                levels[resource] = level = levels.get(resource, 0) + amount
                if level > capacity.get(resource, 0):
                    over.add(resource)
        else:
            for resource, amount in uses[-index - 1].amounts.items():
                levels[resource] -= amount
                if over and levels[resource] <= capacity.get(resource, 0):
                    over.discard(resource)


def holders(uses: Sequence[Use[Owner]], resource: str, time: int) -> list[Owner]:
    """Return the holders of a resource at a moment, each once, in the order of `uses`."""
    owners = [use.owner for use in uses if use.start <= time < use.end and use.amounts.get(resource, 0)]
    return list({id(owner): owner for owner in owners}.values())
