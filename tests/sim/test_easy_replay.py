"""The replay of EASY backfilling from windows: as the simulator's, which knows every event; and what only sites do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import cast

import pytest

from cpsched.domain import Amounts, Instance, Job
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Decision, News, Scheduler, Site, easy_kernels
from cpsched.lab.sim.arrays import C, R
from cpsched.rules import EasyReplay
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.sim.played import played
from tests.sizes import seeds


@dataclass
class Watched:
    """Decides as another policy does, and follows the windows of each second."""

    policy: Scheduler
    replay: EasyReplay = field(default_factory=EasyReplay)
    #: The longest waits under EASY so far, by the windows and by the simulator.
    seen: list[tuple[int, int]] = field(default_factory=list)
    is_told: bool = True
    name: str = "watched"

    def begin(self, site: Site) -> None:
        """Make ready."""
        self.policy.begin(site)

    def longest(self, site: Site) -> int:
        """Return the longest wait of the simulator's own replay."""
        state = site._world.state
        easy_kernels.replay_easy(site.now, state)
        return int(state.clock[C.LONGEST])

    def decide(self, site: Site, news: News) -> Decision:
        """Decide, and look at both, until a job has ended that no window told of in time: nobody waited then."""
        self.is_told &= all(site._world.state.runs[job, R.END] == news.now for job in news.gone)
        if self.is_told:
            self.seen.append((self.replay.follow(site.window()), self.longest(site)))
        return self.policy.decide(site, news)


def crowd(draw: Random, number: int) -> Instance:
    """Return a workload of jobs that ask for cores, memory, and a licence or two, and that mostly end early."""
    jobs, now = list[Job](), 0
    for place in range(number):
        asked = chunk(draw.randint(1, 4), cores=draw.randint(1, 2), mem=draw.randint(0, 3))
        walltime = draw.choice([5, 20, 60])
        held = {"lic": draw.randint(1, 2)} if draw.random() < 0.2 else {}
        one = waiting(f"j{place}", walltime, asked, licenses=Amounts(held))
        jobs.append(replace(one, submit=now, runtime=draw.randint(1, walltime)))
        now += draw.choice([0, 0, 1, 7, 20]) if place > 12 else 0
    return window([nodes("a b c d", cores=2, mem=4)], *jobs, licenses={"lic": 2})


@pytest.mark.parametrize("policy", ["static_backfill", "conservative", "wspt_list"])
@pytest.mark.parametrize("seed", seeds(40))
def test_windows_tell_what_the_simulator_knows(seed: int, policy: str) -> None:
    """At each event the longest wait is the same, whatever the policy does meanwhile."""
    watched = Watched(cast("Scheduler", make_scheduler(policy)))
    played(crowd(Random(seed), 40), watched)
    assert len(watched.seen) > 10
    assert [ours for ours, _ in watched.seen] == [theirs for _, theirs in watched.seen]


def test_waits_are_found() -> None:
    """One core, jobs of 10 s: here b runs first, then a. Under EASY c waits for 20 s; known when both are over."""
    a, b, c = (waiting(name, 10, chunk(cores=1)) for name in "abc")
    seen = window([nodes("n", cores=1)], a, b, c)
    replay = EasyReplay()
    assert replay.follow(seen) == 0
    assert replay.follow(replace(seen, now=5, jobs=(a, running("b", 10, n={"cores": 1}), c))) == 0
    assert replay.follow(replace(seen, now=10, jobs=(a, c))) == 0
    assert replay.follow(replace(seen, now=20, jobs=(c,))) == 20


def test_machines_and_clocks_change() -> None:
    """A node less, a resource more, and a clock that goes back: it goes on."""
    jobs = [waiting(name, 10, chunk(2, cores=1)) for name in "abc"]
    seen = window([nodes("m n", cores=1)], *jobs)
    replay = EasyReplay()
    assert replay.follow(seen) == 0
    less = window([nodes("n", cores=1, gpus=1)], *jobs, waiting("g", 10, chunk(cores=1, gpus=1)))
    assert replay.follow(replace(less, now=50)) == 0
    assert replay.follow(replace(seen, now=20)) == 0
    assert replay.follow(replace(seen, now=40, jobs=())) == 20


def test_a_job_that_never_starts_holds_nobody_up_for_ever() -> None:
    """Job a of 10 s starts at once in the replay, but not here; two days later it is over there, and b has waited."""
    a, b = (waiting(name, 10, chunk(cores=1)) for name in "ab")
    seen = window([nodes("n", cores=1)], a, b)
    replay = EasyReplay()
    two_days = 2 * 86_400
    for now, longest in ((0, 0), (two_days + 10, 0), (two_days + 11, 10)):
        assert replay.follow(replace(seen, now=now)) == longest


def test_a_job_that_waits_again_holds_up_what_is_over() -> None:
    """Job a is queued again in the second in which b is over: the replay waits for a, and b runs in it until then."""
    a, b = (waiting(name, 30, chunk(cores=1)) for name in "ab")
    runs_a, runs_b = (running(name, 30, n={"cores": 1}) for name in "ab")
    seen, replay = window([nodes("n", cores=2)]), EasyReplay()
    for now, jobs in ((0, (runs_a, b)), (1, (runs_a, runs_b)), (1, (a,)), (11, ())):
        assert replay.follow(replace(seen, now=now, jobs=jobs)) == 0


@pytest.mark.parametrize("seed", seeds(200))
def test_any_history_of_windows_is_followed(seed: int) -> None:
    """Jobs come, vanish, start and wait again as they like: waits only grow, and what is over is forgotten."""
    draw, now, longest, replay = Random(seed), 0, 0, EasyReplay()
    machine = [nodes("n", cores=3)]
    for _ in range(60):
        jobs = list[Job]()
        for name in "abcdef":
            match draw.choice(["gone", "waits", "runs"]):
                case "waits":
                    jobs.append(waiting(name, draw.choice([5, 30]), chunk(cores=draw.randint(1, 2))))
                case "runs":
                    one = running(name, 30, n={"cores": 1})
                    start = max(0, now - draw.choice([0, 1, 20]))
                    assert one.running is not None
                    jobs.append(replace(one, running=replace(one.running, start=start)))
        found = replay.follow(replace(window(machine), now=now, jobs=tuple(jobs)))
        assert found >= longest
        longest, now = found, now + draw.choice([0, 0, 1, 10])
    replay.follow(replace(window(machine), now=now + 10))
    replay.follow(replace(window(machine), now=now + 1000))
    assert not replay._known
    assert not replay._running
