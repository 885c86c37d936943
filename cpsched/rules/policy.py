"""What a rule for windows is: the order in which jobs are served, and how: by insertion, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Outcome, Progress
from cpsched.errors import UnsupportedError
from cpsched.planner import AdmissionResult, changing, hurried, unsupported, warmup
from cpsched.problem import awaited_first, bound_jobs
from cpsched.rusv import FOREVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A rule: the order of the queue, and the way in which it is worked off."""

    #: In a few letters, without spaces.
    name: str
    #: Returns waiting jobs, given in document order, in the order in which they are served.
    order: Callable[[Instance, Sequence[Job]], list[Job]]
    #: Books the jobs of a queue, which is in the order of the rule, beside all existing bookings.
    serve: Callable[[Ledger, Sequence[Job], Progress | None], None]


def first_that_fits(ledger: Ledger, ids: Sequence[str], *, earliest: int, latest: int = FOREVER) -> dict[str, int]:
    """Book waiting jobs without a place, each as early as it fits with a start in ``[earliest, latest]``; return the
    starts of those that found one. All times are on the instance's clock.

    A job with alternatives has the first of its choices that starts at `earliest`, as queueing systems do it; if none
    does, that which starts first. One with a cost is open once the job has waited so many seconds.
    """
    if not ledger.has_choices:
        return ledger.place(ids, earliest=earliest, latest=latest)
    starts: dict[str, int] = {}
    for name in ids:
        job, found = ledger.job_of(name), list[tuple[int, int]]()
        count = 1 + len(job.alternatives)
        for number in range(count):
            since = max(earliest, job.submit + job.step_of(number).cost)
            if since > latest:
                continue
            if count > 1:
                ledger.take_mode(name, number)
            placed = ledger.place([name], earliest=since, latest=latest)
            if count == 1 or placed.get(name) == earliest:
                starts |= placed
                break
            if placed:
                found.append((placed[name], number))
                ledger.release(name)
        else:
            if found:
                start, number = min(found)
                ledger.take_mode(name, number)
                starts |= ledger.place([name], earliest=start, latest=start)
    return starts


def insert(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
    """Give each job its earliest start beside the jobs before it, each after those that it waits for; one with
    alternatives by the first of its choices that starts at once, or else by that which starts first.
    """
    ids = [job.id for job in awaited_first(ledger.instance, queue)]
    if not any(job.alternatives for job in queue):
        ledger.plan(ids, progress)
        return
    for name in ids:
        earliest = ledger.earliest_start(name)
        if earliest is not None:
            first_that_fits(ledger, [name], earliest=earliest, latest=ledger.instance.now + FOREVER)


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
