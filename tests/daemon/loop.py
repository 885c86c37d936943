"""The core in a loop with the manager in memory, and what must hold whatever happens: for tests of the core."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from cpsched.site.bridge import JobState, MemoryManager, Order, Start
from cpsched.site.daemon.core import step
from cpsched.site.daemon.judging import vetoes
from cpsched.site.daemon.state import (
    Answered,
    Event,
    PlannedStart,
    Policy,
    Promise,
    PromiseMoved,
    Record,
    Save,
    Seen,
    State,
    Vetoed,
)
from tests.bridge.played_world import PlayedWorld

if TYPE_CHECKING:
    from cpsched.site.bridge.world import WorldJob

__all__ = ["Loop"]


class Loop:
    """A core, a world, and what has been written down. Mutable."""

    def __init__(self, world: PlayedWorld, policy: Policy) -> None:
        self.world, self.manager, self.policy = world, MemoryManager(world), policy
        self.state = State(policy=policy)
        #: What survives a crash.
        self.plan: dict[str, PlannedStart] = {}
        self.promises: dict[str, Promise] = {}
        self.records: list[Record] = []
        #: How often each run of a job has begun: by job and number of restarts.
        self.runs: Counter[tuple[str, int]] = Counter()
        #: Jobs that somebody else starts.
        self.by_others: set[str] = set()
        self.faults: list[str] = []
        world.listeners.append(self._heard)

    def _heard(self, entry: WorldJob) -> None:
        """Hold the start of a job against what was written down."""
        if entry.state is not JobState.RUNNING:
            return
        job = entry.job.id
        self.runs[job, entry.restarts] += 1
        if job in self.by_others or not entry.is_steered:
            return
        planned = self.plan.get(job)
        if planned is None or planned.nodes != entry.nodes:
            self.faults.append(f"{job} starts on {entry.nodes} at {entry.start}, and the plan has {planned}")

    def take(self, event: Event, *, is_lost: bool = False, is_mute: bool = False) -> None:
        """Take an event, and do what the core says.

        Parameters
        ----------
        event
            What happens.
        is_lost
            Whether the manager never gets the orders.
        is_mute
            Whether the receipts are lost.
        """
        self.state, save, orders = step(self.state, event)
        self._save(save)
        if orders:
            self._act(orders, is_lost=is_lost, is_mute=is_mute)

    def _save(self, save: Save) -> None:
        self.plan = {job: one for job, one in {**self.plan, **save.plan}.items() if one is not None}
        self.promises = {job: one for job, one in {**self.promises, **save.promises}.items() if one is not None}
        self.records += save.records
        moved = {record.job: record for record in save.records if isinstance(record, PromiseMoved)}
        for job in save.promises:
            if save.promises[job] is not None and (job not in moved or not moved[job].reason):
                self.faults.append(f"the promise of {job} changes without a reason")

    def _act(self, orders: tuple[Order, ...], *, is_lost: bool, is_mute: bool) -> None:
        snapshot = self.state.snapshot
        assert snapshot is not None
        for order in orders:
            if isinstance(order, Start) and snapshot.jobs[order.job].state is not JobState.WAITING:
                self.faults.append(f"{order.job} is ordered to start although it does not wait")
        starts = [order for order in orders if isinstance(order, Start)]
        asked = {start.job for start in starts}
        due = [one.planned for job, one in self.state.plan.items() if job not in asked]
        ordered = [one for one in due if one.id in snapshot.jobs and snapshot.jobs[one.id].due == one.start]
        refused = vetoes(snapshot, starts, ordered)
        if refused:
            self.take(Vetoed(jobs=refused))
        if is_lost:
            return
        receipts = self.manager.apply([one for one in orders if not (isinstance(one, Start) and one.job in refused)])
        if not is_mute:
            self.take(Answered(receipts=receipts))

    def look(self, *, is_lost: bool = False, is_mute: bool = False) -> None:
        """Take a snapshot."""
        self.take(Seen(snapshot=self.manager.snapshot()), is_lost=is_lost, is_mute=is_mute)

    def start_by_hand(self, job: str) -> None:
        """Let an administrator start a job."""
        self.by_others.add(job)
        self.world.start_by_hand(job)
        self.by_others.discard(job)

    def crash(self) -> None:
        """Kill the core; the next one begins with what was written down."""
        self.state = replace(State(policy=self.policy), plan=dict(self.plan), promises=dict(self.promises))

    def check(self) -> None:
        """Assert what must hold at any time."""
        assert not self.faults, self.faults
        assert all(amount >= 0 for free in self.world.shop.free.values() for amount in free.values())
        assert all(amount >= 0 for amount in self.world.shop.licenses.values())
        assert all(count == 1 for count in self.runs.values()), self.runs
