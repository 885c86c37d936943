"""`ByMerit`: solvers that share a lane, and get its time by what they gain.

A solver that knows one choice of each job, where one was made for them (`problem.settling`), begins from those of the
best plan, and begins anew from those of a better one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Budget, Improver, Offer, Turn
from cpsched.problem import chosen_in, has_choices_made, opened

#: Seconds that a solver has at least with the same choices.
_LEAST_KEPT = 1.0


def improve_by_choice(solver: Improver, instance: Instance, board: Board, *, seed: int) -> None:
    """Improve plans with the choices of the best one, as long as others find better choices."""
    while True:
        chosen = _Chosen(board, instance)
        solver.improve(chosen.instance, chosen, seed=seed)
        if board.is_over or not chosen.is_outdated:
            return
        seed += 1


class _Chosen(Board):
    """A board for plans in which each job runs by the choice that the best plan has now: all else is the whole board's
    own. What is proven of such plans is not of all.

    `whole`: the board. `window`: the compiled instance, whose jobs have more choices.
    """

    __slots__ = ("_first", "_made", "_numbers", "_until", "_whole", "instance")

    def __init__(self, whole: Board, window: Instance) -> None:
        self.__dict__ = whole.__dict__
        self._whole = whole
        best = whole.best
        #: The instance without other choices than those.
        self.instance, self._numbers = chosen_in(window, {one.id: one.alternative for one in best.jobs})
        self._made = {name for job in window.jobs if opened(job) is not job for name in job.element_ids}
        self._first = self._seen(best)
        self._until = whole.budget.elapsed + _LEAST_KEPT

    @property
    def budget(self) -> Budget:  # type: ignore[override]  # a board that is given a budget has it as an attribute
        """That of the whole board, which may be one for a turn."""
        return self._whole.budget

    @property
    def best(self) -> Offer:
        """The best plan so far with these choices; its value is that of the best of all."""
        best = self._whole.best
        if self._has_same(best):
            self._first = self._seen(best)
        return replace(self._first, value=best.value, version=best.version)

    @property
    def is_outdated(self) -> bool:
        """Whether the best plan has other choices, or other jobs."""
        return not self._has_same(self._whole.best)

    @property
    def is_over(self) -> bool:
        """Whether solvers shall stop: also when these choices were tried for a while, and others are better."""
        return self._whole.is_over or (self._whole.budget.elapsed > self._until and self.is_outdated)

    def offer(self, jobs: Sequence[PlannedJob], *, by: str) -> bool:
        """Offer a plan with these choices (`Board.offer`)."""
        numbers = self._numbers
        return self._whole.offer(
            [replace(one, alternative=numbers[one.id]) if one.id in numbers else one for one in jobs], by=by
        )

    def prove(self, value: float, *, over: Collection[str] | int, how: str, by: str) -> None:
        """State nothing: other choices may be better."""

    def prove_most(self, most: int, *, by: str) -> None:
        """State nothing: other choices may leave room for more jobs."""

    def _has_same(self, offer: Offer) -> bool:
        """Return whether a plan has the same jobs, by the same choices."""
        found = {one.id: one.alternative for one in offer.jobs if one.alternative and one.id in self._made}
        mine = {name: number for name, number in self._numbers.items() if name in offer.ids}
        first = getattr(self, "_first", None)
        return found == mine and (first is None or first.ids == offer.ids)

    def _seen(self, offer: Offer) -> Offer:
        """Return a plan as the instance without choices has it."""
        jobs = tuple(replace(one, alternative=0) if one.id in self._numbers else one for one in offer.jobs)
        return replace(offer, jobs=jobs)


#: Seconds that a turn takes at least: a worker process is loaded first.
_LEAST = 1.5
#: Of the time that is left, so much goes to the turn of the solver that gains most.
_NEXT = 0.5
#: Each turn of another solver makes a gain count so much less: gains get smaller as plans get better.
_FADING = 0.5


@dataclass(frozen=True, slots=True)
class Member:
    """A solver, and the shares of the lane's time that it gets at first: 0 if its first turn is to wait until the
    solvers before it gain nothing.
    """

    solver: Improver
    #: Where each job can start at any time and never changes; and where it cannot (`is_tight`).
    plain: float
    tight: float


def is_tight(instance: Instance) -> bool:
    """Return whether a waiting job has a last start, waits or changes while it runs, or a running one can change."""
    return any(
        job.malleability is not None
        or (job.running is None and (job.after or job.is_evolving or instance.latest_start(job) is not None))
        for job in instance.jobs
    )


class ByMerit:
    """Gives solvers turns: one to each, and then the next one to the solver that gained most per second; of solvers
    that gained the same, such as nothing, to the one with the larger first share.

    `members`: in the order of their first turns; the last one gets all turns of those that cannot honour the instance.
    `turns`: for plans that do not depend on the clock: the number of turns, each of which ends by itself; gains are
    then compared by turn. None: as many as there is time for.
    """

    def __init__(self, members: Sequence[Member], turns: int | None = None) -> None:
        self.members = tuple(members)
        self._turns = turns
        #: The names of the solvers.
        self.name = "+".join(member.solver.name for member in self.members)

    def prepare(self) -> None:
        """Prepare all solvers."""
        for member in self.members:
            member.solver.prepare()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features that no solver can honour: those that the first one cannot, if each has some."""
        features = [member.solver.unsupported(instance) for member in self.members]
        return features[0] if all(features) else ()

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Improve the plan by the solvers, in turns, until the budget or the turns end."""
        able = [member for member in self.members if not member.solver.unsupported(instance)]
        rates: dict[int, tuple[float, float]] = {}
        tight = is_tight(instance)
        shares = [member.tight if tight else member.plain for member in able]
        whole, number_of_turns = board.budget.remaining, 0
        while not board.is_over and number_of_turns != self._turns:
            idle = not any(any(rate) for rate in rates.values())
            untried = [number for number in range(len(able)) if number not in rates and (shares[number] or idle)]
            number = untried[0] if untried else max(rates, key=lambda one: (rates[one], shares[one], -one))
            left = board.budget.remaining
            seconds = max(_LEAST, shares[number] * whole if untried else _NEXT * left)
            if left - seconds < _LEAST or self._turns is not None:
                seconds = left
            began, turn = board.budget.elapsed, Turn(board, seconds)
            run_solver(able[number].solver, instance, turn, seed=seed + number_of_turns)
            took = 1.0 if self._turns is not None else max(board.budget.elapsed - began, 0.01)
            rates = {other: (more * _FADING, gain * _FADING) for other, (more, gain) in rates.items()}
            rates[number] = turn.more / took, turn.gain / took
            number_of_turns += 1


def run_solver(solver: Improver, instance: Instance, board: Board, *, seed: int) -> None:
    """Run a solver; an error is reported. The board gets to know that it works, and then how long it worked."""
    began = board.budget.elapsed
    board.account(by=solver.name)
    try:
        if getattr(solver, "makes_choices", False) or not has_choices_made(instance):
            solver.improve(instance, board, seed=seed)
        else:
            improve_by_choice(solver, instance, board, seed=seed)
    except Exception as error:
        board.fail(f"gave up: {type(error).__name__}: {error}", by=solver.name)
    board.account(by=solver.name, seconds=board.budget.elapsed - began)
