"""The outcomes of the jobs of a workload: one row per job, as arrays.

A simulator fills `Runs`; every figure and every file of its results is computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


#: A job's time of running counts as at least this many seconds in its bounded slowdown (Feitelson, JSSPP 2001).
BOUND = 10
#: The names of table columns whose field's name is a plural.
_SINGULAR = {"ids": "id", "users": "user", "groups": "group", "queues": "queue"}


class Ending(IntEnum):
    """The final state of a job."""

    #: Not over by the end of the simulation: it never started, or waits again because its node failed.
    WAITING = 0
    #: It can never run on this machine.
    REFUSED = 1
    COMPLETED = 2
    #: Killed at its walltime.
    KILLED = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Runs:
    """The outcomes of the jobs of a workload: arrays of one length, in document order; times in seconds.

    Raises `ValueError` if the columns differ in length, or a job that is over does not have submit <= start <= end.
    """

    ids: tuple[str, ...]
    users: tuple[str | None, ...]
    groups: tuple[str | None, ...]
    queues: tuple[str | None, ...]
    submit: NDArray[np.int64]
    walltime: NDArray[np.int64]
    #: The duration without a walltime limit; -1: unknown, the job then ran for its walltime.
    runtime: NDArray[np.int64]
    #: Start and end of the last attempt; -1: never started. What ran when the simulation was interrupted ends then.
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    #: The job's total request: cores, and every resource of the machine by its name, licences too.
    cores: NDArray[np.int64]
    asked: Mapping[str, NDArray[np.int64]]
    #: Number of nodes that the job had; 0: never started.
    nodes: NDArray[np.int64]
    #: The expected wait of its queue, > 0.
    expected_wait: NDArray[np.int64]
    #: The wait beyond which its queue counts it as overdue; -1: none.
    max_wait: NDArray[np.int64]
    #: Number of starts; more than one where a node of the job failed.
    attempts: NDArray[np.int64]
    #: Start of the first attempt; -1: never started.
    first_start: NDArray[np.int64]
    #: Seconds of its runs that were cut short, without what checkpoints kept.
    lost: NDArray[np.int64]
    #: Values of `Ending`.
    ending: NDArray[np.int8]

    def __post_init__(self) -> None:
        columns = self._columns()
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"expected columns of one length, got {lengths}")
        wrong = np.flatnonzero(self.over & ~((self.submit <= self.start) & (self.start <= self.end)))
        if wrong.size:
            job = wrong[0]
            times = f"{self.submit[job]}, {self.start[job]}, {self.end[job]}"
            raise ValueError(f"expected submit <= start <= end, got {times} (job {self.ids[job]!r})")

    def _columns(self) -> dict[str, NDArray[np.int64]]:
        """Return all columns by their names; that of a requested resource is ``asked_`` and its name."""
        columns = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "asked"}
        return columns | {f"asked_{name}": amounts for name, amounts in self.asked.items()}

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Runs of {len(self)} jobs, {int(self.over.sum())} of them over>"

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which jobs are over: completed or killed. Only they have a wait, a response and a slowdown."""
        return self.ending >= Ending.COMPLETED

    @property
    def running(self) -> NDArray[np.bool_]:
        """Which jobs still ran when a simulation was interrupted."""
        found: NDArray[np.bool_] = (self.ending == Ending.WAITING) & (self.start >= 0)
        return found

    @property
    def wait(self) -> NDArray[np.int64]:
        """Seconds from submission to start, of jobs that are over."""
        return self.start - self.submit

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        """``max(1, response / max(10, seconds that it ran))``, of jobs that are over."""
        found: NDArray[np.float64] = np.maximum(
            1.0, (self.end - self.submit) / np.maximum(BOUND, self.end - self.start)
        )
        return found

    @property
    def full_runtime(self) -> NDArray[np.int64]:
        """The seconds that each job takes on its full request, even if it was stretched (SD-12)."""
        return np.where(self.runtime >= 0, np.minimum(self.runtime, self.walltime), self.walltime)

    def until(self, now: int) -> Runs:
        """Return the state at a second: the jobs submitted by then, running ones with their cores up to it."""
        there = np.flatnonzero(self.submit <= now)
        columns = {
            name: tuple(column[job] for job in there.tolist()) if isinstance(column, tuple) else column[there]
            for name, column in self._columns().items()
            if not name.startswith("asked_")
        }
        asked = {name: amounts[there] for name, amounts in self.asked.items()}
        found = Runs(**columns, asked=asked)  # type: ignore[arg-type]  # each column has its own type
        return replace(found, end=np.where(found.running, now, found.end))

    @property
    def horizon(self) -> int:
        """The second of the last event: the arrival, start or end of a job; 0 without jobs."""
        return int(max(self.submit.max(), self.start.max(), self.end.max())) if len(self) else 0

    def frame(self) -> pd.DataFrame:
        """Return the runs as a table with the columns of this class, their names in the singular; one row per job."""
        import pandas as pd

        columns = {_SINGULAR.get(name, name): column for name, column in self._columns().items()}
        names = [ending.name.lower() for ending in Ending]
        return pd.DataFrame(columns | {"ending": pd.Categorical.from_codes(self.ending.tolist(), categories=names)})
