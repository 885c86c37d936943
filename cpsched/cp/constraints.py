"""The constraints of a model: one function, one sentence, one formula each.

s_j is the start of task j, x_jkn how many units of its part k stand on site n, y_jkn whether any does, h_jn whether an
exclusive task takes the site; r_jkc and cap_nc are what a unit takes, and the site has, of column c.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cpsched.cp.encoding import Encoding, Room, Task
from cpsched.cp.sites import Column, Hold, Pool, added_up
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


def one_way(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Run each task in one way, and be done in time (SD-3): sum_w z_jw = 1, end_j <= end_by_j."""
    for number, task in enumerate(encoding.tasks):
        if len(task.ways) > 1:
            model.add_exactly_one(variables.ways[number, way] for way in range(len(task.ways)))
            model.add(variables.end_of(number, task) <= task.end_by)


def work(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Let a running job do its work, and end when that is done (SD-3): W <= sum_i rate_i l_ji < W + rate of the last.

    In a way in which it is not run, the segments are as long as they are if the first one is shortest.
    """
    for number, task in enumerate(encoding.tasks):
        for place, way in enumerate(task.ways) if number in variables.ends else ():
            chosen = variables.ways[number, place]
            model.add(variables.ends[number] == variables.times[number, place][-1]).only_enforce_if(chosen)
            if way.work is None or way.is_fixed(0, len(way.spans) - 1):
                continue
            times = variables.times[number, place]
            lengths = [end - begin for begin, end in pairwise(times)]
            done = sum(rate * length for rate, length in zip(way.work.rates, lengths, strict=True))
            model.add_linear_constraint(done, way.work.amount, way.work.amount + way.work.rates[-1] - 1)
            model.add(lengths[0] == way.spans[0].least).only_enforce_if(~chosen)


def alternative(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Exactly as many units are placed as are asked for (BRIDI-5): sum_n x_jkn = need_jk z_jw, w being the way of k."""
    for number, task in enumerate(encoding.tasks):
        for place, part in enumerate(task.parts):
            is_run_so = variables.is_run_so(number, part.way)
            model.add(sum(variables.counts[number, place, room.site] for room in part.rooms) == part.need * is_run_so)


def presence(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Tell that a part is on a site if and only if one of its units is: y_jkn <= x_jkn <= most_jkn y_jkn."""
    for key, room in rooms_of(encoding):
        if room.most > 1:
            model.add(variables.counts[key] >= variables.presences[key])
            model.add(variables.counts[key] <= room.most * variables.presences[key])


def scatter(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Let a scattered job have at most one chunk, of any kind, on a node: sum_k x_jkn <= 1, in each segment."""
    for number, task in enumerate(encoding.tasks):
        if not task.is_scattered:
            continue
        for keys in dict.fromkeys(tuple(rooms) for _, _, _, rooms in _rooms_by_segment(number, task)):
            if len(keys) > 1:
                model.add(sum(variables.counts[key] for key in keys) <= 1)


def capacity(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Nobody takes more of a site than there is (BRIDI-7): cumulative over j, k of r_jkc x_jkn <= cap_nc.

    An exclusive task takes all there is of its nodes: cap_nc h_jn, which is a no-overlap with everybody else.
    """
    uses: defaultdict[tuple[int, Column], list[Use]] = defaultdict(list)
    for key, room in rooms_of(encoding):
        number, place, site = key
        if encoding.tasks[number].is_exclusive:
            continue
        runs = encoding.tasks[number].parts[place].runs(room)
        for (_, _, takes), interval in zip(runs, variables.alternatives[key], strict=True):
            for column, amount in takes.items():
                uses[site, column].append(Use(interval, amount, variables.counts[key], room.most))
    for (number, way, segment, site), host in variables.hosts.items():
        for column, pool in encoding.sites[site].pools.items():
            uses[site, column].append(Use(variables.stays[number, way, segment, site], pool.capacity, host, 1))
    for (site, column), of_column in uses.items():
        cumulative(model, encoding.sites[site].pools[column], of_column)


def exclusive(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Let an exclusive task take the nodes that its units need, and no others: sum_k r_jkc x_jkn <= cap_nc h_jn."""
    for number, task in enumerate(encoding.tasks):
        for way, segment, site, rooms in _rooms_by_segment(number, task) if task.is_exclusive else ():
            host = variables.hosts[number, way, segment, site]
            model.add(host <= sum(variables.counts[key] for key in rooms))
            for key, room in rooms.items():
                model.add(variables.counts[key] <= room.most * host)
            if len(rooms) > 1:
                takes = {key: room.takes[segment - task.parts[key[1]].first] for key, room in rooms.items()}
                for column, pool in encoding.sites[site].pools.items():
                    taken = [takes[key].get(column, 0) * variables.counts[key] for key in rooms]
                    model.add(sum(taken) <= pool.capacity * host)


def whole_nodes(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Take no more nodes than there are, where only their number matters: cumulative over j, i of n_ji <= nodes."""
    if encoding.machine is None:
        return
    uses = [
        Use(variables.intervals[number, way, segment, segment], chunks, 1, 1)
        for number, task in enumerate(encoding.tasks)
        for way, segment in task.segments
        for chunks in [sum(chunk.count for chunk in task.ways[way].requests[segment].chunks)]
    ]
    holds = [Hold(0, time, 1) for time in encoding.machine.free_from if time]
    cumulative(model, Pool(len(encoding.machine.names), tuple(added_up(holds))), uses)


def licenses(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Nobody holds more of a licence than there is: cumulative over j of l_j <= licences."""
    for name, pool in encoding.licenses.items():
        uses = [
            Use(variables.intervals[number, place, 0, len(way.spans) - 1], amount, 1, 1)
            for number, task in enumerate(encoding.tasks)
            if (amount := task.job.licenses.get(name, 0))
            for place, way in enumerate(task.ways)
        ]
        cumulative(model, pool, uses)


def lags(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Let a task wait for those that it depends on: s_j >= s_i + lag_ij."""
    for lag in encoding.lags:
        model.add(variables.starts[lag.after] >= variables.starts[lag.before] + lag.seconds)


def _rooms_by_segment(number: int, task: Task) -> Iterator[tuple[int, int, int, dict[Key, Room]]]:
    """Yield for each segment of a task (way, segment) and site the rooms of the parts that are there."""
    for way, segment in task.segments:
        rooms: defaultdict[int, dict[Key, Room]] = defaultdict(dict)
        for place, part in enumerate(task.parts):
            for room in part.rooms if part.is_there(way, segment) else ():
                rooms[room.site][number, place, room.site] = room
        for site, of_site in rooms.items():
            yield way, segment, site, of_site


#: All that a plan must obey.
CONSTRAINTS = (
    one_way,
    work,
    alternative,
    presence,
    scatter,
    capacity,
    exclusive,
    whole_nodes,
    licenses,
    lags,
)
