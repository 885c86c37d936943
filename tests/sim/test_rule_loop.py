"""The compiled event loop: its naive twin, what holds for every workload, and worked examples."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Dependency, DependencyType, Instance, Job, Outage
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import BackfillRule, History, Order, Prediction, QueueRule, rule_choice
from cpsched.lab.sim import rules as sim_rules
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.rule_choice import is_counted, play_rule
from cpsched.lab.sim.world import SimWorld
from cpsched.metrics import Ending
from cpsched.rusv import FOREVER
from tests.booking.small_windows import EXCLUSIVE, chunk, nodes, running, waiting, window
from tests.oracle.literal_planner import Machine
from tests.oracle.naive_simulator import play_naively
from tests.oracle.random_instances import instances
from tests.oracle.random_workloads import BusyMachine, restricted_workloads, rules, workloads
from tests.rules import ruled
from tests.sim.played import keeps_aside, played, starts, story_of
from tests.sizes import examples, seeds, some

pytestmark = pytest.mark.kernels

FCFS = QueueRule(name="fcfs", backfill=BackfillRule.NOBODY)
FIRST_FIT = QueueRule(name="first_fit", backfill=BackfillRule.ANYBODY)
EASY = QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING)
HOUR = 3600


def world_after(instance: Instance, rule: QueueRule, *, room: int | None = None) -> SimWorld:
    """Return the world after everything has happened, with `room` for so many entries and attempts to begin with."""
    world = SimWorld(Load(instance))
    if room is not None:
        pool, attempts = np.zeros((room, 3), dtype=np.int32), np.zeros((room, 7), dtype=np.int64)
        world.state = world.state._replace(pool=pool, attempts=attempts)
    play_rule(world, rule, predicts=None, seconds=[], look=lambda: None)
    return world


# --- the naive twin --------------------------------------------------------------------------------------------------


def played_on_nodes(instance: Instance, rule: QueueRule, predicts: Prediction | None = None) -> History:
    """Play a workload with reservations of nodes, as the twin's are, where the event loop would reserve mere counts."""

    def is_counted_for_one(world: SimWorld, rule: QueueRule) -> bool:
        return rule.backfill is not BackfillRule.RESERVING and is_counted(world, rule)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_choice, "is_counted", is_counted_for_one)
        return played(instance, rule, predicts=predicts)


@pytest.mark.slow
@pytest.mark.parametrize("first", some(range(0, 200, 20), 3))
def test_busy_machines_are_played_as_by_the_naive_twin(first: int) -> None:
    """Starts, ends, nodes, endings and what outages cut short are the same where nearly everybody has to wait."""
    for seed in range(first, first + 20):
        drawn = BusyMachine(seed)
        instance, rule = drawn.workload(), drawn.rule()
        predicts = (None, Prediction.ALL, Prediction.ORDER)[seed % 3]
        history = played_on_nodes(instance, rule, predicts)
        story = play_naively(instance, rule, predicts=predicts)
        assert story_of(instance, history) == story, (seed, rule)
        cut = [name for name, _ in story.attempts]
        expected = [cut.count(name) + (name in story.runs) for name in history.runs.ids]
        assert history.runs.attempts.tolist() == expected, (seed, rule)


def crowd(seed: int, number: int, length: int = HOUR) -> Instance:
    """Return narrow jobs so long, and jobs of the whole machine; some fail at once, some have a deadline."""
    random, now, jobs = Random(seed), 0.0, list[Job]()
    for place in range(number):
        now += random.expovariate(0.95 * 4 / 1.552 / length)
        cores, runtime = random.choice([1, 1, 1, 1, 4]), length if random.random() < 0.9 else 1
        job = waiting(f"j{place}", length, chunk(cores, cores=1), submit=int(now), runtime=runtime)
        jobs.append(replace(job, deadline=int(now) + 40 * length) if place % 10 == 9 else job)
    return window([nodes("n", cores=4)], *jobs)


@pytest.mark.parametrize(("seed", "length"), [(1, HOUR), (3, 24 * HOUR)])
def test_a_rule_that_loses_starts_jobs_as_easy_like_the_naive_twin(
    seed: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts are the same as by the twin, and others than where the waits are never compared. Jobs of a day hold the
    replay up.
    """
    instance, smith = crowd(seed, 120, length), make_scheduler("smith")
    assert isinstance(smith, QueueRule)
    usual = starts(played(instance, smith))
    monkeypatch.setattr(sim_rules, "_TRUSTED", 20)
    history = played_on_nodes(instance, smith)
    assert story_of(instance, history) == play_naively(instance, smith, predicts=None, trusted=20, few=20)
    assert starts(history) != usual


@pytest.mark.parametrize("seed", [1, 13, 14])
def test_few_jobs_say_enough_where_nodes_interchange(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that loses in all starts jobs as EASY, like the naive twin; where nodes differ it does not yet."""
    instance, smith = crowd(seed, 120), make_scheduler("smith")
    assert isinstance(smith, QueueRule)
    usual = starts(played(instance, smith))
    monkeypatch.setattr(sim_rules, "_FEW", 10)
    assert starts(played_on_nodes(instance, smith)) == usual
    history = played(instance, smith)
    assert story_of(instance, history) == play_naively(instance, smith, predicts=None, few=10)
    assert starts(history) != usual


@examples(100)
@given(workloads(), rules(), st.sampled_from([None, *Prediction]))
def test_odd_machines_are_played_as_by_the_naive_twin(
    instance: Instance, rule: QueueRule, predicts: Prediction | None
) -> None:
    """So they are on all kinds of nodes: guarded, drained, keeping cores free, with jobs on them at the beginning."""
    history = played_on_nodes(instance, rule, predicts)
    assert story_of(instance, history) == play_naively(instance, rule, predicts=predicts)


@pytest.mark.slow
@pytest.mark.parametrize("first", some(range(0, 200, 20), 3))
def test_restricted_machines_are_played_as_by_the_naive_twin(first: int) -> None:
    """So they are where amounts are set aside for a time, and jobs have deadlines or may start at one second only."""
    for seed in range(first, first + 20):
        drawn = BusyMachine(seed)
        instance, rule = drawn.restricted(), drawn.rule()
        predicts = (None, None, Prediction.ORDER)[seed % 3]
        history = played_on_nodes(instance, rule, predicts)
        assert keeps_aside(instance, history)
        assert story_of(instance, history) == play_naively(instance, rule, predicts=predicts), (seed, rule)


@examples(100)
@given(restricted_workloads(), rules())
def test_odd_machines_with_restrictions_are_played_as_by_the_naive_twin(instance: Instance, rule: QueueRule) -> None:
    """So they are on all kinds of nodes."""
    history = played_on_nodes(instance, rule)
    assert story_of(instance, history) == play_naively(instance, rule, predicts=None)


# --- what holds for every workload -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(20))
def test_the_machine_is_empty_in_the_end(seed: int) -> None:
    """What was taken is given back: all is free in the end, now and later, on the nodes and in the sums."""
    drawn = BusyMachine(seed)
    instance, rule = replace(drawn.workload(), outages=()), drawn.rule()
    before, after = SimWorld(Load(replace(instance, jobs=()))), world_after(instance, rule)
    assert after.num_done > 0
    for name in ("free", "sfree", "future", "sfuture"):
        assert np.array_equal(getattr(before.machine, name), getattr(after.machine, name)), name


@pytest.mark.parametrize("seed", seeds(20))
def test_the_same_workload_is_played_the_same_way(seed: int) -> None:
    """Nothing depends on what has been played before, nor on when an array has to grow."""
    drawn = BusyMachine(seed)
    instance, rule = drawn.workload(), drawn.rule()
    tight, roomy, again = (world_after(instance, rule, room=room) for room in (1, None, None))
    assert len(tight.state.pool) < len(roomy.state.pool)
    for name in ("start", "end", "nodes", "ending", "attempts"):
        found = getattr(roomy.runs(), name)
        assert np.array_equal(found, getattr(again.runs(), name)), name
        assert np.array_equal(found, getattr(tight.runs(), name)), name


@pytest.mark.parametrize("seed", seeds(30))
def test_no_head_waits_longer_than_was_promised(seed: int) -> None:
    """A job starts at the latest when the literal planner would have started it on becoming the head (EASY).

    It is asked with the walltimes, which nobody exceeds, of those who run then.
    """
    instance = BusyMachine(seed).workload()
    jobs = [of_one_kind(job) for job in instance.jobs]
    instance = replace(instance, outages=(), jobs=tuple(replace(job, after=()) for job in jobs))
    story = story_of(instance, played(instance, EASY))
    queue = sorted(jobs, key=lambda job: job.submit)
    for place, job in enumerate(queue):
        if job.running is not None or story.endings[job.id] == Ending.REFUSED:
            continue
        ahead = [other for other in queue[:place] if other.id in story.runs]
        moment = max([job.submit, instance.now, *(story.runs[other.id].start for other in ahead)])
        machine = Machine(instance.cluster)
        for other in queue:
            run = story.runs.get(other.id)
            if run is None or run.end <= moment or not (run.start < moment or other in ahead):
                continue
            if run.mapped is None:
                machine.book_running(other)
            else:
                machine.book(other, run.start, run.mapped)
        promised = machine.place(job, moment, FOREVER)
        assert promised is not None
        assert story.runs[job.id].start <= promised[0], job.id


def of_one_kind(job: Job) -> Job:
    """Return a job with the first kind of its chunks only: several kinds may be lucky, and fit with less room."""
    (step,) = job.steps
    return replace(job, steps=(replace(step, request=replace(step.request, chunks=step.request.chunks[:1])),))


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ("fcfs", FCFS),
        ("easy", EASY),
        ("pbs_fifo_bf10", QueueRule(name="bf10", backfill=BackfillRule.NOT_DELAYING, depth=10)),
        (
            "pbs_walltime_bf400",
            QueueRule(name="bf400", backfill=BackfillRule.NOT_DELAYING, order=Order.WALLTIME, depth=400),
        ),
    ],
)
@examples(25)
@given(instances(max_nodes=3, max_jobs=12).filter(lambda instance: instance.now >= 0))
def test_with_true_walltimes_a_window_is_planned_as_it_is_played(
    policy: str, rule: QueueRule, instance: Instance
) -> None:
    """The rules that plan a window know all that the simulator will know, if every job runs for its walltime.

    Not compared is what the two mean to do differently: priorities, which queue rules do not have; jobs that wait for
    another one to fail, which a plan takes for granted and a simulation waits for in vain; and luck with several kinds.
    """
    jobs = tuple(plain(job) for job in instance.jobs)
    instance = replace(instance, jobs=jobs)
    assert starts(played(instance, rule)) == {
        job_id: start for job_id, start in ruled.starts(instance, policy).items() if start is not None
    } | {job.id: job.running.start for job in jobs if job.running is not None}


def plain(job: Job) -> Job:
    """Return a job without priority, and without what no simulation honours yet."""
    if job.running is not None:
        return replace(job, priority=0)
    after = tuple(link for link in job.after if link.type is not DependencyType.AFTERNOTOK)
    return replace(of_one_kind(job), priority=0, start_at=None, deadline=None, after=after)


# --- worked examples -------------------------------------------------------------------------------------------------


def test_the_scenario_of_a_starving_job() -> None:
    """64 nodes: A has 40 of them for 30 h, B wants 40, and every 30 min a job of 20 nodes comes for 1 h (PBS-6).

    These start beside A, one after the other, until B has waited for more than 24 h; then all wait for B.
    """
    a, b = waiting("A", 30 * HOUR, chunk(40, cores=1)), waiting("B", HOUR, chunk(40, cores=1))
    cs = [waiting(f"C{n}", HOUR, chunk(20, cores=1), submit=n * HOUR // 2) for n in range(1, 70)]
    names = " ".join(f"n{number}" for number in range(64))
    instance = window([nodes(names, cores=1)], a, b, *cs)
    pbs = QueueRule(name="pbs", backfill=BackfillRule.ANYBODY, max_starve=24 * HOUR)
    found = starts(played(instance, pbs))
    assert (found["A"], found["B"]) == (0, 30 * HOUR)
    others = sorted(found[job.id] for job in cs)
    # the 24th C comes to run at 23:30, the next one would at 24:30
    assert [start for start in others if start < 30 * HOUR] == [HOUR // 2 + n * HOUR for n in range(24)]
    assert [start for start in others if start == 30 * HOUR] == [30 * HOUR]  # 24 nodes are left beside B: one C
    assert starts(played(instance, FIRST_FIT))["B"] == 30 * HOUR  # B does not fit beside A in any case


def test_who_waits_for_too_long_stops_the_others() -> None:
    """Two cores; pairs of short jobs of one core overlap, so that a job of both starts only when it starves."""
    small = [waiting(f"s{n}", 20, chunk(cores=1), submit=10 * n) for n in range(12)]
    instance = window([nodes("n", cores=2)], *small, waiting("wide", 5, chunk(cores=2), submit=15))
    assert starts(played(instance, FIRST_FIT))["wide"] == 130  # the last one, s11, has ended
    starving = QueueRule(name="pbs", backfill=BackfillRule.ANYBODY, max_starve=30)
    found = starts(played(instance, starving))
    # at 50 it has waited 35 s: nobody starts; s4 ends at 60
    assert (found["s4"], found["wide"], found["s5"]) == (40, 60, 65)


@pytest.mark.parametrize(
    "late",
    [{"not_before": 40}, {"after": (Dependency(job="s0", type=DependencyType.AFTERANY, delay=20),)}],
    ids=["not_before", "after"],
)
def test_who_could_not_start_did_not_starve(late: dict[str, Any]) -> None:
    """In the same crowd the wide job may start from 40 on only: it starves when it has waited 40 s, at 80."""
    small = [waiting(f"s{n}", 20, chunk(cores=1), submit=10 * n) for n in range(12)]
    instance = window([nodes("n", cores=2)], *small, waiting("wide", 5, chunk(cores=2), submit=1, **late))
    found = starts(played(instance, QueueRule(name="pbs", backfill=BackfillRule.ANYBODY, max_starve=30)))
    # s7 ends at 90
    assert (found["s7"], found["wide"], found["s8"]) == (70, 90, 95)


def test_of_two_who_starve_the_one_that_could_have_started_first_is_helped() -> None:
    """The second job waits since 0, the first one, which came before it, only since 20."""
    jobs = waiting("first", 5, chunk(cores=2), not_before=20), waiting("second", 5, chunk(cores=2))
    instance = window([nodes("n", cores=2)], running("r", 100, n={"cores": 1}), *jobs)
    found = starts(played(instance, QueueRule(name="pbs", backfill=BackfillRule.ANYBODY, max_starve=30)))
    assert (found["second"], found["first"]) == (100, 105)


def test_a_reservation_falls_with_its_head() -> None:
    """The head is promised all four nodes for 10; at 5 an older job becomes the head, and keeps one of them until 30.

    Who comes then, and is done in 20 s, delays nobody.
    """
    jobs = [
        running("r", 10, a={"cores": 1}, b={"cores": 1}),
        waiting("old", 25, chunk(cores=1), not_before=5),
        waiting("head", 50, chunk(4, cores=1)),
        waiting("long", 60, chunk(cores=1), submit=1),
        waiting("short", 20, chunk(cores=1), submit=6),
    ]
    found = starts(played(window([nodes("a b c d", cores=1)], *jobs), EASY))
    assert found == {"r": 0, "old": 5, "head": 30, "long": 80, "short": 6}


def test_how_far_is_looked_does_not_depend_on_room() -> None:
    """Two behind the head are looked at, and start; the third one is, when s ends, though an array grows meanwhile."""
    jobs = [
        running("r", 10, a={"cores": 4}),
        running("s", 3, b={"cores": 1}),
        waiting("head", 5, chunk(2, cores=4)),
        *(waiting(f"w{number}", 5, chunk(cores=1)) for number in range(3)),
    ]
    instance = window([nodes("a b", cores=4)], *jobs)
    for room in (None, 1):
        runs = world_after(instance, replace(EASY, depth=2), room=room).runs()
        assert runs.start.tolist() == [0, 0, 10, 0, 0, 3]


def test_who_is_cut_short_waits_in_his_old_place() -> None:
    """The node breaks at 4 and returns at 9: the job that ran from the beginning starts anew before those behind it."""
    jobs = [running("on", 10, a={"cores": 2}), waiting("next", 5, chunk(cores=2)), waiting("last", 5, chunk(cores=2))]
    for order in (Order.SUBMISSION, Order.AREA):
        instance = window([nodes("a", cores=2)], *jobs, outages=(Outage(nodes=("a",), start=4, end=9),))
        history = played(replace(instance, now=0), QueueRule(name="rule", backfill=BackfillRule.NOBODY, order=order))
        (attempt,) = history.record().attempts
        assert (attempt.id, attempt.start, attempt.end) == ("on", 0, 4)
        place = {Order.SUBMISSION: (9, 19, 24), Order.AREA: (19, 9, 14)}[order]
        assert tuple(starts(history)[name] for name in ("on", "next", "last")) == place


def test_who_is_cut_short_may_not_come_back() -> None:
    """It runs where it could not start; when its node has broken, it is refused, and blocks nobody."""
    old = running("old", 10, a={"cores": 1})
    (step,) = old.steps
    request = replace(step.request, chunks=(chunk(cores=1, where={"arch": "none"}),))
    old = replace(old, steps=(replace(step, request=request),))
    broken = (Outage(nodes=("a",), start=4, end=9),)
    history = played(window([nodes("a", cores=1)], old, waiting("next", 5, chunk(cores=1)), outages=broken), FCFS)
    assert history.runs.ending.tolist() == [Ending.REFUSED, Ending.COMPLETED]
    assert starts(history) == {"next": 9}


def test_a_node_with_two_masters_is_free_when_both_have_gone() -> None:
    """Two running jobs have the same node for themselves, until 5 and until 9; the other node is free."""
    jobs = [running("x", 5, EXCLUSIVE, a={"cores": 1}), running("y", 9, EXCLUSIVE, a={"cores": 1})]
    both, one = waiting("both", 1, chunk(2, cores=4)), waiting("one", 1, chunk(cores=1))
    for order in (jobs, jobs[::-1]):
        found = starts(played(window([nodes("a b", cores=4)], *order, both, one), EASY))
        assert (found["one"], found["both"]) == (0, 9)


def test_promises_follow_walltimes_unless_told() -> None:
    """By walltimes `head`, the shortest job, is promised 1100, and `short` is backfilled as the shorter one.

    `quick` is predicted to take 10 s: with predicted orders it is backfilled first, and `head` keeps its promise. Where
    promises follow predictions, too, `quick` starts beside a promise of 1070, and delays `head` beyond 1100.
    """
    jobs = [
        waiting("one", 100, chunk(cores=2), user="ann", runtime=10),
        waiting("long", 100, chunk(cores=1), user="ann", submit=1000, runtime=90),
        waiting("head", 5, chunk(cores=2), user="bob", submit=1001),
        waiting("short", 50, chunk(cores=1), user="bob", submit=1002),
        waiting("quick", 98, chunk(cores=1), user="ann", submit=1002),
    ]
    instance = window([nodes("n", cores=2)], *jobs)
    sjf = replace(EASY, order=Order.WALLTIME)
    found = {predicts: starts(played(instance, sjf, predicts=predicts)) for predicts in (None, *Prediction)}
    assert [found[None][name] for name in ("short", "head", "quick")] == [1002, 1090, 1095]
    assert [found[Prediction.ORDER][name] for name in ("quick", "head", "short")] == [1002, 1100, 1105]
    assert [found[Prediction.ALL][name] for name in ("quick", "head", "short")] == [1010, 1108, 1113]


def test_an_estimate_is_raised_when_it_is_exceeded() -> None:
    """The user's jobs ran for 10 s and 20 s: the next one is believed to take 15 s, then a minute more, then five.

    It holds a core until 1100. The head, which wants both, is promised 1015 at first, then 1075, then 1375: at 1015
    there is time for who takes 60 s, but not for who takes 61 s.
    """
    jobs = [
        waiting("one", 100, chunk(cores=2), user="ann", runtime=10),
        waiting("two", 100, chunk(cores=2), user="ann", runtime=20),
        waiting("long", 400, chunk(cores=1), user="ann", submit=1000, runtime=100),
        waiting("head", 500, chunk(cores=2), user="bob", submit=1001, runtime=7),
        waiting("over", 61, chunk(cores=1), user="eve", submit=1002),
        waiting("just", 60, chunk(cores=1), user="eve", submit=1002),
    ]
    instance = window([nodes("n", cores=2)], *jobs)
    found = starts(played(instance, EASY, predicts=Prediction.ALL))
    assert (found["long"], found["just"], found["over"], found["head"]) == (1000, 1015, 1075, 1136)
    found = starts(played(instance, EASY))  # all believe the walltime of `long`
    assert (found["over"], found["just"], found["head"]) == (1002, 1063, 1123)
