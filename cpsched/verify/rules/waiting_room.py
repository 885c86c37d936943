"""The plan's claims about jobs without a start must be true.

A claim is refused only where it is certainly false: mapping many kinds of chunks is hard, so the answer to "does it
fit" may also be "cannot tell". A start and nodes that are found prove that it fits; a kind that does not fit alone
proves that it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from cpsched.verify.case import Case
from cpsched.verify.layouts import lay
from cpsched.verify.model import Booking, Job, Waiting
from cpsched.verify.openings import EmptyCluster, Openings
from cpsched.verify.rules.limits import is_let_in, is_ruled_out
from cpsched.verify.rules.timing import released_at
from cpsched.verify.violation import Violation

__all__ = ["check_waiting_room", "openings_of"]

#: The reasons that an opening beside the plan proves wrong.
REFUTED_BY_OPENING = ("unsatisfiable", "unavailable", "too_late", "not_mapped", "limit", "free_pool", "reservation")

#: The most nodes that a message names.
NAMED = 5


def check_waiting_room(case: Case) -> Iterator[Violation]:
    """Check that what the waiting room says of a job is true, as far as that can be checked."""
    claims = {
        "walltime": deny_walltime,
        "unsatisfiable": deny_unsatisfiable,
        "unavailable": deny_unavailable,
        "too_late": deny_too_late,
        "not_mapped": deny_not_mapped,
        "dependency": deny_dependency,
        "limit": deny_limit,
        "free_pool": deny_free_pool,
        "reservation": deny_reservation,
        "not_started": deny_not_started,
    }
    room = WaitingRoom(case)
    for entry in case.plan.waiting:
        if not entry.job.running:
            denial = claims[entry.reason](room, entry)
            if denial is not None:
                yield Violation("waiting_room", entry.id, f"it is said to be {entry.reason}, but {denial}")


def openings_of(case: Case) -> Iterator[Booking]:
    """Yield places beside a plan, and beside each other, for jobs of its waiting room.

    Without any, `check_waiting_room` finds no opening either: both ask for the same jobs in the same order.
    """
    openings = WaitingRoom(case).openings
    waiting = [entry for entry in case.plan.waiting if not entry.job.running]
    behind = [entry for entry in waiting if entry.reason == "dependency"]
    for entry in (*(entry for entry in waiting if entry.reason in REFUTED_BY_OPENING), *behind):
        booking = openings.of(entry)
        if booking is not None:
            openings.take(booking)
            yield booking


class WaitingRoom:
    """The evidence against claims about jobs of the waiting room; mutable only in its caches."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.openings = Openings(case, sum(one.reason in REFUTED_BY_OPENING for one in case.plan.waiting))
        self._answers: dict[tuple[int, bool], str | bool | None] = {}

    def opening(self, entry: Waiting) -> str | None:
        """Return where and when a job fits beside all that the plan books, or None if no such place is found."""
        booking = self.openings.of(entry)
        if booking is None:
            return None
        nodes = dict.fromkeys(one.node for segment in booking.segments for one in segment.allocation)
        return f"it could start at {booking.start} on {_named(nodes)}, beside all that is planned"

    def fits(self, job: Job, *, only_up: bool) -> str | bool | None:
        """Name nodes on which a job would fit if it were alone; False proves that there are none, None is no answer."""
        key = (id(job), only_up)
        if key not in self._answers:
            self._answers[key] = self._decide(job, only_up)
        return self._answers[key]

    def _decide(self, job: Job, only_up: bool) -> str | bool | None:
        instance = self.case.instance
        if any(amount > instance.licenses.get(name, 0) for name, amount in job.licenses.items()):
            return False
        empty = EmptyCluster([one for one in instance.classes if not only_up or one[0].state == "up"], job.queue)
        for step in job.steps:
            for chunk in step.request.chunks:
                alone = replace(step.request, chunks=(chunk,))
                if lay(alone, job.walltime, empty.rooms(alone, 0, 1, None)) is None:
                    return False
        layouts = empty.layouts(job)
        return None if layouts is None else _named(dict.fromkeys(node for layout in layouts for node in layout))


def _named(nodes: Collection[str]) -> str:
    """Name some nodes."""
    return ", ".join(list(nodes)[:NAMED]) + (f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else "")


def deny_walltime(room: WaitingRoom, entry: Waiting) -> str | None:
    """``walltime``: it is beyond its queue's ``max_walltime``."""
    if room.case.instance.is_beyond_queue(entry.job):
        return None
    return f"its walltime of {entry.job.walltime} s is within what its queue accepts"


def deny_unsatisfiable(room: WaitingRoom, entry: Waiting) -> str | None:
    """``unsatisfiable``: even an empty, healthy cluster could not run it."""
    opening = room.opening(entry)
    if opening is not None or entry.job.reservation is not None or is_ruled_out(room.case.instance, entry.job):
        return opening
    nodes = room.fits(entry.job, only_up=False)
    return f"on an empty, healthy cluster it could run on {nodes}" if nodes else None


def deny_unavailable(room: WaitingRoom, entry: Waiting) -> str | None:
    """``unavailable``: it would fit if all nodes were up, but not on those that are."""
    opening = room.opening(entry)
    if opening is not None or entry.job.reservation is not None or is_ruled_out(room.case.instance, entry.job):
        return opening
    nodes = room.fits(entry.job, only_up=True)
    if nodes:
        return f"without other jobs it could run on {nodes}, which are up"
    if room.fits(entry.job, only_up=False) is False:
        return "it would not fit if all nodes were up either"
    return None


def deny_too_late(room: WaitingRoom, entry: Waiting) -> str | None:
    """``too_late``: its ``start_at``, ``deadline``, hard ``max_wait`` or the end of its reservation leaves no start."""
    job = entry.job
    is_bounded = job.start_at is not None or job.deadline is not None or job.reservation is not None
    if not is_bounded and room.case.instance.must_start_by(job) is None:
        return "it has neither start_at nor deadline nor a hard max_wait to keep"
    return room.opening(entry)


def deny_not_mapped(room: WaitingRoom, entry: Waiting) -> str | None:
    """``not_mapped``: no mapping was found, so that there is none beside what the plan books."""
    return room.opening(entry)


def deny_dependency(room: WaitingRoom, entry: Waiting) -> str | None:
    """``dependency``: one of those that it waits for has no start in this plan."""
    if not entry.job.after:
        return "it waits for no other job"
    return None if released_at(room.case, entry.job) is None else "all that it waits for have a start"


def deny_limit(room: WaitingRoom, entry: Waiting) -> str | None:
    """``limit``: a limit of its user or group leaves it no start."""
    if all(limit.consumer.subject_of(entry.job) is None for limit in room.case.instance.limits):
        return "no limit is about its user or group"
    return room.opening(entry)


def deny_free_pool(room: WaitingRoom, entry: Waiting) -> str | None:
    """``free_pool``: a free pool that does not let it in leaves it no start."""
    if all(is_let_in(pool, entry.job) for pool in room.case.instance.pools):
        return "all free pools let it in"
    return room.opening(entry)


def deny_reservation(room: WaitingRoom, entry: Waiting) -> str | None:
    """``reservation``: its reservation has nothing for it, or reservations leave it no start."""
    if not room.case.instance.reservations:
        return "there are no reservations"
    return room.opening(entry)


def deny_not_started(room: WaitingRoom, entry: Waiting) -> str | None:
    """``not_started``: the job had not been started when a record ends."""
    return None if room.case.plan.is_record else "this plan is no record"
