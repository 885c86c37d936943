"""What jobs wait for: milestones, which some jobs reach and for which others wait (OCCS-49).

A milestone is reached when each of its jobs has been running for so many seconds; a job that waits for it may start a
delay later. An array of m elements that waits for an array of n is one milestone with n + m entries, not n * m pairs.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv.kernels.arrays import Links
from cpsched.rusv.kernels.constants import FOREVER

Ints = NDArray[np.int64]
_NONE: Ints = np.zeros((0, 3), dtype=np.int64)


def links_of(count: int, before: Ints, after: Ints, soon: Ints = _NONE) -> Links:
    """Group the entries of milestones by job and by milestone, and longest delays by job.

    `count`: the number of jobs. `before`: int64 (·, 3) of (milestone, job, seconds): the milestone is not reached until
    the job has run for so long. `after`: int64 (·, 3) of (milestone, job, delay): the job starts so many seconds after
    the milestone, or later. `soon`: int64 (·, 3) of (job, another, seconds): it starts at most so many seconds after
    the start of the other, for which it waits.
    """
    milestones = 1 + max(int(before[:, 0].max(initial=-1)), int(after[:, 0].max(initial=-1)))
    by_job = [1, 0, 2]
    return Links(
        *grouped(after[:, by_job], count),
        *grouped(before, milestones),
        *grouped(before[:, by_job], count),
        *grouped(after, milestones),
        *grouped(soon, count),
        *grouped(soon[:, [1, 0, 2]], count),
    )


def relaxed(links: Links) -> Links:
    """Return links without longest delays."""
    none = grouped(_NONE, len(links.soon_of) - 1)
    return links._replace(soon_of=none[0], soon=none[1], hurries_of=none[0], hurries=none[1])


def raise_earliest(links: Links, starts: Ints, earliest: Ints) -> bool:
    """Raise the earliest starts of the jobs which others follow too late in a plan: they start as late as these allow
    (as Franck, Neumann and Schwindt 2001 delay activities). Return whether there are any.

    `starts`: `NOWHERE` for a job without one. `earliest`: written to.
    """
    jobs, awaited = np.repeat(np.arange(len(starts)), np.diff(links.soon_of)), links.soon[:, 0]
    least = starts[jobs] - links.soon[:, 1]
    is_late = (starts[jobs] >= 0) & (least > starts[awaited])
    np.maximum.at(earliest, awaited[is_late], least[is_late])
    return bool(is_late.any())


def grouped(entries: Ints, count: int) -> tuple[Ints, Ints]:
    """Group entries by their first column, out of `count`: where each group begins, and the other columns."""
    firsts: Ints = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(entries[:, 0], minlength=count), out=firsts[1:])
    return firsts, entries[np.argsort(entries[:, 0], kind="stable"), 1:].copy()


def behind(links: Links, jobs: Iterable[int]) -> list[int]:
    """List some jobs and all that wait for them, directly or not, in the order in which they are found."""
    return _along(jobs, links.leads_of, links.leads, links.after_of, links.after)


def ahead(links: Links, jobs: Iterable[int]) -> list[int]:
    """List some jobs and all for which they wait, directly or not, in the order in which they are found."""
    return _along(jobs, links.waits_of, links.waits, links.before_of, links.before)


def _along(jobs: Iterable[int], milestones_of: Ints, milestones: Ints, jobs_of: Ints, others: Ints) -> list[int]:
    found, passed = dict.fromkeys(jobs), set[int]()
    pending = list(found)
    for job in pending:
        for milestone in milestones[milestones_of[job] : milestones_of[job + 1], 0].tolist():
            if milestone not in passed:
                passed.add(milestone)
                more = dict.fromkeys(others[jobs_of[milestone] : jobs_of[milestone + 1], 0].tolist())
                pending += [one for one in more if one not in found]
                found |= more
    return pending


class Countdown:
    """The milestones and the jobs that are still to be passed before a job may follow; mutable.

    `links`: between the jobs. `left`: the jobs that are to be passed, all others do not count; None: all.
    """

    def __init__(self, links: Links, left: Iterable[int] | None = None) -> None:
        self._links = links
        if left is None:
            self._missing: list[int] = np.diff(links.before_of).tolist()
            self._open: list[int] = np.diff(links.waits_of).tolist()
            return
        self._missing = [0] * (len(links.before_of) - 1)
        for job in left:
            for milestone in self._milestones(job):
                self._missing[milestone] += 1
        self._open = [
            sum(self._missing[milestone] > 0 for milestone in links.waits[first:last, 0].tolist())
            for first, last in zip(links.waits_of[:-1].tolist(), links.waits_of[1:].tolist(), strict=True)
        ]

    def _milestones(self, job: int) -> list[int]:
        found: list[int] = self._links.leads[self._links.leads_of[job] : self._links.leads_of[job + 1], 0].tolist()
        return found

    def is_over(self, job: int) -> bool:
        """Tell whether a job waits for no job any more."""
        return self._open[job] == 0

    def passed(self, job: int) -> list[int]:
        """Pass a job; list those that have waited for it and wait for no job any more."""
        links, freed = self._links, list[int]()
        for milestone in self._milestones(job):
            self._missing[milestone] -= 1
            if self._missing[milestone] == 0:
                for after in links.after[links.after_of[milestone] : links.after_of[milestone + 1], 0].tolist():
                    self._open[after] -= 1
                    if self._open[after] == 0:
                        freed.append(after)
        return freed


def awaited_first(links: Links, order: Ints) -> Ints:
    """Return all jobs in the given order, but each only after those that it waits for."""
    if not len(links.waits):
        return order
    turns = np.empty(len(order), dtype=np.int64)
    turns[order] = np.arange(len(order))
    turn, left = turns.tolist(), Countdown(links)
    ready = [(turn[job], job) for job in order.tolist() if left.is_over(job)]
    found = []
    while ready:
        _, job = heappop(ready)
        found.append(job)
        for after in left.passed(job):
            heappush(ready, (turn[after], after))
    return np.array(found, dtype=np.int64)


def heads(links: Links, earliest: Ints) -> Ints:
    """Return the earliest starts of jobs that dependencies allow, too: no sooner than the given ones."""
    if not len(links.waits):
        return earliest.copy()
    starts, reached = earliest.tolist(), [-FOREVER] * (len(links.before_of) - 1)
    for job in awaited_first(links, np.arange(len(starts))).tolist():
        for milestone, delay in links.waits[links.waits_of[job] : links.waits_of[job + 1]].tolist():
            starts[job] = max(starts[job], reached[milestone] + delay)
        for milestone, seconds in links.leads[links.leads_of[job] : links.leads_of[job + 1]].tolist():
            reached[milestone] = max(reached[milestone], starts[job] + seconds)
    return np.array(starts, dtype=np.int64)


def lasts(links: Links, latest: Ints) -> Ints:
    """Return the latest starts of jobs with which those that wait for them start in time: no later than the given ones,
    of which `FOREVER` says: any.
    """
    if not len(links.waits):
        return latest.copy()
    starts, due = latest.tolist(), [FOREVER] * (len(links.before_of) - 1)
    for job in awaited_first(links, np.arange(len(starts)))[::-1].tolist():
        for milestone, seconds in links.leads[links.leads_of[job] : links.leads_of[job + 1]].tolist():
            if due[milestone] < FOREVER:
                starts[job] = min(starts[job], due[milestone] - seconds)
        if starts[job] < FOREVER:
            for milestone, delay in links.waits[links.waits_of[job] : links.waits_of[job + 1]].tolist():
                due[milestone] = min(due[milestone], starts[job] - delay)
    return np.array(starts, dtype=np.int64)
