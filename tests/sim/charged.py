"""Schedulers whose thinking takes time, by a clock of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from unittest.mock import patch

from cpsched.domain import Instance
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.lab.sim import History, Scheduler, simulate
from cpsched.verify import verify

__all__ = ["Clock", "charged"]


@dataclass
class Clock:
    """A clock that goes on when it is told to; mutable."""

    seconds: float = 0.0

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Time decisions by this clock."""
        with patch("cpsched.lab.sim.scheduler_loop.time", SimpleNamespace(perf_counter=lambda: self.seconds)):
            yield


def charged(instance: Instance, scheduler: Scheduler, clock: Clock) -> History:
    """Play a workload with decisions that take time; the judge finds no fault with what happened."""
    with clock.instead():
        history = simulate(instance, scheduler, charge_overhead=True)
    violations = verify(instance_to_document(instance), plan_to_document(history.record()))
    assert not violations, "\n".join(map(str, violations))
    return history
