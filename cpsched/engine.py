"""The interface between engines and their callers: `Engine`, `Budget` (the only clock), `Outcome`; and between solvers
that work in parallel: `Improver`, `Board`.

May import: `domain`, `errors`.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from cpsched.domain import Event, Incumbent, Instance, PlannedJob, SolverWork, WaitingJob

#: The most characters of an event's text.
LONGEST_EVENT = 500

#: The largest distance of two roundings of the same sum: relative to it, and absolute where it is near 0.
_ROUNDING, _NEAR_ZERO = 1e-9, 1e-12

#: Called with (jobs done, jobs in all) now and then during long work.
Progress = Callable[[int, int], None]


class Budget:
    """Seconds that may be spent, counted from the moment the budget is made.

    Raises `ValueError` if `seconds` is negative. `seconds`: at least 0. `clock`: returns seconds; replaced in tests.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not seconds >= 0:
            raise ValueError(f"Expected a budget of 0 s or more, got {seconds}")
        self.seconds = seconds
        self._clock = clock
        self._begin = clock()

    def more(self, seconds: float) -> "Budget":
        """Return a budget that began with this one and has `seconds` more (fewer, if negative)."""
        longer = Budget(max(0.0, self.seconds + seconds), self._clock)
        longer._begin = self._begin
        return longer

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Make a context whose seconds are not counted by this budget, nor by those that are made of it later."""
        since = self._clock()
        try:
            yield
        finally:
            self._begin += self._clock() - since

    @property
    def elapsed(self) -> float:
        """Seconds since the budget was made, without pauses."""
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
        """Compile or load what planning needs, so that no budget pays for it; nothing, unless an engine says so."""
        return

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
    #: The ids of the jobs.
    ids: frozenset[str]

    @property
    def rank(self) -> tuple[int, float]:
        """The smaller, the better: more jobs beat fewer, then the value counts."""
        return -len(self.jobs), self.value


#: The plans of which a bound is proven: those of exactly these jobs (ids, running ones included), or all of so many.
Scope = frozenset[str] | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A lower bound on the objective over the planned jobs."""

    value: float
    #: The plans that it holds for.
    over: Scope
    #: The method that proves it, in words.
    how: str
    #: The solver that proved it.
    by: str

    def holds_for(self, ids: Collection[str]) -> bool:
        """Return whether it is a bound of plans of some jobs."""
        return self.over in (len(ids), ids)

    def is_refuted_by(self, value: float) -> bool:
        """Return whether a plan's value is below the bound by more than rounding can explain."""
        return self.value - value > max(_NEAR_ZERO, _ROUNDING * max(abs(value), abs(self.value)))


class Board:
    """The best plan (BRIDI-16) and bounds so far, shared by solvers that work in parallel. Thread-safe; mutable.

    A plan of more jobs is better than one of fewer, whatever their values; of as many jobs, the smaller value is
    better. So offers may plan other jobs than the first plan does.

    `jobs`: the first plan.
    `by`: the solver that found it.
    `budget`: ends the work.
    `value_of`: values a plan.
    `judge`: returns the faults of a plan; a plan with faults is never accepted.
    `placeable`: the ids of all jobs that any plan can have, running ones included; those of the first plan are known to
      be.
    `least_of`: bounds the values of all plans of the same jobs, without solving anything; None: there is no such bound.

    Notes
    -----
    The best plan is optimal if no plan has more jobs, and none of as many jobs has a smaller value. A bound over a
    set of jobs is one over all sets of its size only where that is the only one: if it has all placeable jobs.
    """

    def __init__(
        self,
        jobs: Sequence[PlannedJob],
        *,
        by: str,
        budget: Budget,
        value_of: Callable[[Sequence[PlannedJob]], float],
        judge: Callable[[Sequence[PlannedJob]], Sequence[str]],
        placeable: Collection[str] = (),
        least_of: Callable[[Sequence[PlannedJob]], float] | None = None,
    ) -> None:
        self.budget = budget
        #: Whether what solvers prove of their window holds for what was asked: not if the window has only some plans.
        self.takes_proofs = True
        self._value_of, self._judge, self._least_of = value_of, judge, least_of
        self._lock, self._judging = threading.RLock(), threading.Lock()
        self._closed = threading.Event()
        ids = frozenset(job.id for job in jobs)
        self._best = Offer(jobs=tuple(jobs), value=value_of(jobs), by=by, version=0, ids=ids)
        self._placeable = ids.union(placeable)
        #: The most jobs of a plan that some solver proved, and that solver.
        self._proven_most: int | None = None
        self._most_by = by
        #: The bounds over each scope, the largest last.
        self._proofs: dict[Scope, list[Proof]] = {}
        self._incumbents = [self._incumbent()]
        self._events: list[Event] = []
        self._failures: list[Event] = []
        self._left_out: set[str] = set()
        self._work: dict[str, SolverWork] = {}
        self._prove_least()

    @property
    def _now(self) -> float:
        return round(self.budget.elapsed, 3)

    def _incumbent(self) -> Incumbent:
        best = self._best
        return Incumbent(at=self._now, value=best.value, by=best.by, planned=len(best.jobs))

    @property
    def best(self) -> Offer:
        """The best plan so far."""
        return self._best

    @property
    def placeable(self) -> frozenset[str]:
        """The ids of all jobs that a plan could have."""
        return self._placeable

    @property
    def most(self) -> int:
        """The number of jobs, running ones included, that no plan exceeds, as far as is proven."""
        number = len(self._placeable)
        return number if self._proven_most is None else min(number, self._proven_most)

    @property
    def proof(self) -> Proof | None:
        """The best bound so far over the jobs of the best plan that no plan contradicts."""
        return max(self._proofs_of(self._best), key=lambda proof: proof.value, default=None)

    @property
    def incumbents(self) -> tuple[Incumbent, ...]:
        """The plans that were the best so far, in the order in which they were."""
        return tuple(self._incumbents)

    @property
    def events(self) -> tuple[Event, ...]:
        """Other events that a reader of the plan should know."""
        return tuple(self._events)

    @property
    def failures(self) -> tuple[Event, ...]:
        """Those events that tell of a solver that died."""
        return tuple(self._failures)

    @property
    def is_given_up(self) -> bool:
        """Whether every solver that worked has died."""
        return bool(self._failures) and self._work.keys() <= self._left_out.union(one.by for one in self._failures)

    @property
    def work(self) -> tuple[SolverWork, ...]:
        """What each solver did, in the order in which they began."""
        return tuple(self._work.values())

    @property
    def is_optimal(self) -> bool:
        """Whether the best plan is proven optimal: in the number of its jobs, and then in its value (BRIDI-18)."""
        with self._lock:
            best = self._best
            if len(best.ids) < self.most:
                return False
            enough = best.value - 1e-9 * max(1.0, abs(best.value))
            has_all = len(best.ids) == len(self._placeable)
            return any(
                proof.value >= enough for proof in self._proofs_of(best) if has_all or isinstance(proof.over, int)
            )

    @property
    def is_over(self) -> bool:
        """Whether solvers shall stop: the budget has ended, the board is closed, or there is nothing left to find."""
        return self._closed.is_set() or self.budget.remaining <= 0 or self.is_optimal

    def close(self) -> None:
        """Accept no more offers or proofs from now on."""
        with self._lock:
            self._closed.set()

    def offer(self, jobs: Sequence[PlannedJob], *, by: str) -> bool:
        """Offer a plan, with all running jobs and any waiting ones; return whether it is the best one now.

        A plan that breaks a rule is refused, and an event says so.
        """
        ids = frozenset(job.id for job in jobs)
        offer = Offer(jobs=tuple(jobs), value=self._value_of(jobs), by=by, version=0, ids=ids)
        if offer.rank >= self._best.rank:
            return False
        with self._judging:  # what is no better by then need not be judged
            return self._is_taken(offer, by)

    def _is_taken(self, offer: Offer, by: str) -> bool:
        """Judge an offer, and take it if it is the best one; called by one solver at a time."""
        if offer.rank >= self._best.rank or self._closed.is_set():
            return False
        faults = self._judge(offer.jobs)
        if faults:
            self.report(f"offered a plan that breaks rules: {faults[0]} ({len(faults)} in all)", by=by)
            return False
        with self._lock:
            if self._closed.is_set():
                return False
            self._best = replace(offer, version=self._best.version + 1)
            self._placeable = self._placeable.union(offer.ids)
            self._incumbents.append(self._incumbent())
            if self._proven_most is not None and len(offer.ids) > self._proven_most:
                self._contradict_most(self._proven_most, by=self._most_by)
                self._proven_most = None
            for proofs in self._proofs.values():
                for proof in [one for one in proofs if one.holds_for(offer.ids) and one.is_refuted_by(offer.value)]:
                    proofs.remove(proof)
                    self.contradict(proof)
            self._prove_least()
        return True

    def prove(self, value: float, *, over: Collection[str] | int, how: str, by: str) -> None:
        """State a bound on values.

        A bound above the value of a plan is false: it is not taken, and an event says so.

        `value`: no plan in question has less.
        `over`: the plans in question: the ids of the jobs of a plan, running ones included, such as ``board.best.ids``;
          or the number of jobs, for all plans of so many jobs, whichever they are.
        `how`: the method that proves it, in words.
        `by`: the solver that proved it.
        """
        scope = over if isinstance(over, int) else frozenset(over)
        with self._lock:
            if not self._closed.is_set() and self.takes_proofs:
                self._take(Proof(value=value, over=scope, how=how, by=by))

    def _prove_least(self) -> None:
        """State the bound over the jobs of the best plan that needs no solver, unless one is known."""
        best = self._best
        if self._least_of is not None and best.ids not in self._proofs:
            least, how = self._least_of(best.jobs), "no job can start before now, or before it is submitted"
            self._take(Proof(value=least, over=best.ids, how=how, by="earliest starts"))

    def _take(self, proof: Proof) -> None:
        """Keep a bound that is larger than those known over its scope, if no plan contradicts it."""
        known = self._proofs.setdefault(proof.over, [])
        if known and proof.value <= known[-1].value:
            return
        if proof.holds_for(self._best.ids) and proof.is_refuted_by(self._best.value):
            self.contradict(proof)
        else:
            known.append(proof)

    def prove_most(self, most: int, *, by: str) -> None:
        """State that no plan has more than `most` jobs, running ones included; it is not taken if the best plan has."""
        with self._lock:
            if self._closed.is_set() or not self.takes_proofs or most >= self.most:
                return
            if most < len(self._best.ids):
                self._contradict_most(most, by=by)
            else:
                self._proven_most, self._most_by = most, by

    def _contradict_most(self, most: int, *, by: str) -> None:
        """Report a number of jobs that the best plan exceeds, although it was proven to be the most."""
        best = self._best
        self.report(
            f"proved a false bound: {most} jobs at the most, but a plan of {best.by} has {len(best.ids)}; it is not "
            "used, please report this as a defect of cpsched",
            by=by,
        )

    def _proofs_of(self, best: Offer) -> Iterator[Proof]:
        """Yield the largest bound of each scope that holds for a plan."""
        for scope in (best.ids, len(best.ids)):
            if self._proofs.get(scope):
                yield self._proofs[scope][-1]

    def contradict(self, proof: Proof) -> None:
        """Report a bound that the best plan contradicts: a defect of the solver that proved it. It does not count."""
        best = self._best
        self.report(
            f"proved a false bound: {proof.value:.12g} ({proof.how}), but a plan of {best.by} is worth "
            f"{best.value:.12g}; the bound is not used, please report this as a defect of cpsched",
            by=proof.by,
        )

    def account(self, *, by: str, seconds: float = 0.0, what: str | None = None) -> None:
        """Add seconds to the work of a solver, and replace the words that say what it did."""
        with self._lock:
            if not self._closed.is_set():
                known = self._work.get(by, SolverWork(by=by, seconds=0.0))
                self._work[by] = SolverWork(by=by, seconds=round(known.seconds + seconds, 3), what=what or known.what)

    def leave_out(self, why: str, *, by: str) -> None:
        """Say in the work of a solver why it does not work on this window."""
        self._left_out.add(by)
        self.account(by=by, what=f"left out: {why}")

    def report(self, what: str, *, by: str) -> None:
        """Add an event; its text is folded into one line of printable characters."""
        self._tell(what, by)

    def fail(self, what: str, *, by: str) -> None:
        """Add an event that tells that a solver died: whoever asked for the plan is warned."""
        event = self._tell(what, by)
        self._failures += [] if event is None else [event]

    def _tell(self, what: str, by: str) -> Event | None:
        """Add an event, unless the board is closed; return it."""
        line = " ".join("".join(char if char.isprintable() else " " for char in what).split())
        with self._lock:
            if self._closed.is_set():
                return None
            event = Event(at=self._now, by=by, what=line[:LONGEST_EVENT])
            self._events.append(event)
            return event


class Turn(Board):
    """A board for some seconds, in which it counts what is gained: all else is the whole board's own.

    `whole`: the board. `seconds`: after which solvers shall stop.
    """

    __slots__ = ("_until", "gain", "more")

    def __init__(self, whole: Board, seconds: float) -> None:
        self.__dict__ = whole.__dict__
        self._until = whole.budget.more(seconds - whole.budget.remaining)
        #: By how much offers of this turn made the value smaller, and how many jobs they added.
        self.gain, self.more = 0.0, 0

    @property
    def budget(self) -> Budget:  # type: ignore[override]  # a board that is given a budget has it as an attribute
        """Ends the turn."""
        return self._until

    def offer(self, jobs: Sequence[PlannedJob], *, by: str) -> bool:
        """Offer a plan (`Board.offer`), and count what it gains."""
        before = self.best
        is_best = super().offer(jobs, by=by)
        if is_best:
            self.more += len(jobs) - len(before.jobs)
            self.gain += max(0.0, before.value - self._value_of(jobs)) if len(jobs) == len(before.jobs) else 0.0
        return is_best


class Improver(Protocol):
    """A solver that begins from a plan and offers better ones, or bounds, to a board."""

    #: As users and the log of incumbents name it.
    name: str

    def prepare(self) -> None:
        """Compile or load what improving needs, so that no budget pays for it; nothing, unless a solver says so."""
        return

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features that this solver cannot honour, each with its path; none, unless it says so."""
        return ()

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Work until ``board.is_over``, or until there is nothing left to try; runs in a thread of its own.

        An exception that leaves it becomes an event and a warning; it may be left behind when the budget ends.
        """
