"""One scheduling cycle of Maui: start from the top, reserve for those next, backfill (MAUI-1, MAUI-2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.policies.maui.allocation_bank import AllocationBank
from cpsched.lab.policies.maui.params import Exemption, MauiParams, Qos
from cpsched.lab.policies.maui.priority import Priorities
from cpsched.lab.policies.maui.short_pool import KeptNodes
from cpsched.lab.sim import Outlook, Site, Start
from cpsched.rusv import FOREVER, Booking, Fit


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Nodes and a time frame for a job that has to wait."""

    job: int
    start: int
    entries: NDArray[Any]
    booking: Booking


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The data that the cycles of a simulation share."""

    params: MauiParams
    outlook: Outlook
    priorities: Priorities
    bank: AllocationBank | None
    pool: KeptNodes | None


class Cycle:
    """A cycle; mutable. What it books stays on the timeline until it is closed.

    A job that has had a reservation keeps it or gets an earlier one, as long as no other of a higher priority needs one
    too (Maui's ``CURRENTHIGHEST``): it is moved forward beside the reservations of all others, and delays none of them.

    `site`, `parts`: the machine now; on the outlook's timeline, only running jobs and downtimes are booked.
    `before`: the reservations of the last cycle, by falling priority; those that cannot be kept are dropped.
    `has_freed`, `has_taken`: whether resources may have become free, or taken, at any future time since the last cycle.
    """

    def __init__(
        self, site: Site, parts: Parts, before: Iterable[Reservation], *, has_freed: bool, has_taken: bool
    ) -> None:
        self._site, self._parts, self._now = site, parts, site.now
        self._timeline = parts.outlook.timeline
        self._has_freed = has_freed or parts.pool is not None
        #: Jobs that wait and have been passed, by falling priority.
        self._passed: list[int] = []
        self._num_reserved = 0
        #: Whether a demand finds nodes that are free this second, reservations ignored.
        self._has_room: dict[int, bool] = {}
        #: For how many seconds a demand finds no room from now on, with or without the pool.
        self._too_long: dict[tuple[int, bool], int] = {}
        self._kept: dict[int, Reservation] = {}
        #: The jobs that start now.
        self.starts: list[Start] = []
        #: The jobs with a reservation, by falling priority.
        self.reservations: list[Reservation] = []
        for reservation in before:
            is_lost = reservation.start < self._now or (has_taken and not self._timeline.is_free(reservation.booking))
            if is_lost:
                self._has_freed = True
            else:
                self._timeline.book(reservation.booking)
                self._kept[reservation.job] = reservation

    def run(self, order: Sequence[int]) -> None:
        """Decide which jobs start and which get a reservation.

        `order`: the waiting jobs by falling priority. Jobs that cannot pay are skipped, and block no other job.
        """
        for job in order:
            if not self._can_pay(job):
                continue
            if self._begins(job):
                self._parts.priorities.bypass(self._passed)
                continue
            self._passed.append(job)
            if not self._parts.params.backfill:
                break

    def close(self) -> bool:
        """Keep the bookings of running jobs alone, and release credits of reservations; tell whether one has lapsed."""
        if self._parts.pool is not None:
            self._parts.pool.give_back()
        for reservation in (*self._kept.values(), *self.reservations):
            self._timeline.release(reservation.booking)
        if self._parts.bank is not None:
            for reservation in self.reservations:
                self._parts.bank.settle(reservation.job, 0)
        return bool(self._kept)

    def _begins(self, job: int) -> bool:
        """Start a job if it fits now, else give it a reservation if one is left; return whether it starts."""
        kept = self._kept.pop(job, None)
        fit = self._fit_now(job) if kept is None else self._moved_forward(kept)
        is_exempt = Exemption.DEPTH in self._qos(job).exempt
        # few of a higher priority have a reservation, or it gets one all the same
        if fit is None and (is_exempt or self._num_reserved < self._parts.params.reservation_depth):
            self._drop_kept()
            fit = self._fit(job, latest=FOREVER // 2)
        if fit is None:
            return False
        booking = self._timeline.booking_of(
            int(self._site.demand[job]), fit.entries, fit.start, fit.start + self._duration(job)
        )
        self._timeline.book(booking)
        self._hold_money(job)
        if fit.start == self._now:
            self._parts.outlook.adopt(job, booking)
            self.starts.append(Start(job, fit.entries))
        else:
            self.reservations.append(Reservation(job, fit.start, fit.entries, booking))
            self._num_reserved += not is_exempt
        self._stand_aside()
        return fit.start == self._now

    def _stand_aside(self) -> None:
        """Move each reservation to nodes that are not free now, as far as it can: it is a promise of a time, and what
        can start beside it, on whichever nodes, does. Where nodes are kept for a pool, reservations stay.
        """
        if self._parts.pool is not None:
            return
        for place, held in enumerate(self.reservations):
            demand = int(self._site.demand[held.job])
            entries = self._timeline.fit_late(demand, held.booking, self._now)
            if entries is not None and not np.array_equal(entries, held.entries):
                booking = self._timeline.booking_of(demand, entries, held.start, held.booking.end)
                self._timeline.release(held.booking)
                self._timeline.book(booking)
                self.reservations[place] = Reservation(held.job, held.start, entries, booking)
                self._too_long = {}

    def _drop_kept(self) -> None:
        """Drop the reservations of jobs with a lower priority than a job that needs one."""
        for reservation in self._kept.values():
            self._timeline.release(reservation.booking)
        if self._kept:
            self._kept, self._too_long = {}, {}
            self._has_freed = True

    def _moved_forward(self, kept: Reservation) -> Fit:
        """Return the earliest place for a job that has one; if it starts now, on the weakest nodes that are free."""
        pool = self._parts.pool
        if pool is not None:
            pool.give_back()  # it is another one without this reservation
        self._timeline.release(kept.booking)
        fit = None
        if self._has_freed or kept.start == self._now:
            fit = self._fit(kept.job, latest=max(kept.start - 1, self._now))
        if fit is None:
            if pool is not None:
                pool.give_back()  # promises come first
            return Fit(kept.start, kept.entries)
        self._too_long, self._has_freed = {}, True
        return fit

    def _fit_now(self, job: int) -> Fit | None:
        """Return where a job fits at once beside all that is booked, or None."""
        demand, duration = int(self._site.demand[job]), self._duration(job)
        if demand not in self._has_room:
            self._has_room[demand] = self._site.fit_now(job) is not None
        key = demand, self._is_held_off(job)
        if not self._has_room[demand] or duration >= self._too_long.get(key, FOREVER):
            return None
        fit = self._fit(job, latest=self._now)
        if fit is None:
            self._too_long[key] = duration
        return fit

    def _fit(self, job: int, *, latest: int) -> Fit | None:
        """Return the earliest place for a job from now on, beside all that is booked."""
        self._lay_pool(job)
        demand, latest = int(self._site.demand[job]), min(latest, self._site.latest(job))
        return self._timeline.earliest_fit(demand, earliest=self._now, latest=latest, duration=self._duration(job))

    def _duration(self, job: int) -> int:
        """Return the seconds for which a job is booked: its whole walltime where there are downtimes."""
        return int(self._site.walltime[job]) if self._parts.params.downtimes else self._site.estimate(job)

    def _qos(self, job: int) -> Qos:
        return self._parts.priorities.qos[job]

    def _is_held_off(self, job: int) -> bool:
        """Return whether a job may not have the nodes of the short pool."""
        pool = self._parts.pool
        if pool is None or Exemption.SHORTPOOL in self._qos(job).exempt:
            return False
        return pool.holds_off(int(self._site.walltime[job]))

    def _lay_pool(self, job: int) -> None:
        """Withhold the nodes of the short pool, or not, depending on the job."""
        pool = self._parts.pool
        if pool is None:
            return
        if self._is_held_off(job):
            pool.keep(self._now)
        else:
            pool.give_back()

    def _can_pay(self, job: int) -> bool:
        bank, qos = self._parts.bank, self._qos(job)
        if bank is None or Exemption.BANK in qos.exempt:
            return True
        return bank.can_pay(self._site.jobs[job].user, *self._work(job), qos.billing_rate)

    def _hold_money(self, job: int) -> None:
        bank, qos = self._parts.bank, self._qos(job)
        if bank is not None and Exemption.BANK not in qos.exempt:
            bank.hold(job, self._site.jobs[job].user, *self._work(job), qos.billing_rate)

    def _work(self, job: int) -> tuple[int, int]:
        """Return for how many cores and seconds a job asks."""
        return int(self._site.cores[job]), int(self._site.walltime[job])
