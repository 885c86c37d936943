"""The interface between engines and their callers: `Engine`, `Budget` (the only clock), `Outcome`; and between solvers
that work in parallel: `Improver`, `Board`.

May import: `domain`, `errors`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cpsched.domain import Event, Incumbent, Instance, PlannedJob, WaitingJob

__all__ = ["Board", "Budget", "Engine", "Improver", "Offer", "Outcome", "Progress", "Proof"]

#: The most characters of an event's text.
_LONGEST_EVENT = 500

#: The largest distance of two roundings of the same sum: relative to it, and absolute where it is near 0.
_ROUNDING, _NEAR_ZERO = 1e-9, 1e-12

#: Called with (jobs done, jobs in all) now and then during long work.
Progress = Callable[[int, int], None]


class Budget:
    """Seconds that may be spent, counted from the moment the budget is made.

    Parameters
    ----------
    seconds
        At least 0.
    clock
        Returns seconds; replaced in tests.

    Raises
    ------
    ValueError
        If `seconds` is negative.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not seconds >= 0:
            raise ValueError(f"Expected a budget of 0 s or more, got {seconds}")
        self.seconds = seconds
        self._clock = clock
        self._begin = clock()

    def more(self, seconds: float) -> Budget:
        """Return a budget that began with this one and has `seconds` more (fewer, if negative)."""
        longer = Budget(max(0.0, self.seconds + seconds), self._clock)
        longer._begin = self._begin
        return longer

    @property
    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return self._clock() - self._begin

    @property
    def remaining(self) -> float:
        """Seconds that are left, never below 0."""
        return max(0.0, self.seconds - self.elapsed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an engine: every job of the instance, either planned (or running) or in the waiting room."""

    jobs: tuple[PlannedJob, ...]
    waiting_room: tuple[WaitingJob, ...]


class Engine(Protocol):
    """Something that plans instances by itself: the planner, a rule. Deterministic; takes the time it needs."""

    #: As users name it on the command line.
    name: str

    def prepare(self) -> None:
        """Compile or load what planning needs, so that no budget pays for it."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that this engine cannot honour, each with its path."""

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs of an instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A plan on the board."""

    #: Running and planned jobs, in document order.
    jobs: tuple[PlannedJob, ...]
    value: float
    #: The solver that found it.
    by: str
    #: Counts the plans that were the best so far; the first one is 0.
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A lower bound on the objective over the planned jobs."""

    value: float
    #: The method that proves it, in words.
    how: str
    #: The solver that proved it.
    by: str

    def is_refuted_by(self, value: float) -> bool:
        """Return whether a plan's value is below the bound by more than rounding can explain."""
        return self.value - value > max(_NEAR_ZERO, _ROUNDING * max(abs(value), abs(self.value)))


class Board:
    """The best plan and the best bound so far, shared by solvers that work in parallel. Thread-safe; mutable.

    All plans on a board plan the same jobs: those of the first one.

    Parameters
    ----------
    jobs
        The first plan.
    by
        The solver that found it.
    budget
        Ends the work.
    value_of
        Values a plan.
    judge
        Returns the faults of a plan; a plan with faults is never accepted.
    """

    def __init__(
        self,
        jobs: Sequence[PlannedJob],
        *,
        by: str,
        budget: Budget,
        value_of: Callable[[Sequence[PlannedJob]], float],
        judge: Callable[[Sequence[PlannedJob]], Sequence[str]],
    ) -> None:
        self.budget = budget
        #: Whether what solvers prove of their window holds for what was asked: not if the window has only some plans.
        self.takes_proofs = True
        self._value_of, self._judge = value_of, judge
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._best = Offer(jobs=tuple(jobs), value=value_of(jobs), by=by, version=0)
        self._proofs: list[Proof] = []
        self._incumbents = [Incumbent(at=self._now, value=self._best.value, by=by)]
        self._events: list[Event] = []

    @property
    def _now(self) -> float:
        return round(self.budget.elapsed, 3)

    @property
    def best(self) -> Offer:
        """The best plan so far."""
        return self._best

    @property
    def proof(self) -> Proof | None:
        """The best bound so far that no plan contradicts."""
        return self._proofs[-1] if self._proofs else None

    @property
    def incumbents(self) -> tuple[Incumbent, ...]:
        """The plans that were the best so far, in the order in which they were."""
        return tuple(self._incumbents)

    @property
    def events(self) -> tuple[Event, ...]:
        """Other events that a reader of the plan should know."""
        return tuple(self._events)

    @property
    def is_optimal(self) -> bool:
        """Whether the best plan is proven optimal."""
        best, proof = self._best.value, self.proof
        return proof is not None and proof.value >= best - 1e-9 * max(1.0, abs(best))

    @property
    def is_over(self) -> bool:
        """Whether solvers shall stop: the budget has ended, the board is closed, or there is nothing left to find."""
        return self._closed.is_set() or self.budget.remaining <= 0 or self.is_optimal

    def close(self) -> None:
        """Accept no more offers or proofs from now on."""
        with self._lock:
            self._closed.set()

    def offer(self, jobs: Sequence[PlannedJob], *, by: str) -> bool:
        """Offer a plan of the same jobs; return whether it is the best one now.

        A plan that breaks a rule is refused, and an event says so.
        """
        value = self._value_of(jobs)
        if value >= self._best.value or self._closed.is_set():
            return False
        faults = self._judge(jobs)
        if faults:
            self.report(f"offered a plan that breaks rules: {faults[0]} ({len(faults)} in all)", by=by)
            return False
        with self._lock:
            if value >= self._best.value or self._closed.is_set():
                return False
            self._best = Offer(jobs=tuple(jobs), value=value, by=by, version=self._best.version + 1)
            self._incumbents.append(Incumbent(at=self._now, value=value, by=by))
            false = [proof for proof in self._proofs if proof.is_refuted_by(value)]
            self._proofs = self._proofs[: len(self._proofs) - len(false)]
            for proof in false:
                self.contradict(proof)
        return True

    def prove(self, value: float, *, how: str, by: str) -> None:
        """State a bound: no plan of these jobs has a value below `value`.

        A bound above the value of a plan is false: it is not taken, and an event says so.
        """
        proof = Proof(value=value, how=how, by=by)
        with self._lock:
            if self._closed.is_set() or not self.takes_proofs or (self._proofs and value <= self._proofs[-1].value):
                return
            if proof.is_refuted_by(self._best.value):
                self.contradict(proof)
            else:
                self._proofs.append(proof)

    def contradict(self, proof: Proof) -> None:
        """Report a bound that the best plan contradicts: a defect of the solver that proved it. It does not count."""
        best = self._best
        self.report(
            f"proved a false bound: {proof.value:.12g} ({proof.how}), but a plan of {best.by} is worth "
            f"{best.value:.12g}; the bound is not used, please report this as a defect of cpsched",
            by=proof.by,
        )

    def report(self, what: str, *, by: str) -> None:
        """Add an event; its text is folded into one line of printable characters."""
        line = " ".join("".join(char if char.isprintable() else " " for char in what).split())
        with self._lock:
            if not self._closed.is_set():
                self._events.append(Event(at=self._now, by=by, what=line[:_LONGEST_EVENT]))


class Improver(Protocol):
    """A solver that begins from a plan and offers better ones, or bounds, to a board."""

    #: As users and the log of incumbents name it.
    name: str

    def prepare(self) -> None:
        """Compile or load what improving needs, so that no budget pays for it."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that this solver cannot honour, each with its path."""

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Work until ``board.is_over``, or until there is nothing left to try; runs in a thread of its own.

        An exception that leaves it becomes an event; it may be left behind when the budget ends.
        """
