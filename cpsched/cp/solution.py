"""What travels between engine and solver: parameters, and solutions in whole numbers."""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParams:
    """The redundant constraints of a model: each holds in every plan, and strengthens the solver's propagation."""

    #: The sum of all nodes, one cumulative for each resource.
    has_energy: bool = True
    #: Units of more than a half (a third) of a node: at most one (two) of them on a node.
    has_dual_feasible: bool = True
    #: Equal nodes are filled in one order only.
    breaks_nodes: bool = True
    #: Equal jobs start in one order only.
    breaks_jobs: bool = True
    #: Jobs start only when something ends, or when they may: proofs are tens to hundreds of times faster.
    has_tight_starts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CpParams:
    """How the CP-SAT improver works."""

    model: ModelParams = ModelParams()
    #: A window with more pairs of a part of a job and a node than this is not solved as a whole.
    most_pairs: int = 1500
    #: The part of the budget that it may take; and where jobs wait for each other, which it can prove more about.
    share: float = 0.5
    linked_share: float = 0.9
    workers: int = 1
    #: For plans that do not depend on the clock: the limit of a solve, with one worker; None: the budget is the limit.
    deterministic_time: float | None = None
    #: The part of the available memory that the worker may use.
    memory_share: float = 0.5

    def __post_init__(self) -> None:
        """Check the figures."""
        shares = (self.share, self.linked_share, self.memory_share)
        if self.workers < 1 or self.most_pairs < 0 or not all(0 < share <= 1 for share in shares):
            raise ValueError(f"Expected at least one worker, and shares in (0, 1], got {self}")
        if self.deterministic_time is not None and (self.deterministic_time <= 0 or self.workers != 1):
            raise ValueError(f"Expected a positive deterministic time, and one worker with it, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourhoodParams:
    """How parts of a plan are improved by CP-SAT."""

    #: For plans that do not depend on the clock: the number of neighbourhoods that are tried; None: as many as there is
    #: time for.
    most: int | None = None
    #: The part of the available memory that the worker may use.
    memory_share: float = 0.5

    def __post_init__(self) -> None:
        """Check the figures."""
        if not 0 < self.memory_share <= 1 or (self.most is not None and self.most < 0):
            raise ValueError(f"Expected a share in (0, 1] and no negative number, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundParams:
    """How the bound beside the search is proven."""

    #: The part of the budget that it may take.
    share: float = 0.2
    #: The part of the available memory that the worker may use.
    memory_share: float = 0.5
    #: A window with more waiting jobs than this is left alone; None: none is.
    most_jobs: int | None = None
    #: Seconds of its share below which it does not begin: loading what the worker needs takes half a second.
    least_seconds: float = 0.0
    #: The same where a first bound is proven: the worker begins anew, and in less time hardly gets beyond it.
    least_anew: float = 0.0

    def __post_init__(self) -> None:
        """Check the figures."""
        if not (0 < self.share <= 1 and 0 < self.memory_share <= 1):
            raise ValueError(f"Expected shares in (0, 1], got {self}")
        if min(self.least_seconds, self.least_anew) < 0 or (self.most_jobs is not None and self.most_jobs < 0):
            raise ValueError(f"Expected no negative figures, got {self}")


#: The mode of a task that has no place.
ABSENT = -1


@dataclass(frozen=True, slots=True)
class Placed:
    """The times and the mode of a task, and the number of units of its parts on each site."""

    #: The begin of its first segment, and the ends of all its segments (s from now).
    times: tuple[int, ...]
    #: (part, site, number of its units there), without zeros.
    counts: tuple[tuple[int, int, int], ...]
    #: Which of its modes it has; `ABSENT`: it has no place, its start is its earliest, and it has no segments.
    mode: int = 0

    @property
    def is_absent(self) -> bool:
        """Whether the task has no place."""
        return self.mode == ABSENT

    @property
    def start(self) -> int:
        """Second from now."""
        return self.times[0]

    @property
    def end(self) -> int:
        """Second from now."""
        return self.times[-1]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Seconds that each segment takes."""
        return tuple(end - start for start, end in pairwise(self.times))
