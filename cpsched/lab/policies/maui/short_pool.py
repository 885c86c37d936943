"""Nodes that are withheld for a time: in downtimes (MAUI-8), and from long jobs in working hours (MAUI-7)."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from cpsched.domain import NodeState
from cpsched.errors import EngineError
from cpsched.lab.policies.maui.params import ShortPool
from cpsched.lab.sim import Changes, Outlook, Site
from cpsched.rusv import Booking


class Closures:
    """Nodes that are withheld in times known beforehand; mutable.

    `outlook`: the outlook whose timeline is used. `spans`: what the nodes of each closure have by node column, its
    start and end. A running job may overlap a closure, and a node may be down already: what is free is withheld.
    """

    def __init__(self, outlook: Outlook, spans: Sequence[tuple[dict[int, int], int, int]]) -> None:
        self._outlook = outlook
        #: With their bookings, once there are any.
        self._coming: list[tuple[dict[int, int], int, int, list[Booking]]] = [(*span, []) for span in spans]

    def follow(self, now: int, changes: Changes) -> None:
        """Withhold what is free by now, after the outlook has changed."""
        coming = []
        for amounts, start, end, bookings in self._coming:
            is_over = end <= now
            is_touched = changes.has_taken or changes.freed_until > start
            if bookings and not (is_over or is_touched):
                coming.append((amounts, start, end, bookings))
                continue
            for booking in bookings:
                self._outlook.timeline.release(booking)
            if not is_over:
                coming.append((amounts, start, end, self._outlook.withhold(amounts, max(now, start), end)))
        self._coming = coming


def end_of_work(local: datetime | None, now: int, begin_hour: int, end_hour: int) -> int | None:
    """Return when the working hours end in which `now` lies, at which clocks show `local`; None if it lies in none."""
    if local is None or local.weekday() >= 5 or not begin_hour <= local.hour < end_hour:
        return None
    end = local.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(hours=end_hour)
    return now + int((end.astimezone(UTC) - local.astimezone(UTC)).total_seconds())


class KeptNodes:
    """The short pool at work; mutable: it is laid out anew whenever a long job looks for room.

    The pool is no fixed set of nodes. It consists of busy nodes that are predicted to be idle soon, then of idle ones,
    the last in the order of filling first. Until working hours end, long jobs get no free resources on them. Jobs that
    run when working hours begin continue, and earlier promises hold: nodes that are reserved by then are no part of the
    pool. Raises `EngineError` if the workload's clock has no date, so that there are no working hours.
    """

    def __init__(self, params: ShortPool, site: Site, outlook: Outlook) -> None:
        if site.instance.epoch is None:
            raise EngineError("maui keeps a short pool in working hours: Expected an epoch in the workload, got none")
        self._params, self._site, self._outlook = params, site, outlook
        lengths = [run.length for run in site.columns.demands.layout.runs]
        self._is_up = np.repeat([run.state is NodeState.UP for run in site.columns.run_class], lengths)
        self._bookings: list[Booking] = []
        #: The end of working hours; None outside of them.
        self.until: int | None = None

    def holds_off(self, walltime: int) -> bool:
        """Return whether a job is too long for the nodes that are kept now."""
        return self.until is not None and walltime > self._params.longest

    def open(self, now: int) -> None:
        """Begin a new moment, in which nothing is kept yet."""
        self.until = end_of_work(
            self._site.instance.local_time(now), now, self._params.begin_hour, self._params.end_hour
        )

    def keep(self, now: int) -> None:
        """Withhold the nodes of the pool, if they are not withheld already."""
        if self._bookings or self.until is None:
            return
        timeline = self._outlook.timeline
        idle = timeline.idle_nodes(timeline.free_at(now)[0]) & self._is_up
        soon = timeline.idle_nodes(timeline.free_at(now + self._params.lookahead)[0]) & self._is_up
        by_need = [*np.flatnonzero(soon & ~idle)[::-1].tolist(), *np.flatnonzero(soon & idle)[::-1].tolist()]
        chosen = by_need[: self._params.nodes]
        if chosen:
            self._bookings = self._outlook.withhold(self._site.capacity_of(chosen), now, self.until)

    def changes(self, now: int, ends: Iterable[int]) -> list[int]:
        """Return when there may be more for long jobs: work ends, or a busy node begins to count.

        `now`: later than this. `ends`: when jobs are believed to end.
        """
        if self.until is None:
            return []
        return [self.until, *(end - self._params.lookahead for end in ends if end - self._params.lookahead > now)]

    def give_back(self) -> None:
        """Withhold nothing."""
        for booking in self._bookings:
            self._outlook.timeline.release(booking)
        self._bookings = []
