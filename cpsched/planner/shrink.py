"""Shrinking malleable jobs, running or waiting, so that others start earlier (D'Amico et al.; SD-2, by value).

SD-Policy checks whether a guest ends earlier and which mates suffer least. Here every change is tried on the ledger,
and kept if it improves the objective: all other jobs together gain more than the shrunk job loses. The cores of a
shrunk job are free for every job, together with all else that is free on its nodes.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger, Place
from cpsched.domain import Instance, ObjectiveTerm, PlannedJob, Request
from cpsched.metrics import end_rate, objective_value
from cpsched.planner.costs import FIRST_KINK, LEVEL, RATE, costs_at, end_price, start_costs
from cpsched.problem import is_optional
from cpsched.rusv import FOREVER, NOWHERE, Choices

#: The number of running jobs that are tried with fewer cores; it is lower if many other jobs would have to move up
#: each time. Trying more is left to a search.
_MOST_SHRUNK, _MOST_MOVES = 8, 2000
#: The number of jobs that are planned anew, each in the best of its modes, before no other try does so.
_MOST_PLACED = 300


class Values:
    """The costs of plans of some jobs on a ledger: the part of the objective that a plan can change."""

    def __init__(self, instance: Instance, ledger: Ledger) -> None:
        self._instance, self._ledger = instance, ledger
        counts = list(map(len, ledger.modes))
        self._first = np.cumsum([0, *counts])
        #: The row of the job of each mode, one job's modes after the other's; and (demand, latest start, duration).
        self._owners = np.repeat(np.arange(len(counts)), counts)
        flat = [figure for of_job in ledger.modes for mode in of_job for figure in mode[1:]]
        self._modes = np.array(flat, dtype=np.int64).reshape(-1, 3)
        rates = np.array(
            [
                float(end_rate(instance, job)) if count > 1 else 0.0
                for job, count in zip(ledger.jobs, counts, strict=True)
            ]
        )
        walltimes = np.array([job.walltime for job in ledger.jobs], dtype=np.int64)
        #: The costs of starts (see `start_costs`) in each mode.
        self.costs = start_costs(instance, ledger.jobs)[self._owners]
        self.costs[:, LEVEL] = rates[self._owners] * (self._modes[:, 2] - walltimes[self._owners])
        has_alternatives = np.array([bool(job.alternatives) for job in ledger.jobs], dtype=bool)
        if has_alternatives.any():  # no cost of an alternative is less than 0
            extra = [
                job.step_of(number).cost - job.steps[0].cost if job.alternatives else 0
                for job, count in zip(ledger.jobs, counts, strict=True)
                for number in range(count)
            ]
            self.costs[:, LEVEL] += rates[self._owners] * np.array(extra, dtype=np.int64)
            least = np.minimum.reduceat(self.costs[:, LEVEL], self._first[:-1])
            self.costs[:, LEVEL] -= np.where(has_alternatives, least, 0.0)[self._owners]
        #: The largest share of the machine that a job with alternatives takes in each mode, times its seconds.
        self.areas = np.where(has_alternatives[self._owners], self._areas(), 0.0)
        #: The costs of starts of a job (a row of the ledger) by its duration in seconds.
        self._known: dict[tuple[int, int], list[float]] = {}
        self._end_price = end_price(instance)
        self._waste_prices = [float(instance.term_weight(ObjectiveTerm.WASTE, job)) for job in ledger.jobs]
        self._ends = {job.id: job.running.segments[-1].end for job in instance.jobs if job.running is not None}
        self._end_rates = {
            job.id: float(end_rate(instance, job)) for job in instance.jobs if job.id in ledger.running.changeable
        }

    def cost_of(self, row: int, place: Place) -> float:
        """Return the cost of a place for a waiting job (a row of the ledger), the makespan ignored."""
        return self._cost(row, place.start, place.end - place.start) + self._waste_prices[row] * place.waste

    def _areas(self) -> NDArray[np.float64]:
        """Return the largest share of anything that a job takes in each mode, times its seconds."""
        cluster = self._instance.cluster
        totals = {name: total for name, total in cluster.totals.items() if total and not is_optional(name)}
        licenses = {name: total for name, total in cluster.licenses.items() if total}
        shares = [-1.0] * (int(self._modes[:, 0].max(initial=0)) + 1)
        for job, of_job in zip(self._ledger.jobs, self._ledger.modes, strict=True):
            for number, mode in enumerate(of_job) if job.alternatives else ():
                if shares[mode.demand] < 0:
                    asked, held = mode.request.totals.items(), job.licenses_of(number).items()
                    of_nodes = [amount / totals[name] for name, amount in asked if name in totals]
                    of_licenses = [amount / licenses[name] for name, amount in held if name in licenses]
                    shares[mode.demand] = max((0.0, *of_nodes, *of_licenses))
        areas: NDArray[np.float64] = np.array(shares)[self._modes[:, 0]] * self._modes[:, 2]
        return areas

    def choices(self, order: Sequence[int], charge: float) -> Choices:
        """Return the modes of all jobs, for planning jobs (rows of the ledger) in an order. A mode costs also what the
        jobs behind lose by what it takes: one that takes the whole machine for a second costs them `charge` seconds.
        """
        costs, behind = self.costs.copy(), np.zeros(len(self._first) - 1)
        rates = costs[self._first[list(order)], RATE]
        behind[list(order)] = rates[::-1].cumsum()[::-1] - rates
        costs[:, LEVEL] += charge * behind[self._owners] * self.areas
        cheapest_first = np.lexsort((costs[:, LEVEL], self._owners))
        return Choices(self._first, self._modes[cheapest_first], costs[cheapest_first])

    def _cost(self, row: int, start: int, duration: int) -> float:
        """Return the cost of a start (s after `now`) of a job with this duration."""
        known = self._known.get((row, duration))
        if known is None:
            costs = start_costs(self._instance, [self._ledger.jobs[row]], np.array([duration], dtype=np.int64))
            known = self._known[row, duration] = costs[0].tolist()
        cost = known[LEVEL] + known[RATE] * start
        for k in range(FIRST_KINK, len(known), 2):
            cost += known[k] * max(0.0, start - known[k + 1])
        return cost

    def offset(self) -> float:
        """Return the constant to add to these values to get those of the objective, if all jobs are planned."""
        return self._offset(range(len(self._ledger.jobs)))

    def own_offsets(self) -> NDArray[np.float64]:
        """Return the part of the constant (`offset`) that is each job's own: without it, if that job is not planned."""
        return np.array([self._offset([row]) for row in range(len(self._ledger.jobs))])

    def _offset(self, rows: Sequence[int]) -> float:
        """Return the constant, if only these jobs are planned."""
        instance, jobs = self._instance, [self._ledger.jobs[row] for row in rows]
        starts = np.array([instance.earliest_start(job) for job in jobs], dtype=np.int64)
        ends = starts + np.array([job.walltime for job in jobs], dtype=np.int64)
        plans = [
            PlannedJob(id=job.id, start=start, end=end, segments=())
            for job, start, end in zip(jobs, starts.tolist(), ends.tolist(), strict=True)
        ]
        costs = float(costs_at(self.costs[self._first[list(rows)]], starts[:, None] - instance.now).sum())
        return objective_value(instance, plans) - costs - self._end_price * int((ends - instance.now).max(initial=0))

    def of_running(self) -> float:
        """Return the cost of the changes of running jobs."""
        changed = self._ledger.running.changed
        return sum(self._end_rates[name] * (planned.end - self._ends[name]) for name, planned in changed.items())

    def _taken(self) -> NDArray[np.int64]:
        """Return which mode each job of the ledger has, the first of those that are the same to it."""
        own = self._ledger.table.jobs[self._owners]
        same = np.flatnonzero((self._modes[:, 0] == own[:, 0]) & (self._modes[:, 2] == own[:, 3]))
        taken = self._first[:-1].copy()
        taken[self._owners[same[::-1]]] = same[::-1]
        return taken

    def of_plan(self) -> float:
        """Return the cost of the plan on the ledger: of all jobs that have a place."""
        table, ledger = self._ledger.table, self._ledger
        is_plain = table.starts != NOWHERE
        in_parts = ledger.in_parts
        is_plain[in_parts] = False
        rows = np.flatnonzero(is_plain)
        costs = float(costs_at(self.costs[self._taken()[rows]], table.starts[rows, None]).sum())
        places = [(row, ledger.place_of(ledger.jobs[row].id)) for row in in_parts]
        last = int((table.starts[rows] + table.jobs[rows, 3]).max(initial=0))
        last = max([last, *(place.end for _, place in places)])
        costs += sum(self.cost_of(row, place) for row, place in places)
        return costs + self._end_price * last + self.of_running()


def begin_shrunk(
    ledger: Ledger, order: Sequence[str], values: Values, charge: float = 1.0, *, others: Sequence[str] = ()
) -> None:
    """Book waiting jobs that have no place, in this order, each in the mode and at the place that cost it least, with
    what an alternative is charged for the jobs behind it (`Values.choices`). `others` count as such, too.
    """
    rows = {job.id: row for row, job in enumerate(ledger.jobs)}
    has_shares = {
        name: ledger.jobs[row].malleability is not None and len(ledger.modes[row]) > 1 for name, row in rows.items()
    }
    choices = None
    if any(job.alternatives for job in ledger.jobs):
        choices = values.choices([rows[name] for name in (*order, *others)], charge)
    for is_shrunk, names in groupby(order, key=has_shares.__getitem__):
        if not is_shrunk:
            ledger.plan(list(names), choices=choices)
            continue
        for name in names:
            place_cheaply(ledger, rows[name], values)


def place_cheaply(ledger: Ledger, row: int, values: Values) -> Place | None:
    """Book a waiting job (a row of the ledger) without a place in the mode whose earliest place costs least; return
    the place, or None if it fits nowhere.

    A shrunk job expands as soon as cores on its nodes are free. Between equal costs the earlier end decides, then the
    larger share: no job is shrunk without a gain.
    """
    name = ledger.jobs[row].id
    found: list[tuple[float, int, int, Place]] = []
    for number in range(len(ledger.modes[row])):
        ledger.take_mode(name, number)
        ledger.plan([name])
        if ledger.is_booked(name):
            if number:
                ledger.expand(name)
            place = ledger.place_of(name)
            found.append((values.cost_of(row, place), place.end, number, place))
            ledger.release(name)
    ledger.take_mode(name, 0)
    if not found:
        return None
    best = min(found, key=lambda one: one[:3])[-1]
    ledger.put_back(name, best)
    return best


def go_on_shrunk(ledger: Ledger, order: Sequence[str], values: Values, *, names: Sequence[str] | None = None) -> bool:
    """Shrink placed and running jobs one by one where that improves the plan; tell whether one was.

    Jobs on nodes that a shrunk job needs for longer are planned anew, and then all others move up. The shrunk job
    expands again as soon as no other job has the cores, step by step. More jobs are better than fewer.

    `ledger`: has a plan of all its jobs that can be planned. `order`: in which they move up. `values`: says what plans
    on this ledger cost. `names`: which running and waiting jobs are tried; None: all that may be changed.
    """
    is_changed, has_modes, placed = False, any(len(modes) > 1 for modes in ledger.modes), 0
    lacking, value = _worth(ledger, values)
    for name in _by_gain(ledger) if names is None else names:
        for mode in range(_num_modes(ledger, name)):
            for is_thorough in (False, True) if has_modes and placed < _MOST_PLACED else (False,):
                mark = ledger.marked()
                is_possible, num = _tried(ledger, order, name, mode, values if is_thorough else None)
                placed += num * is_thorough
                if is_possible:
                    less, found = _worth(ledger, values)
                    if less < lacking or (less == lacking and found < value - 1e-9 * abs(value)):
                        lacking, value, is_changed = less, found, True
                        continue
                ledger.back_to(mark)
    return is_changed


def _worth(ledger: Ledger, values: Values) -> tuple[int, float]:
    """Return how many jobs have no place, and what the plan of the others costs."""
    return int((ledger.table.starts == NOWHERE).sum()), values.of_plan()


def _num_modes(ledger: Ledger, name: str) -> int:
    """Return how many modes a job has in which it may be tried: none, if it waits and has no place."""
    if name in ledger.running.changeable:
        return len(ledger.running.changeable[name].modes)
    return ledger.num_modes(name) if ledger.is_booked(name) else 0


def _by_gain(ledger: Ledger) -> list[str]:
    """Return the jobs that may be changed, first those that would give most cores up, for the longest time."""
    changeable = ledger.running.changeable
    gains: dict[str, float] = {}
    for name, remaining in changeable.items():
        gains[name] = _given_up(remaining.modes[0].request, remaining.modes[-1].request) * float(remaining.work)
    for row, (job, modes) in enumerate(zip(ledger.jobs, ledger.modes, strict=True)):
        if len(modes) > 1 and not job.alternatives and ledger.table.starts[row] != NOWHERE:
            gains[job.id] = _given_up(modes[0].request, modes[-1].request) * job.walltime
    return sorted(gains, key=lambda name: (-gains[name], name))


def _given_up(full: Request, least: Request) -> int:
    """Return the cores that a job can give up."""
    return full.totals.get("cores", 0) - least.totals.get("cores", 0)


def lenders(ledger: Ledger, order: Sequence[str]) -> list[str]:
    """Return the jobs that are worth a try with less, if not all can be tried: some that run, then some that wait."""
    most, found = min(_MOST_SHRUNK, _MOST_MOVES // max(1, len(order))), _by_gain(ledger)
    running = [name for name in found if name in ledger.running.changeable]
    return running[:most] + [name for name in found if name not in ledger.running.changeable][:most]


def _tried(ledger: Ledger, order: Sequence[str], name: str, mode: int, values: Values | None) -> tuple[bool, int]:
    """Continue a job, or run it from its start, in one of its modes, and move all others up; return whether each job
    that had a place has one, and how many were planned anew.

    With `values` all jobs that are booked on its nodes are planned anew, and may be shrunk themselves.
    """
    found = _shrunk(ledger, name, mode, is_thorough=values is not None)
    if found is None:
        return False, 0
    again = [other for other in order if other in found]
    if values is None:
        ledger.plan(again)
    else:
        begin_shrunk(ledger, again, values)
    ledger.backfill(order)
    if ledger.running.expand(name) if name in ledger.running.changeable else ledger.expand(name):
        ledger.backfill(order)
    return all(ledger.is_booked(other) for other in found), len(again)


def _shrunk(ledger: Ledger, name: str, mode: int, *, is_thorough: bool) -> set[str] | None:
    """Set a job to a mode, for as long as possible; return the jobs that lost their places for it, or None if it cannot
    be done. If it is thorough, all that are booked on its nodes lose them.
    """
    now, running = ledger.instance.now, ledger.running
    if name not in running.changeable:
        place = ledger.shrunk(name, mode)
        if place is None:
            return None
        nodes = ledger.nodes_of(name)
        ledger.release(name)
        in_the_way = ledger.standing_on(nodes, FOREVER if is_thorough else now + place.end)
        if not is_thorough:
            in_the_way = {other for other in in_the_way if ledger.place_of(other).end > place.start}
        for other in in_the_way:
            ledger.release(other)
        if not ledger.is_free(name, place):
            return None
        ledger.put_back(name, place)
        return in_the_way
    planned = running.slowest(name, mode)
    if planned is None:
        return None
    if planned == running.planned(name):
        return set()
    in_the_way = ledger.standing_on(
        {held.node for held in planned.segments[-1].allocation}, FOREVER if is_thorough else planned.end
    )
    for other in in_the_way:
        ledger.release(other)
    return in_the_way if running.change(planned) else None
