"""The common part of generators: from columns of numbers to the jobs of an instance, and their users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Amounts, Chunk, Cluster, FrozenMap, Job, NodeClass, Queue, Request, Step

#: Ours: the number of users, the k-th of which submits in proportion to 1/k, and of groups.
USERS, GROUPS = 64, 8

#: Classes of walltime: their names and expected waits (s), and the longest walltimes (s) of all but the last.
WALLTIME_QUEUES = FrozenMap(
    {"short": Queue(expected_wait=1800), "medium": Queue(expected_wait=21600), "long": Queue(expected_wait=86400)}
)
_LONGEST = (3600, 21600)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """Jobs as columns of one length, in any order; times in seconds, rounded down where jobs are made of them."""

    submit: NDArray[np.float64]
    walltime: NDArray[np.int64]
    #: At most the walltime.
    runtime: NDArray[np.int64]
    requests: Sequence[Request]
    queues: Sequence[str]
    users: Sequence[str]
    groups: Sequence[str]


def random_numbers(seed: int) -> np.random.Generator:
    """Return the random numbers of a seed: the same on any machine, as long as numpy draws as it does."""
    return np.random.Generator(np.random.PCG64(seed))


def random_users(draw: np.random.Generator, count: int) -> tuple[list[str], list[str]]:
    """Draw the user of each job; return the names of users and of their groups."""
    weights = 1 / np.arange(1, USERS + 1)
    users = draw.choice(USERS, size=count, p=weights / weights.sum()).tolist()
    return [f"u{user + 1}" for user in users], [f"g{user % GROUPS + 1}" for user in users]


def walltime_queues(walltimes: NDArray[np.int64]) -> list[str]:
    """Return the queue of each job by its walltime: up to an hour, up to six hours, and longer."""
    names = tuple(WALLTIME_QUEUES)
    return [names[place] for place in np.searchsorted(_LONGEST, walltimes).tolist()]


def like_nodes(count: int, cores: int) -> Cluster:
    """Return a machine of nodes that are equal but for their names."""
    width = len(str(count))
    names = tuple(f"node{number:0{width}d}" for number in range(1, count + 1))
    return Cluster(classes=(NodeClass(names=names, resources=Amounts({"cores": cores})),))


def whole_nodes(counts: Iterable[int], cores: int) -> list[Request]:
    """Return requests for numbers of nodes: chunks of all `cores`, not exclusive, so that jobs can be shrunk."""

    @cache
    def request(count: int) -> Request:
        return Request(chunks=(Chunk(count=count, resources=Amounts({"cores": cores})),))

    return [request(count) for count in counts]


def jobs_of(columns: Columns) -> tuple[Job, ...]:
    """Return the jobs in the order of their submission, numbered from 1."""
    submit = np.floor(columns.submit).astype(np.int64).tolist()
    walltime, runtime = columns.walltime.tolist(), columns.runtime.tolist()
    return tuple(
        Job(
            id=str(number),
            user=columns.users[row],
            group=columns.groups[row],
            queue=columns.queues[row],
            submit=submit[row],
            steps=(Step(walltime=walltime[row], request=columns.requests[row]),),
            runtime=runtime[row],
        )
        for number, row in enumerate(np.argsort(columns.submit, kind="stable").tolist(), start=1)
    )
