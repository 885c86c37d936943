"""What a rule for windows is: the order in which jobs are served, and how: by insertion, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.problem import awaited_first
from cpsched.rusv import FOREVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A rule: the order of the queue, and the way in which it is worked off."""

    #: In a few letters, without spaces.
    name: str
    #: Returns waiting jobs, given in document order, in the order in which they are served.
    order: Callable[[Instance, Sequence[Job]], list[Job]]
    #: Books the jobs of a queue, which is in the order of the rule, beside all existing bookings.
    serve: Callable[[Ledger, Sequence[Job], Progress | None], None]


def first_that_fits(ledger: Ledger, ids: Sequence[str], *, earliest: int, latest: int = FOREVER) -> dict[str, int]:
    """Book waiting jobs without a place, each as early as it fits with a start in ``[earliest, latest]``; return the
    starts of those that found one. All times are on the instance's clock.

    A job with alternatives has the first of its choices that starts at `earliest`, as queueing systems do it; if none
    does, the first one that has a start at all.
    """
    chosen = {job.id: len(job.choices) for job in ledger.jobs if job.alternatives}
    if not chosen:
        return ledger.place(ids, earliest=earliest, latest=latest)
    starts: dict[str, int] = {}
    for name in ids:
        for last, number in product(dict.fromkeys((earliest, latest)), range(chosen.get(name, 1))):
            if name in chosen:
                ledger.take_mode(name, number)
            if placed := ledger.place([name], earliest=earliest, latest=last):
                starts |= placed
                break
    return starts


def insert(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
    """Give each job its earliest start beside the jobs before it, each after those that it waits for; one with
    alternatives by the first of its choices that starts at once, or else by the first that can start.
    """
    ids = [job.id for job in awaited_first(ledger.instance, queue)]
    if not any(job.alternatives for job in queue):
        ledger.plan(ids, progress)
        return
    for name in ids:
        earliest = ledger.earliest_start(name)
        if earliest is not None:
            first_that_fits(ledger, [name], earliest=earliest, latest=ledger.instance.now + FOREVER)
