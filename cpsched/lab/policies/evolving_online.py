"""List scheduling of evolving applications on-line: a job is scheduled when it comes, once (EVO-7, EVO-18)."""

from dataclasses import replace
from itertools import accumulate, pairwise

from cpsched.domain import Placement, Segment
from cpsched.errors import EngineError, UnsupportedError
from cpsched.lab.sim import Course, Decision, News, NextStep, Site, Start
from cpsched.problem import Application, Hold, Machine, application_of, beyond_whole_nodes
from cpsched.rules import Track, Variant, fit, schedule
from cpsched.rusv import FOREVER, Profile


class EvolvingOnline:
    """Each job that comes is fitted beside all that were scheduled before, in the order of submission.

    Only numbers of nodes are promised: a step gets nodes when it begins. There are always enough, until one fails.

    When nodes fail or return, waiting jobs are fitted anew, and before them running ones, in the order of submission,
    if promises exceed what is up. Those not yet fitted keep what they have, so that no two wait for each other.
    A running job that fits nowhere is *stuck*: it keeps its nodes. When its step is done it begins the next one if that
    has room beside all that is reserved, else holds the step as long as it may, and then is stopped.

    `variant`: the limit of holds, and whether schedules are compacted.
    """

    starts_evolving = moves_steps = True

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
        self._names, self._out, self._num_outages = Machine.of(window).names, frozenset[str](), site.num_outages
        #: What is reserved for each job: (start, end, nodes); its steps; and the nodes that it has.
        self._holds: dict[int, tuple[Hold, ...]] = {}
        self._steps: dict[int, tuple[Hold, ...]] = {}
        self._nodes: dict[int, tuple[str, ...]] = {}
        #: Until when each stuck job remains in its step.
        self._stuck: dict[int, int] = {}
        for job, running in zip(sorted(site.running.tolist()), site.window(()).jobs, strict=True):
            if running.running is not None:
                self._nodes[job] = tuple(dict.fromkeys(held.node for held in running.running.segments[-1].allocation))
                self._holds[job] = (Hold(site.now, site.end_of(job), len(self._nodes[job])),)

    def decide(self, site: Site, news: News) -> Decision:
        """Schedule the jobs that have come; begin the steps whose time it is, first those that shrink."""
        for job in news.gone:
            self._forget(job)
        before = dict(self._steps)
        if site.num_outages != self._num_outages:
            self._follow_outages(site)
        asked = sorted(job for job, until in self._stuck.items() if until == site.now or news.gone)
        stops = [job for job in asked if not self._goes_on(site, job)][-1:]
        running = [job for job in sorted(self._nodes) if job in before and job not in stops]
        courses = [Course(job, self._rest(site, job)) for job in running if self._steps[job] != before[job]]
        if stops:
            self._num_outages = -1  # what it leaves may be enough for others
            return Decision(stops=stops, courses=courses)
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
        later = [step.start for of_job in self._steps.values() for step in of_job if site.now < step.start < FOREVER]
        return Decision(starts=starts, steps=steps, courses=courses, wake=min(later, default=None))

    def _forget(self, job: int) -> None:
        for kept in (self._holds, self._steps, self._nodes, self._stuck):
            kept.pop(job, None)

    @property
    def _capacity(self) -> int:
        """How many nodes are up."""
        return len(self._names) - len(self._out)

    def _follow_outages(self, site: Site) -> None:
        """Take back what is promised to waiting jobs, and to running ones if it exceeds what is up; fit the latter."""
        names, self._num_outages = site.columns.node_names, site.num_outages
        self._out = frozenset(self._names) & {names[node] for node in site.nodes_out.tolist()}
        for job in site.queue.tolist():
            self._forget(job)
        is_short = self._busy(site.now).max(0, FOREVER) > self._capacity
        left = sorted(job for job in self._steps if is_short or job in self._stuck)
        for job in left:
            place = self._place(site, job)
            done = self._steps[job][place].start + site.jobs[job].steps[place].walltime
            self._keep(site, job, place, max(site.now, done))
        while (fitted := next((job for job in left if self._fits(site, job)), None)) is not None:
            left.remove(fitted)

    def _place(self, site: Site, job: int) -> int:
        """Return in which step a running job is; a step that begins now has not begun."""
        return max(0, sum(step.start < site.now for step in self._steps[job]) - 1)

    def _keep(self, site: Site, job: int, place: int, until: int) -> None:
        """Keep the nodes of a step for a running job; the next ones are to begin one after the other from then on."""
        past, here = self._steps[job][:place], self._steps[job][place]
        ends = accumulate((step.walltime for step in site.jobs[job].steps[place + 1 :]), initial=until)
        amounts = (step.amount for step in self._steps[job][place + 1 :])
        later = (Hold(start, end, amount) for (start, end), amount in zip(pairwise(ends), amounts, strict=True))
        self._steps[job] = (*past, replace(here, end=until), *later)
        self._holds[job], self._stuck[job] = (replace(here, end=FOREVER),), until
        self._nodes[job] = self._nodes[job][: here.amount]

    def _fits(self, site: Site, job: int) -> bool:
        """Fit the rest of a running job beside all that is reserved; return whether there is room."""
        place, now, capacity = self._place(site, job), site.now, self._capacity
        application = application_of(site.instance, site.jobs[job])
        past, here = self._steps[job][:place], self._steps[job][place]
        steps, longest = application.steps[place:], application.longest(self._variant.limit)[place:]
        left = (max(0, here.start + steps[0][0] - now), max(0, here.start + longest[0] - now))
        last = self._last(now, application, without=job)
        steps, others = ((left[0], here.amount), *steps[1:]), self._busy(now, without=job, until=last)
        if max(amount for _, amount in steps) > capacity:
            return False
        starts = fit(steps, others, capacity, longest=(left[1], *longest[1:]))
        borders = (0, *starts[1:], starts[-1] + steps[-1][0])
        is_held = borders[1] <= max(left) and others.max(0, borders[1]) + here.amount <= capacity
        if not is_held or now + borders[-1] > last:
            return False
        times = pairwise((here.start, *(now + border for border in borders[1:])))
        self._holds[job] = tuple(
            Hold(start, end, amount) for (start, end), (_, amount) in zip(times, steps, strict=True)
        )
        self._steps[job] = (*past, *self._holds[job])
        self._stuck.pop(job, None)
        return True

    def _goes_on(self, site: Site, job: int) -> bool:
        """Continue a stuck job by any step that has room, or hold its step; return whether any of this can be done."""
        if self._fits(site, job) or self._stuck[job] > site.now:
            return True
        place, now = self._place(site, job), site.now
        after, others = self._steps[job][place + 1], self._busy(now, without=job)
        if others.max(0, FOREVER) + after.amount <= self._capacity:
            self._keep(site, job, place + 1, after.end)
            return True
        longest = application_of(site.instance, site.jobs[job]).longest(self._variant.limit)[place]
        until = self._steps[job][place].start + longest
        if until <= now or (longest >= FOREVER and not self._out):
            return False
        self._keep(site, job, place, until)
        return True

    def _rest(self, site: Site, job: int) -> tuple[Segment, ...]:
        """Return the steps of a running job from the present one on."""
        rest = self._steps[job][self._place(site, job) :]
        return tuple(Segment(start=step.start, end=step.end, allocation=()) for step in rest)

    def _schedule(self, site: Site, job: int) -> None:
        """Reserve numbers of nodes for a job beside all that are reserved, if enough are up and free one day."""
        now, capacity = site.now, self._capacity
        application = replace(application_of(site.instance, site.jobs[job]), earliest=0)
        if max(amount for _, amount in application.steps) > capacity:
            return
        last = self._last(now, application)
        track: Track = next(schedule([application], self._variant, busy=self._busy(now, until=last), capacity=capacity))
        if now + track.steps[-1].end > last:
            return
        self._holds[job], self._steps[job] = (
            tuple(Hold(now + hold.start, now + hold.end, hold.amount) for hold in holds)
            for holds in (track.holds, track.steps)
        )

    def _last(self, now: int, application: Application, without: int | None = None) -> int:
        """Return by when an application ends that has room beside stuck jobs: at last alone with them."""
        ends = (hold.end for job, held in self._holds.items() if job != without for hold in held)
        last = max((end for end in ends if end < FOREVER), default=now)
        return max(now, last) + sum(duration for duration, _ in application.steps)

    def _busy(self, now: int, *, without: int | None = None, until: int = FOREVER) -> Profile:
        """Return how many nodes are reserved from now on, `until` a second, without those of one job."""
        holds = (hold for job, held in self._holds.items() if job != without for hold in held if hold.end > now)
        starts = ((max(now, hold.start), hold) for hold in holds)
        parts = (Profile(((start - now, 0), (min(hold.end, until) - start, hold.amount))) for start, hold in starts)
        return sum(parts, Profile(()))

    def _reserved(self, job: int, now: int) -> int:
        return next(hold.amount for hold in self._holds[job] if hold.start <= now < hold.end)

    def _chosen(self, job: int, amount: int) -> tuple[str, ...]:
        """Return the nodes that a job has now: some of those that it had, or these and others that nobody has."""
        own = [name for name in self._nodes.get(job, ()) if name not in self._out]
        taken = {name for names in self._nodes.values() for name in names}
        free = [name for name in self._names if name not in taken and name not in self._out]
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
