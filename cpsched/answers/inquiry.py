"""Why does a job start when the plan says, and not earlier? The causes, second by second."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from cpsched.answers.blockers import Held, Question, fits_until, holders_at
from cpsched.answers.explanation import Blocked, Cause, CauseKind, Holder
from cpsched.answers.occupation import Occupation
from cpsched.answers.queries import Form, FreePlace
from cpsched.answers.world import PlanView
from cpsched.booking import WHOLE_REQUEST
from cpsched.domain import Job
from cpsched.problem import own_start, without_rules
from cpsched.rusv import FOREVER

#: More than any node has of anything.
_PLENTY = 1 << 30


class Inquiry:
    """The questions about one waiting `job`, which holds nothing in the `world` while they are asked."""

    def __init__(self, world: PlanView, job: Job) -> None:
        self.world, self.job = world, job
        self.question = world.question(job)
        instance = world.instance
        self._now = instance.now
        self.earliest = own_start(instance, job)
        self._released, self._limits = world.released(job), world.limits(job)
        self._own_latest = instance.latest_start(job)
        limits = (*self._limits.values(), *(() if self._own_latest is None else (self._own_latest,)))
        self.latest = min(limits, default=None)

    @property
    def first_allowed(self) -> int | None:
        """The first second that the job's own times and the jobs that it waits for leave it; None: they leave none."""
        moments = [self.earliest] if self.question is None else [self.earliest, self.question.earliest]
        for moment in self._released.values():
            if moment is None:
                return None
            moments.append(moment)
        first = max(moments)
        return None if self.latest is not None and first > self.latest else first

    def free_start(self, latest: int | None = None) -> int | None:
        """Return the first second, at most `latest`, at which the job could start beside all others, or None."""
        first = self.first_allowed
        if self.question is None or first is None:
            return None
        found = self.place(self.question, first, latest)
        return None if found is None else self._now + found.start

    def place(self, question: Question, first: int, latest: int | None = None) -> FreePlace | None:
        """Return the first place of the job beside all others with a start from `first` to `latest`, or None."""
        last = min((bound for bound in (latest, self.latest) if bound is not None), default=self._now + FOREVER)
        return question.find(self.world.occupation, first - self._now, last - self._now)

    def at(self, second: int, until: int) -> Blocked:
        """Find what keeps the job from starting at a second, and up to which second, at most `until`, it is the same.

        Nothing but the first cause is named. All jobs that hold resources are named together, whatever they hold.
        """
        for found in (self._by_time(second), self._by_dependency(second)):
            if found is not None:
                cause, end = found
                return Blocked(start=second, end=until if end is None else min(end, until), cause=cause)
        if self.question is None:
            words = self.world.refusal(self.job) or "the cluster could not run it even if it were empty"
            return Blocked(start=second, end=until, cause=Cause(kind=CauseKind.RULE, detail=words))
        if self.latest is not None:
            until = max(second + 1, min(until, self.latest + 1))
        cause, end = self._by_others(self.question, second - self._now, until - self._now)
        return Blocked(start=second, end=self._now + end, cause=cause)

    def _by_time(self, second: int) -> tuple[Cause, int | None] | None:
        job, instance = self.job, self.world.instance
        bounds = [
            (job.start_at, "may start only at its start_at"),
            (job.not_before, "may not start before its not_before"),
            (job.submit, "is submitted later"),
            (instance.now, "now is later"),
        ]
        binding = [(bound, words) for bound, words in bounds if bound is not None and second < bound]
        if binding:
            bound, words = max(binding, key=lambda pair: pair[0])
            return Cause(kind=CauseKind.TIME, detail=words), bound
        if self._own_latest is not None and second > self._own_latest:
            words = "has to end by its deadline" if job.deadline is not None else "may not start so late"
            return Cause(kind=CauseKind.TIME, detail=words), None
        return None

    def _by_dependency(self, second: int) -> tuple[Cause, int | None] | None:
        """Find the jobs that leave the job no start so early, or else those that leave it none so late."""
        binding = {name: moment for name, moment in self._released.items() if moment is None or moment > second}
        if not binding:
            over = [name for name, last in self._limits.items() if last < second]
            holders = tuple(self.holder(name) for name in sorted(over, key=lambda name: (self._limits[name], name)))
            words = "would follow other jobs too late (max_delay)"
            return (Cause(kind=CauseKind.DEPENDENCY, detail=words, holders=holders), None) if over else None
        known = [moment for moment in binding.values() if moment is not None]
        order = sorted(binding, key=lambda name: (binding[name] or 0, name))
        followers = binding.keys() - {name for one in self.job.after for name in self.world.members[one.job]}
        kinds = {str(dependency.type) for dependency in self.job.after} if binding.keys() - followers else set[str]()
        kinds |= {"max_delay"} if followers else set()
        holders = tuple(self.holder(name, ()) for name in order)
        words = f"waits for other jobs ({', '.join(sorted(kinds))})"
        cause = Cause(kind=CauseKind.DEPENDENCY, detail=words, holders=holders)
        return cause, min(known, default=None)

    def _by_others(self, question: Question, second: int, until: int) -> tuple[Cause, int]:
        """Find the rules and other jobs that keep the job from starting; times are the timeline's."""
        occupation = self.world.occupation
        begin = question.earliest - self._now
        if begin > second:
            return self._by_rule(question, second, min(until, begin))
        alone = question.form.find(occupation.bare, second, FOREVER, question.gate(None))
        if alone is None or alone.start > second:
            return self._by_rule(question, second, until if alone is None else min(until, alone.start))
        found = question.find(occupation, second, until - 1)
        if found is not None and found.start == second:
            gate = question.gate(occupation)
            free = fits_until(occupation, question.form, gate, second, until)
            return Cause(kind=CauseKind.NOTHING, detail="could start"), free
        until = until if found is None else found.start
        counted = self._by_counter(question, second, until)
        if counted is not None:
            return counted
        guarded = self._by_guard(second, until)
        return guarded if guarded is not None else self._by_jobs(question, second, until)

    def _by_rule(self, question: Question, second: int, until: int) -> tuple[Cause, int]:
        """Return the rule that leaves too little even if no job took anything; up to `until` some rule does."""
        duration = question.form.duration
        for counter in question.counters:
            free = counter.first(None, second, duration)
            if counter.rule is not None and free > second:
                return Cause(kind=CauseKind.RULE, detail=str(counter.rule), rule=counter.rule.path), min(until, free)
        first, end = second + self._now, second + self._now + duration
        paths = {one.id: f"reservations[{number}]" for number, one in enumerate(self.world.instance.reservations)}
        if self.job.reservation is not None:
            words = f"runs in reservation {self.job.reservation} only, which has no place for it then"
            return Cause(kind=CauseKind.RULE, detail=words, rule=paths.get(self.job.reservation)), until
        near = [one for one in self.world.plan.reservations if one.start < end and one.end > first]
        if not near:
            return Cause(
                kind=CauseKind.RULE, detail="rules of the site leave too little even without other jobs"
            ), until
        names = list(dict.fromkeys(one.id for one in near))
        words = f"reservations set aside what it would need: {', '.join(names)}"
        return Cause(kind=CauseKind.RULE, detail=words, rule=", ".join(paths[name] for name in names)), until

    def _by_counter(self, question: Question, second: int, until: int) -> tuple[Cause, int] | None:
        """Return the limit or free pool of which other jobs leave too little."""
        occupation, duration = self.world.occupation, question.form.duration
        for counter in question.counters:
            free = counter.first(occupation, second, duration)
            if free > second and counter.rule is not None:
                held = holders_at(occupation, question, second, min(until, free))
                return Cause(
                    kind=CauseKind(counter.rule.reason),
                    detail=str(counter.rule),
                    rule=counter.rule.path,
                    holders=tuple(self._holders(held, second, second + duration)),
                ), held.until
        return None

    def _by_guard(self, second: int, until: int) -> tuple[Cause, int] | None:
        """Return the nodes that keep the job out although they are free; None: there are none on which it could run."""
        world = self.world.without_guards
        question = None if world is None else world.question(self.job)
        if world is None or question is None:
            return None
        occupation = world.occupation
        mine = occupation.place_of.get(self.job.id)
        with occupation.without([] if mine is None else [mine]):
            found = question.find(occupation, second, second)
            if found is None:
                return None
            until = fits_until(occupation, question.form, question.gate(occupation), second, until)
        names = self._names(found.nodes, occupation)
        class_of = self.world.instance.cluster.class_of
        nodes = tuple(name for name in names if class_of[name].admits or class_of[name].keep_free)
        words = "nodes are free, but their guard, or what they keep free for others, keeps it out"
        return Cause(kind=CauseKind.GUARD, detail=words, nodes=nodes), until

    def _by_jobs(self, question: Question, second: int, until: int) -> tuple[Cause, int]:
        occupation, form = self.world.occupation, question.form
        timeline, end = occupation.timeline, second + form.duration
        licenses = [one.name for one in question.counters if one.first(occupation, second, form.duration) > second]
        is_on_nodes = form.find(timeline, second, second) is None
        at_once = replace(question, form=form.for_a_second())
        starts = at_once.find(occupation, second, until - 1)
        is_promise = starts is not None and starts.start == second
        if is_promise:
            until = fits_until(occupation, at_once.form, at_once.gate(occupation), second, until)
        elif starts is not None:
            until = starts.start
        resources, fitting = self._lacking(form, second) if is_on_nodes else ((), "")
        held = holders_at(occupation, question, second, until, is_promise=is_promise)
        kind = CauseKind.PROMISE if is_promise else CauseKind.LICENSE if licenses else CauseKind.RESOURCE
        lacking = list(dict.fromkeys(map(str, (*licenses, *resources))))
        what = ", ".join(lacking)
        words = f"too little is free of {what}" + (f": {fitting}" if fitting else "")
        if is_promise:
            words = f"enough is free at first, but jobs planned for later get it before the job would end ({what})"
        # the nodes that the job would get, and on which one of the holders is
        contested = held.nodes & set().union(*(occupation.nodes_of(job, second, end) for job in held.jobs))
        nodes = self._names(contested) if is_on_nodes else ()
        cause = Cause(
            kind=kind,
            detail=words,
            resources=tuple(lacking),
            nodes=nodes,
            holders=tuple(self._holders(held, second, end)),
        )
        return cause, held.until

    def _holders(self, held: Held, second: int, end: int) -> Iterator[Holder]:
        """Yield the jobs of a set, those that end first in front."""
        occupation = self.world.occupation
        found = []
        for job in held.jobs:
            numbers = occupation.nodes_of(job, second, end) & held.nodes
            found.append(self.holder(occupation.ids[job], self._names(numbers)))
        yield from sorted(found, key=lambda holder: (holder.end or 0, holder.job))

    def _names(self, numbers: Iterable[int], occupation: Occupation | None = None) -> tuple[str, ...]:
        """Return the names of nodes in documents, in their order on the timeline."""
        names = (occupation or self.world.occupation).node_names
        return tuple(dict.fromkeys(map(names.__getitem__, sorted(numbers))))

    def holder(self, name: str, nodes: tuple[str, ...] = ()) -> Holder:
        """Return another job as the plan has it."""
        entry, run = self.world.entries[name], self.world.planned.get(name)
        return Holder(
            job=name,
            user=entry.user,
            is_running=entry.running is not None,
            start=None if run is None else run.start,
            end=None if run is None else run.end,
            nodes=nodes,
        )

    def _lacking(self, form: Form, second: int) -> tuple[tuple[str, ...], str]:
        """Return the resources of which, each by itself, too little is free, and how many chunks find place.

        Where none is, it is all that a chunk asks for: there is not enough of it together.
        """
        occupation = self.world.occupation
        columns, demands = occupation.columns, occupation.columns.demands
        free = occupation.timeline.least_free(second, second + form.duration)[0]
        lacking: dict[str, None] = {}
        asked: dict[str, None] = {}
        fitting = ""
        for demand, request in form.asked:
            for kind, _ in demands.kinds_of(demand):
                place = columns.kind_of(kind)
                chunks = request.chunks if place == WHOLE_REQUEST else (request.chunks[place],)
                need = 1 if place == WHOLE_REQUEST else chunks[0].count
                names = dict.fromkeys(name for chunk in chunks for name in without_rules(chunk.resources))
                asked |= dict.fromkeys(names)
                for name in names:
                    alone = np.where(occupation.counts(name), free, _PLENTY)
                    if columns.fitting(request, need, demands.units_in(kind, alone)) < need:
                        lacking[name] = None
                if not fitting:
                    units, level = columns.fitting(request, need, demands.units_in(kind, free)), request.place.within
                    near = "" if level is None else f" within {level}"
                    if units < need and len(form.asked) == 1:
                        fitting = f"{units} of {need} chunks find place{near}"
        return tuple(lacking or asked), fitting
