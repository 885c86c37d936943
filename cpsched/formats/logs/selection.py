"""The selection of jobs of a log: named filters, each with the number of jobs that it left out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from cpsched.formats.logs.jobs import LogJob
from cpsched.formats.swf import SwfJob

#: A job of a log: logs in Standard Workload Format have numbers of queues and partitions, others names; None: unknown.
Logged = SwfJob | LogJob
_Job = TypeVar("_Job", bound=Logged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Filters of a log's jobs, one after the other; a filter that is None passes all jobs.

    Raises `ValueError` if `first`, `jobs` or `submitted` make no sense.
    """

    #: Statuses (field 11), queues (15) and partitions (16) that are let through, as the log has them; -1 is unknown.
    statuses: tuple[int, ...] | None = None
    queues: tuple[int | str, ...] | None = None
    partitions: tuple[int | str, ...] | None = None
    #: Half-open range ``[from, until)`` of submit times on the log's clock.
    submitted: tuple[int, int] | None = None
    #: Index (from 0) of the first job among those that the others let through, and how many at most.
    first: int = 0
    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.first < 0 or (self.jobs is not None and self.jobs < 1):
            raise ValueError(f"need first >= 0 and jobs >= 1, got {self.first}, {self.jobs}")
        if self.submitted is not None and self.submitted[0] >= self.submitted[1]:
            raise ValueError(f"need submitted[0] < submitted[1], got {self.submitted}")

    def of(self, jobs: Sequence[_Job]) -> tuple[Sequence[_Job], dict[str, int]]:
        """Return the jobs that pass all filters, in their order, and how many each filter kept out, by its name."""
        kept_out: dict[str, int] = {}
        for name, passes in self._filters():
            passed = [job for job in jobs if passes(job)]
            kept_out[name] = len(jobs) - len(passed)
            jobs = passed
        if self.first or self.jobs is not None:
            taken = jobs[self.first : None if self.jobs is None else self.first + self.jobs]
            kept_out["first and jobs"] = len(jobs) - len(taken)
            jobs = taken
        return jobs, kept_out

    def _filters(self) -> Iterator[tuple[str, Callable[[Logged], bool]]]:
        filters = {"status": self.statuses, "queue": self.queues, "partition": self.partitions}
        for name, values in filters.items():
            if values is not None:
                yield name, partial(_is_one_of, name, frozenset(map(str, values)))
        if (submitted := self.submitted) is not None:
            yield "submitted", lambda job: submitted[0] <= job.submit < submitted[1]


def _is_one_of(name: str, values: frozenset[str], job: Logged) -> bool:
    value = getattr(job, name)
    return ("-1" if value is None else str(value)) in values
