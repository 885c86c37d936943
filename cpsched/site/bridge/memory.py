"""`MemoryManager`: a resource manager in memory, for trying cpsched out and for tests."""

import time
from collections import Counter
from collections.abc import Callable, Sequence

from cpsched.domain import Amounts, Arrangement, NodeState, Placement
from cpsched.site.bridge.own_scheduler import by_node
from cpsched.site.bridge.protocol import (
    Announce,
    Gate,
    Hold,
    JobOrder,
    JobState,
    LeftJob,
    Note,
    Order,
    Rank,
    Receipt,
    Refusal,
    Requeue,
    Result,
    Snapshot,
    Start,
)
from cpsched.site.bridge.world import World, WorldJob

#: Seconds between two looks at the world while somebody watches a clock that ticks.
_LOOK = 0.05


class MemoryManager:
    """The manager of a `World`.

    `world`: the machine. Whoever has it may do with it what users, administrators and failures do. `speed`: world
    seconds per second of the clock on the wall; None: time passes in `watch` only, without waiting. `clock`: returns
    seconds; replaced in tests.
    """

    name = "memory"

    def __init__(
        self, world: World, *, speed: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.world = world
        self._speed, self._clock = speed, clock
        self._began, self._first = clock(), world.now

    def _tick(self) -> None:
        """Advance the world by the time that has passed outside."""
        if self._speed is not None:
            self.world.advance(self._first + int((self._clock() - self._began) * self._speed))

    def snapshot(self) -> Snapshot:
        """Take a snapshot."""
        self._tick()
        world = self.world
        instance = world.view()
        seen = {job.id for job in instance.jobs}
        left = tuple(
            LeftJob(id=entry.job.id, reason=_left_since(entry))
            for entry in world.jobs.values()
            if not entry.state.is_over and entry.job.id not in seen
        )
        facts = {name: entry.facts for name, entry in world.jobs.items()}
        return Snapshot(
            instance=instance, left=left, taken_at=world.now, jobs=facts, gate_is_closed=world.gate_is_closed
        )

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders, and return a receipt for each, in their order."""
        self._tick()
        return tuple(self._apply(order) for order in orders)

    def watch(self, seconds: float) -> bool:
        """Wait until something has changed, for at most some seconds, and tell whether it has."""
        before = self.world.changes
        if self._speed is None:
            until = self.world.now + max(1, round(seconds))
            while self.world.changes == before and self.world.now < until:
                following = self.world.next_event
                self.world.advance(until if following is None else min(until, max(following, self.world.now)))
            return self.world.changes != before
        end = self._clock() + seconds
        while self.world.changes == before and (left := end - self._clock()) > 0:
            time.sleep(min(left, _LOOK))
            self._tick()
        return self.world.changes != before

    def _apply(self, order: Order) -> Receipt:
        world = self.world
        if isinstance(order, Gate):
            is_so, world.gate_is_closed = world.gate_is_closed == order.is_closed, order.is_closed
            return Receipt(order=order, result=Result.ALREADY if is_so else Result.DONE)
        entry = world.jobs.get(order.job)
        if isinstance(order, Start) and entry is not None and entry.state is JobState.RUNNING:
            nodes = tuple(sorted({one.node for one in order.allocation}))
            if (entry.nodes, entry.revision) == (nodes, order.revision):
                return Receipt(order=order, result=Result.ALREADY)
        refusal = self._refusal(order, entry)
        if refusal is not None or entry is None:
            return Receipt(
                order=order,
                result=Result.REFUSED,
                refusal=refusal,
                detail="unknown job" if entry is None else f"job {order.job} is {entry.state}",
            )
        if isinstance(order, Start):
            is_so = (entry.due, entry.allocation) == (order.at, order.allocation)
            if not is_so:
                world.order(entry, order.at, order.allocation)
        elif isinstance(order, Requeue):
            is_so = False
            world.stop(entry)
        elif isinstance(order, Rank):
            is_so, entry.priority = entry.priority == order.priority, order.priority
        elif isinstance(order, Note):
            is_so, entry.noted = entry.noted == order.forecast, order.forecast
        elif isinstance(order, Announce):
            shown = (order.start, order.nodes, order.why)
            is_so, entry.shown = entry.shown == shown, shown
        else:
            is_so = entry.is_steered is isinstance(order, Hold) and entry.due is None
            if not is_so:
                world.steer(entry, is_steered=isinstance(order, Hold))
        return Receipt(order=order, result=Result.ALREADY if is_so else Result.DONE)

    def _refusal(self, order: JobOrder, entry: WorldJob | None) -> Refusal | None:
        if entry is None or entry.state.is_over:
            return Refusal.GONE
        if isinstance(order, Requeue):
            run = (entry.state, entry.revision, entry.nodes)
            return None if run == (JobState.RUNNING, order.revision, order.nodes) else Refusal.CHANGED
        if entry.state is JobState.RUNNING:
            return None if isinstance(order, Note) and order.forecast is None else Refusal.RUNNING
        if not isinstance(order, Start):
            return None
        if entry.state is JobState.HELD:
            return Refusal.HELD
        if entry.revision != order.revision:
            return Refusal.CHANGED
        states = self.world.shop.state
        if any(states.get(one.node) is not NodeState.UP for one in order.allocation):
            return Refusal.NODES
        return None if self._is_possible(entry, order.allocation) else Refusal.IMPOSSIBLE

    def _is_possible(self, entry: WorldJob, allocation: Sequence[Placement]) -> bool:
        """Tell whether an allocation is what a job asks for, on nodes that could have it if they were empty."""
        cluster, request = self.world.site.cluster, entry.job.request
        of_node = by_node(allocation)
        total = sum(of_node.values(), Counter[str]())
        if Amounts(total) != request.totals:
            return False
        if request.place.arrangement is Arrangement.PACK and len(of_node) > 1:
            return False
        return all(
            amount <= cluster.class_of[node].resources.get(name, 0)
            for node, taken in of_node.items()
            for name, amount in taken.items()
        )


def _left_since(entry: WorldJob) -> str:
    """Return in words why a waiting job is not to be planned."""
    if entry.state is JobState.HELD:
        return "held by its user"
    if entry.never:
        return entry.never
    return f"waits for {', '.join(one.job for one in entry.job.after)}, which cannot be planned"
