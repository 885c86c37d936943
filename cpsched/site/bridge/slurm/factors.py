"""The factors of priorities, and who set them: those of others stay for some minutes, so that two daemons do not fight.

A ``SiteFactor`` is the only mark that steering by order leaves. It says nothing of who set it, but one that cpsched did
not set itself is another's: an administrator's, or another cpsched's, which may be dead. So it counts for some minutes
from when it was first seen, and may be written over after that. One that is 0 is nobody's. A daemon that finds some
when it begins sets none for as long, and sees meanwhile whether anybody is at work.
"""

import math
from collections.abc import Mapping, Sequence

from cpsched.site.bridge.protocol import JobState
from cpsched.site.bridge.slurm.records import JobRecord

#: Seconds for which a factor of others stays; as long, from its first order on, a daemon is new.
LEASE = 300
#: In so many looks of the last `LEASE` seconds a new daemon sees others at work before it gives way.
_MOST_LOOKS = 2


class Factors:
    """The factors of jobs, as far as one manager knows who set them. Mutable."""

    def __init__(self) -> None:
        #: The factors that were ordered, by the number that the tasks of an array, or all components, have in common.
        self._ordered: dict[int, set[int]] = {}
        self._first_order = math.inf
        #: Until when nothing is set, and whether that was still so at the last look.
        self._quiet_until, self._is_quiet = -math.inf, False
        #: By number, the factors when they were looked at last; None: never.
        self._seen: Mapping[int, tuple[int, int]] | None = None
        #: By number, a job as it was read, and the same with its factor: what is as before is the same object.
        self._made: dict[int, tuple[JobRecord, JobRecord]] = {}
        #: By number, since when another's factor is known.
        self._others: dict[int, int] = {}
        #: The looks that found one which was another one in the look before, and the last such job.
        self._looks: list[int] = []
        self._last = 0

    def order(self, record: JobRecord, factor: int, now: int) -> None:
        """Take note that a factor is ordered."""
        self._ordered.setdefault(_common(record), set()).add(factor)
        self._first_order = min(self._first_order, now)

    def given(
        self, jobs: Sequence[JobRecord], factors: Mapping[int, tuple[int, int]], now: int
    ) -> tuple[JobRecord, ...]:
        """Return jobs with their factors and priorities, as far as they have any, and with whose they are.

        `factors`: by number, the factor and the priority.
        """
        if self._seen is None and any(factor for factor, _ in factors.values()):
            self._quiet_until = now + LEASE
        self._is_quiet = now < self._quiet_until
        before, self._made = self._made, {}
        others, found = dict[int, int](), list[JobRecord]()
        for job in jobs:
            if job.state is JobState.WAITING and job.number in factors:
                factor, priority = factors[job.number]
                since = self._since(job, factor, now)
                if since is not None:
                    others[job.number] = since
                is_foreign = self._is_quiet or (since is not None and now < since + LEASE)
                read, made = before.get(job.number, (None, job))
                if read is not job or (factor, priority, is_foreign) != (
                    made.site_factor,
                    made.priority,
                    made.is_foreign,
                ):
                    made = job.but(site_factor=factor, priority=priority, is_foreign=is_foreign)
                self._made[job.number] = job, made
                job = made
            found.append(job)
        seen = self._seen or {}
        changed = [number for number in others if number in seen and seen[number][0] != factors[number][0]]
        self._looks = [at for at in self._looks if now < at + LEASE]
        if changed:
            self._looks.append(now)
            self._last = changed[-1]
        alive = {_common(job) for job in jobs}
        self._ordered = {common: known for common, known in self._ordered.items() if common in alive}
        self._seen, self._others = factors, others
        return tuple(found)

    def _since(self, job: JobRecord, factor: int, now: int) -> int | None:
        """Return since when a job has a factor that others have set; None: it has none."""
        if not factor or factor in self._ordered.get(_common(job), ()):
            return None
        is_known = self._seen is not None and job.number in self._seen and self._seen[job.number][0] == factor
        return self._others.get(job.number, now) if is_known else now

    def others(self) -> str:
        """Return the deeds of others in words; empty: nothing is known."""
        if self._looks:
            return f"somebody else sets SiteFactor, of job {self._last} last; slurmctld's log says which account"
        return f"jobs had a SiteFactor when cpsched began: it sets none for {LEASE} s" if self._is_quiet else ""

    def rival(self, now: int) -> str:
        """Return who makes a new daemon give way; empty: nobody does."""
        is_new = now < self._first_order + LEASE
        return self.others() if is_new and len(self._looks) >= _MOST_LOOKS else ""


def _common(job: JobRecord) -> int:
    return job.het or job.array or job.number
