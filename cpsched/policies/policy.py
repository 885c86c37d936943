"""The interface of rule-based schedulers: the order in which jobs are served, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress

__all__ = ["Policy"]


class Policy(Protocol):
    """A rule: the order of the queue, and the way in which it is worked off. Holds no state."""

    #: In a few letters, without spaces.
    name: str

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Return waiting jobs, given in document order, in the order in which they are served."""

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Book the jobs of a queue, which is in the order of the rule, beside all existing bookings."""
