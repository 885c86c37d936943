"""`ByMerit`: solvers that share a lane, and get its time by what they gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cpsched.domain import Instance
from cpsched.engine import Board, Improver, Turn
from cpsched.portfolio.choosing import improve_by_choice
from cpsched.problem import has_choices_made

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
    """Return whether some waiting jobs have a last start, wait for others, or change while they run, or running ones
    can change.
    """
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
    """Run a solver; an error is reported. The board gets to know how long it worked."""
    began = board.budget.elapsed
    try:
        if getattr(solver, "makes_choices", False) or not has_choices_made(instance):
            solver.improve(instance, board, seed=seed)
        else:
            improve_by_choice(solver, instance, board, seed=seed)
    except Exception as error:
        board.fail(f"gave up: {type(error).__name__}: {error}", by=solver.name)
    board.account(by=solver.name, seconds=board.budget.elapsed - began)
