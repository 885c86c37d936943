"""Maui's cycle (MAUI-1, MAUI-2), its downtimes (MAUI-8), and what may be said of the job mix (MIX-2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, Cluster, FrozenMap, Instance, NodeClass, Outage
from cpsched.errors import EngineError
from cpsched.lab.policies.maui.maui import Maui, maui
from cpsched.lab.policies.maui.params import Credits, Downtime, Fairshare, MauiParams, Qos, ShortPool, Weights
from cpsched.lab.sim import BackfillRule, Prediction, QueueRule
from cpsched.lab.workloads import job_mix
from tests.oracle.random_workloads import workloads
from tests.policies.maui_runs import HOUR, MONDAY, job, judged, machine, nodes_of, played
from tests.sizes import some

EASY = QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING)
#: What the tests of backfilling play: the head has to wait for a, until 100.
QUEUE = (job("a", 3, 100), job("head", 4, 100), job("short", 1, 100), job("long", 1, 101))


def exact(instance: Instance) -> Instance:
    """Return a workload whose jobs run for all of their walltimes."""
    return replace(instance, jobs=tuple(replace(job, runtime=None) for job in instance.jobs))


def test_lower_priorities_fill_the_gaps_but_delay_no_reservation() -> None:
    """What ends before the reservation begins is backfilled, what would delay it by a second waits."""
    starts, scheduler = played(machine(4), QUEUE)
    assert starts == {"a": 0, "head": 100, "short": 0, "long": 200}
    assert scheduler.promised == {1: 100, 3: 200}


def test_backfill_can_be_off() -> None:
    """Without backfill no job starts before one of a higher priority."""
    starts, _ = played(machine(4), QUEUE, backfill=False)
    assert starts == {"a": 0, "head": 100, "short": 200, "long": 200}


def test_without_reservations_whoever_fits_starts() -> None:
    """At depth 0 the head has no reservation, and others delay it."""
    starts, scheduler = played(machine(4), [*QUEUE[:2], QUEUE[3]], reservation_depth=0)
    assert starts == {"a": 0, "head": 101, "long": 0}
    assert scheduler.promised == {}


@pytest.mark.parametrize(("depth", "expected"), [(1, {"second": 102, "third": 0}), (2, {"second": 101, "third": 102})])
def test_the_depth_is_how_many_have_a_reservation(depth: int, expected: dict[str, int]) -> None:
    """A third job that would delay the second one only does so unless that has a reservation too."""
    jobs = [job("a", 3, 100), job("head", 2, 1), job("second", 4, 1), job("third", 1, 102)]
    starts, _ = played(machine(4), jobs, reservation_depth=depth)
    assert starts == {"a": 0, "head": 100} | expected


def test_a_reservation_moves_forward_when_jobs_end_early() -> None:
    """A job that ends before its walltime lets the head start before its reserved time (MAUI-2)."""
    starts, scheduler = played(machine(2), [job("a", 2, 100, runtime=40), job("head", 2, 10)])
    assert scheduler.promised == {1: 100}
    assert starts["head"] == 40


def test_a_backfilled_job_may_prevent_that_but_not_delay_it() -> None:
    """The head could start at 40, but for a job that was backfilled until its reserved time (MAUI-2)."""
    jobs = [job("a", 1, 100, runtime=40), job("head", 2, 10), job("filler", 1, 100)]
    starts, scheduler = played(machine(2), jobs)
    assert scheduler.promised == {1: 100}
    assert starts == {"a": 0, "head": 100, "filler": 0}


def test_moving_one_forward_delays_no_other_reservation() -> None:
    """When room is free early, the first in turn moves there only beside the reservations of those behind it."""
    jobs = [
        job("a", 2, 100),
        job("b", 2, 200, runtime=50),
        job("first", 4, 10),
        job("second", 2, 20),
    ]
    starts, scheduler = played(machine(4), jobs, reservation_depth=2)
    assert scheduler.promised == {2: 200, 3: 100}
    assert starts["second"] <= 100
    assert starts["first"] <= 200


def test_one_of_higher_priority_takes_the_reservation_of_others() -> None:
    """Only the highest that have to wait keep their reservations: an urgent job that comes later goes first."""
    jobs = [job("a", 2, 100), job("head", 2, 50), job("urgent", 2, 30, submit=10, user="boss")]
    qos = {"urgent": Qos(users=("boss",), priority=1000)}
    starts, scheduler = played(machine(2), jobs, qos=qos, weights=Weights(qos=1))
    assert scheduler.promised == {1: 100, 2: 100}
    assert starts == {"a": 0, "head": 130, "urgent": 100}


def test_a_job_that_waits_for_broken_nodes_holds_nobody_up() -> None:
    """A job that needs a node that is down gets no reservation, and starts when the node is back."""
    instance = replace(machine(2), outages=(Outage(nodes=("n1",), start=5, end=500),))
    jobs = [
        job("a", 1, 100),
        job("wide", 2, 10, submit=10),
        job("narrow", 1, 50, submit=20),
    ]
    starts, _ = played(instance, jobs)
    assert (starts["narrow"], starts["wide"]) == (100, 500)


def test_weak_nodes_are_filled_first() -> None:
    """The most powerful nodes are kept for last, by the mapping that all on-line schedulers share (MAUI-10)."""
    strong = NodeClass(names=("big",), resources=Amounts({"cores": 8}))
    weak = NodeClass(names=("small",), resources=Amounts({"cores": 2}))
    instance = replace(machine(1), cluster=Cluster(classes=(strong, weak)), jobs=(job("a", 2, 10), job("b", 2, 10)))
    assert nodes_of(judged(instance, Maui())) == {"a": {"small"}, "b": {"big"}}


def test_a_reserved_job_has_the_weak_nodes_that_are_free_when_it_starts() -> None:
    """A reservation on the strong node, which is free first as is believed, is moved when the weak one is free too."""
    weak = NodeClass(names=("weak",), resources=Amounts({"cores": 2}))
    strong = NodeClass(names=("strong",), resources=Amounts({"cores": 4}))
    jobs = (job("a", 2, 100, runtime=50), job("b", 4, 50), job("head", 2, 10))
    instance = replace(machine(1), cluster=Cluster(classes=(strong, weak)), jobs=jobs)
    scheduler = Maui()
    history = judged(instance, scheduler)
    assert scheduler.promised == {2: 50}
    assert history.runs.start.tolist() == [0, 0, 50]
    assert nodes_of(history) == {"a": {"weak"}, "b": {"strong"}, "head": {"weak"}}


# --- downtimes --------------------------------------------------------------------------------------------------------


def test_what_would_run_into_a_downtime_waits() -> None:
    """With a downtime at 18:00, at 12:00 a job of 8 h waits and one of 5 h starts (MAUI-8's example)."""
    instance = replace(machine(2), now=12 * HOUR)
    jobs = [job("eight", 1, 8 * HOUR, submit=12 * HOUR), job("five", 1, 5 * HOUR, submit=12 * HOUR)]
    starts, _ = played(instance, jobs, downtimes=(Downtime(start=18 * HOUR, end=20 * HOUR),))
    assert starts == {"eight": 20 * HOUR, "five": 12 * HOUR}


def test_a_downtime_is_of_its_nodes_only() -> None:
    """A long job goes to the node that stays up, the next one of its kind waits for the other."""
    downtime = Downtime(start=50, end=60, nodes=("n0",))
    instance = replace(machine(2), jobs=(job("a", 1, 100), job("b", 1, 100), job("c", 1, 50)))
    history = judged(instance, Maui(MauiParams(downtimes=(downtime,))))
    assert history.runs.start.tolist() == [0, 60, 0]
    assert nodes_of(history) == {"a": {"n1"}, "b": {"n0"}, "c": {"n0"}}


def test_a_downtime_holds_whatever_is_believed_of_runtimes() -> None:
    """A job whose user's jobs are always short does not start where its walltime reaches into a downtime."""
    jobs = [job("a", 1, 100, user="u", runtime=5), job("b", 1, 100, submit=10, user="u", runtime=5)]
    starts, _ = played(machine(1), jobs, predict=Prediction.ALL, downtimes=(Downtime(start=105, end=200),))
    assert starts == {"a": 0, "b": 200}


def test_nodes_that_are_out_in_a_downtime_count_once() -> None:
    """A node that breaks before its downtime does not keep jobs from the others."""
    instance = replace(machine(4), outages=(Outage(nodes=("n0", "n1"), start=5, end=400),))
    jobs = [job("a", 2, 100, submit=10), job("b", 2, 20, submit=10)]
    starts, _ = played(instance, jobs, downtimes=(Downtime(start=50, end=300, nodes=("n0", "n1")),))
    assert starts == {"a": 10, "b": 110}


def test_a_downtime_of_unknown_nodes_is_refused() -> None:
    """The names of missing nodes are told."""
    instance = replace(machine(2), jobs=(job("a", 1, 1),))
    with pytest.raises(EngineError, match="not there: n7"):
        judged(instance, maui(downtimes=[{"nodes": ["n1", "n7"], "start": 5, "end": 6}]))


# --- the job mix ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_job_mix_takes_no_less_than_the_minimum_and_no_more_than_one_after_the_other(seed: int) -> None:
    """Maui's makespan lies between sum(nodes x work) / 64 and sum(work), with backfill and without (MIX-2)."""
    mix = job_mix(seed)
    widths = {job.id: sum(chunk.count for chunk in job.request.chunks) for job in mix.jobs}
    least = sum(widths[job.id] * (job.runtime or 0) for job in mix.jobs) / len(mix.cluster.node_names)
    for backfill in (True, False):
        runs = judged(mix, Maui(MauiParams(backfill=backfill))).runs
        makespan = runs.end.max() - runs.submit.min()
        latest = runs.submit.max() - runs.submit.min()
        assert least <= makespan <= latest + sum(job.runtime or 0 for job in mix.jobs)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 3, 10])
@pytest.mark.parametrize("seed", some(range(3), 3))
@pytest.mark.parametrize("is_exact", [True, False])
def test_nobody_starts_after_a_reserved_time(seed: int, depth: int, is_exact: bool) -> None:
    """In the job mix no job starts after the first time that was reserved for it (MIX-2)."""
    mix = exact(job_mix(seed)) if is_exact else job_mix(seed)
    scheduler = Maui(MauiParams(reservation_depth=depth))
    runs = judged(mix, scheduler).runs
    in_order = sorted(range(len(runs.ids)), key=lambda place: (runs.submit[place], place))
    assert len(scheduler.promised) > 10
    for number, promised in scheduler.promised.items():
        assert runs.start[in_order[number]] <= promised


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_defaults_are_easy_backfilling(seed: int) -> None:
    """With queue time as the only component and one reservation, Maui is EASY; without backfill it is strict FIFO."""
    mix = job_mix(seed)
    fifo = QueueRule(name="fifo", backfill=BackfillRule.NOBODY)
    for params, rule in ((MauiParams(), EASY), (MauiParams(backfill=False), fifo)):
        assert judged(mix, Maui(params)).runs.start.tolist() == judged(mix, rule).runs.start.tolist()


def test_the_same_workload_gives_the_same_record() -> None:
    """Two simulations, by the same scheduler object, do not differ."""
    scheduler = Maui(MauiParams(reservation_depth=2, weights=Weights(xfactor=3, bypass=1)))
    one, other = (judged(job_mix(1), scheduler) for _ in range(2))
    assert one.record().jobs == other.record().jobs


def plain(instance: Instance) -> Instance:
    """Return a workload whose jobs ask for one kind of chunks and come in the order of their submissions, on nodes that
    never fail: where a late-comer may overtake, Maui maps it beside what was promised, which EASY does not look at.
    """
    jobs = []
    for one in instance.jobs:
        step = one.steps[0]
        request = replace(step.request, chunks=step.request.chunks[:1])
        waiting = replace(one, steps=(replace(step, request=request),), after=(), not_before=None)
        jobs.append(one if one.running else waiting)
    return replace(instance, jobs=tuple(jobs), outages=())


@given(workloads().map(plain))
def test_the_defaults_are_easy_backfilling_on_any_machine(instance: Instance) -> None:
    """On random machines too, and no job starts after the first time that was reserved for it (MIX-2)."""
    scheduler = Maui()
    runs = judged(instance, scheduler).runs
    assert runs.start.tolist() == judged(instance, EASY).runs.start.tolist()
    for number, start in enumerate(runs.start[np.argsort(runs.submit, kind="stable")].tolist()):
        assert start <= scheduler.promised.get(number, start)


@given(workloads(), st.sampled_from([None, *Prediction]), st.integers(0, 4), st.booleans())
def test_any_workload_can_be_played(instance: Instance, predict: Prediction | None, depth: int, backfill: bool) -> None:
    """With outages, predictions and all policies at once, the judge finds no fault."""
    shares: FrozenMap[str, str | float] = FrozenMap([("ann", 20), ("bob", "30-")])
    params = MauiParams(
        reservation_depth=depth,
        backfill=backfill,
        weights=Weights(xfactor=5, bypass=3, processors=-1, fairshare_user=2, target_xfactor=0.5),
        fairshare=Fairshare(interval=7, depth=3, decay=0.5, targets=FrozenMap({"user": shares})),
        qos=FrozenMap({"gold": Qos(users=("ann",), target_xfactor=2, exempt=("depth", "shortpool"))}),
        downtimes=(Downtime(start=instance.now + 9, end=instance.now + 20),),
        shortpool=ShortPool(nodes=1, longest=5, lookahead=5),
        bank=Credits(users=FrozenMap({"bob": 0.02})),
    )
    judged(replace(instance, epoch=MONDAY + timedelta(hours=9)), Maui(params), predict=predict)
