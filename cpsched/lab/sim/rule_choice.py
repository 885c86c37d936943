"""Playing a workload by a queue rule, compiled; and by one that gives way to one that wins on the site's past.

Now and then the last weeks are played again by each rule, at other times: each submission is moved at random by some
minutes, since one run of a log proves little. A job takes as long as it did, or, where it has not ended, as long as it
is expected to. No decision looks at anything that is not known at its second.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import ClassVar

from cpsched.domain import Instance
from cpsched.lab.sim import arrays, kernels, queue_kernels
from cpsched.lab.sim.arrays import C, J, R
from cpsched.lab.sim.contests import LEAST_JOBS, LEAST_SECONDS, REPLICAS, Figures, contest, figures_of, winner
from cpsched.lab.sim.hold_kernels import has_asides
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.rules import BackfillRule, Prediction, QueueRule
from cpsched.lab.sim.scheduler import Decision, News, Scheduler
from cpsched.lab.sim.site import Site
from cpsched.lab.sim.world import SimWorld
from cpsched.rusv import EqualNodes, interpret, viewed

#: Passes between two looks at the clock.
_PORTION = 2_000
#: The same where Python interprets the kernels.
_INTERPRETED_PORTION = 10
#: The arrays of which kernels take rows.
_BY_ROWS = ("aside_levels", "aside_ahead", "beside", "step_sums", "ahead", "stoppable", "free")
#: The most jobs of simulations whose kernels Python interprets, and the most of these times nodes.
_MOST_INTERPRETED, _MOST_PAIRS = 1_500, 300_000
#: So often, at least, usage changes the weights of jobs in a simulation, by the number of jobs.
_WEIGHED = 200


def play_rule(
    world: SimWorld,
    rule: QueueRule,
    seconds: list[float],
    *,
    predicts: Prediction | None,
    look: Callable[[], None],
    portion: int | None = None,
) -> bool:
    """Run the simulation under a rule; tell whether it has come to its end.

    `world`: the state of the simulation, from which it continues.
    `seconds`: a list to which the mean seconds of a pass are added, for each portion of passes of compiled kernels.
    `predicts`: the use of predicted runtimes; None: none, jobs are expected to take their walltimes.
    `look`: called repeatedly.
    `portion`: the number of passes after which it pauses; None: it is played to its end.
    """
    numbers = rule.in_numbers(predicts=predicts, is_counted=is_counted(world, rule))
    most = portion or (_PORTION if not interpret() else _INTERPRETED_PORTION)
    if world.load.instance.fair_share is not None:
        most = max(1, min(most, len(world.load.jobs) // _WEIGHED))
    while True:
        if rule.key is None:
            world.weigh()
        before, began = int(world.state.clock[C.PASSES]), time.perf_counter()
        bundles = world.state, world.machine, world.tables, world.scratch
        told = kernels.advance(numbers, most, *(viewed(one, *_BY_ROWS) for one in bundles) if interpret() else bundles)
        passes = int(world.state.clock[C.PASSES]) - before
        if passes and not interpret():
            seconds.append((time.perf_counter() - began) / passes)
        if told == arrays.FINISHED:
            return True
        if told == arrays.LACKS_ROOM:
            world.make_room()
        look()
        if portion is not None and told == arrays.PAUSED:
            return False


def interprets_simulations(instance: Instance, schedulers: Sequence[QueueRule | Scheduler]) -> bool:
    """Have Python interpret the kernels of simulations of few jobs (in an `own_interpretation`) until that has taken as
    long as to load compiled ones; tell whether it does. Not under rules whose keys may differ in the last bit.
    """
    are_exact = all(isinstance(one, QueueRule) and one.is_exact for one in schedulers)
    jobs = len(schedulers) * len(instance.elements())
    pairs = jobs * len(instance.cluster.class_of)
    return interpret(wanted=are_exact and jobs <= _MOST_INTERPRETED and pairs <= _MOST_PAIRS)


def is_counted(world: SimWorld, rule: QueueRule) -> bool:
    """Tell whether it makes no difference which nodes are reserved: jobs are counted on equal nodes, none set aside.

    For the head of the queue alone the reservation has nodes all the same. Several ones are of sums.
    """
    is_of_head = rule.backfill is BackfillRule.NOT_DELAYING
    if not (is_of_head or rule.backfill is BackfillRule.RESERVING) or has_asides(world.state):
        return False
    nodes = EqualNodes.of(world.load.columns.demands)
    if nodes is None:
        return False
    return nodes.is_apart if is_of_head else nodes.is_summed and not world.state.fixed[:, 1].any()


#: The rules are compared when enough jobs have come, and again when half as many more have, or so many.
_FIRST, _NEXT, _LEAST = LEAST_JOBS, 2_000, LEAST_SECONDS
#: The most jobs that are played again.
_MOST = 4_000
#: After a change the rule stays for so many seconds.
_DAY = 86_400
#: Passes until the next look whether the rules are to be compared.
_BETWEEN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUse:
    """A rule that a choice has used from a second on."""

    since: int
    rule: str
    #: The jobs of the past on which it won, and its weighted queue time there, relative to that of the usual rule (the
    #: geometric mean of the replicas); 0 and 1 of the usual rule.
    jobs: int
    ratio: float


@dataclass(slots=True, kw_only=True, eq=False)
class RuleChoice:
    """A scheduler that is the first of some queue rules, and another one where that wins; where no queue rule plays a
    workload as the workload's rules say (see `is_plain`) it is one that is no queue rule.

    Raises `ValueError` if jobs may starve under a rule.
    """

    #: In a few letters, without spaces.
    name: str
    rules: tuple[QueueRule, ...]
    otherwise: Scheduler
    #: Where replicas begin.
    seed: int = 0
    #: Only `otherwise` is asked for that.
    starts_evolving: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for rule in self.rules:
            if rule.due_after is None:
                raise ValueError(f"Expected rules under which nobody starves, got {rule}")

    def begin(self, site: Site) -> None:
        """Begin as the one that is no queue rule."""
        self.otherwise.begin(site)

    def decide(self, site: Site, news: News) -> Decision:
        """Decide as the one that is no queue rule."""
        return self.otherwise.decide(site, news)


def is_plain(instance: Instance) -> bool:
    """Tell whether a queue rule plays a workload as well as any: no job changes as it runs or has a choice, and a
    higher priority makes no class of its own.
    """
    changing = any(job.changes or job.alternatives for job in instance.jobs)
    return not changing and not instance.has_strict_priorities


def play_choice(
    world: SimWorld, choice: RuleChoice, seconds: list[float], uses: list[RuleUse], *, look: Callable[[], None]
) -> None:
    """Run a simulation under a choice of rules, as `play_rule` does under a rule; note in `uses` which one when."""
    rule, due, random = choice.rules[0], _FIRST, Random(choice.seed)  # noqa: S311 - replicas, no secret
    not_before = int(world.load.submit.min(initial=world.now)) + _LEAST
    uses.append(RuleUse(since=world.now, rule=rule.name, jobs=0, ratio=1.0))
    while not play_rule(world, rule, seconds, predicts=None, look=look, portion=_BETWEEN):
        come = int(world.state.clock[C.SUBMITTED])
        if come < due or world.now < not_before:
            continue
        due = come + min(come // 2, _NEXT)
        began = time.perf_counter()
        past = _past(world)
        best, ratio = (choice.rules[0], 1.0) if past is None else _best(choice.rules, past, random)
        seen = 0 if past is None or best is choice.rules[0] else len(past.jobs)
        if best is not rule:
            rule, not_before = best, world.now + _DAY
            s, numbers = world.state, rule.in_numbers(predicts=None, is_counted=is_counted(world, rule))
            if numbers.predicts == arrays.PREDICTS_NOTHING:
                queue = s.queue[: s.clock[C.QUEUED]]
                s.predicted[queue] = s.jobs[queue, J.WALLTIME]
            queue_kernels.sort_queue(numbers, world.now, s)
            uses.append(RuleUse(since=world.now, rule=rule.name, jobs=seen, ratio=ratio))
        seconds.append(time.perf_counter() - began)


def _best(rules: tuple[QueueRule, ...], past: Instance, random: Random) -> tuple[QueueRule, float]:
    """Return the rule that is best of those that win over the first one, and its weighted queue time relative to that;
    the first one, if none does.
    """
    trials = contest([past] * REPLICAS, rules[0], rules[1:], lambda replica: partial(_played, Load(replica)), random)
    best = winner(trials)
    return (rules[0], 1.0) if best is None else (rules[1 + best], trials[best].ratio)


def _played(load: Load, rule: QueueRule) -> Figures:
    """Return the figures of a replica under a rule."""
    world = SimWorld(load)
    play_rule(world, rule, [], predicts=None, look=lambda: None)
    runs = world.state.runs
    has_run = runs[:, R.ENDING] >= arrays.COMPLETED
    weights = (load.weights / load.expected_wait)[has_run]
    return figures_of(load.submit[has_run], runs[has_run, R.START], runs[has_run, R.END], weights)


def _past(world: SimWorld) -> Instance | None:
    """Return the last jobs that have come as a workload of its own, with the runtimes that are known or expected now;
    None where there are none, or rules of the site bind jobs to times that have passed.
    """
    load, s = world.load, world.state
    instance = load.instance
    if load.stated.reservations or len(load.asides["aside_times"]):
        return None
    jobs = []
    for number in range(int(s.clock[C.SUBMITTED]))[-_MOST:]:
        job, (start, end, ending) = load.jobs[number], s.runs[number, :3].tolist()
        if job.running is not None or ending == arrays.REFUSED or (start < 0 and s.jobs[number, J.ARRIVAL] < 0):
            continue
        if ending >= arrays.COMPLETED:
            runtime = end - start
        else:
            runtime = int(queue_kernels.expected_by_classes(number, s))
            if start >= 0:
                runtime = max(runtime, world.now - start + 1)
        job = replace(job, submit=int(s.jobs[number, J.SUBMIT]), runtime=runtime, after=(), not_before=None)
        jobs.append(replace(job, start_at=None, deadline=None, reservation=None))
    if not jobs:
        return None
    return replace(instance, now=min(job.submit for job in jobs), jobs=tuple(jobs), outages=())
