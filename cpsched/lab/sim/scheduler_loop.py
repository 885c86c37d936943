"""Playing a workload by a scheduler that is asked whenever something has happened."""

import time
from collections.abc import Callable

from cpsched.errors import EngineError
from cpsched.lab.sim.arrays import RuleNumbers
from cpsched.lab.sim.rules import BackfillRule, Prediction, QueueRule
from cpsched.lab.sim.scheduler import Decision, News, Scheduler
from cpsched.lab.sim.site import Site
from cpsched.lab.sim.world import SimWorld

#: The queue of a site is in the order of submission.
_IN_ORDER = QueueRule(name="site", backfill=BackfillRule.NOBODY)


class _Loop:
    """The dialogue with one scheduler; mutable."""

    def __init__(self, world: SimWorld, scheduler: Scheduler, seconds: list[float], *, charges: bool) -> None:
        self._world, self._scheduler, self._seconds, self._charges = world, scheduler, seconds, charges
        self._site = Site(world)
        self._arrived: list[int] = []
        self._gone: list[int] = []
        self._expired: list[int] = []
        #: Whether nodes have broken or returned since, other amounts are set aside, or a choice has opened.
        self._has_returned = False
        #: The next call of the scheduler: at first now, since jobs wait in a resumed simulation.
        self._wake: int | None = world.now
        #: Its decision, and when that takes effect; until then it is not called.
        self._decided: tuple[int, Decision] | None = None
        #: Seconds that it has thought and was not charged for: clocks go in whole seconds.
        self._debt = 0.0
        scheduler.begin(self._site)

    @property
    def _num_changes(self) -> int:
        return self._site.num_outages + self._site.num_asides + self._world.num_opens

    def next_event(self) -> int | None:
        """Return when to look next, None if nothing is left to happen."""
        happens, due = self._world.next_event(), self._wake if self._decided is None else self._decided[0]
        if due is None or (happens is not None and happens <= due):
            return happens
        return max(due, self._world.now)

    def step(self, now: int, rule_numbers: RuleNumbers) -> None:
        """Process all events at `now`, and call the scheduler if a job waits."""
        before = self._num_changes
        arrived, gone, expired = self._world.step(now, rule_numbers)
        self._has_returned |= self._num_changes > before
        self._arrived += arrived
        self._gone += gone
        self._expired += expired
        if (notice := self._world.notice) is not None:
            if self._wake is not None:
                self._wake = max(self._wake, notice)
            if self._decided is not None:
                self._decided = max(self._decided[0], notice), self._decided[1]
            return
        if self._decided is not None:
            if self._decided[0] > now:
                return
            _, decision = self._decided
            self._decided = None
            # since then jobs may have ended, and nodes failed: what still can changes and starts
            for change in decision.changes:
                self._world.change(change)
            for start in decision.starts:
                if self._world.can_begin(start):
                    self._world.begin((start,))
        is_woken = self._wake is not None and self._wake <= now
        if is_woken:
            self._wake = None
        has_work = self._world.num_waiting or self._world.is_shrunk or self._world.evolves or self._world.has_resizable
        has_news = self._arrived or self._gone or self._expired or self._has_returned
        if has_work and (is_woken or has_news):
            self._ask(now, rule_numbers)

    def _ask(self, now: int, rule_numbers: RuleNumbers) -> None:
        """Call the scheduler, and start the jobs that it starts: now, or after the time of its decision."""
        news = News(now=now, arrived=tuple(self._arrived), gone=tuple(self._gone), expired=tuple(self._expired))
        self._arrived, self._gone, self._expired, self._has_returned = [], [], [], False
        began = time.perf_counter()
        decision = self._scheduler.decide(self._site, news)
        self._seconds.append(time.perf_counter() - began)
        if not isinstance(decision, Decision):
            raise EngineError(
                f"{self._scheduler.name} decides {decision!r} at {now}; expected a Decision, such as Decision() where "
                "no job starts, or what site.draft().decision() returns"
            )
        self._wake = decision.wake
        if decision.wake is not None and decision.wake <= now:
            raise EngineError(
                f"{self._scheduler.name} wants to be asked at {decision.wake} again; expected a second after {now}, or "
                "None for the next event"
            )
        if self._charges:
            self._debt += self._seconds[-1]
        charged, self._debt = int(self._debt), self._debt % 1.0
        if charged:
            self._decided = now + charged, decision
        else:
            self._begin(decision, rule_numbers)

    def _begin(self, decision: Decision, rule_numbers: RuleNumbers) -> None:
        """Stop, change and start jobs now."""
        for stopped in decision.stops:
            if not self._world.stop(stopped, rule_numbers):
                name = self._site.jobs[stopped].id
                raise EngineError(
                    f"{self._scheduler.name} stops job {name} at {self._world.now}; expected an evolving job in a step "
                    "that it has done, and that is not its last"
                )
            self._gone.append(stopped)
            self._wake = self._world.now
        for course in decision.courses:
            if not self._world.redirect(course):
                name = self._site.jobs[course.job].id
                raise EngineError(
                    f"{self._scheduler.name} moves steps of job {name} at {self._world.now}; expected a running job, "
                    "all steps from its present one on without gaps, and each as long as it may be"
                )
        for change in decision.changes:
            if not self._world.change(change):
                job = self._site.jobs[change.job].id
                raise EngineError(
                    f"{self._scheduler.name} changes job {job} at {self._world.now}, which does not run, "
                    "cannot run so, or takes cores that are not free"
                )
        if decision.steps and not self._world.next_steps(decision.steps):
            names = ", ".join(self._site.jobs[one.job].id for one in decision.steps)
            raise EngineError(
                f"{self._scheduler.name} begins the next steps of {names} at {self._world.now}, "
                "which is not their time, or on nodes that are not free"
            )
        for start in decision.starts:
            if not self._world.can_begin(start):
                job = self._site.jobs[start.job].id
                raise EngineError(
                    f"{self._scheduler.name} starts job {job} at {self._world.now}, but {self._world.why_not(start)}. "
                    "Take jobs from site.queue, and start them by site.draft().start(job), which knows what this "
                    "decision has taken already"
                )
            self._world.begin((start,))


def play_scheduler(
    world: SimWorld,
    scheduler: Scheduler,
    seconds: list[float],
    *,
    predicts: Prediction | None,
    charges: bool,
    look: Callable[[], None],
) -> None:
    """Run the simulation under a scheduler.

    Raises `EngineError` if the scheduler starts a job that does not wait, or where there is no room.

    `world`: the state of the simulation, from which it continues.
    `seconds`: a list to which the seconds of each decision are added.
    `predicts`: the use of predicted runtimes; None: none, jobs are expected to take their walltimes.
    `charges`: whether decisions take effect only after the seconds that they took, in which the scheduler is not
      called. A job that cannot start any more then (a node failed) keeps waiting, and a job that cannot change any more
      (it has ended) does not change.
    `look`: called after each decision.
    """
    loop = _Loop(world, scheduler, seconds, charges=charges)
    numbers = _IN_ORDER.in_numbers(predicts=predicts)
    while (now := loop.next_event()) is not None:
        loop.step(now, numbers)
        look()
