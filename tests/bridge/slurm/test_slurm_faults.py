"""Faults of the world, in the running loop of a real slurmctld and the daemon's own process.

After each, no job is lost, none is doubled, and Slurm and the store agree (`Site.settle`).
"""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from cpsched.site.bridge import JobState, Refusal
from cpsched.site.bridge.slurm.orders import ERRORS
from cpsched.site.daemon import Store
from tests.bridge.slurm.faulty import FaultyCommands
from tests.bridge.slurm.laboratory import Laboratory
from tests.bridge.slurm.site import MANAGER_FAILED, STORE_FAILED, Site
from tests.daemon.stored_orders import orders_in
from tests.daemon.test_faults import HOSTILE
from tests.sizes import LARGE

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

#: Answers to what is asked: the call, how it misbehaves, its exit code, what it prints and says of errors.
ANSWERS: tuple[tuple[str, str, int, str, str], ...] = (
    ("jobs", "half", 0, "", ""),
    ("jobs", "say", 0, "{}", ""),
    ("jobs", "say", 1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
    ("nodes", "half", 0, "", ""),
    ("partitions", "say", 0, "<html>\x1b[2J</html>", ""),
    ("config", "say", 0, "", ""),
    ("look", "hang", 0, "", ""),
    ("lines", "say", 1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
)
MORE_ANSWERS: tuple[tuple[str, str, int, str, str], ...] = (
    ("jobs", "say", 0, "", ""),
    ("jobs", "say", 0, "garbage \x1b]0;x\x07", ""),
    ("jobs", "say", 0, "[" * 100_000, ""),
    ("jobs", "say", 0, '{"jobs": [{"job_id": "x", "job_state": 7}]}', ""),
    ("jobs", "say", 0, '{"jobs": [], "errors": [{"error": "Zero Bytes were transmitted or received"}]}', ""),
    ("jobs", "say", 1, "", "slurm_load_jobs error: Socket timed out on send/recv operation"),
    ("jobs", "say", 1, "", "slurm_load_jobs error: Protocol authentication error"),
    ("jobs", "hang", 0, "", ""),
    ("jobs", "endless", 0, "", ""),
    ("nodes", "say", 0, "{}", ""),
    ("partitions", "say", 0, "", ""),
    ("partitions", "half", 0, "", ""),
    ("reservations", "say", 0, "", ""),
    ("licenses", "say", 1, "", "slurm_load_licenses error: Insane message length"),
    ("version", "say", 0, "slurm", ""),
    ("look", "say", 1, "", "slurm_load_jobs error: Unexpected message received"),
)


@dataclass
class Loop:
    """A live site whose commands can fail, and its daemon, which is started anew where a test has killed it."""

    site: Site
    faults: FaultyCommands
    daemon: subprocess.Popen[str] | None = None

    def is_dead(self) -> bool:
        """Tell whether the daemon is gone."""
        return self.daemon is None or self.daemon.poll() is not None

    def revive(self) -> None:
        """Start the daemon if it is gone."""
        if self.is_dead():
            self.daemon = self.site.daemon()

    @property
    def pid(self) -> int:
        """The daemon's number."""
        assert self.daemon is not None
        return self.daemon.pid


@pytest.fixture(scope="module")
def one_loop(one_lab: Laboratory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """Return one site for all tests of this file."""
    folder = tmp_path_factory.mktemp("loop")
    faults = FaultyCommands(folder / "faulty", one_lab.commands)
    site = Site(one_lab, folder, commands=str(faults.path), seconds=5)
    yield Loop(site, faults)
    faults.clear()
    site.end()


@pytest.fixture
def loop(one_loop: Loop, one_lab: Laboratory) -> Loop:
    """Return the site with an empty queue, a gate that is closed, and commands that work."""
    one_loop.faults.clear()
    one_loop.revive()
    one_lab.reset(opens_gate=False)
    one_lab.wait(lambda: one_lab.manager.snapshot().gate_is_closed)
    return one_loop


@pytest.mark.parametrize("answers", [ANSWERS, pytest.param(MORE_ANSWERS, marks=pytest.mark.large)], ids=["few", "more"])
def test_a_command_that_hangs_or_answers_nonsense(
    loop: Loop, answers: tuple[tuple[str, str, int, str, str], ...]
) -> None:
    """No order is given while it lasts; the cycle after it goes on as if nothing had been."""
    site, faults = loop.site, loop.faults
    jobs = []
    for call, kind, code, out, err in answers:
        before, failed = faults.hits(), site.metric(MANAGER_FAILED)
        faults.set(call, kind, code, out=out, err=err)
        jobs.append(site.submit())
        site.wait_for_more(faults.hits, before)
        site.wait_for_more(lambda: site.metric(MANAGER_FAILED), failed)
        assert jobs[-1] not in site.orders(), (call, kind, out, err)
        faults.clear()
    site.settle(jobs)
    assert not loop.is_dead()


@pytest.mark.parametrize("kind", ["half", "say"])
def test_lines_that_are_cut_off_or_say_nothing(loop: Loop, kind: str) -> None:
    """Jobs run all the same: they are read themselves where their lines are not there."""
    site, faults = loop.site, loop.faults
    before, failed = faults.hits(), site.metric(MANAGER_FAILED)
    faults.set("lines", kind)
    jobs = [site.submit() for _ in range(4)]
    site.lab.wait(lambda: sum(site.runs()[job] for job in jobs) == len(jobs))
    assert faults.hits() > before
    assert site.metric(MANAGER_FAILED) == failed
    faults.clear()
    site.settle(jobs)


def test_each_known_error_of_an_order(loop: Loop) -> None:
    """Whatever Slurm says of an order, it is understood, the job is planned again, and runs once."""
    site, faults = loop.site, loop.faults
    words = [(text, refusal) for text, refusal in ERRORS] + [("Some words that nobody has seen yet", Refusal.OTHER)]
    before = faults.hits()
    faults.set("orders", "refuse", err="".join(f"{text}\n" for text, _ in words))
    jobs = [site.submit("--ntasks=1") for _ in range(2 * len(words))]
    site.lab.wait(lambda: faults.hits() >= before + 2)
    site.lab.wait(lambda: len(_refusals(site, jobs)) >= len(words))
    faults.clear()
    site.settle(jobs, seconds=90)
    assert _refusals(site, jobs) == set(words)
    assert not loop.is_dead()


def _refusals(site: Site, jobs: list[str]) -> set[tuple[str, str]]:
    """Return Slurm's words about orders, each with the refusal that the store has."""
    store = Store(f"sqlite:///{site.folder}/cpsched.db", is_reader=True)
    try:
        rows = [one for one in orders_in(store) if one.job in jobs and one.refusal is not None and one.detail]
    finally:
        store.close()
    return {(str(one.detail).rpartition(" for job ")[0], str(one.refusal)) for one in rows}


@pytest.mark.parametrize(
    ("kind", "code"), [("say", 0), ("say", 1), ("hang", 0)], ids=["nothing happens", "without a word", "hangs"]
)
def test_orders_that_get_lost(loop: Loop, kind: str, code: int) -> None:
    """An order that Slurm never heard of, or did not answer, is given again."""
    site, faults = loop.site, loop.faults
    before = faults.hits()
    faults.set("orders", kind, code)
    jobs = [site.submit() for _ in range(3)]
    site.lab.wait(lambda: faults.hits() > before)
    faults.clear()
    site.settle(jobs)


@pytest.mark.parametrize("instant", ["config", "orders"])
def test_races_between_snapshot_and_action(loop: Loop, instant: str) -> None:
    """What users do after the snapshot, or after the last look at their jobs, is respected.

    Jobs are cancelled, held, changed, held and released, started by hand, and queued again.
    """
    site, lab, faults = loop.site, loop.site.lab, loop.faults
    again = site.submit("--nodelist=m1", seconds=15)
    lab.wait(lambda: lab.facts(again).state is JobState.RUNNING)
    faults.set(instant, "pause")
    # `again`, and the one that is started by hand, still run at the daemon's next look, on a busy machine too
    jobs = [site.submit("--nodelist=g1", seconds=seconds) for seconds in (1, 1, 1, 1, 15, 1)]
    gone, held, longer, freed, by_hand, plain = jobs
    lab.wait(lambda: faults.is_paused)
    lab.run("scancel", gone)
    lab.run("scontrol", "hold", held)
    lab.run("scontrol", "hold", freed)
    lab.run("scontrol", "release", freed)
    lab.run("scontrol", "update", f"JobId={longer}", "TimeLimit=7")
    lab.run("scontrol", "update", f"JobId={by_hand}", "StartTime=now", "ReqNodeList=g2")
    lab.run("scontrol", "requeue", again, is_fine=False)  # unless it is over
    faults.clear()
    lab.wait(lambda: site.runs()[plain] == 1)
    lab.wait(lambda: (lab.facts(held).state, lab.facts(held).due) == (JobState.HELD, None))
    assert site.runs()[held] == 0
    lab.run("scontrol", "release", held)
    facts = site.settle([again, *jobs[1:]], others={gone: JobState.CANCELLED})
    assert facts[again].restarts == 1
    assert {facts[job].restarts for job in jobs} == {0}


def test_a_node_dies_with_planned_and_running_jobs(loop: Loop) -> None:
    """The job that ran there is queued again, those planned there get other nodes, and nothing starts on it."""
    site, lab = loop.site, loop.site.lab
    # they still run when the node dies, on a busy machine too
    first = [site.submit("--exclusive", "--nodes=1", seconds=15) for _ in range(8)]
    lab.wait(lambda: sum(site.runs()[job] for job in first) == 8)
    second = [site.submit("--exclusive", "--nodes=1", seconds=1) for _ in range(8)]
    where = {job: lab.facts(job).nodes for job in first}
    (lost,) = (job for job, nodes in where.items() if nodes == ("g1",))
    lab.wait(lambda: site.metric('cpsched_jobs{state="planned"}') >= 8)
    lab.script("kill", "g1", "--signal", "KILL")
    lab.run("scontrol", "update", "NodeName=g1", "State=DOWN", "Reason=test")
    facts = site.settle([*first, *second], seconds=120)
    assert {job: facts[job].restarts for job in first} == {job: int(job == lost) for job in first}
    assert all(facts[job].nodes != ("g1",) for job in (lost, *second))


KILLS = ("die-before 0", "die-half 2", "die-after 0", "die-late 3")


def test_the_daemon_is_killed_during_actuation(loop: Loop) -> None:
    """Before, amid, after its orders, or with orders that arrive when the next daemon works already; or at any time."""
    site, faults, chance, jobs = loop.site, loop.faults, random.Random(3), list[str]()
    for number in range(20 if LARGE else len(KILLS)):
        loop.revive()
        kind, code = KILLS[number % len(KILLS)].split()
        is_timed = number >= len(KILLS) and chance.random() < 0.5
        if not is_timed:
            faults.set("orders", kind, int(code))
        jobs += [site.submit(*chance.choice(((), ("--exclusive",), ("--nodes=2", "--ntasks=4")))) for _ in range(5)]
        if is_timed:
            time.sleep(chance.uniform(0, 3))
            assert loop.daemon is not None
            loop.daemon.kill()
        site.lab.wait(loop.is_dead)
        if (number + 1) % len(KILLS) == 0:  # Slurm forgets jobs five minutes after their end
            _settle_where_ordered(loop, jobs)
            jobs = []


def _settle_where_ordered(loop: Loop, jobs: Sequence[str]) -> None:
    """With a new daemon all jobs come to their end, each on nodes that some order said."""
    loop.revive()
    facts = loop.site.settle(jobs, seconds=90)
    assert {facts[job].restarts for job in jobs} == {0}
    ordered = loop.site.orders()
    for job in jobs:
        assert facts[job].nodes in {nodes for _, nodes in ordered[job]}, job


def test_a_locked_database(loop: Loop) -> None:
    """While somebody else has the store locked no order is given; afterwards all goes on."""
    site = loop.site
    failed = site.metric(STORE_FAILED)
    other = sqlite3.connect(site.folder / "cpsched.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        jobs = [site.submit() for _ in range(4)]
        site.lab.wait(lambda: site.metric(STORE_FAILED) > failed)
        assert not site.runs().keys() & set(jobs)
        other.execute("ROLLBACK")
    finally:
        other.close()
    site.settle(jobs)
    assert not loop.is_dead()


def _descriptors(process: int) -> set[int]:
    """Return the file descriptors of a process, but for those that it soon closes."""
    looks = []
    for _ in range(10):
        looks.append({int(entry.name) for entry in Path(f"/proc/{process}/fd").iterdir()})
        time.sleep(0.1)
    return set.intersection(*looks)


def test_no_file_descriptors_are_left(loop: Loop) -> None:
    """With none, or too few for a command, cycles fail; when there are more, all goes on, and none has leaked."""
    site, before = loop.site, _descriptors(loop.pid)
    # the numbers that a new one can have
    unused = sorted(set(range(1000)) - before)
    usual = resource.prlimit(loop.pid, resource.RLIMIT_NOFILE)
    jobs = []

    def failures() -> int:  # nobody can ask for metrics meanwhile
        return site.log().count(" failed")

    try:
        for free in (0, 3, 6):
            failed = failures()
            resource.prlimit(loop.pid, resource.RLIMIT_NOFILE, (unused[free], usual[1]))
            jobs.append(site.submit())
            site.wait_for_more(failures, failed)
            resource.prlimit(loop.pid, resource.RLIMIT_NOFILE, usual)
    finally:
        resource.prlimit(loop.pid, resource.RLIMIT_NOFILE, usual)
    site.settle(jobs)
    assert not loop.is_dead()
    site.lab.wait(lambda: len(_descriptors(loop.pid)) <= len(before))  # a look at Slurm has some for a moment


def test_a_storm_of_submissions(loop: Loop) -> None:
    """Thousands of jobs that arrive at once, in arrays and alone, are seen; cycles stay good, and jobs run."""
    site, lab, size = loop.site, loop.site.lab, 5000 if LARGE else 300
    alone = size // 5
    array = site.submit(f"--array=1-{size - alone}", "--ntasks=4")
    single = [site.submit("--ntasks=2") for _ in range(alone)]
    jobs = [*single, *(f"{array}_{number}" for number in range(1, size - alone + 1))]
    lab.wait(lambda: site.metric('cpsched_jobs{state="waiting"}') >= size // 4)
    lab.wait(lambda: sum(site.runs()[job] for job in jobs) >= 30)

    def states() -> dict[str, JobState]:
        return {job: one.state for job, one in lab.manager.snapshot().jobs.items() if job in set(jobs)}

    lab.wait(lambda: JobState.COMPLETED in states().values())
    lab.run("scancel", array, *single)
    site.wait_for_silence(60)
    ended = states()
    assert set(ended.values()) == {JobState.COMPLETED, JobState.CANCELLED}
    assert len(ended) == size
    site.settle((), others=ended)
    assert not loop.is_dead()


def test_hostile_names_in_the_loop(loop: Loop, tmp_path: Path) -> None:
    """Names and comments for a shell, JSON, HTML and terminals harm neither their jobs, nor the log, nor others."""
    site, lab = loop.site, loop.site.lab
    mark = tmp_path / "owned"
    names = [*HOSTILE, f"$(touch {mark})`touch {mark}`; touch {mark}", "x\nupdate JobId=1 StartTime=now\n"]
    jobs = [site.submit(f"--job-name={name}", f"--comment={name}", "--exclusive") for name in names]
    noted = site.submit("--hold")
    lab.run("scontrol", "update", f"JobId={noted}", "AdminComment=' \"; {} <b> \x1b[2J cpsched:1;begin=x'")
    lost = site.submit("--hold")
    lab.run("scontrol", "update", f"JobId={lost}", "AdminComment=see_ticket_7")
    lab.run("scontrol", "release", f"{noted},{lost}")
    site.settle([*jobs, noted, lost], seconds=400)  # two have lost the note of their hold, which ends by itself
    assert not mark.exists()
    for line in site.log().splitlines():
        assert line.isprintable()
        assert isinstance(json.loads(line), dict)
    assert site.metric("cpsched_cycles_total") > 0
    assert os.access(site.folder / "cpsched.db", os.R_OK)
