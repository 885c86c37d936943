"""Static backfilling, as SD-Policy's base has it (D'Amico et al., listing 1 without its else; SD-2)."""

from __future__ import annotations

from cpsched.lab.policies.future_map import FutureMap
from cpsched.lab.sim import Decision, News, Site

#: The number of jobs that Slurm's backfilling tries by default (``bf_max_job_test``).
DEPTH = 500


class StaticBackfill:
    """The first jobs of the queue have reservations, made anew at every event; a job whose reservation begins now
    starts.

    `depth`: the number of waiting jobs that have reservations, and may start: Slurm's ``bf_max_job_test``. None: all.
    Raises `ValueError` if the depth is less than 1.
    """

    name = "static_backfill"

    def __init__(self, depth: int | None) -> None:
        self._depth = checked_depth(depth)

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._map = FutureMap(site)

    def decide(self, site: Site, news: News) -> Decision:
        """Start the jobs whose reservations begin now."""
        self._map.follow(news.gone)
        waiting, starts = site.queue.tolist(), []
        while True:
            first = waiting[: self._depth]
            self._map.reserve(first)
            due = [job for job in first if self._map.start_of(job) == news.now]
            starts += [self._map.start(job) for job in due]
            if not due:
                return Decision(starts=starts, wake=self._map.next_start())
            waiting = [job for job in waiting if job not in set(due)]


def checked_depth(depth: int | None) -> int | None:
    """Return how many jobs are looked at, if that is possible. Raises `ValueError` if it is less than 1."""
    if depth is not None and depth < 1:
        raise ValueError(f"Expected depth >= 1, got {depth}")
    return depth


def static_backfill(depth: int | None = DEPTH) -> StaticBackfill:
    """Return the scheduler."""
    return StaticBackfill(depth)
