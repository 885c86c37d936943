"""The variables of a model: starts, counts of units by site, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cpsched.cp.encoding import Encoding, Room

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntervalVar, IntVar

__all__ = ["Key", "Variables", "groups_of", "rooms_of"]

#: (task, part of the task, site).
Key = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Variables:
    """All variables; none of them is made anywhere else, so that hints are complete."""

    #: By task: second from now.
    starts: list[IntVar]
    #: By task: ``[start, start + duration)``.
    intervals: list[IntervalVar]
    #: How many units of a part stand on a site, and whether any does; one and the same where there is room for one.
    counts: dict[Key, IntVar]
    presences: dict[Key, IntVar]
    #: The alternatives of a task (BRIDI-5): its interval, if the part is on the site. All have the task's own start,
    #: which synchronizes the kinds of its chunks.
    alternatives: dict[Key, IntervalVar]
    #: By task and site: whether an exclusive task takes the node, and when.
    hosts: dict[tuple[int, int], IntVar]
    stays: dict[tuple[int, int], IntervalVar]
    #: By task, part and group of equal nodes (the number of its class): how many units stand there; only of parts
    #: that several groups have room for.
    totals: dict[Key, IntVar]
    #: By task and kink: seconds of delay beyond the kink.
    delays: dict[tuple[int, int], IntVar]
    #: Second by which all planned jobs have ended; None if the objective does not ask.
    makespan: IntVar | None

    @classmethod
    def of(cls, model: CpModel, encoding: Encoding) -> Variables:
        """Make the variables of a model."""
        starts = [model.new_int_var(task.earliest, task.latest, f"start{n}") for n, task in enumerate(encoding.tasks)]
        intervals = [
            model.new_fixed_size_interval_var(start, task.duration, f"task{number}")
            for number, (start, task) in enumerate(zip(starts, encoding.tasks, strict=True))
        ]
        variables = cls(starts, intervals, {}, {}, {}, {}, {}, {}, {}, _makespan(model, encoding))
        for key, room in rooms_of(encoding):
            variables._add_room(model, encoding, key, room)
        for number, task in enumerate(encoding.tasks):
            variables._add_totals(model, encoding, number)
            if task.is_exclusive:
                for site in sorted({room.site for part in task.parts for room in part.rooms}):
                    variables._add_host(model, encoding, number, site)
            for rate in encoding.costs.rates[number]:
                if rate.kink > task.earliest:
                    delay = model.new_int_var(0, task.latest - rate.kink, f"delay{number}>{rate.kink}")
                    variables.delays[number, rate.kink] = delay
        return variables

    def _add_room(self, model: CpModel, encoding: Encoding, key: Key, room: Room) -> None:
        """Make the variables of a part on a site."""
        name = "{}.{}@{}".format(*key)
        present = model.new_bool_var(f"on{name}")
        self.presences[key] = present
        self.counts[key] = present if room.most == 1 else model.new_int_var(0, room.most, f"count{name}")
        self.alternatives[key] = model.new_optional_fixed_size_interval_var(
            self.starts[key[0]], encoding.tasks[key[0]].duration, present, f"alternative{name}"
        )

    def _add_totals(self, model: CpModel, encoding: Encoding, number: int) -> None:
        """Make the variables that count the units of a task's parts by group of nodes."""
        for place, part in enumerate(encoding.tasks[number].parts):
            groups = groups_of(encoding, number, place)
            for group in groups if len(groups) > 1 else ():
                self.totals[number, place, group] = model.new_int_var(0, part.need, f"total{number}.{place}@{group}")

    def _add_host(self, model: CpModel, encoding: Encoding, number: int, site: int) -> None:
        """Make the variables of an exclusive task on a site."""
        host = model.new_bool_var(f"host{number}@{site}")
        self.hosts[number, site] = host
        self.stays[number, site] = model.new_optional_fixed_size_interval_var(
            self.starts[number], encoding.tasks[number].duration, host, f"stay{number}@{site}"
        )


def rooms_of(encoding: Encoding) -> Iterator[tuple[Key, Room]]:
    """Yield every part of every task with each of its rooms."""
    for number, task in enumerate(encoding.tasks):
        for place, part in enumerate(task.parts):
            for room in part.rooms:
                yield (number, place, room.site), room


def groups_of(encoding: Encoding, number: int, place: int) -> dict[int, list[Room]]:
    """Return the rooms of a part by group of equal nodes."""
    groups: dict[int, list[Room]] = {}
    for room in encoding.tasks[number].parts[place].rooms:
        groups.setdefault(encoding.sites[room.site].group, []).append(room)
    return groups


def _makespan(model: CpModel, encoding: Encoding) -> IntVar | None:
    """Make the variable of the makespan, if it costs."""
    if not encoding.costs.makespan:
        return None
    return model.new_int_var(0, encoding.horizon, "makespan")
