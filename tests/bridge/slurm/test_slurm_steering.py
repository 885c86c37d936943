"""Faults of those who steer: after each one every job is Slurm's own to run, and none is lost."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cpsched.site.bridge import JobState
from tests.bridge.slurm.conftest import ADMINISTRATOR, OPERATOR, USER
from tests.bridge.slurm.faulty import FaultyCommands
from tests.bridge.slurm.laboratory import Laboratory
from tests.bridge.slurm.site import MANAGER_FAILED, STORE_FAILED, Site
from tests.bridge.slurm.test_slurm_rights import commands_of
from tests.sizes import some

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

REFUSED = 'cpsched_failures_total{what="refused"}'
GOOD = "cpsched_last_good_cycle_timestamp_seconds"
MakeSite = Callable[..., Site]
#: Seconds of a hold, where a test waits for the end of holds.
SHORT = 12


@pytest.fixture
def make(accounting: Laboratory, tmp_path: Path) -> Iterator[MakeSite]:
    """Make sites on the Slurm with all factors of priorities; their processes end with the test."""
    made: list[Site] = []

    def one(steering: str, account: str | None = None, name: str = "site", **choices: Any) -> Site:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        if account is not None:
            choices["commands"] = str(commands_of(accounting, account, folder))
        made.append(Site(accounting, folder, steering=steering, engine="wspt_list", **choices))
        return made[-1]

    yield one
    for site in made:
        site.end()


def submit(site: Site, count: int, *arguments: str, seconds: int = 1) -> list[str]:
    """Submit jobs of a user that need the whole machine."""
    command = ("sbatch", "--parsable", f"--uid={USER}", "--chdir=/", "--output=/dev/null", "--nodes=8", "--exclusive")
    return [
        site.lab.run(*command, "--time=3", *arguments, "--wrap", f"exec sleep {seconds}").strip() for _ in range(count)
    ]


def block(site: Site, minutes: int = 20) -> str:
    """Submit a job that holds the whole machine until it is cancelled, and return its id."""
    (blocker,) = submit(site, 1, f"--time={minutes}", seconds=900)
    site.lab.wait(lambda: site.lab.facts(blocker).state is JobState.RUNNING)
    return blocker


def wait_until_held(site: Site, jobs: list[str]) -> None:
    """Wait until all of some jobs are held."""
    site.lab.wait(lambda: {job for job, _, note in site.waiting() if "until=" in note} >= set(jobs))


def factors(lab: Laboratory) -> dict[str, int]:
    """Return what was added to the priorities of jobs."""
    rows = (line.split("|") for line in lab.run("sprio", "-h", "-o", "%i|%S").splitlines())
    return {job.strip(): int(site) for job, site in rows if int(site)}


def is_changed(lab: Laboratory, job: str, factor: int | None) -> bool:
    """Tell whether another factor was added to the priority of a job."""
    return factors(lab).get(job) != factor


def has_gone_on(site: Site, daemon: subprocess.Popen[str], cycles: float) -> bool:
    """Tell whether a daemon has made a whole cycle since so many were counted, beside the one under way, or ended."""
    return daemon.poll() is not None or site.metric("cpsched_cycles_total") > cycles + 1


def assert_all_run(site: Site, jobs: list[str]) -> None:
    """All jobs complete, each once."""
    facts = site.lab.manager.snapshot().jobs
    end = time.monotonic() + 500
    while not all(facts[job].state.is_over for job in jobs):
        assert time.monotonic() < end, site.log()[-3000:]
        time.sleep(1)
        facts = {**facts, **site.lab.manager.snapshot().jobs}
    assert {facts[job].state for job in jobs} == {JobState.COMPLETED}
    assert {facts[job].restarts for job in jobs} == {0}


@pytest.mark.parametrize("account", some([OPERATOR, ADMINISTRATOR], 2))
def test_order_is_the_plans_and_nothing_is_held(make: MakeSite, account: str) -> None:
    """Jobs that the plan starts first come first; an operator's rights are enough; stopped, nothing is left of it."""
    site = make("order", account)
    lab = site.lab
    blocker = block(site)
    long = submit(site, 2, "--time=200")
    (array,) = submit(site, 1, "--array=1-3", "--time=30")
    short = submit(site, 2, "--time=1")
    daemon = site.daemon()
    lab.wait(lambda: factors(lab))
    assert array in lab.run("squeue", "--noheader", "--format=%A").split()
    lab.run("scancel", blocker)
    assert not any(note for *_, note in site.waiting())
    assert not lab.gate.exists()
    tasks = [f"{array}_{index}" for index in (1, 2, 3)]
    assert_all_run(site, [*long, *short, *tasks])
    starts = {job: one.start or 0 for job, one in lab.manager.snapshot().jobs.items()}
    assert max(starts[job] for job in short) < min(starts[job] for job in long)
    blocker = block(site)
    later = [*submit(site, 2, "--time=100"), *submit(site, 1, "--time=1")]
    lab.wait(lambda: factors(lab))
    site.stop(daemon)
    assert factors(lab) == {}
    lab.run("scancel", blocker, *later)


def test_order_beside_a_maintenance_with_notes(make: MakeSite) -> None:
    """The first of the plan starts first, forecasts are where users see them, and a stopped daemon leaves nothing.

    A maintenance and a job of it are no hindrance, and what others wrote stays. CI runs this with each Slurm that it
    has (`scripts/test`).
    """
    site = make("order", ADMINISTRATOR, notes=True)
    lab = site.lab
    made = f"ReservationName=works StartTime=now+10hours Duration=60 Nodes=g[1-2] Flags=MAINT Users=root,{USER}"
    lab.run("scontrol", "create", "reservation", *made.split())
    blocker = block(site)
    try:
        long, foreign = submit(site, 2, "--time=200", seconds=600)
        (inside,) = submit(site, 1, "--nodes=1", "--reservation=works")
        (short,) = submit(site, 1, "--time=10", seconds=600)
        lab.run("scontrol", "update", f"JobId={foreign}", "AdminComment=ticket-12")
        daemon = site.daemon()
        lab.wait(lambda: short in factors(lab))
        lab.wait(lambda: all("forecast=most_likely_" in lab.raw(job)["admin_comment"] for job in (long, short)))
        lab.run("scancel", blocker)
        lab.wait(lambda: lab.facts(short).state is JobState.RUNNING and not lab.raw(short)["admin_comment"])
        facts = lab.manager.snapshot().jobs
        assert {facts[job].state for job in (long, foreign, inside)} == {JobState.WAITING}
        assert facts[long].noted is not None
        site.stop(daemon)
        assert factors(lab) == {}
        notes = {job: lab.raw(job)["admin_comment"] for job in (short, long, inside, foreign)}
        assert notes == {short: "", long: "", inside: "", foreign: "ticket-12"}
    finally:
        lab.run("scancel", f"--user={USER}", is_fine=False)
        lab.wait(lambda: not lab.run("squeue", "--noheader", "--format=%A").split())
        lab.run("scontrol", "delete", "ReservationName=works")


def test_a_reservation_that_is_deleted_holds_nobody(make: MakeSite) -> None:
    """A job that was planned behind it starts as soon as it is gone, and so does one whose partition gets nodes."""
    site = make("exact")
    lab = site.lab
    made = "ReservationName=works StartTime=now+2minutes Duration=60 Nodes=ALL Flags=MAINT Users=root"
    lab.run("scontrol", "create", "reservation", *made.split())
    daemon = site.daemon()
    try:
        (behind,) = submit(site, 1, "--time=10")
        wait_until_held(site, [behind])
    finally:
        lab.run("scontrol", "delete", "ReservationName=works")
    assert_all_run(site, [behind])
    lab.run("scontrol", "update", "PartitionName=urgent", "Nodes=c1")
    try:
        first, second = submit(site, 2, "--nodes=1", "--partition=urgent", seconds=600)
        wait_until_held(site, [second])
    finally:
        lab.run("scontrol", "update", "PartitionName=urgent", "Nodes=ALL")
    lab.wait(lambda: lab.facts(second).state is JobState.RUNNING)
    lab.run("scancel", first, second)
    site.stop(daemon)


@pytest.mark.parametrize(
    ("steering", "sign"),
    some(
        [
            ("order", signal.SIGKILL),
            ("order", signal.SIGSTOP),
            ("exact", signal.SIGKILL),
            ("exact", signal.SIGSTOP),
        ],
        3,
    ),
)
def test_a_daemon_that_is_gone_stops_nobody(make: MakeSite, steering: str, sign: signal.Signals) -> None:
    """Killed or stopped while it steers, with no watchdog: all that waits runs within the minutes of a hold."""
    site = make(steering, hold=SHORT)
    blocker = block(site)
    jobs = [*submit(site, 1, "--time=200"), *submit(site, 1, "--time=1")]
    daemon = site.daemon()
    if steering == "order":
        site.lab.wait(lambda: factors(site.lab))
    else:
        wait_until_held(site, jobs)
    daemon.send_signal(sign)
    jobs += submit(site, 1)
    site.lab.run("scancel", blocker)
    assert_all_run(site, jobs)


def test_a_daemon_that_reaches_slurm_no_more_stops_nobody(
    accounting: Laboratory, make: MakeSite, tmp_path: Path
) -> None:
    """No command is answered any more: what is held runs when its hold ends; when they are, the daemon goes on."""
    faults = FaultyCommands(tmp_path / "faulty", accounting.commands)
    site = make("exact", hold=SHORT, commands=str(faults.path), seconds=5)
    blocker = block(site)
    jobs = submit(site, 2)
    daemon = site.daemon()
    wait_until_held(site, jobs)
    failed, good = site.metric(MANAGER_FAILED), site.metric(GOOD)
    faults.set("any", "hang")
    jobs += submit(site, 1)
    site.wait_for_more(lambda: site.metric(MANAGER_FAILED), failed)
    site.lab.run("scancel", blocker)
    assert_all_run(site, jobs)
    faults.clear()
    site.wait_for_more(lambda: site.metric(GOOD), good)
    site.stop(daemon)


@pytest.mark.parametrize("steering", ["order", "exact"])
def test_an_administrator_who_works_against_it(make: MakeSite, steering: str) -> None:
    """Whatever it has written is written over, again and again; it goes on, and all jobs run."""
    site = make(steering)
    lab = site.lab
    blocker = block(site)
    jobs = [*submit(site, 2, "--time=200"), *submit(site, 1, "--time=1")]
    daemon = site.daemon()
    changes = {
        "order": ("SiteFactor=0", "Nice=50", "Nice=0"),
        "exact": ("AdminComment=", "StartTime=now+60", "ReqNodeList=g1 NumNodes=8"),
    }
    for change in changes[steering]:
        cycles = site.metric("cpsched_cycles_total")
        lab.wait(lambda: factors(lab) if steering == "order" else any(note for *_, note in site.waiting()))
        for job in jobs:
            lab.run("scontrol", "update", f"JobId={job}", *change.split(), is_fine=False)
        lab.run("scontrol", "hold", jobs[0])
        site.wait_for_more(lambda: site.metric("cpsched_cycles_total"), cycles)
        lab.run("scontrol", "release", jobs[0])
    for job in jobs:
        lab.run("scontrol", "update", f"JobId={job}", "ReqNodeList=", "StartTime=now")
    lab.run("scancel", blocker)
    assert_all_run(site, jobs)
    site.stop(daemon)


@pytest.mark.parametrize(("steering", "account"), some([("order", USER), ("exact", USER), ("exact", OPERATOR)], 2))
def test_without_rights_everything_runs(make: MakeSite, steering: str, account: str) -> None:
    """Failures are counted, and it says that it gave up; and all jobs run."""
    site = make(steering, account, hold=SHORT)
    blocker = block(site)
    jobs = submit(site, 2, "--time=10")
    site.start()
    site.lab.wait(lambda: site.metric("cpsched_cycles_total") >= 1)
    jobs += submit(site, 1, "--time=1")
    site.lab.wait(lambda: site.metric(REFUSED) >= 1)
    site.lab.wait(lambda: site.metric("cpsched_gave_up") == 1)
    site.lab.run("scancel", blocker)
    assert_all_run(site, jobs)


def test_rights_that_are_lost_and_what_hand_back_says(make: MakeSite) -> None:
    """Without rights --hand-back names what is still steered and fails; the gate's file is gone all the same."""
    site = make("exact")
    lab = site.lab
    blocker = block(site)
    jobs = submit(site, 2)
    daemon = site.daemon()
    wait_until_held(site, jobs)
    daemon.kill()
    lab.gate.write_text("closed until 1\n")
    weak = make("exact", USER, "weak")
    assert weak.start("--hand-back").wait(150) == 1
    assert not lab.gate.exists()
    assert site.start("--hand-back").wait(150) == 0
    assert not any(note for *_, note in site.waiting())
    lab.run("scancel", blocker)
    assert_all_run(site, jobs)


def test_two_daemons(make: MakeSite) -> None:
    """A second one on the same store does not begin; one with another store ends when it sees the first one's holds."""
    site = make("exact")
    blocker = block(site)
    jobs = submit(site, 2)
    daemon = site.daemon()
    wait_until_held(site, jobs)
    assert all(";by=" in note for *_, note in site.waiting())
    same = site.start()
    assert same.wait(150) != 0
    other = make("exact", None, "other")
    assert other.start().wait(150) != 0
    assert "another cpsched steers these jobs" in other.log()
    assert daemon.poll() is None
    site.lab.run("scancel", blocker)
    assert_all_run(site, jobs)
    site.stop(daemon)


def test_two_daemons_that_give_orders_only(make: MakeSite) -> None:
    """The second one sets no factor beside those of the first, and ends when it has seen them change twice."""
    site = make("order")
    lab = site.lab
    blocker = block(site)
    jobs = [*submit(site, 3, "--time=200"), *submit(site, 1, "--time=1")]
    daemon = site.daemon()
    lab.wait(lambda: factors(lab))
    set_by_first = factors(lab)
    other = make("order", None, "other")
    second = other.daemon()
    other.wait_for_more(lambda: other.metric("cpsched_cycles_total"), 1)
    assert factors(lab) == set_by_first
    for turn, job in enumerate((jobs[2], jobs[1])):
        before = factors(lab)
        lab.run("scontrol", "update", f"JobId={job}", f"TimeLimit={20 - turn}")
        lab.wait(partial(is_changed, lab, job, before.get(job)))
        cycles = other.metric("cpsched_cycles_total") if second.poll() is None else 0
        lab.wait(partial(has_gone_on, other, second, cycles))
    assert second.wait(60) != 0
    assert "another cpsched steers these jobs" in other.log()
    assert daemon.poll() is None
    assert factors(lab)
    lab.run("scancel", blocker)
    assert_all_run(site, jobs)
    site.stop(daemon)


@pytest.mark.parametrize("fault", some(["corrupt", "locked"], 2))  # `test_a_locked_database` always
def test_a_store_that_fails_holds_nobody(make: MakeSite, fault: str) -> None:
    """The store is no database any more, or somebody else has it locked: no orders are given, and all jobs run."""
    site = make("exact", hold=SHORT)
    blocker = block(site)
    jobs = submit(site, 2)
    site.daemon()
    wait_until_held(site, jobs)
    with closing(sqlite3.connect(site.folder / "cpsched.db", isolation_level=None)) as other:
        if fault == "locked":
            other.execute("BEGIN IMMEDIATE")
        else:
            for path in site.folder.glob("cpsched.db*"):
                if not path.name.endswith(".lock"):
                    path.write_bytes(b"nonsense" * 1000)
        jobs += submit(site, 1)
        site.lab.wait(lambda: site.metric(STORE_FAILED) >= 1)
        site.lab.run("scancel", blocker)
        assert_all_run(site, jobs)


def test_slurmctld_forgets_orders(make: MakeSite) -> None:
    """Killed before it has written its state, slurmctld comes back with older jobs; the daemon goes on."""
    site = make("order")
    blocker = block(site)  # while it runs no start of a job can be forgotten
    jobs = [*submit(site, 2, "--time=200"), *submit(site, 2, "--time=1")]
    known = time.time()  # slurmctld writes what it knows some seconds after a change
    site.lab.run("scontrol", "update", f"JobId={blocker}", "Comment=changed")
    site.lab.wait(lambda: (site.lab.directory / "state" / "job_state").stat().st_mtime > known)
    daemon = site.daemon()
    site.lab.wait(lambda: factors(site.lab))
    site.lab.script("kill", "slurmctld", "--signal", "KILL")
    site.wait_for_more(lambda: site.metric(MANAGER_FAILED), 0)
    site.lab.script("revive", "slurmctld")
    site.lab.run("scancel", blocker)
    assert_all_run(site, jobs)
    site.stop(daemon)
