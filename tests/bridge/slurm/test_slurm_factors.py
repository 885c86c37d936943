"""The factors of priorities, and who set them: two daemons with stores of their own, an administrator, one Slurm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cpsched.site.bridge import JobState, Rank
from cpsched.site.bridge.commands import Answer
from cpsched.site.bridge.slurm import SlurmManager, SlurmModel
from cpsched.site.bridge.slurm.factors import LEASE, Factors
from cpsched.site.bridge.slurm.records import JobRecord
from cpsched.site.daemon import Daemon, Store, hand_back
from tests.bridge.slurm.answers import NOW, waiting
from tests.bridge.slurm.test_slurm_lines import Told
from tests.daemon.making import LIVE, Lines, planner

ORDER = replace(LIVE, policy=replace(LIVE.policy, only_ranks=True))
ALARM = "another cpsched steers these jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked(Told):
    """Knows the factors of its waiting jobs. Mutable."""

    factors_by_id: dict[str, int] = field(default_factory=dict)

    def command(self, *arguments: str, given: str = "", codes: Sequence[int] = (0,)) -> Answer:
        """Answer as Slurm would."""
        if given:
            for line in given.splitlines():
                words = dict(word.split("=", 1) for word in line.split()[1:])
                self.factors_by_id[words["JobId"]] = int(words["SiteFactor"])
                self.written.append(words["JobId"])
            return Answer(0, b"", "")
        if arguments[0] == "sprio":
            rows = ((job, self.factors_by_id.get(job, 0)) for job in self.jobs_by_id)
            return Answer(0, "".join(f"{job}|{site}|{1000 + site}|9{'|0' * 6}\n" for job, site in rows).encode(), "")
        return Told.command(self, *arguments, given=given, codes=codes)


class Cluster:
    """One Slurm whose jobs the daemons' engines put in different orders. Mutable."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self._folder = NOW, folder
        jobs = [waiting(number, time_limit=100 - 10 * number, cpus=16) for number in range(1, 7)]
        self.slurm = Ranked(jobs_by_id={str(job["job_id"]): job for job in jobs})
        monkeypatch.setattr("cpsched.site.bridge.slurm.manager._TRUSTED", -1.0)

    def manager(self) -> SlurmManager:
        """Return a manager as another process has it."""
        return SlurmManager(replace(self.slurm), SlurmModel(kind="slurm"), clock=lambda: self.now)

    def daemon(self, engine: str, **policy: bool) -> tuple[Daemon, Lines]:
        """Begin a daemon with a store of its own."""
        store, lines = Store(f"sqlite:///{self._folder}/{engine}.db"), Lines()
        settings = replace(ORDER, policy=replace(ORDER.policy, **policy))
        daemon = Daemon(self.manager(), store, planner(engine=engine), settings, log=lines.log)
        daemon.begin()
        return daemon, lines

    def cycle(self, daemon: Daemon, seconds: int = 30) -> int:
        """Run cycles of a daemon, and return how many factors it has set."""
        self.now += seconds
        before = len(self.slurm.written)
        daemon.cycle()
        return len(self.slurm.written) - before


def rank(daemon: Daemon, job: str) -> Rank:
    """Return an order that gives a job another place."""
    return Rank(job=job, priority=daemon.manager.snapshot().jobs[job].priority + 7)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Make a Slurm."""
    return Cluster(tmp_path, monkeypatch)


def test_a_second_daemon_writes_over_nothing_and_gives_way(cluster: Cluster) -> None:
    """Factors of another one stay for minutes; a new daemon that sees it at work ends, and takes nothing back."""
    first, said = cluster.daemon("wspt_list")
    assert cluster.cycle(first)
    second, lines = cluster.daemon("fcfs")
    assert not cluster.cycle(second)
    for job in ("1", "2"):
        assert not second.must_stop
        cluster.slurm.jobs_by_id[f"{job}0"] = waiting(int(job) * 10, time_limit=2, cpus=16)
        assert first.manager.apply([rank(first, job)])[0].detail == ""
        assert cluster.cycle(first, 1)
        assert not cluster.cycle(second, 1)
    assert second.must_stop
    assert any(ALARM in line.get("error", "") for line in lines.read())
    before = dict(cluster.slurm.factors_by_id)
    assert not second.stop()
    assert cluster.slurm.factors_by_id == before
    assert not first.must_stop
    assert not any("SiteFactor" in line.get("why", "") for line in said.read())


def test_an_established_daemon_says_so_and_goes_on(cluster: Cluster) -> None:
    """What others set stays for five minutes, is said, and is written over after that; what is 0 is nobody's."""
    daemon, lines = cluster.daemon("wspt_list")
    assert cluster.cycle(daemon)
    cluster.now += LEASE
    job = next(iter(cluster.slurm.factors_by_id))
    for factor in (5, 6, 7):
        cluster.slurm.factors_by_id[job] = factor
        assert job not in {cluster.slurm.written[-1] for _ in range(cluster.cycle(daemon))}
        assert cluster.slurm.factors_by_id[job] == factor
    assert any(f"sets SiteFactor, of job {job} last" in line.get("why", "") for line in lines.read())
    assert not daemon.must_stop
    cluster.cycle(daemon, LEASE)
    assert cluster.slurm.factors_by_id[job] not in (0, 7)
    cluster.slurm.factors_by_id[job] = 0
    cluster.cycle(daemon)
    assert cluster.slurm.factors_by_id[job]


def test_tasks_and_components_have_the_factor_of_their_whole() -> None:
    """A task that is split off an array, and the other components of a heterogeneous job, are nobody else's."""
    factors = Factors()
    array = JobRecord(number=10, state=JobState.WAITING, array=10, tasks_text="1-3")
    leader, part = (JobRecord(number=number, state=JobState.WAITING, het=20) for number in (20, 21))
    alone = JobRecord(number=30, state=JobState.WAITING)
    factors.given((array, leader, part, alone), {}, NOW)
    for record in (array, leader):
        factors.order(record, 50, NOW)
    task = array.but(number=11, task=1, tasks_text="")
    seen = factors.given((task, array, leader, part, alone), dict.fromkeys((10, 11, 20, 21, 30), (50, 1050)), NOW)
    assert [one.number for one in seen if one.is_foreign] == [30]


def test_handing_back_takes_what_others_set_too(cluster: Cluster) -> None:
    """For a daemon that is gone: whoever set a factor, `--hand-back` leaves none; a dry run gives way to nobody."""
    dry, _ = cluster.daemon("fcfs", is_dry_run=True)
    first, _ = cluster.daemon("wspt_list")
    for factor in range(3):
        cluster.cycle(first)
        cluster.slurm.factors_by_id["1"] = 100 + factor
        cluster.cycle(dry)
    assert not dry.must_stop
    assert hand_back(cluster.manager()).left == ()
    assert not any(cluster.slurm.factors_by_id.values())
