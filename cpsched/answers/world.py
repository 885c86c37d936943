"""An instance, a plan of it, and all that the plan books: what answers are found on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from cpsched.answers.counters import Counter
from cpsched.answers.forms import form_of
from cpsched.answers.holders import Question
from cpsched.answers.occupation import Occupation, Uses
from cpsched.domain import (
    FOR_EVER,
    Amounts,
    Cluster,
    DependencyType,
    Instance,
    Job,
    NodeClass,
    NodeState,
    Plan,
    PlannedJob,
    fitted,
)
from cpsched.errors import DocumentError, Fault, UnsupportedError
from cpsched.planner import unsupported
from cpsched.problem import Reduced, is_made_up, reduced, refusal
from cpsched.rusv import FOREVER

__all__ = ["World"]


class World:
    """An instance and a plan of it, booked; mutable only in that jobs are taken away for a question.

    Parameters
    ----------
    instance, plan
        The two documents; the plan need not have all jobs of the instance.

    Raises
    ------
    DocumentError
        If the plan is none of this instance, or has jobs that do not fit beside each other.
    """

    def __init__(self, instance: Instance, plan: Plan) -> None:
        if plan.record:
            raise DocumentError("plan", [Fault("record", "Expected a plan of what is to happen, got a record")])
        if plan.instance != instance.name:
            fault = Fault("instance", f"Expected a plan of {instance.name!r}, got one of {plan.instance!r}")
            raise DocumentError("plan", [fault])
        self.instance, self.plan = instance, plan
        self.entries = {job.id: job for job in instance.elements()}
        self.planned = {job.id: job for job in plan.jobs}
        self.members = instance.members()
        self._known_uses: dict[str, Uses] = {}
        self._asked: tuple[Job, Reduced] | None = None  # the last window with another job
        self._reduced = reduced(instance, plan.reservations)
        features = unsupported(self._reduced.instance)
        if features:
            raise UnsupportedError("explain", features)
        fit = fitted(self._reduced.instance)
        self._licensed = fit.instance
        self._jobs = {job.id: job for job in fit.instance.elements()}
        held = fit.to_held(self._reduced.to_reduced(plan.jobs))
        self.occupation = Occupation(_without_licenses(fit.instance), held)

    def question(self, job: Job) -> Question | None:
        """Return a waiting job as it is looked for; None: even an empty cluster could not run it in time.

        Parameters
        ----------
        job
            One of the instance, or a job like one of them.
        """
        engine, columns = self.occupation.instance, self.occupation.columns
        if self.entries.get(job.id) is job:
            window, counted = self._reduced, self._jobs[job.id]
        else:
            window = self._window_with(job)
            counted = next(one for one in window.instance.elements() if one.id == job.id)
        plain = replace(counted, licenses=_stated(counted.licenses))
        if refusal(self._licensed, plain) is not None:
            return None
        return Question(
            form=form_of(engine, replace(plain, licenses=Amounts()), columns),
            earliest=engine.earliest_start(plain),
            counters=tuple(self._counters(window, counted)),
        )

    def hosting(self, job: Job) -> World:
        """Return the world in which a job can be asked about: this one, or where a rule about nodes is about no job of
        the instance, a new one that has the job too.
        """
        if self.entries.get(job.id) is job:
            return self
        plain = next(one for one in self._window_with(job).instance.elements() if one.id == job.id)
        asked = {
            name
            for step in plain.steps
            for chunk in step.request.chunks
            for name in (*chunk.resources, *chunk.where)
            if is_made_up(name)
        }
        classes = self.occupation.instance.cluster.classes
        known = {name for one in classes for name in (*one.resources, *one.properties)} if asked else set()
        if asked <= known:
            return self
        others = tuple(one for one in self.entries.values() if one.id != job.id)
        run = tuple(one for one in self.plan.jobs if one.id != job.id)
        instance = replace(self.instance, jobs=(*(replace(one, after=()) for one in others), replace(job, after=())))
        return World(instance, replace(self.plan, jobs=run))

    def _window_with(self, job: Job) -> Reduced:
        """Return the window without rules, with a job that is not as the instance states it, or is new.

        Jobs are not told what they wait for: that does not concern rules.
        """
        if self._asked is None or self._asked[0] is not job:
            others: list[Job] = []
            if self.instance.limits or self.instance.free_pools:
                others = [one for name, one in self._alone.items() if name != job.id]
            window = replace(self.instance, jobs=(*others, replace(job, after=())))
            self._asked = job, reduced(window, self.plan.reservations, about=job, like=self._reduced)
        return self._asked[1]

    @cached_property
    def _alone(self) -> dict[str, Job]:
        """The jobs of the instance, none of which waits for others."""
        return {name: replace(job, after=()) for name, job in self.entries.items()}

    def _counters(self, window: Reduced, job: Job) -> Iterator[Counter]:
        """Yield the licences, and the rules that count what a job takes, beside the jobs of the plan.

        Parameters
        ----------
        window
            The window without rules, with the job.
        job
            The job in it.
        """
        for name, amount in job.licenses.items():
            instance = window.instance if is_made_up(name) else self._licensed
            total = instance.cluster.licenses[name]
            # while a rule holds, all is closed that it closes: what running jobs have then is counted as theirs
            most = total - window.left.get(name, 0) if is_made_up(name) else None
            closed = [
                (max(0, one.start - self.instance.now), end if end < FOR_EVER else FOREVER, most or one.licenses[name])
                for one in instance.set_aside
                if name in one.licenses and (end := one.end - self.instance.now) > 0
            ]
            uses = self._uses(window.takes[name], job.id) if name in window.takes else self._license_uses(name)
            yield Counter(name, window.rules.get(name), amount, total, closed, uses)

    def _license_uses(self, name: str) -> Uses:
        """Return the amounts of a licence of the cluster that the jobs of the plan take."""
        if name not in self._known_uses:
            takes = {job.id: amount for job in self._licensed.elements() if (amount := job.licenses.get(name, 0))}
            self._known_uses[name] = self._uses(takes, None)
        return self._known_uses[name]

    def _uses(self, takes: Mapping[str, int], but: str | None) -> Uses:
        """Return the amounts of a licence that the jobs of the plan take, of which those of one entry take the same,
        without one job.
        """
        now, place_of = self.instance.now, self.occupation.place_of
        rows = []
        for entry, amount in takes.items():
            for name in self.members.get(entry, (entry,)):
                run = self.planned.get(name)
                if run is not None and name != but:
                    rows.append((place_of[name], amount, max(0, run.start - now), run.end - now))
        return Uses.of(rows)

    def refusal(self, job: Job) -> str | None:
        """Return why a job could not start even if no other were there; None: nothing is found."""
        found = refusal(self.instance, job)
        return None if found is None else found[1]

    def stated(self, planned: PlannedJob) -> PlannedJob:
        """Return a place that was found as a plan of the instance has it."""
        (stated,) = self._reduced.to_stated((planned,))
        return stated

    def released(self, job: Job) -> dict[str, int | None]:
        """Return from when on each job that a job waits for lets it start, by id; None: never in this plan."""
        moments: dict[str, int | None] = {}
        for dependency in job.after:
            for name in self.members[dependency.job]:
                run = self.planned.get(name)
                moment = None
                if run is not None:
                    event = run.start if dependency.type is DependencyType.AFTER else run.end
                    moment = event + dependency.delay
                before = moments.get(name, moment)
                moments[name] = None if moment is None or before is None else max(moment, before)
        return moments

    @property
    def last_end(self) -> int:
        """The second from which on nothing is booked."""
        return self.instance.now + int(self.occupation.timeline.breakpoints()[-1])

    @cached_property
    def without_guards(self) -> World | None:
        """The same on nodes without guards that keep nothing free; None: they are so already."""
        classes = self.instance.cluster.classes
        if not any(one.admits or one.keep_free for one in classes):
            return None
        return self._on(tuple(replace(one, admits=(), keep_free=()) for one in classes))

    @cached_property
    def all_up(self) -> World | None:
        """The same with all nodes up; None: they are so already."""
        classes = self.instance.cluster.classes
        if all(one.state is NodeState.UP for one in classes):
            return None
        return self._on(tuple(replace(one, state=NodeState.UP) for one in classes))

    def _on(self, classes: tuple[NodeClass, ...]) -> World:
        """Return the same instance and plan on other nodes of the same names."""
        cluster = Cluster(classes=classes, licenses=self.instance.cluster.licenses)
        return World(replace(self.instance, cluster=cluster), self.plan)


def _without_licenses(instance: Instance) -> Instance:
    """Return an instance without licences: these are counted beside the timeline."""
    if not instance.cluster.licenses:
        return instance
    return replace(
        instance,
        cluster=replace(instance.cluster, licenses=Amounts()),
        jobs=tuple(replace(job, licenses=Amounts()) if job.licenses else job for job in instance.jobs),
        set_aside=tuple(replace(one, licenses=Amounts()) for one in instance.set_aside),
    )


def _stated(licenses: Amounts) -> Amounts:
    return Amounts({name: amount for name, amount in licenses.items() if not is_made_up(name)})
