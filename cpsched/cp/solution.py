"""What travels between engine and solver: what models have, and solutions in whole numbers."""

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
