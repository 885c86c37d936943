"""An instance, a plan of it, and all that the plan books: what answers are found on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property

from cpsched.answers.blockers import Question
from cpsched.answers.counters import Counter
from cpsched.answers.occupation import Occupation, Uses
from cpsched.answers.queries import form_of
from cpsched.domain import FOR_EVER, Amounts, Dependency, Instance, Job, NodeClass, NodeState, Plan, PlannedJob
from cpsched.errors import DocumentError, Fault, UnsupportedError
from cpsched.planner import unsupported
from cpsched.problem import Choice, Problem, Refusal, Rule, compiled, exchanged, refusal, with_licenses, without_rules
from cpsched.rusv import FOREVER


def _with_stopped(instance: Instance, plan: Plan) -> Instance:
    """Return the instance in which running jobs that a plan stops wait for as long a run as the plan gives them."""
    cut, again = {one.id: one.end for one in plan.attempts}, {one.id: one.end - one.start for one in plan.jobs}

    def waiting(job: Job) -> Job:
        step = replace(job.steps[0], walltime=again.get(job.id, job.walltime))
        return replace(job, steps=(step,), running=None, not_before=cut[job.id])

    return replace(instance, jobs=tuple(waiting(job) if job.id in cut else job for job in instance.jobs))


class PlanView:
    """An instance and a plan of it, booked; mutable only in that jobs are taken away for a question.

    `instance`, `plan`: the two documents; the plan need not have all jobs of the instance. Raises `DocumentError` if
    the plan is none of this instance, or has jobs that do not fit beside each other.
    """

    def __init__(self, instance: Instance, plan: Plan) -> None:
        if plan.record:
            raise DocumentError("plan", [Fault("record", "Expected a plan of what is to happen, got a record")])
        if plan.instance != instance.name:
            fault = Fault("instance", f"Expected a plan of {instance.name!r}, got one of {plan.instance!r}")
            raise DocumentError("plan", [fault])
        if plan.now > instance.now:
            message = f"Expected a plan of second {instance.now} (now of the instance) or before, got one of {plan.now}"
            raise DocumentError("plan", [Fault("now", message)])
        instance = _with_stopped(instance, plan) if plan.attempts else instance
        self.instance, self.plan = instance, plan
        self.entries = {job.id: job for job in instance.elements()}
        self.planned = {job.id: job for job in plan.jobs}
        self.members = instance.members()
        self._known_uses: dict[str, Uses] = {}
        #: Of the licences of rules: the job that was left out last, and what the others took.
        self._known_takes: dict[str, tuple[str, dict[str, int], Uses]] = {}
        self._asked: tuple[Job, Problem | None] | None = None  # the last window with another job
        self._problem = compiled(instance, plan.reservations)
        engines = self._problem.instance
        features = unsupported(engines)
        if features:
            raise UnsupportedError("explain", features)
        self._jobs = {job.id: job for job in engines.elements()}
        self.occupation = Occupation(_without_licenses(engines), self._problem.to_held(plan.jobs))

    def question(self, job: Job) -> Question | None:
        """Return a waiting job, of the instance or like one of it, as it is looked for; None: it never fits in time."""
        engine, columns = self.occupation.instance, self.occupation.columns
        window, counted = self._counted(job)
        if self._refused(counted) is not None:
            return None
        own, *others = (tuple(self._counters(window, one)) for one in counted.choices)
        return Question(
            form=form_of(engine, with_licenses(counted, [Amounts() for _ in counted.choices]), columns),
            earliest=engine.earliest_start(counted),
            counters=own,
            by_alternatives=tuple(others),
        )

    def _counted(self, job: Job) -> tuple[Problem, Job]:
        """Return the window without rules that has a job, and the job as it is there."""
        window = self._window_of(job)
        if window is None:
            raise ValueError(f"asked about job {job.id!r} beside nodes that have no part for it")
        return window, self._jobs[job.id] if window is self._problem else window.instance.jobs[0]

    def hosting(self, job: Job) -> PlanView:
        """Return the world in which a job can be asked about: this one, or a new one that has the job too."""
        if self._window_of(job) is not None:
            return self
        run = tuple(one for one in self.plan.jobs if one.id != job.id)
        instance = exchanged(self.instance, job)
        instance = replace(instance, jobs=tuple(replace(one, after=()) for one in instance.jobs))
        return PlanView(instance, replace(self.plan, jobs=run))

    def _window_of(self, job: Job) -> Problem | None:
        """Return the window without rules that has a job; None: the nodes of this world have no part for it."""
        if self.entries.get(job.id) is job:
            return self._problem
        if self._asked is None or self._asked[0] is not job:
            self._asked = job, self._problem.with_job(job)
        return self._asked[1]

    def _counters(self, window: Problem, job: Job) -> Iterator[Counter]:
        """Yield the licences, and the rules that count what a job takes, beside the jobs of the plan."""
        now = self.instance.now
        for name, amount in job.licenses.items():
            rule = name if isinstance(name, Rule) else None
            counter = None if rule is None else window.counters.get(rule)
            if counter is not None:
                # while a rule holds, all is closed that it closes: what running jobs have then is counted as theirs
                total, most = counter.total, counter.total - counter.left
                closed = [(start, end, most) for start, end, _ in counter.closed]
                uses = self._counted_uses(name, counter.takes, job.id)
            else:
                total = self._problem.instance.cluster.licenses.get(name, 0)
                holds = (one for one in self._problem.instance.set_aside if name in one.licenses)
                closed = [(one.start, one.end, one.licenses[name]) for one in holds]
                uses = self._license_uses(name)
            from_now = [
                (max(0, start - now), end - now if end < now + FOR_EVER else FOREVER, most)
                for start, end, most in closed
                if end > now
            ]
            yield Counter(name, rule, amount, total, from_now, uses)

    def _counted_uses(self, name: str, takes: Mapping[str, int], but: str) -> Uses:
        """Return the uses of the licence of a rule, as `_uses` does: mostly those of another form of the same job."""
        others = {entry: amount for entry, amount in takes.items() if str(entry) != but}
        known = self._known_takes.get(name)
        if known is None or known[:2] != (but, others):
            known = self._known_takes[name] = but, others, self._uses(takes, but)
        return known[2]

    def _license_uses(self, name: str) -> Uses:
        """Return the amounts of a licence of the cluster that the jobs of the plan take."""
        if name not in self._known_uses:
            takes = {
                job.id: amount for job in self._problem.instance.elements() if (amount := job.licenses.get(name, 0))
            }
            self._known_uses[name] = self._uses(takes, None)
        return self._known_uses[name]

    def _uses(self, takes: Mapping[str, int], but: str | None) -> Uses:
        """Return the amounts of a licence that jobs of the plan take, those of one entry the same, without one job."""
        now, place_of = self.instance.now, self.occupation.place_of
        rows = []
        for entry, amount in takes.items():
            number, of_job = (entry.number, str(entry)) if isinstance(entry, Choice) else (None, entry)
            for name in self.members.get(of_job, (of_job,)):
                run = self.planned.get(name)
                if run is not None and name != but and number in (None, run.alternative):
                    rows.append((place_of[name], amount, max(0, run.start - now), run.end - now))
        return Uses.of(rows)

    def refusal(self, job: Job) -> str | None:
        """Return why a job could not start if no other were there, or what others consume; None: nothing is found."""
        found = refusal(self.instance, job)
        if found is not None:
            return found[1]
        window, counted = self._counted(job)
        lacking, refused = window.lacking(counted), self._refused(counted)
        return lacking if lacking is not None or refused is None else refused[1]

    def _refused(self, counted: Job) -> Refusal | None:
        """Return why empty nodes, in groups and parts as engines know them, have no place for a job."""
        plain = with_licenses(counted, [without_rules(one.licenses) for one in counted.choices])
        return refusal(self._problem.instance, plain)

    def stated(self, job: Job, planned: PlannedJob) -> PlannedJob:
        """Return a place that was found for a job as a plan of the instance has it."""
        (stated,) = (self._window_of(job) or self._problem).to_stated((planned,))
        return stated

    def without(self, job_id: str) -> AbstractContextManager[None]:
        """Take a job away, if it is booked, for the time of a block."""
        place = self.occupation.place_of.get(job_id)
        return self.occupation.without([] if place is None else [place])

    def released(self, job: Job) -> dict[str, int | None]:
        """Return from when on each job that a job waits for lets it start, by id, and each that follows it within some
        time; None: never in this plan.
        """
        moments: dict[str, int | None] = dict(self._followed_from(job))
        for dependency in job.after:
            for name in self.members[dependency.job]:
                run = self.planned.get(name)
                moment = None if run is None else run.start + dependency.lag(run.end - run.start)
                before = moments.get(name, moment)
                moments[name] = None if moment is None or before is None else max(moment, before)
        return moments

    def _followed_from(self, job: Job) -> Iterator[tuple[str, int]]:
        """Yield the earliest start of a job that leaves each a start in time which follows it within some time."""
        for name, dependency in self._followers.get(job.id, ()):
            latest, run = dependency.latest(0, job.walltime), self.planned.get(name)
            if run is not None and latest is not None:
                yield name, run.start - latest

    @cached_property
    def _followers(self) -> Mapping[str, Sequence[tuple[str, Dependency]]]:
        """The waiting jobs that start within some time of others, by these."""
        found: dict[str, list[tuple[str, Dependency]]] = {}
        for job in self.entries.values():
            for dependency in job.after if job.running is None else ():
                if dependency.max_delay is not None:
                    found.setdefault(self.members[dependency.job][0], []).append((job.id, dependency))
        return found

    def limits(self, job: Job) -> dict[str, int]:
        """Return the last start that each job leaves a job which it follows within some time, by id."""
        found: dict[str, int] = {}
        for dependency in job.after:
            for run in map(self.planned.get, self.members[dependency.job] if dependency.max_delay is not None else ()):
                if run is not None and (latest := dependency.latest(run.start, run.end)) is not None:
                    found[run.id] = min(latest, found.get(run.id, latest))
        return found

    @property
    def last_end(self) -> int:
        """The second from which on nothing is booked."""
        return self.instance.now + int(self.occupation.timeline.breakpoints()[-1])

    @cached_property
    def without_guards(self) -> PlanView | None:
        """The same on nodes without guards that keep nothing free; None: they are so already."""
        classes = self.instance.cluster.classes
        if not any(one.admits or one.keep_free for one in classes):
            return None
        return self._on(tuple(replace(one, admits=(), keep_free=()) for one in classes))

    @cached_property
    def all_up(self) -> PlanView | None:
        """The same with all nodes up; None: they are so already."""
        classes = self.instance.cluster.classes
        if all(one.state is NodeState.UP for one in classes):
            return None
        return self._on(tuple(replace(one, state=NodeState.UP) for one in classes))

    def _on(self, classes: tuple[NodeClass, ...]) -> PlanView:
        """Return the same instance and plan on other nodes of the same names."""
        cluster = replace(self.instance.cluster, classes=classes)
        return PlanView(replace(self.instance, cluster=cluster), self.plan)


def _without_licenses(instance: Instance) -> Instance:
    """Return an instance without licences: these are counted beside the timeline."""
    if not instance.cluster.licenses:
        return instance
    return replace(
        instance,
        cluster=replace(instance.cluster, licenses=Amounts()),
        jobs=tuple(with_licenses(job, [Amounts() for _ in job.choices]) for job in instance.jobs),
        set_aside=tuple(one._replace(licenses=Amounts()) for one in instance.set_aside),
    )
