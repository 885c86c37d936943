"""What a rule for windows is: the order in which jobs are served, and how: by insertion, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.problem import awaited_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A rule: the order of the queue, and the way in which it is worked off."""

    #: In a few letters, without spaces.
    name: str
    #: Returns waiting jobs, given in document order, in the order in which they are served.
    order: Callable[[Instance, Sequence[Job]], list[Job]]
    #: Books the jobs of a queue, which is in the order of the rule, beside all existing bookings.
    serve: Callable[[Ledger, Sequence[Job], Progress | None], None]


def insert(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
    """Give each job its earliest start beside the jobs before it, each after those that it waits for."""
    ledger.plan([job.id for job in awaited_first(ledger.instance, queue)], progress)
