"""The common part of generators: when jobs arrive, over days that are busy in the afternoon and quiet at night, and
from columns of numbers to the jobs of an instance, and their users.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Amounts, Chunk, Cluster, FrozenMap, Job, NodeClass, Queue, Request, Step

HALF_HOUR = 1800
#: A sum has ended when its terms are smaller than this part of it.
_NEGLIGIBLE = 1e-17
_BUCKETS = 48
#: The cycle begins with the half hour of this number, in which fewest jobs arrive, and goes around the clock.
_FIRST = 11


def daily_cycle(shape: float, scale: float) -> NDArray[np.float64]:
    """Return how many jobs arrive in each half hour from midnight on, as multiples of their mean.

    They follow a gamma distribution over the numbers 11 to 58 of the half hours (Lublin, Feitelson, JPDC 63, 2003).
    """
    numbers = np.arange(_FIRST, _FIRST + _BUCKETS)
    until = np.array([gamma_share(shape, (number - 0.5) / scale) for number in range(_FIRST, _FIRST + _BUCKETS + 1)])
    inside = np.diff(until)
    weights = np.empty(_BUCKETS)
    weights[(numbers - 1) % _BUCKETS] = inside
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def gamma_share(shape: float, limit: float) -> float:
    """Return the probability that a gamma distribution of scale 1 is below a limit > 0 (Abramowitz 6.5.29)."""
    term = math.exp(shape * math.log(limit) - limit - math.lgamma(shape + 1))
    total, step = 0.0, 0
    while term > _NEGLIGIBLE * total:
        total += term
        step += 1
        term *= limit / (shape + step)
    return min(1.0, total)


def on_the_clock(points: NDArray[np.float64], cycle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the seconds after midnight at which ascending points are paid for.

    Each half hour pays as many points as its weight, evenly; what a job leaves of a half hour is there for the next
    one. A mean half hour pays one point.
    """
    paid = np.concatenate(([0.0], np.cumsum(cycle)))
    days, rest = np.divmod(points, paid[-1])
    return np.asarray((days * _BUCKETS + np.interp(rest, paid, np.arange(_BUCKETS + 1.0))) * HALF_HOUR)


def points_until(second: float, cycle: NDArray[np.float64]) -> float:
    """Return how many points are paid until a second after midnight: the inverse of `on_the_clock`."""
    paid = np.concatenate(([0.0], np.cumsum(cycle)))
    days, rest = divmod(second / HALF_HOUR, _BUCKETS)
    return float(days * paid[-1] + np.interp(rest, np.arange(_BUCKETS + 1.0), paid))


def poisson_arrivals(
    draw: np.random.Generator, count: int, gap: float, cycle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return when jobs arrive independently of each other (s after midnight), `gap` seconds apart in the mean."""
    return on_the_clock(np.cumsum(draw.exponential(gap / HALF_HOUR, count)), cycle)


def arrivals_within(
    draw: np.random.Generator, count: int, span: float, cycle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return when two jobs or more arrive by themselves: one at midnight, one `span` s later, all else between."""
    parts = np.concatenate(([0.0], np.sort(draw.random(count - 2)), [1.0]))
    return on_the_clock(parts * points_until(span, cycle), cycle)


#: Ours: the number of users, the k-th of which submits in proportion to 1/k, and of groups.
USERS, GROUPS = 64, 8

#: Classes of walltime: their names and expected waits (s), and the longest walltimes (s) of all but the last.
WALLTIME_QUEUES = FrozenMap(
    {"short": Queue(expected_wait=1800), "medium": Queue(expected_wait=21600), "long": Queue(expected_wait=86400)}
)
_LONGEST = (3600, 21600)


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


def jobs_of(
    *,
    submit: NDArray[np.float64],
    walltime: NDArray[np.int64],
    runtime: NDArray[np.int64],
    requests: Sequence[Request],
    queues: Sequence[str],
    owners: tuple[Sequence[str], Sequence[str]],
) -> tuple[Job, ...]:
    """Return jobs in the order of their submission, numbered from 1, from columns of one length, in any order; runtimes
    are at most the walltimes, and submissions (s) are rounded down. `owners`: users, and their groups.
    """
    users, groups = owners
    submits, walltimes, runtimes = np.floor(submit).astype(np.int64).tolist(), walltime.tolist(), runtime.tolist()
    return tuple(
        Job(
            id=str(number),
            user=users[row],
            group=groups[row],
            queue=queues[row],
            submit=submits[row],
            steps=(Step(walltime=walltimes[row], request=requests[row]),),
            runtime=runtimes[row],
        )
        for number, row in enumerate(np.argsort(submit, kind="stable").tolist(), start=1)
    )
