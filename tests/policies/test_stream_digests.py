"""What all schedulers do with streams of jobs is what was recorded: code that only moves changes no start and no node.

Record anew, after a change that is meant to change starts: ``python -m tests.policies.test_stream_digests``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import Instance, Malleability, PlannedJob, RuntimeModel
from cpsched.formats import read_instance
from cpsched.policies import SCHEDULERS, make_scheduler
from cpsched.sim import simulate
from tests.booking.small_windows import chunk, nodes, waiting, window

INSTANCES = Path(__file__).parents[2] / "instances"
DIGESTS = Path(__file__).with_name("stream_digests.json")
#: Seconds between two jobs of the stream: half of them wait.
PACE = 40


def digest(jobs: Iterable[PlannedJob]) -> str:
    """Return a short digest of who starts when, and of what each has on which nodes."""
    sha = hashlib.sha256()
    for job in sorted(jobs, key=lambda job: job.id):
        for segment in job.segments:
            held = sorted((one.node, one.chunk, one.count, sorted(one.resources.items())) for one in segment.allocation)
            sha.update(repr((job.id, segment.start, segment.end, held)).encode())
    return sha.hexdigest()[:16]


def stream(name: str) -> Instance:
    """Return the waiting jobs of a window as a stream, each of which takes two thirds of its walltime."""
    window = read_instance(INSTANCES / f"{name}.json.gz")
    waiting = [job for job in window.jobs if job.running is None]
    jobs = (
        replace(job, submit=window.now + PACE * number, told=None, runtime=max(1, 2 * job.walltime // 3))
        for number, job in enumerate(waiting)
    )
    return replace(window, jobs=tuple(jobs))


def whole_nodes() -> Instance:
    """Return a stream of malleable jobs that take whole nodes, short ones behind long ones: SD-Policy lends cores."""
    half = Malleability(shares=(0.5,), model=RuntimeModel.WORST)
    jobs = (
        waiting(
            f"j{number:03}",
            walltime,
            chunk(1 + 3 * number % 5, cores=4),
            submit=11 * number,
            malleability=half,
            runtime=1 + 2 * walltime // 3,
        )
        for number, walltime in enumerate([20, 600, 45, 90, 1500, 30, 240, 15] * 12)
    )
    return window([nodes(" ".join(f"n{node}" for node in range(8)), cores=4)], *jobs)


def of_scheduler(name: str) -> dict[str, str]:
    """Return the digests of what a scheduler does with streams of jobs, rigid and malleable."""
    streams = {window: stream(window) for window in ("eurora-like-0200", "eurora-like-0200-malleable")}
    streams["whole nodes"] = whole_nodes()
    return {key: digest(simulate(workload, make_scheduler(name)).record().jobs) for key, workload in streams.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_streams_of_jobs(name: str) -> None:
    """Each scheduler starts the jobs of a stream as it always has, on the same nodes."""
    assert of_scheduler(name) == json.loads(DIGESTS.read_text())[name]


if __name__ == "__main__":
    found = {name: of_scheduler(name) for name in sorted(SCHEDULERS)}
    DIGESTS.write_text(json.dumps(found, indent=1) + "\n")
