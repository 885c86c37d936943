"""Workloads like those of Eurora, 64 heterogeneous nodes at CINECA (BRIDI-1), fitted to a real trace.

The trace: 2,957 jobs of 2014-03-31 to 2014-04-02, published with PA-HPC-SIM (Apache-2.0); the figures below were
counted in it. Its users are anonymous, so users and groups are ours. Jobs come in campaigns: runs of jobs that differ
in nothing but their arrival. A campaign's kind says its queue, request and mean length (which is geometric); its
walltime is drawn from its queue's frequent values.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import accumulate, islice
from random import Random
from statistics import NormalDist
from typing import NamedTuple

from cpsched.domain import Amounts, Chunk, Cluster, FrozenMap, Instance, Job, NodeClass, Queue, Request, Step

#: Expected waits (s) of the queues, as in Bridi et al. (BRIDI-3); ``R`` is the queue of reservations.
EXPECTED_WAIT = {"debug": 1800, "parallel": 21600, "R": 1800, "np_longpar": 86400}

#: Walltimes (s) with at least 1 % of a queue's jobs, and their shares; what is missing to 1 is the tail.
WALLTIMES = {
    "debug": {1800: 0.967},
    "parallel": {14400: 0.759, 12600: 0.129, 14340: 0.036, 3600: 0.028, 10800: 0.020, 1800: 0.011},
    "R": {5400: 0.463, 14400: 0.299, 3600: 0.109, 28800: 0.109, 21600: 0.015},
    "np_longpar": {28800: 1.0},
}
#: The tail of walltimes: whole minutes, log-uniform from here up to the queue's longest frequent one.
SHORTEST_WALLTIME = 120

#: Deciles (0, 10, …, 100 %) of run time / walltime; the trace has no job far beyond its walltime, so 1 is the most.
ACCURACY = {
    "debug": (0.006, 0.017, 0.029, 0.053, 0.101, 0.132, 0.235, 0.503, 0.997, 0.997, 1.0),
    "parallel": (0.001, 0.025, 0.063, 0.285, 0.374, 0.523, 0.795, 0.987, 1.0, 1.0, 1.0),
    "R": (0.001, 0.011, 0.299, 0.542, 0.667, 0.667, 0.667, 0.987, 0.989, 1.0, 1.0),
    "np_longpar": (0.0, 0.519, 0.99, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
}

#: Seconds between the jobs of a campaign: 0 and 1 with these shares, else log-normal (median, sigma).
GAP_WITHIN = (0.788, 0.098, 38.0, 1.8)
#: Seconds between campaigns: log-normal (median, sigma).
GAP_BETWEEN = (91.0, 1.5)

#: The longest campaign in the trace had 101 jobs.
LONGEST_CAMPAIGN = 100

#: Ours: the number of users, the k-th of which submits in proportion to 1/k, and of groups.
USERS, GROUPS = 40, 8


class Kind(NamedTuple):
    """One shape of job, and how often it was seen; a campaign is a run of jobs that differ in arrival alone."""

    queue: str
    campaigns: int
    #: In all its campaigns.
    jobs: int
    #: Chunks, each on one node.
    units: int
    #: Of one chunk: cores, GPUs, MICs, MiB.
    cores: int
    gpus: int
    mics: int
    mem: int


def _kinds() -> Iterator[Kind]:
    """Read the kinds seen at least three times, or with at least 2 % of their queue's cores: 98 % of the jobs."""
    table = resources.files("cpsched.lab.workloads").joinpath("eurora_kinds.csv").read_text(encoding="utf-8")
    for queue, *numbers in (line.split(",") for line in table.splitlines()[1:]):
        yield Kind(queue, *map(int, numbers))


KINDS = tuple(_kinds())


@dataclass(frozen=True, slots=True)
class JobDraft:
    """A job before it has an id and times."""

    kind: Kind
    user: int
    walltime: int
    runtime: int


def eurora_cluster() -> Cluster:
    """Return the 64 nodes: 32 with two GPUs (five have 32071 MiB, the others 15912), then 32 with two MICs (15912)."""
    gpu = FrozenMap({"arch": "linux", "cpu": "3.1GHz", "acc": "k20"})
    mic = FrozenMap({"arch": "linux", "cpu": "2.1GHz", "acc": "phi"})
    return Cluster(
        classes=(
            NodeClass(names=_names(1, 5), resources=Amounts({"cores": 16, "mem": 32071, "gpus": 2}), properties=gpu),
            NodeClass(names=_names(6, 32), resources=Amounts({"cores": 16, "mem": 15912, "gpus": 2}), properties=gpu),
            NodeClass(names=_names(33, 64), resources=Amounts({"cores": 16, "mem": 15912, "mics": 2}), properties=mic),
        )
    )


def _names(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"node{number:03d}" for number in range(first, last + 1))


def eurora_stream(jobs: int, seed: int) -> Instance:
    """Generate a workload: `jobs` jobs that arrive from ``now`` on, as fast as in the trace, and no running ones.

    They come in bursts, since the jobs of a campaign come at once or nearly so; their accuracy is tiny or full. Days
    and nights appear only in the gaps between campaigns, whose distribution is the trace's: the trace has too few of
    them (two of each) for a daily cycle.

    Raises `ValueError` if there are no jobs.
    """
    if jobs < 1:
        raise ValueError(f"need jobs >= 1, got {jobs}")
    arrivals = arrivals_of(Draw(seed), jobs, 1, LONGEST_CAMPAIGN)
    return Instance(
        name=f"eurora-like-stream-{jobs}-{seed}",
        cluster=eurora_cluster(),
        queues=queues(),
        jobs=tuple(job_of(draft, str(number), submit) for number, (submit, draft) in enumerate(arrivals, start=1)),
    )


def queues() -> FrozenMap[str, Queue]:
    """Return the queues."""
    return FrozenMap({name: Queue(expected_wait=seconds) for name, seconds in EXPECTED_WAIT.items()})


class Draw:
    """Mutable: random values, all made from `Random.random` alone."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a workload, not a secret

    def uniform(self) -> float:
        """Draw a number in [0, 1)."""
        return self._random.random()

    def index(self, cumulative: Sequence[float]) -> int:
        """Draw an index by its weight."""
        return bisect_right(cumulative, self.uniform() * cumulative[-1], hi=len(cumulative) - 1)

    def lognormal(self, median: float, sigma: float) -> float:
        """Draw a number by its logarithm."""
        quantile = max(self.uniform(), 2.0**-53)
        return median * math.exp(sigma * NormalDist().inv_cdf(quantile))

    def geometric(self, mean: float) -> int:
        """Draw 1, 2, … with the given mean >= 1."""
        if mean <= 1:
            return 1
        return 1 + math.floor(math.log(1 - self.uniform()) / math.log(1 - 1 / mean))


_KIND_WEIGHTS = tuple(accumulate(kind.campaigns for kind in KINDS))
_USER_WEIGHTS = tuple(accumulate(1 / rank for rank in range(1, USERS + 1)))


def drafts(draw: Draw, longest: int) -> Iterator[tuple[bool, JobDraft]]:
    """Yield jobs without end, campaign by campaign, each with whether it opens a campaign."""
    while True:
        kind = KINDS[draw.index(_KIND_WEIGHTS)]
        user = draw.index(_USER_WEIGHTS)
        walltime = _walltime(draw, kind.queue)
        for position in range(min(longest, draw.geometric(kind.jobs / kind.campaigns))):
            yield position == 0, JobDraft(kind, user, walltime, _runtime(draw, kind.queue, walltime))


def _walltime(draw: Draw, queue: str) -> int:
    frequent = WALLTIMES[queue]
    at = draw.uniform()
    for walltime, reached in zip(frequent, accumulate(frequent.values()), strict=True):
        if at < reached:
            return walltime
    span = math.log(max(frequent) / SHORTEST_WALLTIME)
    return 60 * round(SHORTEST_WALLTIME * math.exp(draw.uniform() * span) / 60)


def _runtime(draw: Draw, queue: str, walltime: int) -> int:
    deciles = ACCURACY[queue]
    decile, part = divmod(draw.uniform() * 10, 1)
    low, high = deciles[int(decile)], deciles[int(decile) + 1]
    return max(1, round(walltime * (low + part * (high - low))))


def arrivals_of(draw: Draw, jobs: int, demand: float, longest: int) -> list[tuple[int, JobDraft]]:
    """Return the waiting jobs with their submit times (s), the first at 0; no campaign has more than `longest`."""
    arrivals: list[tuple[int, JobDraft]] = []
    clock = 0.0
    for opens, draft in islice(drafts(draw, longest), jobs):
        if arrivals:
            clock += _gap(draw, opens) / demand
        arrivals.append((math.floor(clock), draft))
    return arrivals


def _gap(draw: Draw, opens: bool) -> int:
    if opens:
        return math.floor(draw.lognormal(*GAP_BETWEEN))
    none, one, median, sigma = GAP_WITHIN
    at = draw.uniform()
    if at < none + one:
        return 0 if at < none else 1
    return max(2, math.floor(draw.lognormal(median, sigma)))


def amounts_of(kind: Kind) -> Amounts:
    """Return what a chunk of a kind of jobs asks for."""
    amounts = {"cores": kind.cores, "gpus": kind.gpus, "mics": kind.mics, "mem": kind.mem}
    return Amounts({resource: amount for resource, amount in amounts.items() if amount})


def job_of(draft: JobDraft, job_id: str, submit: int) -> Job:
    """Return the job, which waits."""
    chunk = Chunk(count=draft.kind.units, resources=amounts_of(draft.kind))
    return Job(
        id=job_id,
        user=f"u{draft.user + 1}",
        group=f"g{draft.user % GROUPS + 1}",
        queue=draft.kind.queue,
        submit=submit,
        steps=(Step(walltime=draft.walltime, request=Request(chunks=(chunk,))),),
        runtime=draft.runtime,
    )
