"""Serving a queue event by event: jobs start in their turn, and some out of turn if that does not delay the head.

This is backfilling as queueing systems do it (OCCS-52): at each event the first jobs of the queue start as long
as they can; the first one that cannot, the head, gets a reservation; and of those behind it some start at once, if they
fit beside the reservation.
"""

from bisect import insort
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush

from cpsched.booking import Ledger
from cpsched.domain import Job
from cpsched.engine import Progress
from cpsched.rules.policy import FirstThatFits
from cpsched.rusv import Countdown


def start_in_turn(ledger: Ledger, queue: Sequence[Job], progress: Progress | None, *, depth: int | None) -> None:
    """Start the jobs of a queue event by event.

    `ledger`: the ledger, on which running jobs, and jobs that the rule does not move, are booked. `queue`: jobs without
    a place, in the order of the rule. Each is in the queue from its earliest start on; a job that waits for others,
    from the second on that all its dependencies allow. `progress`: called after each event, and at the end. `depth`:
    the number of jobs behind a blocked head that are tried at each event; None: all.

    Notes
    -----
    Events are ends of jobs, arrivals, seconds from which on alternatives are open, and the start of the head's
    reservation. That holds until its job starts or is no longer the head: bookings of others cannot make it earlier.
    """
    loop = _EventLoop(ledger, queue, depth)
    while (now := loop.next_event()) is not None:
        loop.arrive(now)
        loop.start_heads(now)
        loop.start_out_of_turn(now)
        if progress is not None:
            progress(loop.num_done, len(queue))
    if progress is not None:
        progress(len(queue), len(queue))


class _EventLoop:
    """The queue, the events to come, and the head's reservation; mutable. Jobs are known by their rank in the queue."""

    def __init__(self, ledger: Ledger, queue: Sequence[Job], depth: int | None) -> None:
        #: The number of jobs that have started or found no start.
        self.num_done = 0
        self._ledger = ledger
        self._first_that_fits = FirstThatFits(ledger)
        self._queue = queue
        self._rank = {job.id: rank for rank, job in enumerate(queue)}
        self._behind_head = slice(1, None if depth is None else 1 + depth)
        self._events = list(_ends(ledger))
        heapify(self._events)
        #: The arrivals of jobs, with their ranks.
        self._arrivals: list[tuple[int, int]] = []
        row_of = {job.id: row for row, job in enumerate(ledger.jobs)}
        self._rows = [row_of[job.id] for job in queue]
        self._rank_of = {row: rank for rank, row in enumerate(self._rows)}
        #: For which others of the queue, that have not started, the jobs wait.
        self._awaited = Countdown(ledger.table.links, self._rows)
        for rank in range(len(queue)):
            self._expect(rank)
        #: Ranks of the jobs that have arrived and are not done, ascending.
        self._waiting: list[int] = []
        #: The head's reserved start, if it cannot start now.
        self._reserved: int | None = None

    def _expect(self, rank: int) -> None:
        """Expect a job when all that it waits for have started, which says when it may; it may never arrive."""
        if self._awaited.is_over(self._rows[rank]):
            arrival = self._ledger.earliest_start(self._queue[rank].id)
            if arrival is not None:
                heappush(self._arrivals, (arrival, rank))
                job = self._queue[rank]
                for second in {arrival, *(job.submit + one.cost for one in job.alternatives)}:
                    if second >= arrival:
                        heappush(self._events, second)

    def next_event(self) -> int | None:
        """Return the time of the next event, or None when no job is left to start."""
        if not self._waiting and not self._arrivals:
            return None
        now = min(self._events[:1] if self._reserved is None else [*self._events[:1], self._reserved])
        while self._events and self._events[0] == now:
            heappop(self._events)
        return now

    def arrive(self, now: int) -> None:
        """Queue the jobs that may start from now on; if the head changes, the reservation of the old one is dropped."""
        old_head = self._waiting[:1]
        while self._arrivals and self._arrivals[0][0] <= now:
            insort(self._waiting, heappop(self._arrivals)[1])
        if self._reserved is not None and old_head != self._waiting[:1]:
            self._ledger.release(self._queue[old_head[0]].id)
            self._reserved = None

    def start_heads(self, now: int) -> None:
        """Start jobs from the front of the queue, until one has to wait: it gets a reservation, or has it already.

        When a reservation begins, its job gets nodes anew, as any job that starts: the reserved ones were chosen to
        leave free nodes to others. A job that finds no start at all leaves the queue.
        """
        while self._waiting:
            head = self._waiting[0]
            if self._reserved is not None and self._reserved > now:
                return
            if self._reserved is not None:
                self._ledger.release(self._queue[head].id)
                self._reserved = None
            start = self._first_that_fits.from_now_on(self._queue[head].id, now)
            if start is not None and start > now:
                self._reserved = start
                return
            if start is None:
                self._leave([head])
            else:
                self._start([head], now)

    def start_out_of_turn(self, now: int) -> None:
        """Start jobs behind the head, within the rule's depth, that fit beside all bookings, until no job fits.

        Before each start the head's reservation is moved to nodes that are not free now. If nodes are equal,
        it then leaves as many free nodes as a reservation by number of nodes.
        """
        examined = behind = self._waiting[self._behind_head]
        while examined:
            self._ledger.stand_aside(self._queue[self._waiting[0]].id, now)
            names = self._first_that_fits.at_once([self._queue[rank].id for rank in examined], now)
            if names:
                first, *others = sorted(map(self._rank.__getitem__, names))
                for rank in others:
                    self._ledger.release(self._queue[rank].id)
                self._start([first], now)
                behind = [rank for rank in behind if rank != first]
                examined = [rank for rank in behind if rank > first] or behind
            elif examined is behind:
                return
            else:
                examined = behind

    def _start(self, ranks: Collection[int], now: int) -> None:
        """Remove jobs from the queue that are booked from now on; their ends, and arrivals that follow, are events."""
        for rank in ranks:
            job = self._queue[rank]
            seconds = job.walltime
            if job.alternatives and (planned := self._ledger.planned(job.id)) is not None:
                seconds = planned.end - planned.start
            heappush(self._events, now + seconds)
            for row in self._awaited.passed(self._rows[rank]):
                self._expect(self._rank_of[row])
        self._leave(ranks)

    def _leave(self, ranks: Collection[int]) -> None:
        """Take jobs out of the queue."""
        self._waiting = [rank for rank in self._waiting if rank not in ranks]
        self.num_done += len(ranks)


def _ends(ledger: Ledger) -> Iterator[int]:
    """Yield when the jobs end that are booked."""
    for job in ledger.instance.jobs:
        if job.running is not None:
            yield job.running.segments[-1].end
    for job in ledger.jobs:
        planned = ledger.planned(job.id)
        if planned is not None:
            yield planned.end
