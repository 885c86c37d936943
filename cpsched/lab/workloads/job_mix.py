"""The job mix with which Bode, Halstead, Kendall, Lei and Jackson compared PBS and Maui (ALS 2000; MIX-1).

Candidates are drawn at random, classified by size and efficiency, and taken while the share of their class is low.
Where the paper is silent, what matches its counts best is done: see `share_is_low`, `class_of`.
"""

from enum import StrEnum

import numpy as np

from cpsched.domain import FrozenMap, Instance, Objective, ObjectiveTerm, Queue
from cpsched.lab.workloads.assembly import jobs_of, like_nodes, random_numbers, random_users, whole_nodes


class MixClass(StrEnum):
    """The paper's classes of jobs."""

    FAILED = "failed"
    LARGE = "large"
    MEDIUM = "medium"
    SMALL = "small"
    DEBUG = "debug"


#: The share of the jobs that each class shall have.
TARGETS = FrozenMap(
    {MixClass.LARGE: 0.30, MixClass.MEDIUM: 0.40, MixClass.SMALL: 0.20, MixClass.DEBUG: 0.05, MixClass.FAILED: 0.05}
)

#: Number of nodes, and number of jobs that are drawn.
NODES = 64
CANDIDATES = 480
#: The sum of the jobs' run times (s): 90.2 hours, one after the other (MIX-2).
TOTAL_WORK = 324720
#: The latest submission (s). It only makes the order of submissions random.
LONGEST_DELAY = 10800
#: Ours: the published jobs ask for nodes only, and have no queues.
_CORES = 16
_EXPECTED_WAIT = 21600


def job_mix(seed: int) -> Instance:
    """Generate a mix: about 76 of 480 candidates, on 64 nodes; its objective is the makespan (MIX-3).

    Nodes, asked times and work are even and independent, but that the times grow in proportion to the nodes: this gives
    the mean width that was published. The queue of a job is its class.
    """
    draw = random_numbers(seed)
    nodes = draw.integers(1, NODES, CANDIDATES, endpoint=True)
    efficiency, length, delay = draw.random((3, CANDIDATES))
    taken = _taken(nodes.tolist(), efficiency.tolist())
    rows = list(taken)
    nodes, asked = nodes[rows], (length * nodes)[rows]
    work = asked * efficiency[rows]
    seconds = TOTAL_WORK / work.sum()
    runtimes = np.maximum(1, np.rint(work * seconds)).astype(np.int64)
    drawn = jobs_of(
        owners=random_users(draw, len(rows)),
        submit=delay[rows] * LONGEST_DELAY,
        walltime=np.maximum(runtimes, np.ceil(asked * seconds).astype(np.int64)),
        runtime=runtimes,
        requests=whole_nodes(nodes.tolist(), _CORES),
        queues=[str(kind) for kind in taken.values()],
    )
    return Instance(
        name=f"job-mix-{seed}",
        cluster=like_nodes(NODES, _CORES),
        queues=FrozenMap({str(kind): Queue(expected_wait=_EXPECTED_WAIT) for kind in TARGETS}),
        jobs=drawn,
        objective=Objective(weights=FrozenMap({ObjectiveTerm.MAKESPAN: 1.0})),
    )


def class_of(nodes: int, efficiency: float) -> MixClass | None:
    """Return the class of a job on 64 nodes that works for a part `efficiency` of the time it asked for, or None.

    The paper says that small jobs have between 30 and 15 % of the nodes, which lies within the medium ones: 15 to 3 %
    fits its counts. Failed jobs are classified first, debugging last.
    """
    share = nodes / NODES
    if efficiency < 0.2:
        return MixClass.FAILED
    if efficiency >= 0.7 and share >= 0.03:
        if share > 0.5:
            return MixClass.LARGE
        return MixClass.MEDIUM if share >= 0.15 else MixClass.SMALL
    return MixClass.DEBUG if share < 0.1 and efficiency > 0.4 else None


def share_is_low(have: int, total: int, target: float) -> bool:
    """Return whether a job is taken if `have` of `total` jobs so far are of its class; the first one always is."""
    return have <= target * total


def _taken(nodes: list[int], efficiency: list[float]) -> dict[int, MixClass]:
    """Return which candidates are taken, and their classes."""
    taken: dict[int, MixClass] = {}
    have = dict.fromkeys(TARGETS, 0)
    for row, candidate in enumerate(zip(nodes, efficiency, strict=True)):
        kind = class_of(*candidate)
        if kind is not None and share_is_low(have[kind], len(taken), TARGETS[kind]):
            taken[row] = kind
            have[kind] += 1
    return taken
