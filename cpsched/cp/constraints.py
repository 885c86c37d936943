"""The constraints of a model: one function, one sentence, one formula each.

s_j is the start of task j, p_j whether one that may be left out has a place (1 for all others), x_jkn how many units of
its part k stand on site n, y_jkn whether any does, h_jn whether an exclusive task takes the site; r_jkc and cap_nc are
what a unit takes, and the site has, of column c.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cpsched.cp.encoding import Alternative, Encoding, Task
from cpsched.cp.sites import Pool, added_up
from cpsched.cp.variables import Key, Variables, alternatives_of
from cpsched.problem import Column, Hold

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntervalVar, IntVar, LinearExpr


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a pool by an interval: `amount` times `count`."""

    interval: IntervalVar
    amount: int
    count: IntVar | int
    most: int
    #: The least seconds of the interval, if it is there.
    seconds: int = 0


def cumulative(model: CpModel, pool: Pool, uses: Sequence[Use]) -> None:
    """Add a cumulative constraint, unless all uses fit beside each other and beside what is taken already.

    Where no two fit beside each other (one licence, one GPU, nodes as a whole), it is a no-overlap (BRIDI-5).
    """
    largest = sum(use.amount * use.most for use in uses) + max((hold.amount for hold in pool.holds), default=0)
    if largest <= pool.capacity:
        return
    holds = [model.new_fixed_size_interval_var(hold.start, hold.end - hold.start, "hold") for hold in pool.holds]
    intervals = [*(use.interval for use in uses), *holds]
    if _excludes_each_other(pool, uses):
        model.add_no_overlap(intervals)
        return
    demands = [*(use.amount * use.count for use in uses), *(hold.amount for hold in pool.holds)]
    model.add_cumulative(intervals, demands, pool.capacity)


def _excludes_each_other(pool: Pool, uses: Sequence[Use]) -> bool:
    """Return whether of a pool no two uses fit at a time, and none beside what is taken."""
    least, *others = sorted(use.amount for use in uses)
    taken = min((hold.amount for hold in pool.holds), default=pool.capacity)
    return least + min([taken, *others[:1]]) > pool.capacity and all(
        use.seconds > 0 and use.amount * use.most <= pool.capacity for use in uses
    )


def one_mode(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Run each task that has a place in one mode, and be done in time (SD-3): sum_w z_jw = p_j, end_j <= end_by_j."""
    for number, task in enumerate(encoding.tasks):
        if len(task.modes) > 1:
            chosen = [variables.modes[number, mode] for mode in range(len(task.modes))]
            if number in variables.places:
                model.add(sum(chosen) == variables.places[number])
            else:
                model.add_exactly_one(chosen)
            model.add(variables.end_of(number, task) <= task.end_by)


def left_out(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Start a task without a place at its earliest, where it costs nothing: not p_j => s_j = earliest_j."""
    for number, place in variables.places.items():
        model.add(variables.starts[number] == encoding.tasks[number].earliest).only_enforce_if(~place)
        if number in variables.ends:
            model.add(variables.ends[number] == variables.starts[number]).only_enforce_if(~place)


def work(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Make a malleable job do its work and end when that is done (SD-3): W <= sum_i rate_i l_ji < W + rate of the last.

    That holds for the mode in which it is run alone; in all others its segments are as short as they can be.
    """
    for number, task in enumerate(encoding.tasks):
        for place, mode in enumerate(task.modes) if number in variables.ends else ():
            chosen = variables.modes[number, place]
            model.add(variables.ends[number] == variables.times[number, place][-1]).only_enforce_if(chosen)
            if mode.work is None:
                continue
            lengths = [end - begin for begin, end in pairwise(variables.times[number, place])]
            done = sum(rate * length for rate, length in zip(mode.work.rates, lengths, strict=True))
            most = mode.work.amount + mode.work.rates[-1] - 1
            model.add_linear_constraint(done, mode.work.amount, most).only_enforce_if(chosen)
            for length, span in zip(lengths, mode.spans, strict=True):
                model.add(length == span.least).only_enforce_if(~chosen)


def alternative(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Exactly as many units are placed as are asked for (BRIDI-5): sum_n x_jkn = need_jk z_jw, w the mode of k."""
    for number, task in enumerate(encoding.tasks):
        for place, part in enumerate(task.parts):
            is_run_so = variables.is_run_so(number, part.mode)
            model.add(
                sum(variables.counts[number, place, alternative.site] for alternative in part.alternatives)
                == part.need * is_run_so
            )


def presence(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Place a part on a site if and only if one of its units is there: y_jkn <= x_jkn <= most_jkn y_jkn."""
    for key, alternative in alternatives_of(encoding):
        if alternative.most > 1:
            model.add(variables.counts[key] >= variables.presences[key])
            model.add(variables.counts[key] <= alternative.most * variables.presences[key])


def scatter(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Allow a scattered job at most one chunk, of any kind, on a node: sum_k x_jkn <= 1, in each segment."""
    for number, task in enumerate(encoding.tasks):
        if not task.is_scattered:
            continue
        for keys in dict.fromkeys(
            tuple(alternatives) for _, _, _, alternatives in _alternatives_by_segment(number, task)
        ):
            if len(keys) > 1:
                model.add(sum(variables.counts[key] for key in keys) <= 1)


def within(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Keep all chunks of a task in one group of nodes: sum_{n in g} x_jkn <= need_jk z_jg, sum_g z_jg <= 1; or in each
    group a multiple of its segment, or few enough: sum_{n in g} x_jkn = unit_jk z_jg.
    """
    choices: defaultdict[tuple[int, int], dict[tuple[str, str], IntVar]] = defaultdict(dict)
    for (number, mode, group), times in variables.groups.items():
        for place, part in enumerate(encoding.tasks[number].parts):
            sites = [one.site for one in part.alternatives if encoding.group_of(number, place, one.site) == group]
            if part.mode == mode and sites:
                unit, _ = encoding.units_in_groups(number, place)
                there = sum(variables.counts[number, place, site] for site in sites)
                model.add(there <= unit * times if unit == part.need else there == unit * times)
                if unit == part.need:
                    choices[number, mode][group] = times
    for of_mode in choices.values():
        model.add_at_most_one(of_mode.values())


def capacity(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Keep the use of each site within its capacity (BRIDI-7): cumulative over j, k of r_jkc x_jkn <= cap_nc.

    An exclusive task takes all of its nodes: cap_nc h_jn, which is a no-overlap with all other tasks.
    """
    uses: defaultdict[tuple[int, Column], list[Use]] = defaultdict(list)
    for key, alternative in alternatives_of(encoding):
        number, place, site = key
        if encoding.tasks[number].is_exclusive:
            continue
        part = encoding.tasks[number].parts[place]
        of_part, runs = encoding.tasks[number].modes[part.mode], part.runs(alternative)
        for (first, last, takes), interval in zip(runs, variables.alternatives[key], strict=True):
            for column, amount in takes.items():
                use = Use(interval, amount, variables.counts[key], alternative.most, of_part.least_of(first, last))
                uses[site, column].append(use)
    for (number, mode, segment, site), host in variables.hosts.items():
        for column, pool in encoding.sites[site].pools.items():
            seconds = encoding.tasks[number].modes[mode].least_of(segment, segment)
            uses[site, column].append(
                Use(variables.stays[number, mode, segment, site], pool.capacity, host, 1, seconds)
            )
    for (site, column), of_column in uses.items():
        cumulative(model, encoding.sites[site].pools[column], of_column)


def exclusive(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Make an exclusive task take the nodes that its units need, and no others: sum_k r_jkc x_jkn <= cap_nc h_jn."""
    for number, task in enumerate(encoding.tasks):
        for mode, segment, site, alternatives in _alternatives_by_segment(number, task) if task.is_exclusive else ():
            host = variables.hosts[number, mode, segment, site]
            model.add(host <= sum(variables.counts[key] for key in alternatives))
            for key, alternative in alternatives.items():
                model.add(variables.counts[key] <= alternative.most * host)
            if len(alternatives) > 1:
                takes = {
                    key: alternative.takes[segment - task.parts[key[1]].first]
                    for key, alternative in alternatives.items()
                }
                for column, pool in encoding.sites[site].pools.items():
                    taken = [takes[key].get(column, 0) * variables.counts[key] for key in alternatives]
                    model.add(sum(taken) <= pool.capacity * host)


def whole_nodes(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Take no more nodes than there are, where only their number matters: cumulative over j, i of n_ji <= nodes."""
    if encoding.machine is None:
        return
    uses = [
        Use(
            variables.intervals[number, mode, segment, segment],
            chunks,
            1,
            1,
            task.modes[mode].least_of(segment, segment),
        )
        for number, task in enumerate(encoding.tasks)
        for mode, segment in task.segments
        for chunks in [sum(chunk.count for chunk in task.modes[mode].requests[segment].chunks)]
    ]
    holds = [*(Hold(0, time, 1) for time in encoding.machine.free_from if time), *encoding.held]
    cumulative(model, Pool(len(encoding.machine.names), tuple(added_up(holds))), uses)


def licenses(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Keep the use of each licence within its total: cumulative over j of l_j <= licences."""
    for name, pool in encoding.licenses.items():
        uses = [
            Use(variables.intervals[number, place, 0, len(mode.spans) - 1], amount, 1, 1, mode.least)
            for number, task in enumerate(encoding.tasks)
            for place, mode in enumerate(task.modes)
            if (amount := task.job.licenses_of(place).get(name, 0))
        ]
        cumulative(model, pool, uses)


def consumed(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Consume no more of a licence that does not come back than there is: sum_j,w l_jw z_jw <= licences."""
    for name, amount in encoding.consumable.items():
        taken = [
            task.job.licenses_of(mode).get(name, 0) * variables.is_run_so(number, mode)
            for number, task in enumerate(encoding.tasks)
            if not task.is_running
            for mode in range(len(task.modes))
        ]
        model.add(sum(taken) <= amount)


def milestones(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Make a task wait for the tasks that it depends on: s_j >= s_i + lag_i + lag_j if p_j, and p_j <= p_i; and more if
    i is held and j awaits its end. Between several and several there is a moment m: m >= s_i + lag_i, s_j >= m + lag_j.
    """
    for number, milestone in enumerate(encoding.milestones):
        before = [
            (variables.passed(encoding.tasks[one], one, seconds, milestone), variables.places.get(one))
            for one, seconds in milestone.before
        ]
        if number in variables.moments:
            moment, reached = variables.moments[number], variables.reached.get(number)
            for since, place in before:
                _wait(model, moment, since, reached, place)
            before = [(moment, reached)]
        for one, delay in milestone.after:
            for since, place in before:
                _wait(model, variables.starts[one], since + delay, variables.places.get(one), place)


def longest_delays(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Start a task at most so long after another one's start or end: s_j <= s_i + most, or end_i + most, if p_j."""
    for before, after, most, is_from_end in encoding.longest_delays:
        since = variables.end_of(before, encoding.tasks[before]) if is_from_end else variables.starts[before]
        limit = model.add(variables.starts[after] <= since + most)
        if after in variables.places:
            limit.only_enforce_if(variables.places[after])


def _wait(model: CpModel, time: LinearExpr, since: LinearExpr, is_there: IntVar | None, place: IntVar | None) -> None:
    """Make a time wait for another one, and its being there for that one's place, as far as they may be left out."""
    wait = model.add(time >= since)
    if is_there is not None:
        wait.only_enforce_if(is_there)
        if place is not None:
            model.add_implication(is_there, place)


def _alternatives_by_segment(number: int, task: Task) -> Iterator[tuple[int, int, int, dict[Key, Alternative]]]:
    """Yield for each segment of a task (mode, segment) and site the alternatives of the parts that are there."""
    for mode, segment in task.segments:
        alternatives: defaultdict[int, dict[Key, Alternative]] = defaultdict(dict)
        for place, part in enumerate(task.parts):
            for alternative in part.alternatives if part.is_there(mode, segment) else ():
                alternatives[alternative.site][number, place, alternative.site] = alternative
        for site, of_site in alternatives.items():
            yield mode, segment, site, of_site


#: All that a plan must obey.
CONSTRAINTS = (
    one_mode,
    left_out,
    work,
    alternative,
    presence,
    scatter,
    within,
    capacity,
    exclusive,
    whole_nodes,
    licenses,
    consumed,
    milestones,
    longest_delays,
)
