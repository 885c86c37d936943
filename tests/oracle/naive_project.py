"""Lists of a project decoded and justified second by second: the naive twin of `cpsched.search.project_kernels`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["NaiveProject"]

#: What is free at a second, one amount for each sum.
Free = Callable[[int], Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveProject:
    """Jobs with durations and needs, and links (job, predecessor, seconds between their starts)."""

    durations: Sequence[int]
    needs: Sequence[Sequence[int]]
    earliest: Sequence[int]
    links: Sequence[tuple[int, int, int]]
    free: Free

    def is_feasible(self, starts: Sequence[int]) -> bool:
        """Return whether starts keep all distances, and never use more than there is."""
        linked = all(starts[job] >= starts[before] + lag for job, before, lag in self.links)
        released = all(start >= earliest for start, earliest in zip(starts, self.earliest, strict=True))
        return linked and released and all(self._fits(starts, second) for second in range(self.end(starts)))

    def end(self, starts: Sequence[int]) -> int:
        """Return the end of the last job."""
        return max(start + duration for start, duration in zip(starts, self.durations, strict=True))

    def _fits(self, starts: Sequence[int | None], second: int) -> bool:
        """Return whether the jobs that run at a second fit beside each other; None: not placed yet."""
        used = [0] * len(self.free(second))
        for start, duration, needs in zip(starts, self.durations, self.needs, strict=True):
            if start is not None and start <= second < start + duration:
                used = [one + more for one, more in zip(used, needs, strict=True)]
        return all(one <= most for one, most in zip(used, self.free(second), strict=True))

    def decoded(self, keys: Sequence[float]) -> list[int]:
        """Return the starts of a list: of the jobs that may be next, the one with the smallest key, as early as it
        fits.
        """
        return self._decoded(keys, self.links, self.earliest, self)

    def justified(self, starts: Sequence[int]) -> list[int]:
        """Return the starts after moving all jobs to the right, the last end first, and then to the left."""
        end = self.end(starts)
        mirrored = NaiveProject(
            durations=self.durations,
            needs=self.needs,
            earliest=[0] * len(starts),
            links=[
                (before, job, lag + self.durations[job] - self.durations[before]) for job, before, lag in self.links
            ],
            free=lambda second: self.free(end - 1 - second),
        )
        ends = [start + duration for start, duration in zip(starts, self.durations, strict=True)]
        right = mirrored.decoded([-one for one in ends])
        return self.decoded([end - one - duration for one, duration in zip(right, self.durations, strict=True)])

    @staticmethod
    def _decoded(
        keys: Sequence[float], links: Sequence[tuple[int, int, int]], earliest: Sequence[int], project: NaiveProject
    ) -> list[int]:
        starts: list[int | None] = [None] * len(keys)
        while None in starts:
            ready = [
                job
                for job, start in enumerate(starts)
                if start is None and all(starts[before] is not None for after, before, _ in links if after == job)
            ]
            job = min(ready, key=lambda one: keys[one])
            start = earliest[job]
            for after, before, lag in links:
                placed = starts[before]
                if after == job and placed is not None:
                    start = max(start, placed + lag)
            while True:
                starts[job] = start
                if all(project._fits(starts, second) for second in range(start, start + project.durations[job])):
                    break
                start += 1
        return [start for start in starts if start is not None]
