"""The constraints of a model: one function, one sentence, one formula each.

s_j is the start of task j, x_jkn how many units of its part k stand on site n, y_jkn whether any does, h_jn whether an
exclusive task takes the site; r_jkc and cap_nc are what a unit takes, and the site has, of column c.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cpsched.cp.encoding import Column, Encoding, Pool, Room
from cpsched.cp.variables import Key, Variables, rooms_of

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntervalVar, IntVar

__all__ = ["CONSTRAINTS", "Use", "cumulative"]


@dataclass(frozen=True, slots=True)
class Use:
    """What an interval takes of a pool: `amount` for each of what `count` counts."""

    interval: IntervalVar
    amount: int
    count: IntVar | int
    most: int


def cumulative(model: CpModel, pool: Pool, uses: Sequence[Use]) -> None:
    """Add a cumulative constraint, unless all uses fit beside each other and beside what is taken already."""
    largest = sum(use.amount * use.most for use in uses) + max((hold.amount for hold in pool.holds), default=0)
    if largest <= pool.capacity:
        return
    holds = [model.new_fixed_size_interval_var(hold.start, hold.end - hold.start, "hold") for hold in pool.holds]
    intervals = [*(use.interval for use in uses), *holds]
    demands = [*(use.amount * use.count for use in uses), *(hold.amount for hold in pool.holds)]
    model.add_cumulative(intervals, demands, pool.capacity)


def alternative(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Exactly as many units are placed as are asked for (BRIDI-5): sum_n x_jkn = need_jk."""
    for number, task in enumerate(encoding.tasks):
        for place, part in enumerate(task.parts):
            model.add(sum(variables.counts[number, place, room.site] for room in part.rooms) == part.need)


def presence(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Tell that a part is on a site if and only if one of its units is: y_jkn <= x_jkn <= most_jkn y_jkn."""
    for key, room in rooms_of(encoding):
        if room.most > 1:
            model.add(variables.counts[key] >= variables.presences[key])
            model.add(variables.counts[key] <= room.most * variables.presences[key])


def scatter(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Let a scattered job have at most one chunk, of any kind, on a node: sum_k x_jkn <= 1."""
    for (number, _), rooms in _rooms_by_site(encoding).items():
        if encoding.tasks[number].is_scattered and len(rooms) > 1:
            model.add(sum(variables.counts[key] for key in rooms) <= 1)


def capacity(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Nobody takes more of a site than there is (BRIDI-7): cumulative over j, k of r_jkc x_jkn <= cap_nc.

    An exclusive task takes all there is of its nodes: cap_nc h_jn, which is a no-overlap with everybody else.
    """
    uses: defaultdict[tuple[int, Column], list[Use]] = defaultdict(list)
    for key, room in rooms_of(encoding):
        if not encoding.tasks[key[0]].is_exclusive:
            for column, amount in room.takes.items():
                use = Use(variables.alternatives[key], amount, variables.counts[key], room.most)
                uses[room.site, column].append(use)
    for (number, site), host in variables.hosts.items():
        for column, pool in encoding.sites[site].pools.items():
            uses[site, column].append(Use(variables.stays[number, site], pool.capacity, host, 1))
    for (site, column), of_column in uses.items():
        cumulative(model, encoding.sites[site].pools[column], of_column)


def exclusive(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Let an exclusive task take the nodes that its units need, and no others: sum_k r_jkc x_jkn <= cap_nc h_jn."""
    for (number, site), rooms in _rooms_by_site(encoding).items():
        if not encoding.tasks[number].is_exclusive:
            continue
        host = variables.hosts[number, site]
        model.add(host <= sum(variables.counts[key] for key in rooms))
        for key, room in rooms.items():
            model.add(variables.counts[key] <= room.most * host)
        if len(rooms) > 1:
            for column, pool in encoding.sites[site].pools.items():
                taken = [room.takes.get(column, 0) * variables.counts[key] for key, room in rooms.items()]
                model.add(sum(taken) <= pool.capacity * host)


def licenses(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Nobody holds more of a licence than there is: cumulative over j of l_j <= licences."""
    for name, pool in encoding.licenses.items():
        uses = [
            Use(variables.intervals[number], amount, 1, 1)
            for number, task in enumerate(encoding.tasks)
            if (amount := task.job.licenses.get(name, 0))
        ]
        cumulative(model, pool, uses)


def lags(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Let a task wait for those that it depends on: s_j >= s_i + lag_ij."""
    for lag in encoding.lags:
        model.add(variables.starts[lag.after] >= variables.starts[lag.before] + lag.seconds)


def _rooms_by_site(encoding: Encoding) -> Mapping[tuple[int, int], dict[Key, Room]]:
    """Return the rooms of all parts of a task on a site, by task and site."""
    rooms: defaultdict[tuple[int, int], dict[Key, Room]] = defaultdict(dict)
    for key, room in rooms_of(encoding):
        rooms[key[0], room.site][key] = room
    return rooms


#: All that a plan must obey.
CONSTRAINTS = (alternative, presence, scatter, capacity, exclusive, licenses, lags)
