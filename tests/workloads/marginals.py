"""What a workload looks like, variable by variable, and how far two of them are apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cpsched.domain import Job

Sample = Sequence[float]


def marginals(jobs: Sequence[Job]) -> Mapping[str, Sample]:
    """Return one sample for each variable of waiting jobs of one chunk kind, in order of submission."""
    chunks = [job.request.chunks[0] for job in jobs]
    queues = ("debug", "parallel", "R", "np_longpar")
    return {
        "queue": [queues.index(job.queue or "") for job in jobs],
        "chunks": [chunk.count for chunk in chunks],
        "cores per chunk": [chunk.resources["cores"] for chunk in chunks],
        "GPUs per chunk": [chunk.resources.get("gpus", 0) for chunk in chunks],
        "MICs per chunk": [chunk.resources.get("mics", 0) for chunk in chunks],
        "mem per chunk (MiB)": [chunk.resources["mem"] for chunk in chunks],
        "walltime (s)": [job.walltime for job in jobs],
        "run time / walltime": [min(1.0, job.runtime / job.walltime) for job in jobs if job.runtime is not None],
        "gap (s)": [later.submit - earlier.submit for earlier, later in pairwise(jobs)],
        "core hours": [job.request.totals["cores"] * job.walltime / 3600 for job in jobs],
    }


def distance(one: Sample, other: Sample) -> float:
    """Return the largest difference of the two distribution functions (Kolmogorov-Smirnov), in 0…1."""
    ones, others = sorted(one), sorted(other)
    return max(
        abs(bisect_right(ones, value) / len(ones) - bisect_right(others, value) / len(others))
        for value in {*ones, *others}
    )
