"""The joint between engines and those who call them: `Engine`, `Budget` (the only clock), `Outcome`.

May import: `domain`, `errors`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cpsched.domain import Incumbent, Instance, Plan, PlannedJob, WaitingJob

__all__ = ["Budget", "Engine", "Outcome", "Progress"]

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
    """What an engine found: every job of the instance, either planned (or running) or in the waiting room."""

    jobs: tuple[PlannedJob, ...]
    waiting_room: tuple[WaitingJob, ...]
    #: Why the engine stopped: ``done``, ``optimal``, ``budget``, ``interrupted`` or ``fallback``.
    stopped: str
    #: A proven lower bound on the objective over the planned jobs, or None.
    bound: float | None = None
    #: How the plan was found; the first one is the fallback's. Empty: this is the only plan there was.
    incumbents: tuple[Incumbent, ...] = ()


class Engine(Protocol):
    """Something that plans instances."""

    #: As users name it on the command line.
    name: str

    def prepare(self) -> None:
        """Compile or load what planning needs, so that no budget pays for it."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return what the instance asks for and this engine cannot honour, each with its place."""

    def plan(
        self, instance: Instance, budget: Budget, *, seed: int, hint: Plan | None, progress: Progress | None
    ) -> Outcome:
        """Plan all jobs of an instance within a budget, beginning from `hint` if there is one."""
