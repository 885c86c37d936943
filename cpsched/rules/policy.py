"""What a rule for windows is: the order in which jobs are served, and how: by insertion, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Outcome, Progress
from cpsched.errors import UnsupportedError
from cpsched.planner import FIRST_KINK, LEVEL, AdmissionResult, changing, hurried, unsupported, warmup
from cpsched.problem import awaited_first, bound_jobs
from cpsched.rusv import NOWHERE, Choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A rule: the order of the queue, and the way in which it is worked off."""

    #: In a few letters, without spaces.
    name: str
    #: Returns waiting jobs, given in document order, in the order in which they are served.
    order: Callable[[Instance, Sequence[Job]], list[Job]]
    #: Books the jobs of a queue, which is in the order of the rule, beside all existing bookings.
    serve: Callable[[Ledger, Sequence[Job], Progress | None], None]


class FirstThatFits:
    """Books waiting jobs of a ledger as queueing systems do it: by the first of their choices that fits at once.

    A choice with a cost is open once its job has waited so many seconds. All times are on the instance's clock.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._now = ledger, ledger.instance.now
        if ledger.has_choices:
            counts = [1 + len(job.alternatives) for job in ledger.jobs]
            modes = [mode[1:] for of_job, count in zip(ledger.modes, counts, strict=True) for mode in of_job[:count]]
            numbers = np.concatenate([np.arange(count) for count in counts])
            costs = np.zeros((len(modes), FIRST_KINK))
            costs[:, LEVEL] = numbers
            self._choices = Choices(np.cumsum([0, *counts]), np.array(modes, dtype=np.int64), costs)
            owners = np.repeat(np.arange(len(counts)), counts).tolist()
            opens = [_opens(ledger.jobs[row], number) for row, number in zip(owners, numbers.tolist(), strict=True)]
            self._opens = np.array(opens, dtype=np.int64)

    def at_once(self, ids: Sequence[str], now: int) -> dict[str, int]:
        """Book, in this order, those that can start at `now`, and return their starts."""
        if not self._ledger.has_choices:
            return self._ledger.place(ids, earliest=now, latest=now)
        modes, second = self._choices.modes.copy(), now - self._now
        modes[:, 1] = np.where(self._opens <= now, np.minimum(modes[:, 1], second), NOWHERE)
        return self._ledger.place(ids, earliest=now, latest=now, choices=self._choices._replace(modes=modes))

    def from_now_on(self, name: str, earliest: int) -> int | None:
        """Book a job by the first choice that starts at `earliest`, or else by that which starts first, and return its
        start; None: it finds none.
        """
        if not self._ledger.has_choices:
            return self._ledger.place([name], earliest=earliest).get(name)
        if name in self.at_once([name], earliest):
            return earliest
        job, found = self._ledger.job_of(name), list[tuple[int, int]]()
        for number in range(1 + len(job.alternatives)):
            start = self._placed(name, number, max(earliest, _opens(job, number)))
            if start is not None:
                found.append((start, number))
                self._ledger.release(name)
        return self._placed(name, min(found)[1], min(found)[0]) if found else None

    def _placed(self, name: str, number: int, earliest: int) -> int | None:
        """Book a job by one of its choices, and return its start."""
        if self._ledger.job_of(name).alternatives:
            self._ledger.take_mode(name, number)
        return self._ledger.place([name], earliest=earliest).get(name)


def _opens(job: Job, number: int) -> int:
    """Return the second from which on a job may start by one of its choices."""
    return job.submit + job.step_of(number).cost


def insert(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
    """Give each job its earliest start beside the jobs before it, each after those that it waits for; one with
    alternatives by the first of its choices that starts at once, or else by that which starts first.
    """
    ids = [job.id for job in awaited_first(ledger.instance, queue)]
    if not any(job.alternatives for job in queue):
        ledger.plan(ids, progress)
        return
    first_that_fits = FirstThatFits(ledger)
    for name in ids:
        earliest = ledger.earliest_start(name)
        if earliest is not None:
            first_that_fits.from_now_on(name, earliest)


class PolicyEngine:
    """Plans as a rule-based scheduler would start the jobs, if each ran for exactly its walltime. Deterministic.

    Jobs with a fixed start, a deadline or a latest start, and those for which they wait, are planned first, as the
    planner does, and no rule moves them (OCCS-35): served in their turn, they could find no start.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name = policy.name

    def prepare(self) -> None:
        """Compile or load the planner's kernels."""
        warmup()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that rules cannot honour: what their ledger cannot, evolving jobs, and
        longest delays.
        """
        return (*unsupported(instance), *changing(instance), *hurried(instance))

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs by the rule. Raises `UnsupportedError` if it cannot honour something."""
        if features := self.unsupported(instance):
            raise UnsupportedError(self.name, features)
        admission = AdmissionResult.of(instance, engine=self.name, is_shrunk=False)
        ledger = Ledger(instance, admission.admitted)
        bound = {job.id: job for job in bound_jobs(instance, admission.admitted)}
        insert(ledger, list(bound.values()), None)
        queue = self.policy.order(instance, [job for job in admission.admitted if job.id not in bound])
        self.policy.serve(ledger, queue, progress)
        return admission.outcome(ledger)
