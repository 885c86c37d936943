"""The messages of an engine and its worker process."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf

from cpsched.cp.encoding import Encoding
from cpsched.cp.neighbourhoods import Positions
from cpsched.cp.solution import ModelParams, Placed
from cpsched.domain import Instance


class Verdict(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Something to be done in time."""

    #: Seconds that it may take, from the moment when it was asked for: starting the worker and loading what it needs
    #: count.
    seconds: float
    #: That moment, on the monotonic clock that all processes of a machine share.
    asked: float = field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds that are left, never below 0."""
        return max(0.0, self.asked + self.seconds - time.monotonic())


@dataclass(frozen=True, slots=True, kw_only=True)
class Solve(_Task):
    """Solve a model, in seconds or in deterministic time."""

    encoding: Encoding
    params: ModelParams
    #: A plan to begin from, if the model has one.
    hint: tuple[Placed, ...] | None
    seed: int
    workers: int
    deterministic_time: float | None
    #: Whether some of the time is for a bound from below, where only the makespan counts.
    raises: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prove(_Task):
    """Prove a bound without a model."""

    instance: Instance
    jobs: tuple[str, ...]
    seed: int
    #: The value of a plan of them.
    enough: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Descend(_Task):
    """Improve a plan by neighbourhoods, until there is another request; the next one gives a better plan, or none."""

    #: Of all tasks that have or could have a start, with alternatives by class; None: as before.
    encoding: Encoding | None
    positions: Positions
    #: Counts these requests; replies have it too.
    number: int
    seed: int
    #: For plans that do not depend on the clock: the number of neighbourhoods; None: the seconds are the limit.
    most: int | None


Request = Solve | Prove | Descend


@dataclass(frozen=True, slots=True)
class BetterPlan:
    """A solution, better than those before."""

    placed: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Bounded:
    """No solution costs less, in whole numbers."""

    least: float
    #: No solution with so many waiting jobs; None: with all of them.
    planned: int | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """No solution has places for more waiting jobs."""

    most: int


@dataclass(frozen=True, slots=True)
class Done:
    """The solver stopped."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Proven:
    """A bound on the objective, and how it was proven; None if there is none."""

    value: float | None
    how: str


@dataclass(frozen=True, slots=True)
class Tried:
    """The results of the neighbourhoods since the last such message."""

    #: How many there were; how many of them are proven to have no better plan than the one that is now kept; how many
    #: had a better one.
    tried: int
    proven: int
    improved: int
    #: Of the request that gave the plan.
    number: int
    #: Whether no further neighbourhoods are tried for that request.
    is_last: bool
    #: The tasks that have other places now, by number.
    moved: Mapping[int, Placed]


@dataclass(frozen=True, slots=True)
class Failed:
    """Something went wrong, in words."""

    what: str


Reply = BetterPlan | Bounded | Counted | Done | Proven | Tried | Failed
