"""List scheduling of evolving applications on-line: a job is scheduled when it comes, once (EVO-7, EVO-18)."""

from dataclasses import replace

from cpsched.domain import Placement, Segment
from cpsched.errors import EngineError, UnsupportedError
from cpsched.lab.sim import Decision, News, NextStep, Site, Start
from cpsched.problem import Hold, Machine, application_of, beyond_whole_nodes
from cpsched.rules import Track, Variant, schedule
from cpsched.rusv import Profile


class EvolvingOnline:
    """Each job that comes is fitted beside all that were scheduled before, in the order of submission.

    Only numbers of nodes are promised, of which there are always enough: a step gets nodes when it begins.

    `variant`: the limit of holds, and whether schedules are compacted.
    """

    starts_evolving = True

    def __init__(self, variant: Variant) -> None:
        self.name, self._variant = variant.name, variant

    def begin(self, site: Site) -> None:
        """Forget all that was scheduled.

        Raises `UnsupportedError` if a job asks for something else than whole nodes of one kind.
        """
        window = replace(site.window(()), jobs=site.jobs, set_aside=site.instance.set_aside)
        features = beyond_whole_nodes(window)
        if features:
            raise UnsupportedError(self.name, features)
        self._names = Machine.of(window).names
        #: What is reserved for each job: (start, end, nodes); its steps; and the nodes that it has.
        self._holds: dict[int, tuple[Hold, ...]] = {}
        self._steps: dict[int, tuple[Hold, ...]] = {}
        self._nodes: dict[int, tuple[str, ...]] = {}
        for job, running in zip(sorted(site.running.tolist()), site.window(()).jobs, strict=True):
            if running.running is not None:
                self._nodes[job] = tuple(dict.fromkeys(held.node for held in running.running.segments[-1].allocation))
                self._holds[job] = (Hold(site.now, site.end_of(job), len(self._nodes[job])),)

    def decide(self, site: Site, news: News) -> Decision:
        """Schedule the jobs that have come; begin the steps whose time it is, first those that shrink."""
        for job in news.gone:
            for kept in (self._holds, self._steps, self._nodes):
                kept.pop(job, None)
        for job in site.queue.tolist():
            if job not in self._steps:
                self._schedule(site, job)
        due = [(job, step) for job, steps in self._steps.items() for step in steps if step.start == site.now]
        due.sort(key=lambda pair: (self._reserved(pair[0], site.now) - len(self._nodes.get(pair[0], ())), pair[0]))
        starts, steps = [], []
        for job, step in due:
            is_first = job not in self._nodes
            self._nodes[job] = self._chosen(job, self._reserved(job, site.now))
            allocation = self._allocation(site, job, step.amount)
            if is_first:
                starts.append(self._start(site, job, allocation))
            else:
                steps.append(NextStep(job, allocation))
        later = [step.start for of_job in self._steps.values() for step in of_job if step.start > site.now]
        return Decision(starts=starts, steps=steps, wake=min(later, default=None))

    def _schedule(self, site: Site, job: int) -> None:
        """Reserve numbers of nodes for a job, beside all that are reserved."""
        now = site.now
        application = replace(application_of(site.instance, site.jobs[job]), earliest=0)
        track: Track = next(schedule([application], self._variant, busy=self._busy(now), capacity=len(self._names)))
        self._holds[job], self._steps[job] = (
            tuple(Hold(now + hold.start, now + hold.end, hold.amount) for hold in holds)
            for holds in (track.holds, track.steps)
        )

    def _busy(self, now: int) -> Profile:
        """Return how many nodes are reserved from now on."""
        holds = (hold for holds in self._holds.values() for hold in holds if hold.end > now)
        starts = ((max(now, hold.start), hold) for hold in holds)
        parts = (Profile(((start - now, 0), (hold.end - start, hold.amount))) for start, hold in starts)
        return sum(parts, Profile(()))

    def _reserved(self, job: int, now: int) -> int:
        return next(hold.amount for hold in self._holds[job] if hold.start <= now < hold.end)

    def _chosen(self, job: int, amount: int) -> tuple[str, ...]:
        """Return the nodes that a job has now: some of those that it had, or these and others that nobody has."""
        own = self._nodes.get(job, ())
        taken = {name for names in self._nodes.values() for name in names}
        free = [name for name in self._names if name not in taken]
        return (*own, *free)[:amount]

    def _allocation(self, site: Site, job: int, amount: int) -> tuple[Placement, ...]:
        chunk = site.jobs[job].steps[0].request.chunks[0]
        return tuple(
            Placement(node=name, resources=chunk.resources, chunk=0, count=1) for name in self._nodes[job][:amount]
        )

    def _start(self, site: Site, job: int, allocation: tuple[Placement, ...]) -> Start:
        first, *later = (Segment(start=step.start, end=step.end, allocation=()) for step in self._steps[job])
        segments = (replace(first, allocation=allocation), *later)
        if site.jobs[job].is_evolving:
            return site.start_in_steps(job, segments)
        start = site.start_on(job, allocation)
        if start is None:
            raise EngineError(f"{self.name} starts job {site.jobs[job].id} at {site.now} on nodes where it may not run")
        return start
