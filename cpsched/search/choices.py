"""Choices and orders of a project together, where one choice was made for each job (`problem.settling`): steps that
change a job's choice, or its place in the list. Each list is decoded by counts, as when lists are bred.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from random import Random
from typing import NamedTuple

import numpy as np

from cpsched.domain import DependencyType, Instance, Job, ObjectiveTerm
from cpsched.engine import Board
from cpsched.problem import chosen_in, consumable, has_choices_made, held_choices, opened
from cpsched.rusv import Array
from cpsched.search import project_kernels as kernels
from cpsched.search.chain import Chain
from cpsched.search.genetic import desk_of, followers_of, lists_of, project_of, turned
from cpsched.search.warmup import warm_up_breeding, warm_up_search

#: The share of the time that is left; the most choices of all jobs together; and seconds between two offers.
_SHARE, _MOST, _PAUSE = 0.85, 3000, 0.25
#: Temperatures in parts of the last end, at the beginning and at the end.
_HOT, _COLD = 0.01, 0.001
#: The share of the steps that change a choice, and of the others those in which two jobs change places; and the changes
#: that are tried until what is consumed is no more than there is.
_CHANGED, _SWAPPED, _REPAIRS = 0.9, 0.5, 10


class _Row(NamedTuple):
    """A choice of a job: the number of the job, and of the choice."""

    job: int
    number: int


class ChoiceSearch:
    """Simulated annealing over choices and orders, where the last end alone counts."""

    name = "choices"
    makes_choices = True

    def prepare(self) -> None:
        """Compile or load the kernels."""
        warm_up_search()
        warm_up_breeding()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return why there is nothing to choose here."""
        if not has_choices_made(instance) or list(instance.objective.weights) != [ObjectiveTerm.MAKESPAN]:
            return ("jobs: none for which a choice is made, or more than the last end counts",)
        return tuple(
            f"job {job.id}: changes, chooses later, has a last start, waits for a start, or has a max_delay"
            for job in instance.jobs
            if job.changes
            or job.alternatives
            or (job.running is None and instance.latest_start(job) is not None)
            or any(link.type is DependencyType.AFTER or link.max_delay is not None for link in job.after)
        )

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Change choices and places until most of the time is used."""
        best = board.best
        jobs = [opened(job) for job in instance.elements() if job.running is None and job.id in best.ids]
        if not jobs or sum(len(job.choices) for job in jobs) > _MOST:
            return
        walk = _Walk(instance, jobs, {one.id: one.alternative for one in best.jobs}, seed)
        begin, last, until = board.budget.elapsed, board.budget.elapsed, _SHARE * board.budget.remaining
        while not board.is_over and (share := (board.budget.elapsed - begin) / until) < 1:
            walk.step(_HOT * (_COLD / _HOT) ** share)
            if walk.has_news and board.budget.elapsed > last + _PAUSE:
                self._offer(instance, board, walk, seed)
                last = board.budget.elapsed
        if walk.has_news:
            self._offer(instance, board, walk, seed)

    def _offer(self, instance: Instance, board: Board, walk: "_Walk", seed: int) -> None:
        """Plan the best list on the nodes, and offer the plan."""
        walk.has_news, numbers = False, walk.numbers
        window, _ = chosen_in(instance, numbers)
        jobs = [job for job in window.elements() if job.id in numbers]
        chain = Chain(window, jobs, seed)
        if chain.plan_list(walk.starts.astype(np.float64)) is None:
            return
        found = {one.id: one for one in board.best.jobs} | {
            one.id: replace(one, alternative=numbers[one.id]) for one in chain.best()
        }
        order = [job.id for job in instance.elements() if job.id in found]
        board.offer([found[name] for name in order], by=self.name)


class _Walk:
    """A list and a choice for each job, changed step by step; mutable."""

    def __init__(self, instance: Instance, jobs: Sequence[Job], numbers: Mapping[str, int], seed: int) -> None:
        self._random, self._jobs = Random(seed), jobs  # noqa: S311 - no secret depends on it
        window, _ = chosen_in(instance, numbers)
        ids = {job.id for job in jobs}
        chain = Chain(window, [job for job in window.elements() if job.id in ids], seed)
        keys = next(iter(chain.list_keys().values()))
        (_, _, project), self._ahead = project_of(chain), followers_of(chain.ledger.table.links)
        self._rows = [_Row(job, number) for job, one in enumerate(jobs) for number in range(len(one.choices))]
        self._first = np.cumsum([0, *(len(job.choices) for job in jobs)]).tolist()
        of_choices = _project_of_choices(instance, jobs, seed)
        self._durations, self._needs = of_choices.jobs[:, kernels.DURATION], of_choices.needs
        left = consumable(instance)
        self._left = np.array(list(left.values()), dtype=np.int64)
        self._takes = np.array(
            [[jobs[row.job].licenses_of(row.number).get(name, 0) for name in left] for row in self._rows],
            dtype=np.int64,
        )
        self._chosen = [self._first[job] + numbers.get(one.id, 0) for job, one in enumerate(jobs)]
        self._used = self._takes[self._chosen].sum(axis=0)
        needs = np.ascontiguousarray(self._needs[self._chosen])
        # what is free is packed as the needs are
        self._project = of_choices._replace(jobs=project.jobs, costs=project.costs, price=project.price, needs=needs)
        self._back = turned(self._ahead, self._project.jobs[:, kernels.DURATION])
        self._desk, self._lists = (
            desk_of(self._project),
            lists_of(1, len(jobs), np.random.default_rng(seed)),
        )
        self._keys = keys.astype(np.float64)
        self._value = self._valued(self._keys)
        self.has_news = True
        self._note()

    def _valued(self, keys: Array) -> float:
        """Decode a list; its keys become the order of the starts."""
        self._lists.next_keys[0] = keys
        kernels.begin(0, 1, self._ahead, self._back, self._project, self._desk, self._lists)
        return float(self._lists.next_values[0])

    def _note(self) -> None:
        """Keep the best list of all."""
        self.starts, self._best = self._lists.best.copy(), float(self._lists.best_value[0])
        self.numbers = {one.id: self._rows[row].number for one, row in zip(self._jobs, self._chosen, strict=True)}

    def step(self, temperature: float) -> None:
        """Change a choice, or two places in the list, and keep that if it is no worse, or hardly."""
        random, before, keys = self._random, dict[int, int](), self._keys.copy()
        job, other = random.randrange(len(keys)), random.randrange(len(keys))
        if random.random() < _CHANGED:
            for _ in range(_REPAIRS):
                row = random.randrange(self._first[job], self._first[job + 1])
                before.setdefault(job, self._chosen[job])
                self._choose(job, row)
                if (self._used <= self._left).all():
                    break
                job = random.randrange(len(keys))
            else:
                return self._undo(before)
            if all(self._chosen[job] == row for job, row in before.items()):
                return None
        elif random.random() < _SWAPPED:
            keys[job], keys[other] = keys[other], keys[job]
        else:
            keys[job] = random.random()
        value = self._valued(keys)
        if value <= self._value or random.random() < exp((self._value - value) / (temperature * self._best)):
            self._value, self._keys = value, self._lists.next_keys[0].copy()
            if self._lists.best_value[0] < self._best:
                self.has_news = True
                self._note()
            return None
        return self._undo(before)

    def _undo(self, before: Mapping[int, int]) -> None:
        for job, row in before.items():
            self._choose(job, row)

    def _choose(self, job: int, row: int) -> None:
        """Give a job a choice: its duration, what it takes, and by when those that wait for it may start."""
        more = self._durations[row] - self._durations[self._chosen[job]]
        self._used += self._takes[row] - self._takes[self._chosen[job]]
        self._project.jobs[job, kernels.DURATION] += more
        self._project.needs[job] = self._needs[row]
        for followers in (self._ahead, self._back):
            followers.pairs[followers.of[job] : followers.of[job + 1], 1] += more
        self._chosen[job] = row


def _project_of_choices(instance: Instance, jobs: Sequence[Job], seed: int) -> kernels.Project:
    choices = held_choices(instance, jobs)
    running = [job for job in instance.jobs if job.running is not None]
    return project_of(Chain(replace(instance, jobs=(*running, *choices)), choices, seed))[2]
