"""What the manager's own priorities count: weights of jobs, strict tiers, and how far the order may be left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.site.bridge import HandBack, MemoryManager, Order, Rank, Snapshot
from cpsched.site.daemon import Planner, Policy
from cpsched.site.daemon.orders import rank_orders
from cpsched.site.daemon.standing import bands, standings
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site, world
from tests.daemon.making import LIVE, daemon_on, planner
from tests.daemon.stored_orders import orders_in

COUNTS = replace(LIVE.policy, counts_priorities=True, only_ranks=True)


class Prioritised(MemoryManager):
    """A manager in memory that says which priorities it would give jobs itself. Mutable."""

    def __init__(self, there: PlayedWorld, own: Mapping[str, int]) -> None:
        super().__init__(there)
        self._own = own
        there.advance(there.now + 10)  # all have arrived
        for name, priority in own.items():
            there.jobs[name].priority = priority

    def snapshot(self) -> Snapshot:
        """Take a snapshot."""
        seen = super().snapshot()
        jobs = {
            name: replace(
                one, own_priority=self._own.get(name, 0), is_marked=one.priority != self._own.get(name, one.priority)
            )
            for name, one in seen.jobs.items()
        }
        return replace(seen, jobs=jobs)


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 9), min_size=1, max_size=30), st.floats(0, 1))
def test_bands_keep_the_order_of_priorities(own: dict[str, int], influence: float) -> None:
    """No job is in an earlier band than one of a higher priority; equals are in one band, and all are for 1."""
    found = bands(own, own, influence)
    in_order = sorted(own, key=lambda name: -own[name])
    assert all(found[one] <= found[other] for one, other in pairwise(in_order))
    assert all(found[one] == found[other] for one in own for other in own if own[one] == own[other])
    if influence == 1:
        assert set(found.values()) == {0}
    if influence == 0:
        assert len(set(found.values())) == len(set(own.values()))


def test_weights_are_priorities_to_the_median() -> None:
    """Twice the priority is twice the weight; a small change is none, and a huge one is bounded."""
    names = "abcdefg"
    own = dict(zip(names, (1000, 1000, 1000, 1010, 2000, 500, 10**9), strict=True))
    there = world(*(job(name) for name in names))
    snapshot = Prioritised(there, own).snapshot()
    found = standings(snapshot.instance, snapshot.jobs, COUNTS)
    assert [found[name].weight for name in names] == [1, 1, 1, 1, 2, 0.5, 100]
    assert len({one.priority for one in found.values()}) == 1
    assert standings(snapshot.instance, snapshot.jobs, LIVE.policy) == {}
    bare = MemoryManager(there).snapshot()
    assert standings(bare.instance, bare.jobs, COUNTS) == {}


def _starts(tmp_path: Path, own: Mapping[str, int], policy: Policy, *jobs: dict[str, Any]) -> list[str]:
    """Return the jobs in the order of their planned starts, by Smith's rule on a machine that one of them fills."""
    queues = {name: {"expected_wait": 100, "priority": tier} for name, tier in (("q", 0), ("low", 1), ("high", 5))}
    there = world(*jobs, queues=queues)
    engine = replace(planner().engine, name="wspt_list")
    made = Planner(engine, gain=0.01, report=lambda *_: None)
    settings = replace(LIVE, policy=replace(policy, only_ranks=False))
    daemon, _ = daemon_on(there, tmp_path, settings, manager=Prioritised(there, own), planner=made)
    daemon.cycle()
    return sorted(daemon.state.plan, key=lambda name: daemon.state.plan[name].start)


@pytest.mark.parametrize(("influence", "order"), [(1.0, "dcba"), (0.5, "dbca"), (0.0, "bdca")])
def test_plans_leave_the_order_of_priorities_as_far_as_they_may(tmp_path: Path, influence: float, order: str) -> None:
    """With all influence the shortest jobs are first, with half of it those of each half, without it none."""
    own = {"b": 1003, "d": 1002, "c": 1001, "a": 1000}
    jobs = [job(name, "2:ncpus=4", walltime=4000 - 1000 * place) for place, name in enumerate("abcd")]
    assert "".join(_starts(tmp_path, own, replace(COUNTS, influence=influence), *jobs)) == order


def test_tiers_are_strict_and_priorities_weigh(tmp_path: Path) -> None:
    """A long job of a higher tier goes before a short one; in a tier eight times the priority outweighs the length."""
    own = {"a": 1000, "b": 1000, "c": 8000, "d": 1000}
    jobs = [
        job("a", "2:ncpus=4", walltime=1000, queue="low"),
        job("b", "2:ncpus=4", walltime=9000, queue="high"),
        job("c", "2:ncpus=4", walltime=4000, queue="low"),
        job("d", "2:ncpus=4", walltime=8000, queue="low"),
    ]
    assert _starts(tmp_path, own, COUNTS, *jobs) == ["b", "c", "a", "d"]
    (tmp_path / "other").mkdir()
    assert _starts(tmp_path / "other", own, replace(COUNTS, counts_priorities=False), *jobs) == ["a", "c", "d", "b"]


def test_without_influence_the_manager_orders(tmp_path: Path) -> None:
    """No priority is changed, and what was changed before is handed back."""
    own = {"a": 1003, "b": 1002, "c": 1001}
    lengths = {"blocker": 9000, "a": 4000, "b": 3000, "c": 2000}
    there = PlayedWorld(site(*(job(name, "2:ncpus=4", walltime=length) for name, length in lengths.items())))
    engine = replace(planner().engine, name="wspt_list")
    made = Planner(engine, gain=0.01, report=lambda *_: None)
    daemon, _ = daemon_on(there, tmp_path, replace(LIVE, policy=COUNTS), manager=Prioritised(there, own), planner=made)
    daemon.cycle()
    state, snapshot = daemon.state, daemon.manager.snapshot()
    assert "Rank" in {order.kind for order in orders_in(daemon.store)}
    silent = replace(state, policy=replace(COUNTS, influence=0.0))
    orders: list[Order] = list(rank_orders(silent, snapshot))
    marked = {name for name, one in snapshot.jobs.items() if one.is_marked}
    assert marked
    assert {order.job for order in orders if isinstance(order, HandBack)} == marked
    assert not any(isinstance(order, Rank) for order in orders)
