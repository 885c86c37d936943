"""Naive twins of the schedulers that keep reservations: one list of bookings, and everything looked up in it anew.

They know equal nodes with cores only, and jobs of equal chunks that may share a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cpsched.domain import Amounts, Placement
from cpsched.lab.sim import Decision, News, Site, Start


@dataclass(frozen=True)
class Held:
    """What a job takes, or is to take: chunks by node, in ``[start, end)``."""

    start: int
    end: int
    #: Cores by node.
    cores: dict[int, int]


class Machine:
    """The nodes, in the order in which they are filled."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.names = site.columns.node_names
        self.capacity = site.instance.cluster.classes[0].resources["cores"]

    def request(self, job: int) -> tuple[int, int]:
        """Return how many chunks a job asks for, and the cores of each."""
        (chunk,) = self.site.jobs[job].request.chunks
        return chunk.count, chunk.resources["cores"]

    def free(self, node: int, start: int, end: int, held: Collection[Held]) -> int:
        """Return the cores of a node that are free in all of ``[start, end)``."""
        here = [one for one in held if node in one.cores and one.start < end and start < one.end]
        moments = {start} | {one.start for one in here if one.start > start}
        used = [sum(one.cores[node] for one in here if one.start <= now < one.end) for now in moments]
        return self.capacity - max(used, default=0)

    def fit(self, job: int, start: int, held: Collection[Held]) -> Held | None:
        """Return a job's place if it starts in some second, the first nodes first."""
        need, cores = self.request(job)
        end, found = start + self.site.estimate(job), {}
        for node in range(len(self.names)):
            chunks = min(need, self.free(node, start, end, held) // cores)
            if chunks > 0:
                found[node] = chunks * cores
                need -= chunks
        return None if need else Held(start, end, found)

    def earliest(self, job: int, now: int, latest: int, held: Collection[Held]) -> Held | None:
        """Return the earliest place of a job; it begins now, or when something ends."""
        moments = sorted({now} | {one.end for one in held if one.end > now})
        places = (self.fit(job, moment, held) for moment in moments if moment <= latest)
        return next((place for place in places if place is not None), None)

    def start(self, job: int, place: Held) -> Start:
        """Return the start of a job."""
        name, (_, cores) = self.names, self.request(job)
        allocation = [
            Placement(node=name[node], chunk=0, count=total // cores, resources=Amounts({"cores": total}))
            for node, total in place.cores.items()
        ]
        start = self.site.start_on(job, allocation)
        assert start is not None
        return start


def in_turn(site: Site, jobs: Sequence[int]) -> list[int]:
    """Return waiting jobs by priority, then by submission."""
    return sorted(jobs, key=lambda job: (-site.instance.priority(site.jobs[job]), job))


class NaiveConservative:
    """At each event each job is taken out and put where it fits first, or stays."""

    name = "naive conservative"

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def begin(self, site: Site) -> None:
        """Forget everything."""
        self.machine = Machine(site)
        #: The places of those who wait, and of those who run.
        self.held: dict[int, Held] = {}

    def decide(self, site: Site, news: News) -> Decision:
        """Start those whose turn it is."""
        now = news.now
        for job in news.gone:
            del self.held[job]
        queue = in_turn(site, site.queue.tolist())
        for place, job in enumerate(job for job in queue if job in self.held):
            self.move_up(job, now, now if place >= self.depth else self.held[job].start - 1)
        for job in queue:
            if job not in self.held:
                found = self.machine.earliest(job, now, 1 << 60, self.held.values())
                assert found is not None
                self.held[job] = found
        due = [job for job in queue if self.held[job].start == now]
        later = [self.held[job].start for job in queue if self.held[job].start > now]
        return Decision(
            starts=[self.machine.start(job, self.held[job]) for job in due], wake=min(later) if later else None
        )

    def move_up(self, job: int, now: int, latest: int) -> None:
        """Give a job an earlier place, if there is one; a job that starts now stays."""
        if self.held[job].start == now:
            return
        old = self.held.pop(job)
        self.held[job] = self.machine.earliest(job, now, min(latest, old.start - 1), self.held.values()) or old


class NaiveSlurm:
    """A quick pass at each event; and a cycle, at most one in each interval, which reserves whole nodes or chunks."""

    name = "naive slurm"

    def __init__(self, interval: int, window: int, resolution: int, most: int, *, by_nodes: bool) -> None:
        self.interval, self.window, self.resolution, self.most = interval, window, resolution, most
        self.by_nodes = by_nodes

    def begin(self, site: Site) -> None:
        """Forget everything."""
        self.machine = Machine(site)
        self.running: dict[int, Held] = {}
        self.next_cycle = site.now

    def decide(self, site: Site, news: News) -> Decision:
        """Start the first job, and in a cycle each job that delays no job before it."""
        now = news.now
        for job in news.gone:
            del self.running[job]
        queue = in_turn(site, site.queue.tolist())
        starts = []
        while queue and (place := self.machine.fit(queue[0], now, self.running.values())) is not None:
            self.running[queue[0]] = place
            starts.append(self.machine.start(queue.pop(0), place))
        if now < self.next_cycle:
            return Decision(starts=starts, wake=self.next_cycle)
        backfilled = list(self.cycle(queue[: self.most], now))
        self.next_cycle = now + self.interval
        return Decision(starts=starts + backfilled, wake=self.next_cycle if backfilled else None)

    def cycle(self, queue: Sequence[int], now: int) -> Iterator[Start]:
        """Start or reserve one job after the other."""
        reserved: list[Held] = []
        for job in queue:
            place = self.machine.earliest(job, now, now + self.window, [*self.running.values(), *reserved])
            if place is None:
                continue
            if place.start == now:
                self.running[job] = place
                yield self.machine.start(job, place)
            elif self.by_nodes:
                first = max(now, place.start // self.resolution * self.resolution)
                last = -(-place.end // self.resolution) * self.resolution
                # more than there is: whoever runs there takes a part of it
                reserved.append(Held(first, last, dict.fromkeys(place.cores, 1 << 40)))
            else:
                reserved.append(place)
