"""`Problem`: an instance compiled for engines. It has no rules, and all its plans keep them; what runs fits."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from cpsched.domain import (
    FOR_EVER,
    RULES,
    Amounts,
    AreaScope,
    Instance,
    Job,
    Limit,
    Placement,
    Plan,
    PlannedJob,
    ReservedSlice,
    WaitingJob,
    WaitingReason,
    repeated,
    with_fields,
)
from cpsched.problem.admission import placeable, refusals
from cpsched.problem.amounts import Measures
from cpsched.problem.choices import apart, choices_apart
from cpsched.problem.counters import Counter, Times, counters_of
from cpsched.problem.holds import merged
from cpsched.problem.nodes import NodeRules, levels_of
from cpsched.problem.overcommitment import fitted
from cpsched.problem.rule import Rule, stated_node, without_rules
from cpsched.problem.settling import expanded, settled

#: Seconds of calendars that are enumerated beyond the last second that jobs name: at most, and at least.
_LONGEST, _SPARE = 2 * 366 * 86_400, 31 * 86_400


#: What engines say of a job for which they find no room.
_NO_ROOM = (WaitingReason.UNSATISFIABLE, WaitingReason.UNAVAILABLE, WaitingReason.NOT_MAPPED, WaitingReason.TOO_LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What is found once for several windows that differ in one job; mutable: it remembers what was asked."""

    #: The window, as it is stated; arrays are single jobs where a rule may admit some of their elements only.
    window: Instance
    #: When rules hold.
    times: Times
    #: The amounts of jobs.
    measures: Measures
    #: Returns the waiting jobs that nodes and licences can never have, by id; asked only where an area is scarce.
    #: Of jobs with alternatives also those of their choices that can never be had.
    hopeless: Callable[[], frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An instance compiled for engines; plans are translated between it and the instance as documents state it."""

    #: What engines plan: limits and pools are licences of a `Rule`, queues and pools of some nodes amounts and
    #: properties of one, reservations have nodes of their own (`Part`), and the running jobs fit on their nodes.
    instance: Instance
    #: What reservations got.
    slices: tuple[ReservedSlice, ...] = ()
    #: Whether it has every plan that the rules allow, so that a bound for it is one for them.
    has_all_plans: bool = True
    #: Whether it has if jobs have their other choices back (`settling.opened`).
    is_opened: bool = False
    #: The rules that count amounts.
    counters: Mapping[Rule, Counter] = field(default_factory=dict)
    _nodes: NodeRules | None = None
    #: The choices of the jobs that rules about nodes are about, as they are stated, by the ids of the jobs in a plan;
    #: and of those that run the allocations, stated and as engines have them.
    _stated: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    _facts: Mapping[str, tuple[PlannedJob, PlannedJob]] = field(default_factory=dict)
    #: The running jobs that take more than there is: their allocations, stated and as engines have them.
    _overcommitted: Mapping[str, tuple[PlannedJob, PlannedJob]] = field(default_factory=dict)
    #: The rules that close for ever from some second on to jobs without a last start of their own, by the same ids.
    _closing: Mapping[str, Rule] = field(default_factory=dict)
    #: The jobs that a rule leaves nothing some day only because its calendar is not followed any longer, by them too.
    _cut_off: frozenset[str] = frozenset()
    #: By their ids in a plan, the jobs that have a choice, and those settled for others (`settling.py`).
    _choosing: frozenset[str] = frozenset()
    alternatives: Mapping[str, int] = field(default_factory=dict)
    #: How many there are of the licences that do not come back; the instance has those that are left.
    _consumed: Mapping[str, int] = field(default_factory=dict)
    #: What a window with one other job has in common with this one.
    _common: _Common | None = None

    @property
    def is_overcommitted(self) -> bool:
        """Whether running jobs together take more of a node or licence than there is."""
        return bool(self._overcommitted)

    def is_whole_for(self, jobs: Sequence[PlannedJob]) -> bool:
        """Return whether calendars are followed far enough for a plan of these jobs to be proven the best one: not if
        it leaves out a job, and some job could start after the last second that is followed.
        """
        cut_off = self._cut_off - (self._common.hopeless() if self._cut_off and self._common else frozenset())
        return not cut_off or cut_off.union(placeable(self.instance)).issubset(job.id for job in jobs)

    def to_stated(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of a plan of an engine as a plan of the stated instance has them."""
        return tuple(map(self._one_stated, jobs))

    def _one_stated(self, job: PlannedJob) -> PlannedJob:
        if number := self.alternatives.get(job.id):
            # the choice that it runs by is its first one here
            place = job.alternative
            job = replace(job, alternative=number if place == 0 else place - (place <= number))
        if job.id in self._overcommitted:
            return self._overcommitted[job.id][0]
        if job.id not in self._stated:
            return job
        stated, held = self._facts.get(job.id, (None, None))
        if stated is not None and job == held:
            return stated
        return _mapped(job, stated_node, lambda resources, _: without_rules(resources))

    def to_held(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of a plan of the stated instance as engines have them."""
        return tuple(map(self._one_held, jobs))

    def _one_held(self, job: PlannedJob) -> PlannedJob:
        if job.id not in self._choosing:
            # its choice among those of a job that has none here: the one that was made comes first
            chosen, made = job.alternative, self.alternatives.get(job.id, 0)
            job = replace(job, alternative=0 if chosen == made else chosen + (chosen < made))
        if job.id in self._overcommitted:
            return self._overcommitted[job.id][1]
        if self._nodes is None or job.id not in self._stated:
            return job
        stated, held = self._facts.get(job.id, (None, None))
        if held is not None and job == stated:
            return held
        choices = self._stated[job.id]
        of_job = choices[min(job.alternative, len(choices) - 1)]
        return _mapped(job, partial(self._nodes.held_node, of_job), partial(self._nodes.held_amounts, of_job))

    def held(self, plan: Plan) -> Plan:
        """Return a plan of a stated instance, this one or an earlier one, as engines have it."""
        return replace(plan, jobs=self.to_held(plan.jobs))

    def with_job(self, job: Job) -> "Problem | None":
        """Return the window of one waiting job more, or of another one of the same id, to be asked about: it has only
        that job, and only the limits and free pools that count it. What the job waits for does not matter to rules.

        None: a rule about nodes concerns that job and no job of this window, which therefore has no part for it.
        """
        common, nodes = self._common, None if self._nodes is None else self._nodes.about(job)
        if common is None and not job.levels:
            return replace(self, instance=replace(self.instance, jobs=(job,)))
        if common is None or nodes is None:
            return None
        window = exchanged(common.window, replace(job, after=()))
        asked = window.jobs[-1]
        counters = _counters_about(asked, window, common)
        return Problem(
            slices=self.slices,
            instance=replace(self.instance, jobs=nodes.applied([asked], _counted([asked], window.now, counters))),
            counters={counter.rule: counter for counter in counters},
            _nodes=nodes,
            _stated={job.id: choices_apart(asked)} if nodes.touches(asked) else {},
            _consumed=self._consumed,
        )

    def reasons(self, waiting_room: Sequence[WaitingJob]) -> tuple[WaitingJob, ...]:
        """Return a waiting room of an engine with the rules for which jobs wait as reasons."""
        if self._nodes is None and not self._consumed:
            return tuple(waiting_room)
        jobs = {job.id: job for job in self.instance.elements()}
        return tuple(self._reason(waiting, jobs[waiting.id]) for waiting in waiting_room)

    def lacking(self, job: Job) -> str | None:
        """Return of which licence that does not come back others leave a job of the instance too little, in words."""
        has = self.instance.cluster.licenses
        for name, amount in job.licenses.items():
            if name in self._consumed and amount > has[name]:
                left = f"{has[name]} of {self._consumed[name]} are left, and what jobs take does not come back"
                return f"asks for {amount} {name} licenses; {left}"
        return None

    def _reason(self, waiting: WaitingJob, job: Job) -> WaitingJob:
        """Return why a job waits: the rule that never leaves it what it takes, what others consume, or else what the
        engine says.
        """
        has = self.instance.cluster.licenses
        rules = [
            next((name for name, amount in one.licenses.items() if isinstance(name, Rule) and amount > has[name]), None)
            for one in job.choices
        ]
        reason, is_refused = waiting.reason, None not in rules and waiting.reason is not WaitingReason.DEPENDENCY
        if rules[0] is not None and (is_refused or reason is WaitingReason.UNSATISFIABLE):
            return _by_rule(waiting, rules[0])
        if waiting.reason is WaitingReason.TOO_LATE and job.id in self._closing:
            return _by_rule(waiting, self._closing[job.id])
        if reason is WaitingReason.UNSATISFIABLE:
            waiting = replace(waiting, detail=self.lacking(job) or waiting.detail)
        reservation = None if self._nodes is None else self._nodes.reservation_of(job.id)
        if reservation is not None and waiting.reason in _NO_ROOM:
            detail = f"reservation {reservation} has no room for it: {waiting.detail}"
            return WaitingJob(id=waiting.id, reason=WaitingReason.RESERVATION, detail=detail)
        return waiting


def _by_rule(waiting: WaitingJob, rule: Rule) -> WaitingJob:
    return WaitingJob(id=waiting.id, reason=rule.reason, detail=f"{rule} ({rule.path})")


def compiled(
    instance: Instance,
    slices: Sequence[ReservedSlice] = (),
    *,
    soft: bool = True,
    record: bool = False,
) -> Problem:
    """Compile an instance for engines, which have other means than rules: licences, guards, and amounts set aside.

    `instance`: the window, as documents state it. `slices`: what its reservations got. `soft`: whether soft limits are
    kept, too. `record`: whether the jobs are played, not planned. An outstanding area is then that of the jobs that run
    at a time; a job that runs may start again, when it has been cut short; a soft limit holds for jobs together, not
    for one; and running jobs that do not fit are left as they are.
    """
    ruled, counts = has_rules(instance), _has_counting_rules(instance)
    chosen = settled(instance, of_all=record and counts, is_final=ruled, are_played=record)
    consumed = {name: instance.cluster.licenses[name] for name in instance.cluster.consumed}
    instance = chosen.instance
    if ruled:
        problem = _without_rules(instance, slices, soft=soft, record=record)
    else:
        problem = Problem(instance=instance, slices=tuple(slices))
    if chosen.alternatives or consumed:
        is_whole = problem.has_all_plans and chosen.is_whole
        problem = replace(problem, has_all_plans=False, is_opened=is_whole, alternatives=chosen.alternatives)
        problem = replace(problem, _consumed=consumed)
    if choosing := [job for job in instance.jobs if job.alternatives]:
        problem = replace(problem, _choosing=frozenset(name for job in choosing for name in job.element_ids))
    if record:
        return problem
    fit, changed = fitted(problem.instance)
    # the rules about nodes have other allocations than documents already
    facts = {job_id: (problem._facts.get(job_id, (stated,))[0], held) for job_id, (stated, held) in changed.items()}
    return replace(problem, instance=fit, _overcommitted=facts)


def has_rules(instance: Instance) -> bool:
    """Tell whether engines plan an instance that has other means than the rules that documents state."""
    return _has_counting_rules(instance) or bool(levels_of(instance))


def _has_counting_rules(instance: Instance) -> bool:
    """Tell whether jobs ask for more than documents say: a topology makes nodes differ, and nothing else."""
    has_nodes = any(queue.nodes is not None for queue in instance.queues.values())
    return has_nodes or any(getattr(instance, key) for key in RULES)


def _without_rules(instance: Instance, slices: Sequence[ReservedSlice], *, soft: bool, record: bool) -> Problem:
    """Return an instance with other means than rules; its running jobs need not fit. See `compiled`."""
    if any(isinstance(one, Limit) and one.area_scope is AreaScope.OUTSTANDING for one in instance.limits):
        instance = expanded(instance)
    times = Times(instance, _end_of_calendars(instance) if _has_counting_rules(instance) else instance.now)
    nodes = NodeRules(instance, slices, times, record=record)

    @cache
    def hopeless() -> frozenset[str]:
        whole = nodes.apply(instance)
        choices = apart([job for job in whole.jobs if job.alternatives])
        return (frozenset(job.id for job in instance.jobs) - placeable(whole)) | refusals(whole, choices).keys()

    measures = Measures(instance.now)
    counters = list(counters_of(instance, times, measures, soft=soft, record=record, hopeless=hopeless))
    plain = nodes.apply(_with_licenses(instance, counters), _counted(instance.jobs, instance.now, counters))
    aside = merged(plain.set_aside, {one.rule: one.closed for one in counters})
    plain = with_fields(plain, {"set_aside": aside, **dict.fromkeys((*RULES, "usage"), ())})
    touched = {job.id: job for job in instance.jobs if nodes.touches(job)}
    running = {job.id: repeated(job) for job in plain.jobs if job.running is not None and job.id in touched}
    is_strict = nodes.is_strict or any(counter.is_strict for counter in counters)
    return Problem(
        instance=plain,
        slices=tuple(slices),
        has_all_plans=not is_strict and not instance.has_soft_limits,
        counters={counter.rule: counter for counter in counters},
        _nodes=nodes,
        _stated={element: choices_apart(job) for job in touched.values() for element in job.element_ids},
        _facts={job_id: (repeated(touched[job_id]), held) for job_id, held in running.items()},
        _closing=_closing(instance, counters, nodes.closing),
        _cut_off=_cut_off(instance, counters, times.until),
        _common=_Common(window=instance, times=times, measures=measures, hopeless=hopeless),
    )


def is_compiled(instance: Instance) -> bool:
    """Tell whether an instance is one for engines with something in place of rules: no document can have it."""
    cluster = instance.cluster
    names = (*cluster.licenses, *cluster.totals, *(name for one in cluster.classes for name in one.properties))
    return bool(instance.set_aside) or any(isinstance(name, Rule) for name in names)


def exchanged(window: Instance, job: Job) -> Instance:
    """Return a window with a job, which is its last one, in place of the job or element of an array of its id."""
    others: list[Job] = []
    for one in window.jobs:
        if job.id not in one.element_ids:
            others.append(one)
        elif one.array is not None:  # an element is counted as one (``arrayjobs``) also where it is planned by itself
            others += [replace(one, id=name, array=()) for name in one.element_ids if name != job.id]
            job = replace(job, array=())
    return replace(window, jobs=(*others, job))


def _counters_about(job: Job, window: Instance, common: _Common) -> list[Counter]:
    """Return the limits and free pools that count a job, in a form that the window does not have of it."""
    names = [one.id for one in choices_apart(job)]
    common.measures.forget(names)
    found = list(
        counters_of(
            window, common.times, common.measures, soft=True, about=job, hopeless=lambda: common.hopeless() - {job.id}
        )
    )
    common.measures.forget(names)
    return [one for one in found if any(name in one.takes or name in one.steady for name in names)]


def _closing(
    instance: Instance, counters: Sequence[Counter], of_nodes: Mapping[str, tuple[int, Rule]]
) -> dict[str, Rule]:
    """Return the first rule that closes for ever to each job that has no last start of its own, by ids of a plan.

    `of_nodes`: the rules about nodes that do, and since when, by the id of the job.
    """
    ends = dict(of_nodes)
    for counter in counters:
        for job_id, time in counter.last_chances(instance.now + FOR_EVER):
            if job_id not in ends or time < ends[job_id][0]:
                ends[job_id] = time, counter.rule
    found: dict[str, Rule] = {}
    for job in instance.jobs if ends else ():
        names = [one.id for one in choices_apart(job)]
        if all(name in ends for name in names) and instance.latest_start(job) is None:
            found |= dict.fromkeys(job.element_ids, ends[names[0]][1])
    return found


def _cut_off(instance: Instance, counters: Sequence[Counter], until: int) -> frozenset[str]:
    """Return the waiting jobs that a counter leaves nothing after some second only because calendars are not followed
    any longer, by ids of a plan.
    """
    names = {name for counter in counters for name in counter.cut_off(instance.now + FOR_EVER)}
    return frozenset(
        name
        for job in (instance.jobs if names else ())
        if job.running is None and any(one.id in names for one in choices_apart(job))
        if (last := instance.latest_start(job)) is None or last > until - job.walltime
        for name in job.element_ids
    )


def _mapped(
    job: PlannedJob, node_of: Callable[[str], str], amounts_of: Callable[[Amounts, int | None], Amounts]
) -> PlannedJob:
    """Return a planned job with its placements changed: the node, and what is held there by the number of chunks."""
    known: dict[tuple[int, int | None], Amounts] = {}  # most nodes hold the same

    def placed(held: Placement) -> Placement:
        key = id(held.resources), held.count
        if key not in known:
            known[key] = amounts_of(held.resources, held.count)
        node, resources = node_of(held.node), known[key]
        if node == held.node and resources is held.resources:
            return held
        return Placement(node=node, resources=resources, chunk=held.chunk, count=held.count)

    segments = tuple(replace(one, allocation=tuple(map(placed, one.allocation))) for one in job.segments)
    return replace(job, segments=segments)


def _end_of_calendars(instance: Instance) -> int:
    """Return the second up to which calendars are enumerated: plans end before, but for very long ones."""
    jobs = instance.jobs
    ends = [job.running.segments[-1].end for job in jobs if job.running is not None]
    ends += [instance.earliest_start(job) if job.start_at is None else job.start_at for job in jobs]
    cores = max(1, instance.cluster.totals.get("cores", 1))
    asked = (job.walltime * job.num_elements * max(_cores(job), 1) for job in jobs)
    longest = max((job.walltime for job in jobs), default=0)
    return max([instance.now, *ends]) + min(3 * (sum(asked) // cores + longest) + _SPARE, _LONGEST)


def _cores(job: Job) -> int:
    """Return the most cores that a job asks for."""
    if len(job.steps) == 1:
        return job.steps[0].request.totals.get("cores", 0)
    return max(step.request.totals.get("cores", 0) for step in job.steps)


def _counted(jobs: Sequence[Job], now: int, counters: Sequence[Counter]) -> dict[str, dict[str, Any]]:
    """Return the fields of jobs and of their choices, by id, that have licences in place of limits and free pools."""
    takes = defaultdict[str, list[tuple[str, int]]](list)
    ends: dict[str, int] = {}  # the seconds by which jobs have to end, since a rule then closes for ever
    for counter in counters:
        for job_id, amount in counter.takes.items():
            takes[job_id].append((counter.rule, amount))
        for job_id, time in counter.last_chances(now + FOR_EVER):
            ends[job_id] = min(time, ends.get(job_id, time))
    steady = frozenset[str]().union(*(counter.steady for counter in counters))
    licenses: dict[tuple[tuple[str, int], ...], Amounts] = {}  # of jobs that ask alike
    found: dict[str, dict[str, Any]] = {}
    for job in apart(jobs):
        if job.id not in takes and job.id not in steady:
            continue
        key = (*job.licenses.items(), *takes.get(job.id, ()))
        if key not in licenses:
            licenses[key] = Amounts(key)
        fields: dict[str, Any] = {"licenses": licenses[key]}
        found[job.id] = fields
        if job.id in steady:
            fields |= {"malleability": None, "expand_limit": 1}
        if job.running is None and job.id in ends:
            fields["deadline"] = min((time for time in (job.deadline, ends[job.id]) if time is not None), default=None)
    return found


def _with_licenses(instance: Instance, counters: Sequence[Counter]) -> Instance:
    """Return an instance with licences that stand for limits and free pools; none is taken yet."""
    licenses = (*instance.cluster.licenses.items(), *((counter.rule, counter.total) for counter in counters))
    return replace(instance, cluster=replace(instance.cluster, licenses=Amounts(licenses)))
