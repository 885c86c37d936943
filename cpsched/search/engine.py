"""The search as an improver: list schedules in several orders, then ruin and recreate until the budget ends."""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, PlannedJob
from cpsched.engine import Board, Offer
from cpsched.planner import end_price, latest_starts, unsupported, warmup
from cpsched.problem import Machine, awaited_first, placeable, places_of
from cpsched.search.chain import Chain
from cpsched.search.counted import CountedChain
from cpsched.search.genetic import Breeding
from cpsched.search.plan import ListStyle
from cpsched.search.skeletons import Skeleton, Skeletons
from cpsched.search.warmup import warm_up_search

#: Seconds between two checks of the clock.
_LOOK = 0.02
#: Seconds between two plans that a chain offers.
_PAUSE = 0.25
#: The most placements (job and node) for which the search is used; each chain keeps them twice.
_MOST_PLACEMENTS = 3_000_000
#: The share of the time after which no further order of a list is tried.
_FIXED = 0.3
#: Temperatures in mean costs of a job: at the beginning of a cooling that is slow enough, of the fastest one, and at
#: the end. A cooling is slow enough with this multiple of `_STEPS_PER_JOB`.
_HOT, _WARM, _COLD, _SLOW = 3.0, 0.1, 0.02, 0.6
#: No temperature is higher than this part of what a mean job pays for a wait as long as a mean job runs. Where many run
#: one after the other, their mean cost grows, but not what a step changes; a plan that was too hot stays bad.
_DEEP = 0.3
#: Where jobs are left out of a list: they move to such a part of their places in it, so often in vain.
_FORWARD, _PROMOTIONS = 0.6, 4
#: Seconds of steps from which the number of further steps is estimated.
_PROBE = 0.1
#: Shares of the time in which lists of a project are bred: where sums over the nodes are all there is; and elsewhere,
#: if jobs wait for each other, and if none does.
_BRED, _BRED_AS_ORDERS, _BRED_UNLINKED = 0.9, 0.5, 0.25
#: The share of the time after which a first generation of lists must be complete; and the most jobs of a list, so that
#: one takes less than about a second.
_FIRST_BRED, _MOST_BRED = 0.1, 3000
#: The share of the time in which schedules of wide jobs are searched for; how many of their moments count as a list;
#: and the generations of lists that begin with the first schedule: with each further one there are twice as many.
_WIDE, _MOMENTS, _SOWN = 0.5, 200, 2
#: Seconds by which values of the objective, as floats, may be too large.
_LITTLE = 1e-6

#: Steps per job in one cooling; if time is left, another cooling follows.
_STEPS_PER_JOB = 1000
#: The most steps between two checks of the clock; if the budget alone ends the search, as many as `_LOOK` allows.
_PORTION = 200


class Search:
    """Decoder search over the planner's insertion.

    `max_steps`: steps after which the search ends even if budget is left; None: the budget alone ends it. With 0 there
    are lists alone: the rest of the time is for the solvers that follow.
    """

    name = "search"

    def __init__(self, max_steps: int | None = None) -> None:
        self._max_steps = max_steps

    def prepare(self) -> None:
        """Compile or load the kernels of planner and search."""
        warmup()
        warm_up_search()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the search cannot honour: the same as the planner's."""
        return unsupported(instance)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Search until the board's budget or the steps end; anew when the best plan has jobs that it did not know."""
        while True:
            planned = board.best.ids
            optional = optional_in(instance, board)
            self._improve(instance, board, planned, optional, seed)
            if board.is_over or planned - optional <= board.best.ids <= planned | optional:
                return

    def _improve(
        self, instance: Instance, board: Board, planned: Collection[str], optional: Collection[str], seed: int
    ) -> None:
        """Search for plans of some jobs, while the best plan has these; it may have any of the optional ones."""
        jobs = [job for job in instance.elements() if job.running is None and (job.id in planned or job.id in optional)]
        if not jobs:
            return
        is_evolving, machine = any(job.is_evolving for job in jobs), _countable(instance)
        if machine is not None and (is_evolving or not end_price(instance)):
            self._search_lists_and_steps(instance, jobs, board, CountedChain(instance, jobs, machine, seed))
        elif (placements := _most_placements(instance, jobs)) > _MOST_PLACEMENTS:
            board.leave_out(f"{placements:,} placements, it takes {_MOST_PLACEMENTS:,} at most", by=self.name)
        elif is_evolving:
            self._search_lists_and_steps(instance, jobs, board, Chain(instance, jobs, seed, changing=True))
        else:
            chain = Chain(instance, jobs, seed, optional)
            search = _Search(instance, jobs, board, chain, self._max_steps)
            keys = chain.list_keys()
            search.try_lists(keys)
            search.breed_lists(chain, keys, seed)
            if machine is not None:
                search.go_on_with(CountedChain(instance, jobs, machine, seed))
            elif chain.is_elastic and not any(job.alternatives for job in jobs):
                search.go_on_with(Chain(instance, jobs, seed, changing=True))
            if not search.is_exhausted:
                search.run_chain()

    def _search_lists_and_steps(
        self, instance: Instance, jobs: Sequence[Job], board: Board, chain: Chain | CountedChain
    ) -> None:
        search = _Search(instance, jobs, board, chain, self._max_steps)
        search.try_lists(chain.list_keys())
        search.run_chain()


def _countable(instance: Instance) -> Machine | None:
    """Return the nodes, or places for chunks, if it is enough to count them; running jobs that may change need more."""
    may_change = any(job.running is not None and job.malleability is not None for job in instance.jobs)
    return None if may_change else places_of(instance)


def optional_in(instance: Instance, board: Board) -> frozenset[str]:
    """Return the ids of the waiting jobs that plans may leave out for others: those with a last start, of their own or
    by those that wait for them, and those that follow others within some time. The best plan need not have them.

    None, where jobs change while they run.
    """
    if any(job.malleability is not None or job.is_evolving for job in instance.jobs):
        return frozenset()
    # a window without rules may refuse a job that the rules leave a place
    ids = (board.placeable & placeable(instance)) | board.best.ids
    jobs = [job for job in instance.elements() if job.running is None and job.id in ids]
    late = latest_starts(instance, jobs).keys()
    known, members, found = board.best.ids, instance.members(), dict[str, None]()

    @cache
    def is_had(entry: str) -> bool:
        """Tell whether plans may have all jobs behind a name that dependencies give; asked when these are decided."""
        return all(name in known or name in found for name in members[entry])

    for job in awaited_first(instance, jobs):
        if (job.id in late or job.is_hurried) and all(is_had(dependency.job) for dependency in job.after):
            found[job.id] = None
    return frozenset(found)


def _most_placements(instance: Instance, jobs: Sequence[Job]) -> int:
    """Return the most (job, step, kind of chunks, node) that a plan may have."""
    nodes = len(instance.cluster.node_names)
    return sum(
        max(sum(min(chunk.count, nodes) for step in one.steps for chunk in step.request.chunks) for one in job.choices)
        for job in jobs
    )


class _Search:
    """One run of the search; mutable."""

    name = Search.name

    def __init__(
        self,
        instance: Instance,
        jobs: Sequence[Job],
        board: Board,
        chain: Chain | CountedChain,
        max_steps: int | None,
    ) -> None:
        self._instance, self._jobs, self._board, self._max_steps = instance, jobs, board, max_steps
        self._first = board.best
        self._chain: Chain | CountedChain = chain
        #: The jobs that each of these plans has, and those that some have.
        own = frozenset(job.id for job in jobs)
        optional = chain.optional if isinstance(chain, Chain) else frozenset()
        self._own, self._least, self._most = own, self._first.ids - optional, self._first.ids | own
        self._order = [job.id for job in instance.elements()]
        #: The constant to add to the chain's own figures to get values of the objective.
        self._offset = chain.offset()
        #: The lists that have been tried, the best first: what each costs, its style, and its keys.
        self._lists: list[tuple[float, ListStyle, NDArray[np.float64]]] = []
        self._began = board.budget.elapsed
        self._steps = 0
        #: The most seconds that an offer took: so much time is left for the last one.
        self._slowest = 0.0
        #: When the best plan is offered next, if it is better by then.
        self._next_offer = board.budget.elapsed + _PAUSE
        self._portion = 1 if max_steps is None else _PORTION
        #: Whether a better plan is not to be expected: the lists of a project end alike.
        self.is_exhausted = False

    @property
    def _is_over(self) -> bool:
        """Whether there is nothing left to do for these jobs, but to offer the best plan: also once the board's best
        plan has others.
        """
        is_late = self._board.budget.remaining < self._slowest
        return is_late or self._board.is_over or not self._has_our_jobs(self._board.best)

    def _has_our_jobs(self, offer: Offer) -> bool:
        """Return whether a plan has only jobs that are planned here, and leaves out none but optional ones."""
        return self._least <= offer.ids <= self._most

    def _best(self) -> Sequence[PlannedJob]:
        """Return the best plan of these jobs that others know."""
        best = self._board.best
        return best.jobs if self._has_our_jobs(best) else self._first.jobs

    def _best_value(self) -> float:
        """Return what the best plan on the board is worth to the chain, where it is one of these jobs."""
        best = self._board.best
        fine = self._chain.fine(best.ids) if isinstance(self._chain, Chain) and self._chain.is_open else 0.0
        return best.value + fine

    def _offer(self, by: str) -> float:
        """Offer the chain's best plan if it is better than the board's; return the seconds that this took."""
        began = self._board.budget.elapsed
        if self._chain.best_value + self._offset < self._best_value():
            others = {planned.id: planned for planned in self._first.jobs if planned.id not in self._own}
            found = others | {planned.id: planned for planned in self._chain.best()}
            self._board.offer([found[name] for name in self._order if name in found], by=by)
        took = self._board.budget.elapsed - began
        self._slowest = max(self._slowest, took)
        self._next_offer = began + took + max(_PAUSE, 20 * took)
        return took

    def _offer_now_and_then(self, by: str) -> None:
        """Offer the chain's best plan, unless that was done a moment ago."""
        if self._board.budget.elapsed >= self._next_offer:
            self._offer(by)

    def try_lists(self, keys_by_name: Mapping[str, NDArray[np.float64]]) -> None:
        """Try list schedules in several orders, the strongest first; offer the best now and then, and at the end."""
        best_value, best_name, chain = float("inf"), "", self._chain
        next_offer = self._board.budget.elapsed + _PAUSE
        tried = [(name, style, keys) for style in chain.list_styles for name, keys in keys_by_name.items()]
        for name, chain.list_style, keys in tried:
            if self._is_over or (self._lists and self._time_share() > _FIXED):
                break
            if isinstance(self._chain, Chain) and self._chain.is_open:
                keys, value = self._promoted(self._chain, keys)
            else:
                value = self._chain.plan_list(keys)
            if value is None:
                continue
            self._lists.append((value, chain.list_style, keys))
            if value < best_value:
                best_value, best_name = value, name
                if self._board.budget.elapsed >= next_offer:
                    next_offer = self._board.budget.elapsed + max(_PAUSE, self._offer(f"list:{name}"))
        self._lists.sort(key=itemgetter(0))
        chain.list_style = self._lists[0][1] if self._lists else chain.list_styles[0]
        self._offer(f"list:{best_name}")

    def _promoted(self, chain: Chain, keys: NDArray[np.float64]) -> tuple[NDArray[np.float64], float | None]:
        """Plan a list, and move jobs that are too late towards its front, with all for which they wait, until none is
        or that no longer helps; return the best list and its value.
        """
        best, best_value, failed = keys, chain.plan_list(keys), 0
        value, listed = best_value, keys
        while value is not None and failed < _PROMOTIONS and not self._is_over and self._time_share() < _FIXED:
            late = chain.late()
            if not len(late):
                break
            ordered, listed = np.sort(listed), listed.copy()
            places = np.searchsorted(ordered, listed[late])
            listed[late] = np.minimum(listed[late], ordered[(places * _FORWARD).astype(np.int64)])
            value = chain.plan_list(listed)
            failed += 1
            if value is not None and (best_value is None or value < best_value):
                best, best_value, failed = listed, value, 0
        return best, best_value

    def breed_lists(self, chain: Chain, first: Mapping[str, NDArray[np.float64]], seed: int) -> None:
        """Breed lists of a project, and plan each that is better by counts than all before."""
        if not self._lists or self._max_steps == 0 or not chain.is_project or len(self._jobs) > _MOST_BRED:
            return
        if any(job.alternatives or job.is_hurried for job in self._jobs):
            return
        breeding, decoded, is_exact = Breeding(chain, first.values(), seed), np.inf, True
        lists, share, first_until = self._portion, 0.0, self._time_share() + _FIRST_BRED
        skeletons, generations, sown = self._skeletons(chain, breeding), 1, _SOWN
        as_orders = _BRED_AS_ORDERS if chain.ledger.table.is_linked else _BRED_UNLINKED
        while not self._is_over and share < (_BRED if is_exact else as_orders):
            if is_exact and breeding.is_exhausted:
                self.is_exhausted = True
                break
            if self._max_steps is None and not breeding.generations and self._time_share() > first_until:
                break
            began = self._board.budget.elapsed
            if skeletons is None or breeding.generations < generations or share > _WIDE or skeletons.is_over:
                breeding.run(lists)
            elif (skeleton := self._skeleton(skeletons, lists * _MOMENTS)) is not None:
                breeding.sow(skeleton)
                generations, sown = breeding.generations + sown, 2 * sown
            self._steps += lists
            if self._max_steps is None:
                took = max(self._board.budget.elapsed - began, 1e-6)
                lists = max(1, min(2 * lists, int(lists * _LOOK / took)))
            share = self._steps / self._max_steps if self._max_steps else self._time_share()
            if breeding.best_value < decoded:
                decoded, starts = breeding.best_value, breeding.best_starts
                value = chain.plan_list(starts.astype(np.float64))
                is_exact = value is not None and value <= chain.value_of(starts) * (1 + 1e-9)
            self._offer_now_and_then("list:bred")
        self._offer("list:bred")

    def _skeletons(self, chain: Chain, breeding: Breeding) -> Skeletons | None:
        """Return a search for the shortest schedule of wide jobs, where what it proves holds for all plans."""
        return None if chain.is_open or chain.is_elastic else breeding.skeletons()

    def _skeleton(self, skeletons: Skeletons, moments: int) -> Skeleton | None:
        """Search for a schedule of wide jobs that ends before the best plan does, and prove what is known of all."""
        price, proof = self._chain.end_price, self._board.proof
        skeletons.before = round((self._best_value() - self._offset) / price)
        if proof is not None:
            skeletons.least = max(skeletons.least, math.ceil((proof.value - self._offset) / price - _LITTLE))
        skeleton = skeletons.run(moments)
        value = price * skeletons.least + self._offset
        self._board.prove(value, over=self._least, how="schedules of the widest jobs", by=self.name)
        return skeleton

    def go_on_with(self, chain: Chain | CountedChain) -> None:
        """Continue with the steps of another chain."""
        self._chain, self._offset = chain, chain.offset()

    def run_chain(self) -> None:
        """Run coolings of the chain until the time is used."""
        is_single = len(self._jobs) < 2 and not (isinstance(self._chain, Chain) and self._chain.has_lenders)
        if is_single or not self._begin_at_best():
            return
        if self._lists:
            self._chain.rank(self._lists[0][2])
        each, done = _STEPS_PER_JOB * len(self._jobs), self._steps
        steps = self._expected_steps() if self._max_steps is None else self._max_steps - done
        coolings = max(1, steps // each)
        hot = min(max(_HOT * steps / (coolings * each * _SLOW), _WARM), _HOT, _DEEP / max(self._chain.depth, 1e-9))
        began = self._time_share()
        for cooling in range(coolings):
            is_begun = cooling < coolings - 1 and self._begin_with_list(cooling)
            if self._is_over or not (is_begun or self._begin_at_best()):
                break
            end = began + (1.0 - began) * (cooling + 1) / coolings
            self._cool(hot, end, done + steps * (cooling + 1) // coolings)
        self._offer(self.name)

    def _begin_with_list(self, cooling: int) -> bool:
        """Begin anew from one list after the other, since local optima are near where a cooling begins; tell whether
        there is a plan to begin from.
        """
        if not self._lists:
            return False
        _, self._chain.list_style, keys = self._lists[cooling % len(self._lists)]
        return self._chain.plan_list(keys) is not None

    def _begin_at_best(self) -> bool:
        """Begin from the best plan of all, as the last cooling does; tell whether there is one."""
        return self._chain.adopt(self._best()) or (
            self._chain.best_value < np.inf and self._chain.adopt(self._chain.best())
        )

    def _cool(self, hot: float, until: float, last_step: int) -> None:
        """Lower the temperature from `hot` until a share of the time is used, or a number of steps is done."""
        began, first_step, cold = self._time_share(), self._steps, min(_COLD, hot * _COLD / _WARM)
        while not self._is_over:
            if self._max_steps is None:
                share = (self._time_share() - began) / max(until - began, 1e-9)
            else:
                share = (self._steps - first_step) / (last_step - first_step) if self._steps < last_step else 1.0
            if share >= 1:
                return
            self._step(hot * (cold / hot) ** share)
            self._offer_now_and_then(self.name)

    def _step(self, temperature: float) -> None:
        """Do a portion of steps at one temperature; without a limit of steps as many as `_LOOK` allows."""
        budget, most = self._board.budget, _PORTION
        began = budget.elapsed
        portion = most if self._max_steps is None else min(most, self._max_steps - self._steps)
        portion = min(portion, self._portion)
        self._chain.run(portion, temperature)
        self._steps += portion
        if self._max_steps is None:
            took = max(budget.elapsed - began, 1e-6)
            self._portion = max(1, min(most, 2 * portion, int(portion * _LOOK / took)))

    def _expected_steps(self) -> int:
        """Return the number of further steps that there is time for, estimated from the first ones."""
        began, done = self._board.budget.elapsed, self._steps
        while not self._is_over and self._board.budget.elapsed < began + _PROBE:
            self._step(_COLD)
        took = max(self._board.budget.elapsed - began, 1e-6)
        return int((self._steps - done) * (1 + self._board.budget.remaining / took))

    def _time_share(self) -> float:
        """Return the used share of the time that was left at the beginning, without that for the last offer."""
        whole = self._board.budget.seconds - self._slowest - self._began
        return (self._board.budget.elapsed - self._began) / whole if whole > 0 else 1.0
