"""The order of the plan as priorities: few changes, and jobs start in that order by the manager's own scheduler."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cpsched.site.daemon import Planner
from cpsched.site.daemon.orders import changed_priorities
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site
from tests.daemon.making import LIVE, daemon_on, finish, planner
from tests.daemon.stored_orders import orders_in


def _with_arrivals(priorities: list[int]) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Give jobs with these priorities some order of arrival."""
    return st.permutations(range(len(priorities))).map(lambda order: list(zip(priorities, order, strict=True)))


ORDER = replace(LIVE, policy=replace(LIVE.policy, only_ranks=True))


@given(st.lists(st.integers(1, 50) | st.integers(1, 2**31), max_size=8).flatmap(_with_arrivals))
def test_priorities_fall_after_few_changes(jobs: list[tuple[int, int]]) -> None:
    """Afterwards each is less than the one before, or came later; as many stay as can, where there is room."""
    priorities, arrivals = [priority for priority, _ in jobs], [arrival for _, arrival in jobs]
    new = changed_priorities(priorities, arrivals)
    after = [(-new.get(place, priority), arrivals[place]) for place, priority in enumerate(priorities)]
    assert all(one < other for one, other in pairwise(after))
    assert all(priority < 0 for priority, _ in after)
    assert all(priorities[place] != priority for place, priority in new.items())
    keys = [(-priority, arrival) for priority, arrival in jobs]
    most = next(
        size
        for size in range(len(jobs), -1, -1)
        if any(all(a < b for a, b in pairwise(some)) for some in combinations(keys, size))
    )
    assert bool(new) is (most < len(jobs))
    if all(abs(a - b) > 1000 for a, b in combinations([*priorities, 0], 2)):
        assert len(new) == len(jobs) - most


def test_the_manager_starts_jobs_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """Jobs that come later and are shorter start first, on a machine that goes by arrival; nothing is held."""
    long = [job(f"long{number}", "2:ncpus=4", walltime=90, runtime=90) for number in range(3)]
    short = [job(f"short{number}", "2:ncpus=4", walltime=10, runtime=10, submit=5) for number in range(3)]
    there = PlayedWorld(site(*long, *short))
    engine = replace(planner().engine, name="wspt_list")
    daemon, _ = daemon_on(there, tmp_path, ORDER, planner=Planner(engine, gain=0.01, report=lambda *_: None))
    there.advance(10)
    daemon.cycle()
    assert {order.kind for order in orders_in(daemon.store)} == {"Rank"}
    finish(daemon)
    starts = sorted((entry.start or 0, name) for name, entry in there.jobs.items())
    assert [name[:-1] for _, name in starts] == ["long", "short", "short", "short", "long", "long"]
    assert not there.gate_is_closed


def test_jobs_that_are_too_many_to_be_planned_wait_behind_those_that_are(tmp_path: Path) -> None:
    """They keep their own order, though their own priorities are greater; nothing is ordered again."""
    entries = [job(f"j{number}", "2:ncpus=4", walltime=99 - number, runtime=40, submit=1) for number in range(8)]
    there = PlayedWorld(site(*entries))
    engine = replace(planner().engine, name="wspt_list", most=3)
    daemon, _ = daemon_on(there, tmp_path, ORDER, planner=Planner(engine, gain=0.01, report=lambda *_: None))
    there.advance(1)
    assert there.jobs["j0"].start == 1  # by the machine's own order, before the first cycle
    for name in ("j1", "j2"):
        there.jobs[name].priority = 10**6
    daemon.cycle()
    waiting = sorted((-entry.priority, name) for name, entry in there.jobs.items() if entry.start is None)
    assert [name for _, name in waiting] == ["j7", "j6", "j5", "j1", "j2", "j3", "j4"]
    count = len(orders_in(daemon.store))
    daemon.cycle()
    assert len(orders_in(daemon.store)) == count
    finish(daemon)
    starts = sorted((entry.start or 0, name) for name, entry in there.jobs.items())
    assert [name for _, name in starts][:4] == ["j0", "j7", "j6", "j5"]


def test_what_is_in_order_is_not_ordered_again(tmp_path: Path) -> None:
    """A second cycle without changes gives no orders."""
    jobs = [job(f"j{number}", "2:ncpus=4", walltime=90, runtime=90) for number in range(6)]
    there = PlayedWorld(site(*jobs))
    daemon, _ = daemon_on(there, tmp_path, ORDER)
    daemon.cycle()
    assert orders_in(daemon.store) == ()  # as they came
    last = there.jobs["j5"]
    last.priority = 5000
    for _ in range(2):
        daemon.cycle()
        assert [order.job for order in orders_in(daemon.store)] == ["j5"]
    assert last.priority < 1000
