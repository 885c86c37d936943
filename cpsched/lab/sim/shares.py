"""Jobs that run on shares of their cores: what they have then, and how fast they are (D'Amico et al.; SD-1, SD-3).

On each entry of its placement such a job runs in one of its modes, number 0 of which is the full share. Its nodes, and
all but its cores, stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import WHOLE_REQUEST, Columns
from cpsched.domain import Amounts, Job, Mode, Placement, counted, modes, rate_on, resumable


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """How far a run is that is not at full share for all its time: in seconds at full share, and those per second."""

    #: Up to when it is accounted for.
    since: int
    done: Fraction
    rate: Fraction

    def at(self, time: int) -> Fraction:
        """Return how much is done at a later time."""
        return self.done + self.rate * max(0, time - self.since)

    def end_of(self, seconds: int) -> int:
        """Return when so much is done if nothing changes any more: after `since`."""
        return self.since + max(1, ceil((seconds - self.done) / self.rate))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobModes:
    """How a malleable job can run."""

    job: Job
    modes: tuple[Mode, ...]
    #: The kind of its demand in each mode for each kind of its chunks.
    kinds: tuple[Mapping[int, int], ...]
    columns: Columns

    def _chunks_of(self, entries: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the kind of chunk (index in the request) of each entry."""
        kinds, place = np.unique(entries[:, 1], return_inverse=True)
        chunks = np.array([self.columns.kind_of(kind) for kind in kinds.tolist()], dtype=np.int64)
        found: NDArray[np.int64] = chunks[place]
        return found

    def rate(self, entries: NDArray[np.int32], chosen: NDArray[np.int8]) -> Fraction:
        """Return the work per second in the chosen modes (SD-3)."""
        if (chosen == chosen[0]).all():
            return self.modes[int(chosen[0])].rate
        groups: dict[tuple[int, int], int] = {}
        of_chunk = self._chunks_of(entries)
        for chunk, count, mode in zip(of_chunk.tolist(), entries[:, 2].tolist(), chosen.tolist(), strict=True):
            for kind, times in self._counted(chunk, count):
                groups[kind, mode] = groups.get((kind, mode), 0) + times
        parts = [
            Placement(node="", chunk=kind, count=count, resources=self.modes[mode].request.chunks[kind].taken(count))
            for (kind, mode), count in groups.items()
        ]
        assert self.job.malleability is not None  # noqa: S101 - it has several modes
        found = rate_on(self.job.request, self.job.malleability, parts)
        assert found is not None  # noqa: S101 - each mode is one of its shares
        return found

    def allocation(self, entries: NDArray[np.int32], chosen: NDArray[np.int8]) -> tuple[Placement, ...]:
        """Return the allocation of the job in the chosen modes, as placements on named nodes."""
        taken: dict[tuple[int, int, int], Amounts] = {}  # most nodes hold the same: one value serves them all
        found = []
        of_chunk = self._chunks_of(entries)
        rows = zip(entries[:, 0].tolist(), of_chunk.tolist(), entries[:, 2].tolist(), chosen.tolist(), strict=True)
        for node, chunk, units, mode in rows:
            for kind, count in self._counted(chunk, units):
                if (kind, count, mode) not in taken:
                    taken[kind, count, mode] = self.modes[mode].request.chunks[kind].taken(count)
                resources = taken[kind, count, mode]
                name = self.columns.node_names[node]
                found.append(Placement(node=name, chunk=kind, count=count, resources=resources))
        return tuple(found)

    def _counted(self, chunk: int, count: int) -> list[tuple[int, int]]:
        """Return the kinds of chunks of an entry, and the number of each."""
        if chunk != WHOLE_REQUEST:
            return [(chunk, count)]
        return [(kind, chunk.count) for kind, chunk in enumerate(self.job.request.chunks)]

    def standing(self, demand: int, now: int) -> tuple[NDArray[np.int32], NDArray[np.int8], Fraction] | None:
        """Return the entries of a job that has run since before `now`, in which of its modes it runs on each, and the
        seconds of work that it has done; None if they are unknown.

        `demand`: what it asks for, as the timeline knows it.
        """
        left = resumable(self.job, now)
        if left is None or self.job.running is None:
            return None
        present = next(segment for segment in self.job.running.segments if segment.end > now)
        found = self.placed_on(demand, counted(self.job.request, present.allocation) or ())
        if found is None:
            return None
        entries, chosen = found
        return entries, chosen, self.job.walltime - left.work

    def placed_on(
        self, demand: int, allocation: Sequence[Placement]
    ) -> tuple[NDArray[np.int32], NDArray[np.int8]] | None:
        """Return the entries of an allocation, and the mode on each of them; None if the job may not run so."""
        full = [self._in_mode(one, 0) for one in allocation]
        entries = self.columns.entries_anywhere(demand, self.job.request, full)
        chosen = None if entries is None else self.modes_on(entries, allocation)
        if entries is None or chosen is None:
            return None
        in_modes = entries.copy()
        rows = zip(self._chunks_of(entries).tolist(), chosen.tolist(), strict=True)
        in_modes[:, 1] = [self.kinds[mode][chunk] for chunk, mode in rows]
        return (entries, chosen) if self.columns.demands.may_have(in_modes) else None

    def modes_on(self, entries: NDArray[np.int32], allocation: Sequence[Placement]) -> NDArray[np.int8] | None:
        """Return in which mode the job runs on each entry if it has what an allocation states; None if in none."""
        fits = [
            {(one.node, one.chunk): self._in_mode(one, mode) == one for one in allocation}
            for mode in range(len(self.modes))
        ]
        chosen = []
        rows = zip(entries[:, 0].tolist(), self._chunks_of(entries).tolist(), entries[:, 2].tolist(), strict=True)
        for node, chunk, units in rows:
            here = [(self.columns.node_names[node], kind) for kind, _ in self._counted(chunk, units)]
            chosen.append(next((mode for mode, on in enumerate(fits) if all(on.get(place) for place in here)), -1))
        return None if min(chosen) < 0 else np.array(chosen, dtype=np.int8)

    def _in_mode(self, placement: Placement, mode: int) -> Placement:
        """Return the amounts that the chunks of a placement have in a mode; a placement without chunks is unchanged."""
        if placement.chunk is None or placement.count is None:
            return placement
        return replace(placement, resources=self.modes[mode].request.chunks[placement.chunk].taken(placement.count))


def modes_of_jobs(jobs: Sequence[Job], demands: NDArray[np.int64], columns: Columns) -> dict[int, JobModes]:
    """Return how the malleable ones of some jobs can run, by their index; those that can never start are left out.

    What they ask for on shares is added to the table of demands.
    """
    found = {}
    for index in np.flatnonzero(demands >= 0).tolist():
        job = jobs[index]
        if job.malleability is None:
            continue
        job_modes = modes(job)
        numbers = [columns.compile(mode.request, Amounts(), job.walltime) for mode in job_modes]
        kinds = tuple(
            {columns.kind_of(kind): kind for kind, _ in columns.demands.kinds_of(number)} for number in numbers
        )
        found[index] = JobModes(job=job, modes=job_modes, kinds=kinds, columns=columns)
    return found
