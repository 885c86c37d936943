"""Machines and jobs after the published figures of OpenCCS (Keller, JSSPP 2017): OCuLUS, ARMINIUS, and others alike."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from cpsched.domain import Amounts, Chunk, Cluster, Instance, Job, NodeClass, Request, Step
from cpsched.lab.workloads.openccs import SIZES

__all__ = ["OCULUS_NODES", "Load", "array_of_single_cores", "cluster_of", "identical_jobs", "instance_of"]

#: Requested cores and how many jobs a year asked for them (OpenCCS, core sizes of 2016).
CORE_SIZES = sorted((size.cores, size.jobs) for size in SIZES)
#: Cores of a node where the table was counted: larger jobs are made of chunks that fill a node.
TABLE_CORES = 16
#: Single-core jobs come in large arrays. Counted fully they are 94 % of all jobs, and 10,000 jobs fill one day of
#: OCuLUS, not the weeks that its plans reached; so one in so many is taken.
SINGLE_CORE_THINNING = 20

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
TYPICAL_DURATIONS = (
    *(minutes * _MINUTE for minutes in (30, 60, 90, 120, 150)),
    *(hours * _HOUR for hours in (3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 36, 48, 72)),
    7 * _DAY,
)
SHORTEST, LONGEST = 10 * _MINUTE, 7 * _DAY

GIB = 1024
#: GiB asked for each core, with weights; a node of 16 cores has 64 GiB.
MEMORY_PER_CORE = ((1, 30), (2, 35), (3, 10), (4, 25))
#: Shares of the jobs of a single chunk that ask for 8 GiB per core, for a GPU, and for a MIC.
FAT_SHARE, GPU_SHARE, MIC_SHARE = 0.02, 0.04, 0.01

ARMINIUS_NODES, OCULUS_NODES = 62, 616

#: How many nodes, and what each of them has: cores, GiB, accelerators.
_NodeGroup = tuple[int, int, int, dict[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Which machine is planned, and with what."""

    nodes: int
    jobs: int
    #: None: each job has one of the 20 typical durations. Else durations are log-uniform from 10 minutes to 7 days,
    #: rounded up to a multiple of so many seconds; 1 is the worst case.
    rounding: int | None
    #: Take all single-core jobs of the published table.
    all_single_cores: bool = False
    #: Memory as real nodes report it, not in whole GiB.
    odd_memory: bool = False
    #: Nodes of ARMINIUS that chunks do not fill: of 8 and 12 cores, for chunks of 8. What is left over on them makes
    #: the sums over the system say little about the nodes.
    uneven: bool = False
    seed: int = 0

    @property
    def durations(self) -> str:
        """The durations in words."""
        if self.rounding is None:
            return "20 typical"
        return "continuous" if self.rounding == 1 else f"multiples of {self.rounding:,} s"


def _node_groups(nodes: int, *, uneven: bool) -> list[_NodeGroup]:
    """Return the groups of equal nodes."""
    if nodes == ARMINIUS_NODES and uneven:  # 660 cores, a third of them in nodes of 8
        return [
            (19, 8, 32, {}),
            (37, 12, 48, {}),
            (2, 12, 128, {}),
            (2, 12, 48, {"gpus": 2}),
            (2, 8, 32, {"mics": 2}),
        ]
    if nodes == ARMINIUS_NODES:  # 660 cores
        return [
            (52, 10, 40, {}),
            (2, 20, 256, {}),
            (2, 20, 80, {}),
            (4, 10, 40, {"gpus": 2}),
            (2, 10, 40, {"mics": 2}),
        ]
    if nodes == OCULUS_NODES:  # 9,920 cores, 32 GPUs, 8 MICs
        return [
            (572, 16, 64, {}),
            (20, 16, 256, {}),
            (4, 32, 1024, {}),
            (16, 16, 64, {"gpus": 2}),
            (4, 16, 64, {"mics": 2}),
        ]
    fat, gpu, mic = (max(1, nodes // share) for share in (30, 40, 150))
    return [
        (nodes - fat - gpu - mic, 16, 64, {}),
        (fat, 16, 256, {}),
        (gpu, 16, 64, {"gpus": 2}),
        (mic, 16, 64, {"mics": 2}),
    ]


def cluster_of(nodes: int, *, odd_memory: bool = False, uneven: bool = False) -> Cluster:
    """Return ARMINIUS (62 nodes), OCuLUS (616), or nodes with 16 cores and the like shares of special ones."""
    classes, first = [], 0
    for count, cores, gib, accelerators in _node_groups(nodes, uneven=uneven):
        names = tuple(f"n{number:05}" for number in range(first, first + count))
        amounts = Amounts({"cores": cores, "mem": gib * GIB - 251 * odd_memory, **accelerators})
        classes.append(NodeClass(names=names, resources=amounts))
        first += count
    return Cluster(classes=tuple(classes))


def instance_of(load: Load) -> Instance:
    """Return a window in which all jobs wait, first come, first served; the same load gives the same window."""
    cluster = cluster_of(load.nodes, odd_memory=load.odd_memory, uneven=load.uneven)
    jobs = _Jobs(load, cluster)
    return Instance(
        name=f"openccs-{load.nodes}-{load.jobs}",
        now=load.jobs,
        cluster=cluster,
        jobs=tuple(jobs.job(number) for number in range(load.jobs)),
    )


class _Jobs:
    """Draws the jobs of a load; mutable: the generator, and the requests made so far, which equal jobs share."""

    def __init__(self, load: Load, cluster: Cluster) -> None:
        self.load = load
        self.random = random.Random(load.seed)
        self.chunk_cores = min(*(node_class.resources["cores"] for node_class in cluster.classes))
        room = sum(len(c.names) * (c.resources["cores"] // self.chunk_cores) for c in cluster.classes)
        #: Nobody asks for more than half of the machine, as on OCuLUS.
        self.sizes = [(cores, jobs) for cores, jobs in CORE_SIZES if cores <= room // 2 * TABLE_CORES]
        if not load.all_single_cores:
            self.sizes[0] = (1, CORE_SIZES[0][1] // SINGLE_CORE_THINNING)
        self.requests: dict[tuple[int, int, str], Request] = {}

    def job(self, number: int) -> Job:
        """Return the next job."""
        cores = self._one_of(self.sizes)
        gib = self._one_of(MEMORY_PER_CORE)
        accelerator = ""
        if cores <= TABLE_CORES:
            dice = self.random.random()
            if dice < FAT_SHARE:
                gib = 8
            elif dice < FAT_SHARE + GPU_SHARE:
                accelerator = "gpus"
            elif dice < FAT_SHARE + GPU_SHARE + MIC_SHARE:
                accelerator = "mics"
        key = cores, gib, accelerator
        if key not in self.requests:
            self.requests[key] = self._request(*key)
        return Job(id=f"j{number}", submit=number, steps=(Step(walltime=self._duration(), request=self.requests[key]),))

    def _one_of(self, weighted: list[tuple[int, int]] | tuple[tuple[int, int], ...]) -> int:
        values, weights = zip(*weighted, strict=True)
        return int(self.random.choices(values, weights)[0])

    def _request(self, cores: int, gib: int, accelerator: str) -> Request:
        each = 1 if cores == 1 else self.chunk_cores
        amounts = {"cores": each, "mem": (gib * GIB - 17 * self.load.odd_memory) * each}
        if accelerator:
            amounts[accelerator] = 1
        return Request(chunks=(Chunk(count=max(1, cores // TABLE_CORES), resources=Amounts(amounts)),))

    def _duration(self) -> int:
        if self.load.rounding is None:
            return self.random.choice(TYPICAL_DURATIONS)
        drawn = math.exp(self.random.uniform(math.log(SHORTEST), math.log(LONGEST)))
        return math.ceil(drawn / self.load.rounding) * self.load.rounding


def _single_core_hour() -> tuple[Step]:
    """Return the request of the typical array: one core for an hour, the mean of the published table."""
    amounts = Amounts({"cores": 1, "mem": 2 * GIB})
    return (Step(walltime=_HOUR, request=Request(chunks=(Chunk(count=1, resources=amounts),))),)


def array_of_single_cores(count: int, submit: int) -> Job:
    """Return one array of so many single-core jobs."""
    return Job(id="array", submit=submit, steps=_single_core_hour(), array=tuple(range(count)))


def identical_jobs(nodes: int, count: int) -> Instance:
    """Return a window with so many single-core jobs that differ in nothing (OCCS-12)."""
    jobs = tuple(Job(id=f"j{number}", submit=number, steps=_single_core_hour()) for number in range(count))
    return Instance(name=f"identical-{count}", now=count, cluster=cluster_of(nodes), jobs=jobs)
