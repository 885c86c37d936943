"""Policies for jobs that are malleable in nodes: the strategies of Zojer, Posner and Özden, and one of ours.

Sizes are compared by cores, and jobs are counted: where nodes are not interchangeable a change may find no room, and is
left out. A job without sizes starts as under EASY, by what it asks for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from cpsched.lab.sim import Decision, News, Site


@dataclass(frozen=True, slots=True)
class Size:
    """One of the sizes of a job: by which choice, its cores, how fast the job is there (1: by its own request)."""

    choice: int
    cores: int
    rate: float


class Sizes:
    """What jobs can have and what they have, in numbers of cores; mutable. Of one second."""

    def __init__(self, site: Site, known: dict[int, tuple[Size, ...]]) -> None:
        self._site, self._known = site, known
        self.draft = site.draft()
        self.room = self.draft.free.get("cores", 0)
        #: The size of each running job, by its index, and what running and starting jobs are to have.
        self.now: dict[int, int] = {}
        for job in site.running.tolist():
            choice = site.choice_of(job)
            self.now[job] = next((i for i, size in enumerate(self.of(job)) if size.choice == choice), 0)
        self.to = dict(self.now)
        self.movable = [job for job in self.now if site.can_resize(job)]

    def of(self, job: int) -> tuple[Size, ...]:
        """Return the sizes of a job, ascending; only those that are faster than all smaller ones, and its own."""
        if job not in self._known:
            found, kept = self._site.choices_of(job), list[Size]()
            for number, one in sorted(found, key=lambda one: (one[1].request.totals.get("cores", 0), one[0])):
                size = Size(number, one.request.totals.get("cores", 0), self._site.jobs[job].walltime / one.walltime)
                if not kept or size.rate > kept[-1].rate or number == 0:
                    kept.append(size)
            self._known[job] = tuple(kept)
        return self._known[job]

    def cores(self, job: int) -> int:
        """Return the cores that a running job is to have."""
        return self.of(job)[self.to[job]].cores

    def own(self, job: int) -> int:
        """Return the place of the size that a job asks for itself."""
        return next((i for i, size in enumerate(self.of(job)) if size.choice == 0), 0)

    def put(self, job: int, place: int) -> None:
        """Note the size that a running job changes to, or that a job starts with."""
        self.room += (self.cores(job) if job in self.to else 0) - self.of(job)[place].cores
        self.to[job] = place

    def decision(self, counters: Counter[str]) -> Decision:
        """Return the decision: jobs shrink, others start, others grow."""
        steps = {job: place - self.now.get(job, place) for job, place in self.to.items()}
        for job in sorted(steps, key=lambda job: (steps[job] > 0) - (steps[job] < 0)):
            choice = self.of(job)[self.to[job]].choice
            if job not in self.now:
                self.draft.start(job, choice)
            elif steps[job]:
                counters["grown" if steps[job] > 0 else "shrunk"] += self.draft.resize(job, choice)
        return self.draft.decision(wake=self._site.next_resize)


def _reserved(site: Site, room: int, cores_of: Callable[[int], int], cores: int) -> tuple[int, int]:
    """Return when so many cores are free if all jobs end by their walltimes, and how many are left then.

    `room`: the cores that are free now. `cores_of`: of a running job.
    """
    for job, end in zip(site.running.tolist(), site.ends.tolist(), strict=True):
        room += cores_of(job)
        if room >= cores:
            return end, room - cores
    return site.now, 0


class Malleable:
    """A strategy that starts jobs in the order of the queue as EASY does, shrinks running jobs where others wait, and
    lets running jobs grow where nodes are left.

    `name`: as users name it. `first`: the size that a job is to start with: the least, or its own. `floors`: in turn
    what a waiting job starts with by shrinking others, and down to what these are shrunk. `tops`: in turn up to what
    jobs grow. `is_even`: whether jobs shrink and grow by single sizes, always the one that is nearest to its largest
    or least; else whole jobs in turn, by the cores that they have beyond `first`.
    """

    #: It changes sizes (`unkept`).
    resizes = True

    def __init__(
        self,
        name: str,
        *,
        first: str = "least",
        floors: Iterable[tuple[str, str]] = (("least", "least"),),
        tops: Iterable[str] = ("most",),
        is_even: bool = False,
    ) -> None:
        self.name, self._first, self._is_even = name, first, is_even
        self._floors, self._tops = tuple(floors), tuple(tops)
        self.counters: Counter[str] = Counter()

    def begin(self, site: Site) -> None:
        """Forget all jobs."""
        self._known: dict[int, tuple[Size, ...]] = {}
        self.counters.clear()

    def decide(self, site: Site, news: News) -> Decision:
        """Start, shrink and let grow."""
        sizes = Sizes(site, self._known)
        self._start(site, sizes)
        for job in site.queue.tolist():
            if job not in sizes.to:
                self._make_room(sizes, job)
        for top in self._tops:
            self._grow(sizes, top)
        return sizes.decision(self.counters)

    def _place(self, sizes: Sizes, job: int, which: str) -> int:
        return {"least": 0, "own": sizes.own(job), "most": len(sizes.of(job)) - 1}[which]

    def _start(self, site: Site, sizes: Sizes) -> None:
        """Start what fits in the order of the queue, and behind the first that does not what does not delay it."""
        shadow: int | None = None
        extra = 0
        for job in site.queue.tolist():
            if sizes.room <= 0:
                return
            fitting = [size.cores <= sizes.room for size in sizes.of(job)[: self._place(sizes, job, self._first) + 1]]
            if shadow is None and not fitting[0]:
                shadow, extra = _reserved(site, sizes.room, sizes.cores, sizes.of(job)[0].cores)
            if fitting[0]:
                size = sizes.of(job)[sum(fitting) - 1]
                is_short = shadow is None or site.now + site.jobs[job].walltime / size.rate <= shadow
                if is_short or size.cores <= extra:
                    sizes.put(job, sum(fitting) - 1)
                    extra -= 0 if is_short else size.cores

    def _make_room(self, sizes: Sizes, job: int) -> None:
        """Start a job by shrinking others, if they have enough for it."""
        for start, floor in self._floors:
            place = self._place(sizes, job, start)
            lacking = sizes.of(job)[place].cores - sizes.room
            floors = {one: self._place(sizes, one, floor) for one in sizes.movable}
            if sum(max(0, sizes.cores(one) - sizes.of(one)[least].cores) for one, least in floors.items()) >= lacking:
                self._shrink(sizes, sizes.of(job)[place].cores, floors)
                sizes.put(job, place)
                return

    def _shrink(self, sizes: Sizes, cores: int, floors: Mapping[int, int]) -> None:
        """Shrink jobs, down to these sizes, until so many cores are free."""
        able = [job for job in sizes.movable if sizes.to[job] > floors[job]]
        while sizes.room < cores:
            job = max(able, key=self._rank(sizes))
            least, rest = floors[job], sizes.room + sizes.cores(job) - cores
            place = next((k for k in range(sizes.to[job] - 1, least, -1) if sizes.of(job)[k].cores <= rest), least)
            sizes.put(job, sizes.to[job] - 1 if self._is_even else place)
            if sizes.to[job] == least or not self._is_even:
                able.remove(job)

    def _grow(self, sizes: Sizes, top: str) -> None:
        """Give what is left to jobs, up to a size of each."""
        starting = (job for job in sizes.to if job not in sizes.now)
        able = [job for job in (*sizes.movable, *starting) if sizes.to[job] < self._place(sizes, job, top)]
        while able and sizes.room > 0:
            job = min(able, key=self._rank(sizes))
            before, most, room = sizes.to[job], self._place(sizes, job, top), sizes.room + sizes.cores(job)
            highest = before + 1 if self._is_even else most
            sizes.put(job, next((k for k in range(highest, before, -1) if sizes.of(job)[k].cores <= room), before))
            if not self._is_even or sizes.to[job] in (before, most):
                able.remove(job)

    def _rank(self, sizes: Sizes) -> Callable[[int], tuple[float, int]]:
        """Return the key of a job that is the higher, the sooner it is shrunk, and the later it grows."""

        def key(job: int) -> tuple[float, int]:
            of = sizes.of(job)
            if self._is_even:
                return (sizes.cores(job) - of[0].cores) / max(1, of[-1].cores - of[0].cores), -job
            return sizes.cores(job) - of[self._place(sizes, job, self._first)].cores, -job

        return key


class Gain:
    """Of all sizes of all jobs those that together gain most: the sum over jobs of their speed / remaining work.

    Each core goes to the job whose speed it raises most for its remaining work, the least sizes of running jobs first.
    A waiting job takes part with its least size. The remaining work is what the walltime says and what the last two
    jobs of the same user took, in geometric mean, less what is done.

    `steps`: a job keeps its size where another one would be nearer than so many sizes. `patience`: seconds after which
    a job that waits comes before all others; the first that finds no room has a reservation, as under EASY.
    """

    name = "malleable_gain"
    resizes = True

    def __init__(self, *, steps: int = 2, patience: int = 4 * 86_400) -> None:
        self._steps, self._patience = steps, patience
        self.counters: Counter[str] = Counter()

    def begin(self, site: Site) -> None:
        """Forget all jobs."""
        self._known: dict[int, tuple[Size, ...]] = {}
        self._took: dict[str | None, list[float]] = {}
        #: The work of each running job that is done, as of a second, and its speed since.
        self._done: dict[int, tuple[float, int, float]] = {}
        self.counters.clear()

    def decide(self, site: Site, news: News) -> Decision:
        """Choose all sizes anew."""
        for job in news.gone:
            if job in self._done:
                self._took.setdefault(site.jobs[job].user, []).append(self._work(site, job))
                del self._done[job]
        sizes = Sizes(site, self._known)
        places = self._filled(site, sizes, set())
        near = {job for job in sizes.movable if abs(places[job] - sizes.now[job]) < self._steps}
        places = self._filled(site, sizes, near)
        for job, place in places.items():
            sizes.put(job, place)
            if sizes.now.get(job) != place:
                self._done[job] = self._work(site, job), site.now, sizes.of(job)[place].rate
        return sizes.decision(self.counters)

    def _work(self, site: Site, job: int) -> float:
        done, since, rate = self._done.get(job, (0.0, site.now, 0.0))
        return done + rate * (site.now - since)

    def _left(self, site: Site, job: int) -> float:
        """Return the work that a job is expected to have left: seconds by its own request."""
        walltime = site.jobs[job].walltime
        took = self._took.get(site.jobs[job].user, [])[-2:]
        expected = (walltime * min(walltime, max(1.0, sum(took) / len(took)))) ** 0.5 if took else float(walltime)
        done = self._work(site, job)
        # one that outlives what was expected may take as long again
        while expected <= done:
            expected = min(float(walltime), 2 * expected) if expected < walltime else done + 60
        return max(60.0, expected - done)

    def _filled(self, site: Site, sizes: Sizes, kept: set[int]) -> dict[int, int]:
        """Return the size of each job that can change or start, the `kept` ones as they are."""
        places = {job: sizes.now[job] if job in kept else 0 for job in sizes.movable}
        room = sizes.room + sum(sizes.cores(job) - sizes.of(job)[places[job]].cores for job in places)
        weight: dict[int, float] = {}
        heap: list[tuple[float, int, int]] = []

        def offer(job: int, place: int) -> None:
            of = sizes.of(job)
            if place < len(of):
                speed, cores = (of[place - 1].rate, of[place - 1].cores) if place else (0.0, 0)
                heap.append((-(of[place].rate - speed) * weight[job] / max(1, of[place].cores - cores), job, place))

        queue = site.queue.tolist()
        late = [job for job in queue if site.now - site.submit[job] > self._patience]
        for job in late:
            cores = sizes.of(job)[0].cores
            if cores > room:
                queue = self._beside(site, sizes, places, cores, room, [one for one in queue if one not in places])
                break
            places[job] = 0
            room -= cores
        for job in {*places, *queue}:
            weight[job] = 1 / self._left(site, job)
            if job not in kept:
                offer(job, places[job] + 1 if job in places else 0)
        heapify(heap)
        while heap and room > 0:
            _, job, place = heappop(heap)
            of = sizes.of(job)
            cores = of[place].cores - (of[place - 1].cores if place else 0)
            if cores <= room:
                places[job], room = place, room - cores
                before = len(heap)
                offer(job, place + 1)
                if len(heap) > before:
                    heappush(heap, heap.pop())
        return places

    def _beside(
        self, site: Site, sizes: Sizes, places: Mapping[int, int], cores: int, room: int, queue: list[int]
    ) -> list[int]:
        """Return the waiting jobs that can start, with their least sizes, and do not delay one that is late.

        `places`: the sizes of jobs that can change or start. `cores`: what the late one needs. `room`: what is free.
        """

        def cores_of(job: int) -> int:
            return sizes.of(job)[places[job]].cores if job in places else sizes.cores(job)

        shadow, extra = _reserved(site, room, cores_of, cores)
        found = []
        for job in queue:
            least = sizes.of(job)[0]
            is_short = site.now + site.jobs[job].walltime / least.rate <= shadow
            if is_short or least.cores <= extra:
                found.append(job)
                extra -= 0 if is_short else least.cores
        return found


def malleable_min() -> Malleable:
    """Return the strategy that starts jobs with their least sizes (Min)."""
    return Malleable("malleable_min")


def malleable_pref() -> Malleable:
    """Return the strategy that starts jobs with their own sizes, where others need not be smaller for that (Pref)."""
    floors = ("own", "own"), ("least", "own"), ("least", "least")
    return Malleable("malleable_pref", first="own", floors=floors, tops=("own", "most"))


def malleable_keep() -> Malleable:
    """Return the strategy that keeps jobs at their own sizes where it can (KeepPref)."""
    return Malleable("malleable_keep", first="own", floors=(("own", "own"), ("least", "own")), tops=("own", "most"))


def malleable_avg() -> Malleable:
    """Return the strategy by which all jobs are as near to their largest sizes (Avg)."""
    return Malleable("malleable_avg", is_even=True)
