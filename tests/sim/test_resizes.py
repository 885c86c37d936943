"""Jobs whose numbers of nodes change while they run: worked examples, a naive twin of their work, and the judge."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from cpsched.domain import Instance, Job, Outage, Resizable
from cpsched.errors import EngineError, UnsupportedError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Checkpoint, Decision, History, News, Site, simulate
from tests.booking.small_windows import nodes, window
from tests.sim.played import played
from tests.sim.test_choices import job, step

pytestmark = pytest.mark.kernels

POLICIES = ("malleable_min", "malleable_pref", "malleable_keep", "malleable_avg", "malleable_gain")


def resizable(of: Job, cost: int = 0, interval: int = 1) -> Job:
    """Return a job that may change between its choices."""
    return replace(of, resizable=Resizable(cost=cost, interval=interval))


class Orders:
    """Starts jobs as they come by a choice, and resizes them at some seconds; what is refused is noted."""

    name = "orders"

    def __init__(self, orders: dict[int, list[tuple[int, int]]]) -> None:
        self._orders = orders
        self.refused: list[tuple[int, int]] = []

    def begin(self, site: Site) -> None:
        """Know nothing."""

    def decide(self, site: Site, news: News) -> Decision:
        """Do what is ordered for this second."""
        draft = site.draft()
        for number, choice in self._orders.get(site.now, ()):
            done = draft.resize(number, choice) if site.is_running(number) else draft.start(number, choice)
            self.refused += [] if done else [(site.now, number)]
        return draft.decision(wake=min((time for time in self._orders if time > site.now), default=None))


FOUR = nodes("n1 n2 n3 n4", cores=1)
#: 100 s on two nodes, 60 on four, 160 on one.
JOB = job("a", 0, step(100, 2), step(60, 4), step(160, 1), runtime=80)


def sizes_of(history: History, name: str = "a") -> list[tuple[int, int, list[str]]]:
    """Return the segments of a job: from when to when, on which nodes."""
    run = next(one for one in history.record().jobs if one.id == name)
    return [(one.start, one.end, sorted(held.node for held in one.allocation)) for one in run.segments]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        # 40 s of work by 40; 20 s on one node do 12.5; what is left, 27.5, takes 16.5 on four
        (0, [(0, 40, ["n1", "n2"]), (40, 60, ["n1"]), (60, 77, ["n1", "n2", "n3", "n4"])]),
        # 15 s on one node do 9.375, and 30.625 take 18.375 after 5 without work
        (5, [(0, 40, ["n1", "n2"]), (40, 60, ["n1"]), (60, 84, ["n1", "n2", "n3", "n4"])]),
    ],
)
def test_a_job_takes_its_work_along(cost: int, expected: list[tuple[int, int, list[str]]]) -> None:
    """What is done is done, as a share of the walltime; a change costs some seconds; it keeps nodes that it has."""
    history = played(window([FOUR], resizable(JOB, cost)), Orders({0: [(0, 0)], 40: [(0, 2)], 60: [(0, 1)]}))
    assert sizes_of(history) == expected
    runs = history.runs
    assert (runs.start.tolist(), runs.first_start.tolist(), runs.attempts.tolist()) == ([0], [0], [1])
    end = expected[-1][1]
    assert runs.cores.tolist() == [round((2 * 40 + 20 + 4 * (end - 60)) / end)]


def test_what_may_not_change_does_not() -> None:
    """No room, too soon, another choice than there is, or the same one: the job stays as it is."""
    other = job("b", 0, step(100, 3))
    orders = Orders({0: [(0, 2), (1, 0)], 5: [(0, 0)], 9: [(0, 7)], 10: [(0, 1)], 100: [(0, 1)], 105: [(0, 2)]})
    history = played(window([FOUR], resizable(JOB, interval=10), other), orders)
    assert orders.refused == [(5, 0), (9, 0), (10, 0), (105, 0)]
    assert [len(held) for _, _, held in sizes_of(history)] == [1, 4]


def test_a_scheduler_that_resizes_where_there_is_no_room_is_told() -> None:
    """A start of a running job by another choice is checked as all others are."""

    class Wrong(Orders):
        def decide(self, site: Site, news: News) -> Decision:
            decided = super().decide(site, news)
            if site.now != 20:
                return decided
            return Decision(starts=[replace(one, choice=1) for one in decided.starts])

    with pytest.raises(EngineError, match="starts job a at 20"):
        simulate(window([FOUR], resizable(JOB)), Wrong({0: [(0, 0)], 20: [(0, 2)]}))


def busy(seed: int) -> Instance:
    """Return a workload of a few nodes on which most jobs have several sizes; nodes may fail."""
    random = Random(seed)
    jobs, submit = [], 0
    for number in range(12):
        submit += random.choice([0, 0, 1, 5, 20])
        counts = random.sample(range(1, 6), random.choice([1, 2, 3]))
        own, *others = (step(random.randint(1, 60), count) for count in counts)
        made = job(
            f"j{number}", submit, own, *others, runtime=random.choice([None, random.randint(1, own.walltime + 5)])
        )
        cost, interval = random.choice([0, 0, 3]), random.choice([1, 1, 7])
        jobs.append(replace(resizable(made, cost, interval) if others else made, user=random.choice("uv")))
    machine = [nodes("a1 a2 a3", cores=1), nodes("b1", cores=random.choice([1, 2]))]
    found = window(machine, *jobs)
    if seed % 3 == 2:
        found = replace(found, outages=(Outage(nodes=("a1",), start=30, end=50),))
    return found


class Restless(Orders):
    """Starts and resizes jobs at random."""

    def __init__(self, seed: int) -> None:
        super().__init__({})
        self._random = Random(seed)

    def decide(self, site: Site, news: News) -> Decision:
        """Try a few things."""
        draft = site.draft()
        for number in (*site.running.tolist(), *site.queue.tolist()):
            choice = self._random.randrange(4)
            if site.is_running(number):
                draft.resize(number, choice)
            else:
                draft.start(number)
        return draft.decision(wake=site.now + self._random.randint(1, 9) if len(site.running) else None)


def naive_end(instance: Instance, record_job: Job, history: History) -> int:
    """Return when a job ends by its segments, counting second by second what each node count is worth."""
    stated = next(one for one in instance.jobs if one.id == record_job.id)
    run = next(one for one in history.record().jobs if one.id == stated.id)
    walltimes = {one.request.chunks[0].count: one.walltime for one in stated.choices}
    cost = stated.resizable.cost if stated.resizable else 0
    wanted = min(stated.walltime, stated.runtime or stated.walltime)
    done, second = Fraction(0), run.start
    for index, segment in enumerate(run.segments):
        count = sum(held.count or 0 for held in segment.allocation)
        for passed in range(segment.end - segment.start):
            second += 1
            if index == 0 or passed >= cost:
                done += Fraction(stated.walltime, walltimes[count])
            if done >= wanted:
                return second
    return -1


@pytest.mark.parametrize("seed", range(12))
def test_work_as_the_naive_twin_counts_it(seed: int) -> None:
    """Whatever is resized when, each job ends in the second in which a twin that counts seconds has its work done."""
    instance = busy(seed)
    history = played(instance, Restless(seed))
    for run in history.record().jobs:
        of = next(one for one in instance.jobs if one.id == run.id)
        assert naive_end(instance, of, history) == run.end


def test_random_resizes_are_many() -> None:
    """The twin has something to count."""
    records = [simulate(busy(seed), Restless(seed)).record() for seed in range(4)]
    assert sum(len(run.segments) - 1 for record in records for run in record.jobs) > 10


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_under_the_judge(policy: str) -> None:
    """Each policy plays jobs with and without sizes, with costs, intervals and outages, and all of them end."""
    changes = 0
    for seed in range(6):
        history = played(busy(seed), make_scheduler(policy))
        assert history.runs.over.sum() == (history.runs.ending != 1).sum()
        changes += sum(history.counters.values())
    assert changes > 2


def crowd(*jobs: tuple[int, int, tuple[int, ...]]) -> Instance:
    """Return jobs of (submission, own size, other sizes), each 240 s on its own size, as fast as it has nodes."""
    made = [
        resizable(job(f"j{k}", at, step(240, own), *(step(240 * own // size, size) for size in others)))
        for k, (at, own, others) in enumerate(jobs)
    ]
    return window([nodes(" ".join(f"n{k}" for k in range(1, 9)), cores=1)], *made)


def at(history: History, second: int) -> list[int]:
    """Return how many nodes each job has at a second."""
    found = {
        run.id: len(one.allocation)
        for run in history.record().jobs
        for one in run.segments
        if one.start <= second < one.end
    }
    return [found.get(name, 0) for name in history.runs.ids]


@pytest.mark.parametrize(
    ("policy", "first", "then", "full"),
    [
        # the least that the new one needs is taken from the first, and the one with less grows
        ("malleable_min", [8, 0, 0], [4, 4, 0], [2, 4, 2]),
        ("malleable_avg", [8, 0, 0], [4, 4, 0], [2, 4, 2]),
        ("malleable_pref", [8, 0, 0], [4, 4, 0], [2, 4, 2]),
        # no job has less than it asks for because of others
        ("malleable_keep", [8, 0, 0], [4, 4, 0], [4, 4, 0]),
        # where speed is in proportion what is shortest has all
        ("malleable_gain", [8, 0, 0], [8, 0, 0], [8, 0, 0]),
    ],
)
def test_how_policies_share(policy: str, first: list[int], then: list[int], full: list[int]) -> None:
    """One job alone has all; when a second and a third one come, the strategies differ."""
    history = played(crowd((0, 4, (2, 8)), (30, 4, (2, 8)), (60, 4, (2, 8))), make_scheduler(policy))
    assert [at(history, 10), at(history, 40), at(history, 61)] == [first, then, full]


def test_what_runs_is_a_rigid_job_in_a_window() -> None:
    """A plan of a rolling window sees a running job at its present size, from the change on, to its end."""
    seen: list[Job] = []

    class Looking(Orders):
        def decide(self, site: Site, news: News) -> Decision:
            if site.now == 60:
                seen.extend(site.window(()).jobs)
            return super().decide(site, news)

    played(window([FOUR], resizable(JOB)), Looking({0: [(0, 0)], 40: [(0, 2)], 60: []}))
    (one,) = seen
    assert one.running is not None
    assert (one.resizable, one.running.start, one.running.segments[-1].end, one.walltime) == (None, 40, 136, 96)
    assert [held.node for held in one.running.segments[-1].allocation] == ["n1"]


def test_documents_keep_it() -> None:
    """What is written is read again."""
    instance = window([FOUR], resizable(JOB, 5, 60))
    assert parse_instance(instance_to_document(instance)).jobs == instance.jobs


def test_a_checkpoint_of_the_simulation_is_refused(tmp_path: Path) -> None:
    """What sizes jobs have had is not kept in a file yet."""
    with pytest.raises(UnsupportedError, match="resizable"):
        simulate(
            window([FOUR], resizable(JOB)),
            Orders({}),
            checkpoint=Checkpoint(path=tmp_path / "kept", scheduler="orders"),
        )
