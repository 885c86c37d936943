"""A workload after the published figures of OpenCCS on OCuLUS (Keller, JSSPP 2017)."""

from typing import NamedTuple

import numpy as np

from cpsched.domain import Amounts, Chunk, Cluster, Instance, NodeClass, Request
from cpsched.lab.workloads.assembly import (
    WALLTIME_QUEUES,
    daily_cycle,
    jobs_of,
    poisson_arrivals,
    random_numbers,
    random_users,
    walltime_queues,
)
from cpsched.lab.workloads.lublin import STREAMS


class Size(NamedTuple):
    """One row of the table of 2016."""

    cores: int
    jobs: int
    #: Means.
    walltime: int
    accuracy: float


_HOUR = 3600

#: The ten sizes with the largest shares of the core hours, 73.83 % of them together.
SIZES = (
    Size(16, 57516, 10 * _HOUR, 0.4167),
    Size(32, 9701, 24 * _HOUR + 50 * 60, 0.3968),
    Size(1024, 277, 19 * _HOUR, 0.6530),
    Size(768, 468, 10 * _HOUR, 0.5591),
    Size(64, 3883, 13 * _HOUR, 0.4600),
    Size(128, 14002, 1 * _HOUR, 0.2643),
    Size(256, 684, 13 * _HOUR, 0.3930),
    Size(1536, 77, 16 * _HOUR, 0.6401),
    Size(1, 1480565, 1 * _HOUR, 0.2139),
    Size(512, 151, 16 * _HOUR, 0.6261),
)
#: The mean of four years.
JOBS_A_DAY = 3082
#: The project limit (s).
LONGEST_WALLTIME = 7 * 86400

_NODE_CORES = 16
_GIB = 1024


def oculus_cluster() -> Cluster:
    """Return 616 nodes with 9,920 cores, 32 GPUs and 8 MICs.

    How many nodes have 256 GiB and how many accelerators a node has is ours; four with 32 cores follow from the sums.
    """
    groups = (
        ("normal", 572, {"cores": _NODE_CORES, "mem": 64 * _GIB}),
        ("large", 20, {"cores": _NODE_CORES, "mem": 256 * _GIB}),
        ("gpu", 16, {"cores": _NODE_CORES, "mem": 64 * _GIB, "gpus": 2}),
        ("mic", 4, {"cores": _NODE_CORES, "mem": 64 * _GIB, "mics": 2}),
        ("smp", 4, {"cores": 2 * _NODE_CORES, "mem": 1024 * _GIB}),
    )
    return Cluster(
        classes=tuple(
            NodeClass(
                names=tuple(f"{kind}{number:03d}" for number in range(1, count + 1)), resources=Amounts(resources)
            )
            for kind, count, resources in groups
        )
    )


def openccs_workload(jobs: int, seed: int) -> Instance:
    """Generate a workload for OCuLUS; its second 0 is a midnight.

    The sizes, their means of walltime and of accuracy are the published ones. The rest is ours: walltimes are
    exponential, in whole minutes; accuracies follow a beta distribution, tiny or full; jobs arrive independently, more
    of them in the afternoon; those of more than one core fill chunks of 16.

    Raises `ValueError` if there are no jobs.
    """
    if jobs < 1:
        raise ValueError(f"need jobs >= 1, got {jobs}")
    draw = random_numbers(seed)
    counts = np.array([size.jobs for size in SIZES])
    rows = draw.choice(len(SIZES), size=jobs, p=counts / counts.sum())
    mean_walltime, mean_accuracy = (
        np.array([getattr(size, name) for size in SIZES])[rows] for name in Size._fields[2:]
    )
    minutes = np.ceil(draw.exponential(mean_walltime) / 60)
    walltimes = np.clip(minutes * 60, 60, LONGEST_WALLTIME).astype(np.int64)
    accuracy = draw.beta(mean_accuracy, 1 - mean_accuracy)
    requests = [_request(size.cores) for size in SIZES]
    drawn = jobs_of(
        owners=random_users(draw, jobs),
        submit=poisson_arrivals(draw, jobs, 86400 / JOBS_A_DAY, daily_cycle(*STREAMS["whole"].cycle)),
        walltime=walltimes,
        runtime=np.maximum(1, np.rint(walltimes * accuracy)).astype(np.int64),
        requests=[requests[row] for row in rows],
        queues=walltime_queues(walltimes),
    )
    return Instance(name=f"openccs-{jobs}-jobs-{seed}", cluster=oculus_cluster(), queues=WALLTIME_QUEUES, jobs=drawn)


def _request(cores: int) -> Request:
    chunk = min(cores, _NODE_CORES)
    return Request(chunks=(Chunk(count=cores // chunk, resources=Amounts({"cores": chunk})),))
