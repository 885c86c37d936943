"""One chain of the search where jobs change while they run: ruin and recreate on the planner's ledger itself.

A step costs what the ledger takes for a few jobs, about a millisecond, ten times as much as one of compiled kernels;
in return any job that can be planned can be searched for.
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

#: The most jobs that one step removes; mostly, and where room is made for one.
_FEW, _MOST_REMOVED = 8, 16
#: The most nodes that are cleared for a job.
_MOST_CLEARED = 8
#: In how many of the steps jobs may be held: whoever holds a step stands in the way of others for longer.
_HELD = 0.4


class LedgerChain:
    """A plan of some jobs that is changed step by step; mutable.

    Parameters
    ----------
    instance
        The window.
    jobs
        The jobs to be planned, one or more; each can be.
    seed
        Same jobs, same calls, same seed: same plans.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int) -> None:
        self._instance, self._jobs = instance, jobs
        self._ledger = Ledger(instance, jobs)
        self._durations = [job.walltime for job in jobs]
        self._num_nodes = len(instance.cluster.node_names)
        table = self._ledger.table
        self._costs = start_costs(instance, jobs)
        #: What each job costs at the least.
        self._least = costs_at(self._costs, table.jobs[:, 1:2])[:, 0].tolist()
        #: Whom each one waits for.
        self._awaited = [
            set(table.waits[table.waits_of[job] : table.waits_of[job + 1], 0].tolist()) for job in range(len(jobs))
        ]
        self._end_price = end_price(instance)
        #: What a second costs by which a job ends later than its start says.
        self._late_price = instance.objective.weights.get(ObjectiveTerm.COMPLETION, 0.0)
        self._values = Values(instance, self._ledger)
        self._random = Random(seed)  # noqa: S311 - a search, not a secret
        self._ranks = [0.0] * len(jobs)
        #: Where each job stands; where it stood last, and what that cost.
        self._places: list[Place | None] = [None] * len(jobs)
        self._begins = [0] * len(jobs)
        self._paid = [0.0] * len(jobs)
        #: On which nodes it stands, or stood last, as bits.
        self._nodes = [0] * len(jobs)
        #: What the plan costs, and the best one so far.
        self.value = self.best_value = np.inf
        self._best: list[Place] = []

    @property
    def is_elastic(self) -> bool:
        """Whether running jobs may be changed."""
        return bool(self._ledger.running.changeable)

    def offset(self) -> float:
        """Return what the chain's own figures lack to be values of the objective."""
        return self._values.offset()

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, NDArray[np.float64]]:
        """Return named keys by which a list of the jobs may be sorted, smallest first: work over cost, for several
        ideas of work.
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
        """Plan the jobs afresh as a list in ascending order of `keys`, each after all that it waits for.

        Returns
        -------
        float or None
            What the list costs; None if a job finds no place in it, or if it costs more than `limit`: the chain has no
            plan then.
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
        """Begin from a plan of the same jobs; tell whether each may stand where it stands there."""
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
        """Let running jobs go on with less where the plan is worth more for it."""
        order = [self._jobs[job].id for job in sorted(range(len(self._jobs)), key=self._begins.__getitem__)]
        if go_on_shrunk(self._ledger, order, self._values, is_over=is_over):
            for job in range(len(self._jobs)):
                self._note(job)
            self._note_plan()

    def _clear(self) -> None:
        """Take all jobs out."""
        for job, place in enumerate(self._places):
            if place is not None:
                self._lift(job)

    def _note_plan(self) -> float:
        """Value a plan that was not made step by step; keep it if it is the best one."""
        self.value = sum(self._paid) + self._end_price * self._last_end() + self._values.of_running()
        self._note_best()
        return self.value

    def _note_best(self) -> None:
        """Keep the present plan if it is the best one so far."""
        if self.value < self.best_value:
            self.best_value, self._best = self.value, [place for place in self._places if place is not None]
            self._best_running = self._ledger.running.plans()

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs that it may change."""
        # what stands there is read, and not asked whether it is free beside the running jobs of the present plan
        present = [place for place in self._places if place is not None]
        self._stand(self._best)
        best = [planned for job in self._jobs if (planned := self._ledger.planned(job.id)) is not None]
        self._stand(present)
        return self._best_running + best

    def _stand(self, places: Sequence[Place]) -> None:
        """Let all jobs stand at places of theirs."""
        self._clear()
        for job, place in enumerate(places):
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
        """Take some jobs out and insert them again in another order; keep what is better, and sometimes what is not."""
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
        """Insert jobs one after the other; return what they cost, or None as soon as that must be more than `limit`."""
        after, least = 0.0, sum(self._least[job] for job in sequence)
        for job in sequence:
            least -= self._least[job]
            if not self._insert(job, limit - after - least, is_held=is_held):
                return None
            after += self._paid[job]
        return after

    def _chosen(self) -> tuple[list[int], bool]:
        """Choose jobs to remove: one that waits dearly, and who stands where it could be earlier; or some that start at
        about the same time; or any. Tell whether room is made for the first of them.
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
        """Return a job that waits dearly, and those that stand on as many nodes as it has when it could be there."""
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
        """Return in which order jobs that were taken out come back: that of their ranks or old starts, with noise; each
        after all that it waits for.
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
        """Let a job stand where it ends earliest beside all that stand, one that can be shrunk where it costs least;
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
        """Return until when a job must have started, and ended, to cost no more than `room`."""
        if room == np.inf:
            return FOREVER, FOREVER
        latest = int(latest_for(job, room, self._costs))
        if self._late_price <= 0 or latest < 0:
            return latest, FOREVER
        # a second of holding costs no more than one of a later start: who starts first may end last
        spare = (room - self._least[job]) / self._late_price
        return latest, int(self._ledger.table.jobs[job, 1] + self._durations[job] + spare + 1)

    def _note(self, job: int) -> None:
        """Note where a job stands, and what that costs."""
        place = self._ledger.place_of(self._jobs[job].id)
        self._places[job], self._begins[job] = place, place.start
        self._paid[job] = self._values.cost_of(job, place)
        self._nodes[job] = _bits(place)

    def _put_back(self, job: int, place: Place) -> None:
        """Let a job stand where it stood."""
        self._ledger.put_back(self._jobs[job].id, place)
        self._places[job], self._begins[job] = place, place.start

    def _last_end(self) -> int:
        """Return when the last one of those that stand ends; 0 if that does not matter."""
        if self._end_price <= 0:
            return 0
        return max((place.end for place in self._places if place is not None), default=0)

    def _lift(self, job: int) -> Place:
        """Take a job out; return where it stood."""
        place = self._places[job]
        assert place is not None  # noqa: S101 - callers take out who stands
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
    """Return how many nodes a step takes, each chunk as much of one as its dominant share."""
    return sum(count * share for count, share in node_shares(instance, step.request))
