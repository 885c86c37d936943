"""From an instance with rules to one without, all plans of which keep the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cpsched.domain import (
    Amounts,
    AreaScope,
    Dependency,
    Instance,
    Job,
    PlannedJob,
    SetAside,
    WaitingJob,
    WaitingReason,
)
from cpsched.problem.counters import Counter, counters_of
from cpsched.problem.rule import Rule

__all__ = ["Reduced", "reduced"]

#: Seconds of calendars that are enumerated beyond the last second that jobs name: at most, and at least.
_LONGEST, _SPARE = 2 * 366 * 86_400, 92 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """An instance without rules, made from one with rules, for engines; plans are translated between both."""

    #: For engines.
    instance: Instance
    #: The rules, by the names of the licences and resources that stand for them.
    rules: Mapping[str, Rule]

    def to_stated(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of a plan of an engine as a plan of the instance that was given has them."""
        return tuple(jobs)

    def to_reduced(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of a plan of the instance that was given as an engine has them."""
        return tuple(jobs)

    def reasons(self, waiting_room: Sequence[WaitingJob]) -> tuple[WaitingJob, ...]:
        """Return a waiting room of an engine with the rules in place of the licences that stand for them."""
        jobs = {job.id: job for job in self.instance.elements()} if self.rules else {}
        return tuple(self._reason(waiting, jobs[waiting.id]) if self.rules else waiting for waiting in waiting_room)

    def _reason(self, waiting: WaitingJob, job: Job) -> WaitingJob:
        """Return why a job waits: the rule that never leaves it what it takes, or else what the engine says."""
        if waiting.reason is not WaitingReason.DEPENDENCY:
            for name, amount in job.licenses.items():
                if name in self.rules and amount > self.instance.cluster.licenses[name]:
                    rule = self.rules[name]
                    detail = f"{rule.words} ({rule.path})"
                    return WaitingJob(id=waiting.id, reason=rule.reason, detail=detail)
        detail = waiting.detail
        for name, rule in self.rules.items():
            detail = detail.replace(name, rule.path)
        return replace(waiting, detail=detail)


def reduced(instance: Instance, *, soft: bool = True) -> Reduced:
    """Return an instance for engines, which has other means than rules: licences, guards, and amounts set aside.

    Parameters
    ----------
    instance
        The window, as documents state it.
    soft
        Whether soft limits are kept, too.
    """
    if not (instance.limits or instance.free_pools):
        return Reduced(instance=instance, rules={})
    if any(limit.area_scope is AreaScope.OUTSTANDING for limit in instance.limits):
        instance = _expanded(instance)
    counters = list(counters_of(instance, _end_of_calendars(instance), soft=soft))
    return Reduced(
        instance=_with_counters(instance, counters), rules={counter.rule.name: counter.rule for counter in counters}
    )


def _end_of_calendars(instance: Instance) -> int:
    """Return the second up to which calendars are enumerated: plans end before, but for very long ones."""
    jobs = instance.jobs
    ends = [job.running.segments[-1].end for job in jobs if job.running is not None]
    ends += [instance.earliest_start(job) if job.start_at is None else job.start_at for job in jobs]
    cores = max(1, instance.cluster.totals.get("cores", 1))
    asked = (job.walltime * len(job.element_ids) * max(_cores(job), 1) for job in jobs)
    longest = max((job.walltime for job in jobs), default=0)
    return max([instance.now, *ends]) + min(3 * (sum(asked) // cores + longest) + _SPARE, _LONGEST)


def _cores(job: Job) -> int:
    """Return the most cores that a job asks for."""
    return max(step.request.totals.get("cores", 0) for step in job.steps)


def _expanded(instance: Instance) -> Instance:
    """Return an instance whose arrays are single jobs: a limit may admit some elements and not others."""
    members = instance.members()

    def expanded(dependencies: Iterable[Dependency]) -> tuple[Dependency, ...]:
        return tuple(replace(one, job=name) for one in dependencies for name in members[one.job])

    return replace(instance, jobs=tuple(replace(job, after=expanded(job.after)) for job in instance.elements()))


def _with_counters(instance: Instance, counters: Sequence[Counter]) -> Instance:
    """Return an instance with licences in place of limits and free pools."""
    takes: dict[str, dict[str, int]] = {}
    totals = dict(instance.cluster.licenses)
    asides = list(instance.set_aside)
    for counter in counters:
        name = counter.rule.name
        totals[name] = counter.total
        for job_id, amount in counter.takes.items():
            takes.setdefault(job_id, {})[name] = amount
        asides += (
            SetAside(start=start, end=end, licenses=Amounts({name: amount})) for start, end, amount in counter.closed
        )
    steady = frozenset[str]().union(*(counter.steady for counter in counters))
    jobs = tuple(
        replace(
            job,
            licenses=Amounts({**job.licenses, **takes.get(job.id, {})}),
            malleability=None if job.id in steady else job.malleability,
            expand_limit=1 if job.id in steady else job.expand_limit,
        )
        if job.id in takes or job.id in steady
        else job
        for job in instance.jobs
    )
    return replace(
        instance,
        cluster=replace(instance.cluster, licenses=Amounts(totals)),
        jobs=jobs,
        limits=(),
        free_pools=(),
        usage=(),
        set_aside=tuple(asides),
        is_restricted=instance.is_restricted
        or any(counter.is_strict for counter in counters)
        or any(limit.soft for limit in instance.limits),
    )
