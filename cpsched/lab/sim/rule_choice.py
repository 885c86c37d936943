"""A queue rule that gives way to another one while that one wins on what has happened so far.

Now and then the last jobs that have come are played again by both rules, at other times: each submission is moved at
random by some minutes, since one run of a log proves little. A job takes as long as it did, or, where it has not ended,
as long as it is expected to. No decision looks at anything that is not known at its second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar, NamedTuple

import numpy as np

from cpsched.domain import Instance, Job
from cpsched.lab.sim import arrays
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.rule_loop import play_rule
from cpsched.lab.sim.rules import Order, QueueRule
from cpsched.lab.sim.scheduler import Decision, News, Scheduler
from cpsched.lab.sim.site import Site
from cpsched.lab.sim.world import SimWorld

#: The rules are compared when so many jobs have come, and again when half as many more have, or so many.
_FIRST, _NEXT = 100, 400
#: The most jobs that are played again.
_MOST = 600
#: Replicas of them, and by how many seconds a submission is moved there at the most.
_REPLICAS, _MOVED = 3, 600
#: The other rule has to win in each replica: weighted queue time by this share, and the mean bounded slowdown may be
#: larger by this share.
_LEAST_GAIN, _MOST_LOSS = 0.02, 0.05
#: Passes until the next look whether the rules are to be compared.
_PORTION = 100
#: A runtime counts as at least so many seconds in a slowdown.
_TAU = 10


@dataclass(slots=True, kw_only=True, eq=False)
class RuleChoice:
    """A scheduler that is a queue rule, and another one of the same order where that wins; where no queue rule plays a
    workload as the workload's rules say (see `is_plain`) it is a third one.

    Raises `ValueError` if the rules differ in their orders or in what they expect: then a queue would have to be sorted
    anew.
    """

    #: In a few letters, without spaces.
    name: str
    usual: QueueRule
    other: QueueRule
    otherwise: Scheduler
    #: Where replicas begin.
    seed: int = 0
    #: Only the third one is asked for that.
    starts_evolving: ClassVar[bool] = True

    def __post_init__(self) -> None:
        same = {(rule.backfill, rule.order, rule.expect) for rule in (self.usual, self.other)}
        if len(same) > 1 or self.usual.order is not Order.SMITH:
            raise ValueError(f"Expected two rules by Smith's index with the same expectation, got {same}")

    def begin(self, site: Site) -> None:
        """Begin as the third one."""
        self.otherwise.begin(site)

    def decide(self, site: Site, news: News) -> Decision:
        """Decide as the third one."""
        return self.otherwise.decide(site, news)


class _Figures(NamedTuple):
    """What a rule makes of jobs: the weighted sum of wait / expected wait, and the mean bounded slowdown."""

    weighted_wait: float
    slowdown: float


def is_plain(instance: Instance) -> bool:
    """Tell whether a queue rule plays a workload as the workload's rules say: no job changes as it runs, and a higher
    priority makes no class of its own.
    """
    changing = any(job.is_evolving or job.malleability is not None for job in instance.jobs)
    return not changing and not instance.has_strict_priorities


def play_choice(world: SimWorld, choice: RuleChoice, seconds: list[float], *, look: Callable[[], None]) -> None:
    """Run a simulation under a choice of rules, as `play_rule` does under a rule."""
    rule, due, random = choice.usual, _FIRST, Random(choice.seed)  # noqa: S311 - replicas, no secret
    while not play_rule(world, rule, seconds, predicts=None, look=look, portion=_PORTION):
        if int(world.state.clock[arrays.C_SUBMITTED]) >= due:
            due += min(due // 2, _NEXT)
            began = time.perf_counter()
            rule = choice.other if _wins(choice, _past(world), random) else choice.usual
            seconds.append(time.perf_counter() - began)


def _wins(choice: RuleChoice, past: Instance | None, random: Random) -> bool:
    """Tell whether the other rule is better than the usual one in each replica of the past."""
    if past is None:
        return False
    for _ in range(_REPLICAS):
        replica = replace(past, jobs=tuple(_moved(job, past.now, random) for job in past.jobs))
        usual, other = (_played(replica, rule) for rule in (choice.usual, choice.other))
        if not other.weighted_wait < (1 - _LEAST_GAIN) * usual.weighted_wait:
            return False
        if other.slowdown > (1 + _MOST_LOSS) * usual.slowdown:
            return False
    return True


def _moved(job: Job, first: int, random: Random) -> Job:
    """Return a job that comes up to some minutes earlier or later, but not before the first one."""
    return replace(job, submit=max(first, job.submit + random.randint(-_MOVED, _MOVED)))


def _played(replica: Instance, rule: QueueRule) -> _Figures:
    """Return what a rule makes of a replica."""
    world = SimWorld(Load(replica))
    play_rule(world, rule, [], predicts=None, look=lambda: None)
    load, runs = world.load, world.state.runs
    has_run = runs[:, arrays.R_ENDING] >= arrays.COMPLETED
    start, end, submit = runs[has_run, arrays.R_START], runs[has_run, arrays.R_END], load.submit[has_run]
    weights = np.array([float(replica.weight(job)) for job in load.jobs])[has_run]
    slowdowns = np.maximum(1.0, (end - submit) / np.maximum(end - start, _TAU))
    return _Figures(
        weighted_wait=float((weights * (start - submit) / load.expected_wait[has_run]).sum()),
        slowdown=float(slowdowns.mean()) if len(slowdowns) else 1.0,
    )


def _past(world: SimWorld) -> Instance | None:
    """Return the last jobs that have come as a workload of its own, with the runtimes that are known or expected now;
    None where there are none, or rules of the site bind jobs to times that have passed.
    """
    load, s = world.load, world.state
    instance = load.instance
    if load.stated.reservations or len(load.asides.times):
        return None
    jobs = []
    for number in range(int(s.clock[arrays.C_SUBMITTED]))[-_MOST:]:
        job, (start, end, ending) = load.jobs[number], s.runs[number, :3].tolist()
        if job.running is not None or ending == arrays.REFUSED or (start < 0 and s.jobs[number, arrays.J_ARRIVAL] < 0):
            continue
        runtime = int(s.predicted[number])
        if ending >= arrays.COMPLETED:
            runtime = end - start
        elif start >= 0:
            runtime = max(runtime, world.now - start + 1)
        jobs.append(
            replace(job, runtime=runtime, after=(), not_before=None, start_at=None, deadline=None, reservation=None)
        )
    if not jobs:
        return None
    return replace(instance, now=min(job.submit for job in jobs), jobs=tuple(jobs), outages=())
