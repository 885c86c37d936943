"""One chain of the search for jobs that change while they run: ruin and recreate on the planner's ledger itself.

A step takes about a millisecond, the ledger's time for a few jobs, ten times as long as a step of compiled kernels; in
return, every job that can be planned is supported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from random import Random

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger, Place
from cpsched.domain import Instance, Job, ObjectiveTerm, PlannedJob, Step
from cpsched.planner import Values, costs_at, end_price, go_on_shrunk, place_cheaply, start_costs
from cpsched.rusv import FOREVER
from cpsched.search.costs import node_shares, rates_of
from cpsched.search.kernels import latest_for
from cpsched.search.links import awaited_first

__all__ = ["LedgerChain"]

#: The most jobs that one step removes: in general, and in a step that makes room for one job.
_FEW, _MOST_REMOVED = 8, 16
#: The most nodes that are cleared for a job.
_MOST_CLEARED = 8
#: The share of the steps in which jobs may be held: a job that holds a step blocks other jobs for longer.
_HELD = 0.4


class LedgerChain:
    """A plan of some jobs that is changed step by step; mutable.

    Parameters
    ----------
    instance
        The window.
    jobs
        The jobs to plan, one or more; each has a feasible start.
    seed
        The same jobs, calls and seed give the same plans.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int) -> None:
        self._instance, self._jobs = instance, jobs
        self._ledger = Ledger(instance, jobs)
        self._durations = [job.walltime for job in jobs]
        self._num_nodes = len(instance.cluster.node_names)
        table = self._ledger.table
        self._costs = start_costs(instance, jobs)
        #: The least cost of each job.
        self._least = costs_at(self._costs, table.jobs[:, 1:2])[:, 0].tolist()
        #: The jobs that each job waits for.
        self._awaited = [
            set(table.waits[table.waits_of[job] : table.waits_of[job + 1], 0].tolist()) for job in range(len(jobs))
        ]
        self._end_price = end_price(instance)
        #: The cost of each second by which each job ends later than its start implies.
        self._late_prices = [float(instance.term_weight(ObjectiveTerm.COMPLETION, job)) for job in jobs]
        self._values = Values(instance, self._ledger)
        self._random = Random(seed)  # noqa: S311 - a search, not a secret
        self._ranks = [0.0] * len(jobs)
        #: The place of each job; its last place, and the cost of that.
        self._places: list[Place | None] = [None] * len(jobs)
        self._begins = [0] * len(jobs)
        self._paid = [0.0] * len(jobs)
        #: The nodes of its place, or of its last one, as bits.
        self._nodes = [0] * len(jobs)
        #: The cost of the plan, and of the best one so far.
        self.value = self.best_value = np.inf
        self._best: list[Place | None] = []

    @property
    def is_elastic(self) -> bool:
        """Whether running jobs may be changed."""
        return bool(self._ledger.running.changeable)

    def offset(self) -> float:
        """Return the constant to add to the chain's own figures to get values of the objective."""
        return self._values.offset()

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, NDArray[np.float64]]:
        """Return named keys for list schedules of the jobs, smallest first: work over cost, for several definitions of
        work.
        """
        instance = self._instance
        price = rates_of(self._costs)
        time = np.array(self._durations, dtype=np.float64)
        keys = {
            "nodes": np.array([sum(s.walltime * _nodes(instance, s) for s in job.steps) for job in self._jobs]) / price,
            "widest": np.array([max(_nodes(instance, s) for s in job.steps) for job in self._jobs]) * time / price,
            "walltime": time / price,
        }
        return keys | {"tails": -time} if self._end_price > 0 else keys

    def plan_list(self, keys: NDArray[np.float64], limit: float = np.inf) -> float | None:
        """Plan the jobs anew as a list schedule in ascending order of `keys`, each after its dependencies.

        Returns
        -------
        float or None
            The cost of the list schedule; None if a job finds no place in it, or if it costs more than
            `limit`: the chain then has no plan.
        """
        self._clear()
        cost = self._values.of_running()
        for job in awaited_first(self._ledger.table, np.argsort(keys, kind="stable")).tolist():
            if not self._insert(job):
                return None
            cost += self._paid[job]
            if cost > limit:
                return None
        return self._note_plan()

    def adopt(self, plan: Sequence[PlannedJob]) -> bool:
        """Begin from a plan of the same jobs; return whether each may keep its place."""
        self._clear()
        if not self._ledger.running.restore(plan):
            return False
        planned_of = {planned.id: planned for planned in plan}
        starts = np.array([planned_of[job.id].start for job in self._jobs])
        for job in awaited_first(self._ledger.table, np.argsort(starts, kind="stable")).tolist():
            if not self._ledger.restore(planned_of[self._jobs[job].id]):
                return False
            self._note(job)
        self._note_plan()
        return True

    def shrink_running(self, is_over: Callable[[], bool]) -> None:
        """Shrink running jobs where that improves the plan."""
        order = [self._jobs[job].id for job in sorted(range(len(self._jobs)), key=self._begins.__getitem__)]
        if go_on_shrunk(self._ledger, order, self._values, is_over=is_over):
            for job in range(len(self._jobs)):
                self._note(job)
            self._note_plan()

    def _clear(self) -> None:
        """Remove all jobs from the plan."""
        for job, place in enumerate(self._places):
            if place is not None:
                self._lift(job)

    def _note_plan(self) -> float:
        """Value a plan that was not made step by step; keep it if it is the best one."""
        self.value = sum(self._paid) + self._end_price * self._last_end() + self._values.of_running()
        self._note_best()
        return self.value

    def _note_best(self) -> None:
        """Keep the current plan if it is the best one so far."""
        if self.value < self.best_value:
            self.best_value, self._best = self.value, list(self._places)
            self._best_running = self._ledger.running.plans()

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs that the search may change."""
        # places are read without a check that they are free beside the running jobs of the current plan
        present = list(self._places)  # after a list schedule that failed some jobs have none
        self._stand(self._best)
        best = [planned for job in self._jobs if (planned := self._ledger.planned(job.id)) is not None]
        self._stand(present)
        return self._best_running + best

    def _stand(self, places: Sequence[Place | None]) -> None:
        """Book the jobs at these places, one for each job; None: it has no place."""
        self._clear()
        for job, place in enumerate(places):
            if place is not None:
                self._put_back(job, place)

    # --- steps --------------------------------------------------------------------------------------------------

    def rank(self, keys: NDArray[np.float64]) -> None:
        """Set the order in which jobs that were removed together tend to come back: smallest first."""
        self._ranks = keys.tolist()

    def run(self, steps: int, temperature: float) -> None:
        """Do so many steps at one temperature (in mean costs of a job)."""
        for _ in range(steps):
            self._step(temperature)

    def _step(self, temperature: float) -> None:
        """Remove some jobs and insert them again in another order; keep a better plan, and sometimes a worse one."""
        chosen, is_first_first = self._chosen()
        if len(chosen) < 2:
            return
        sequence, is_held = self._sequence(chosen, is_first_first), self._random.random() < _HELD
        room = -temperature * max(self.value, 0.0) / len(self._jobs) * log(max(self._random.random(), 1e-300))
        before, end_before = sum(self._paid[job] for job in chosen), self._last_end()
        paid, nodes = [self._paid[job] for job in chosen], [self._nodes[job] for job in chosen]
        places = [self._lift(job) for job in chosen]
        after = self._insert_all(sequence, before + room, is_held)
        if after is not None:
            after += self._end_price * (self._last_end() - end_before)
            if after <= before + room:
                self.value += after - before
                self._note_best()
                return
        for job in chosen:
            if self._places[job] is not None:
                self._lift(job)
        for job, cost, bits, place in zip(chosen, paid, nodes, places, strict=True):
            self._put_back(job, place)
            self._paid[job], self._nodes[job] = cost, bits

    def _insert_all(self, sequence: Sequence[int], limit: float, is_held: bool) -> float | None:
        """Insert jobs one after the other; return their cost, or None as soon as it must exceed `limit`."""
        after, least = 0.0, sum(self._least[job] for job in sequence)
        for job in sequence:
            least -= self._least[job]
            if not self._insert(job, limit - after - least, is_held=is_held):
                return None
            after += self._paid[job]
        return after

    def _chosen(self) -> tuple[list[int], bool]:
        """Choose jobs to remove: a job whose wait is costly with those that block an earlier start of it; or some that
        start at about the same time; or any. Return whether room is made for the first of them.
        """
        random, count = self._random, len(self._jobs)
        style, wanted = random.random(), min(count, 2 + random.randrange(_FEW - 1))
        if style < 0.5:
            return self._in_the_way(), True
        if style < 0.85:
            start = self._begins[first := random.randrange(count)]
            near = (random.sample(range(count), min(count, 24)) for _ in range(wanted - 1))
            return list(
                dict.fromkeys(
                    [first, *(min(few, key=lambda job: (job == first, abs(self._begins[job] - start))) for few in near)]
                )
            ), False
        return random.sample(range(count), wanted), False

    def _in_the_way(self) -> list[int]:
        """Return a job whose wait is costly, and the jobs that block as many nodes as it has at an earlier start."""
        random, count = self._random, len(self._jobs)
        first = max((random.randrange(count) for _ in range(3)), key=lambda job: self._paid[job] - self._least[job])
        start, earliest = self._begins[first], int(self._ledger.table.jobs[first, 1])
        begin = max(earliest, start - 1 - int(random.random() ** 2 * (start - earliest)))
        end, num_nodes = begin + self._durations[first], self._num_nodes
        width = min(num_nodes, _MOST_CLEARED, self._nodes[first].bit_count())
        cleared = ((1 << width) - 1) << random.randrange(num_nodes - width + 1)
        found = [
            job
            for job, place in enumerate(self._places)
            if place is not None and place.start < end and place.end > begin and self._nodes[job] & cleared
            if job != first
        ]
        if len(found) >= _MOST_REMOVED:
            found = random.sample(found, _MOST_REMOVED - 1)
        return [first, *found]

    def _sequence(self, chosen: Sequence[int], is_first_first: bool) -> list[int]:
        """Return the order in which removed jobs are inserted again: by rank or old start, with noise; each after its
        dependencies.
        """
        random, style = self._random, self._random.random()
        noise = 0.3 if style < 0.4 else 1.0
        if style < 0.15:
            keys = {job: random.random() for job in chosen}
        elif style < 0.6:
            keys = {job: self._ranks[job] * (1.0 + noise * (2.0 * random.random() - 1.0)) for job in chosen}
        else:
            keys = {
                job: self._begins[job] * (1.0 + 0.3 * random.random()) + 0.3 * random.random() * self._durations[job]
                for job in chosen
            }
        if is_first_first and random.random() < 0.9:
            keys[chosen[0]] = -np.inf
        left, sequence = sorted(chosen, key=keys.__getitem__), []
        while left:
            ready = next(job for job in left if self._awaited[job].isdisjoint(left))
            left.remove(ready)
            sequence.append(ready)
        return sequence

    # --- single jobs --------------------------------------------------------------------------------------------

    def _insert(self, job: int, room: float = np.inf, *, is_held: bool = True) -> bool:
        """Book a job where it ends earliest beside all booked jobs, or where it costs least if it can be shrunk;
        tell whether it found a place that costs no more than `room`.
        """
        ledger, name = self._ledger, self._jobs[job].id
        if len(ledger.modes[job]) > 1:
            is_placed = place_cheaply(ledger, job, self._values) is not None
        else:
            latest, end_by = self._limits(job, room)
            is_placed = ledger.plan_soon(name, latest=latest, end_by=end_by, is_held=is_held)
        if is_placed:
            self._note(job)
        return is_placed

    def _limits(self, job: int, room: float) -> tuple[int, int]:
        """Return the latest start and the latest end at which a job costs no more than `room`."""
        if room == np.inf:
            return FOREVER, FOREVER
        latest = int(latest_for(job, room, self._costs))
        late_price = self._late_prices[job]
        if late_price <= 0 or latest < 0:
            return latest, FOREVER
        # a second of holding costs no more than a second of a later start: the job that starts first may end last
        spare = (room - self._least[job]) / late_price
        return latest, int(self._ledger.table.jobs[job, 1] + self._durations[job] + spare + 1)

    def _note(self, job: int) -> None:
        """Record the place of a job, and its cost."""
        place = self._ledger.place_of(self._jobs[job].id)
        self._places[job], self._begins[job] = place, place.start
        self._paid[job] = self._values.cost_of(job, place)
        self._nodes[job] = _bits(place)

    def _put_back(self, job: int, place: Place) -> None:
        """Book a job at its last place."""
        self._ledger.put_back(self._jobs[job].id, place)
        self._places[job], self._begins[job] = place, place.start

    def _last_end(self) -> int:
        """Return the latest end of all booked jobs; 0 if that does not matter."""
        if self._end_price <= 0:
            return 0
        return max((place.end for place in self._places if place is not None), default=0)

    def _lift(self, job: int) -> Place:
        """Remove a job; return its place."""
        place = self._places[job]
        assert place is not None  # noqa: S101 - callers remove booked jobs
        self._ledger.release(self._jobs[job].id)
        self._places[job] = None
        return place


def _bits(place: Place) -> int:
    """Return the nodes of a place as bits."""
    held = (part.entries for part in place.held) if isinstance(place.held, tuple) else (place.held,)
    bits = 0
    for entries in held:
        for node in entries[:, 0].tolist():
            bits |= 1 << node
    return bits


def _nodes(instance: Instance, step: Step) -> float:
    """Return the nodes that a step takes, with each chunk counted as its dominant share of a node."""
    return sum(count * share for count, share in node_shares(instance, step.request))
