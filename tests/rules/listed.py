"""Lists of evolving applications by the published rule."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.domain import Instance, Job
from cpsched.problem import Machine, application_of
from cpsched.rules.evolving import VARIANTS, schedule
from cpsched.rusv import Profile

__all__ = ["listed"]

NOX = next(variant for variant in VARIANTS if variant.name == "ep_nox")


def listed(instance: Instance, jobs: Sequence[Job]) -> list[int]:
    """Return the starts of jobs in a list of the published rule without expansion."""
    machine = Machine.of(instance)
    busy = Profile()
    for end in machine.free_from:
        busy = busy + Profile(((end, 1),))
    applications = [application_of(instance, job) for job in jobs]
    tracks = schedule(applications, NOX, busy=busy, capacity=len(machine.names))
    return [track.steps[0].start for track in tracks]
