"""The rights that the daemon needs: an administrator of Slurm, no root, steers the jobs of others; nobody else can."""

from __future__ import annotations

import pwd
import shutil
import time
from pathlib import Path

import pytest

from cpsched.site.bridge import HandBack, Hold, JobState, Order, Refusal, Result
from cpsched.site.bridge.slurm import SlurmClient, SlurmManager, SlurmModel
from tests.bridge.slurm.conftest import ADMINISTRATOR, OPERATOR, OTHER, USER
from tests.bridge.slurm.laboratory import PATIENCE, Laboratory, start
from tests.bridge.slurm.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def commands_of(lab: Laboratory, account: str, folder: Path) -> Path:
    """Make a directory in which Slurm's commands run as an account."""
    path = folder / f"as-{account}"
    path.mkdir()
    for name in ("squeue", "sinfo", "scontrol", "sprio"):
        (path / name).write_text(f'#!/bin/sh\nexec /usr/sbin/runuser -u {account} -- {lab.commands}/{name} "$@"\n')
        (path / name).chmod(0o755)
    return path


def submit(lab: Laboratory, *arguments: str) -> str:
    """Submit a job of a user, and return its id."""
    command = ("sbatch", "--parsable", f"--uid={USER}", "--chdir=/", "--output=/dev/null", "--time=2", *arguments)
    return lab.run(*command, "--wrap", "exec sleep 1").strip()


def test_an_administrator_steers_the_jobs_of_others(accounting: Laboratory, tmp_path: Path) -> None:
    """With an administrator's rights the daemon plans, orders, announces, and hands back all that waits."""
    lab = accounting
    site = Site(lab, tmp_path, commands=str(commands_of(lab, ADMINISTRATOR, tmp_path)))
    try:
        daemon = site.daemon()
        lab.wait(lab.gate.exists)
        jobs = [submit(lab, *shape) for shape in (("-n4",), ("-N2", "-n4"), ("--gres=gpu:1",)) for _ in range(3)]
        wide = [submit(lab, "--nodes=8", "--exclusive") for _ in range(3)]
        site.wait_for_silence(60)
        facts, orders = lab.manager.snapshot().jobs, site.orders()
        for job in (*jobs, *wide):
            assert facts[job].state is JobState.COMPLETED
            assert facts[job].nodes in {nodes for _, nodes in orders[job]}
        later = [submit(lab, "--begin=now+1hour", "--nodes=8", "--exclusive") for _ in range(2)]
        lab.wait(lambda: all("start=" in note for *_, note in site.waiting()))
        site.stop(daemon)
        assert sorted((job, note) for job, _, note in site.waiting()) == sorted((job, "") for job in later)
        lab.run("scancel", *later)
    finally:
        site.end()


@pytest.mark.parametrize("account", [OPERATOR, OTHER])
def test_fewer_rights_are_not_enough(accounting: Laboratory, tmp_path: Path, account: str) -> None:
    """An operator, who may not write AdminComment, and a user read all; their orders are refused and change nothing."""
    lab = accounting
    lab.close()
    job = submit(lab)
    client = SlurmClient(
        directory=str(commands_of(lab, account, tmp_path)), conf=str(lab.directory / "etc" / "slurm.conf")
    )
    manager = SlurmManager(client, SlurmModel(kind="slurm", steering="exact"))
    snapshot = manager.snapshot()
    assert snapshot.jobs[job].is_steered
    orders: list[Order] = [start(snapshot, job, "g1"), HandBack(job=job)]
    receipts = manager.apply([*orders, Hold(job=job, until=int(time.time()) + 300)])
    assert [(one.result, one.refusal) for one in receipts[:2]] == [(Result.REFUSED, Refusal.FORBIDDEN)] * 2
    assert (lab.facts(job).state, lab.facts(job).is_steered) == (JobState.WAITING, True)
    lab.run("scancel", job)


def test_the_daemon_runs_as_an_account_of_its_own(accounting: Laboratory) -> None:
    """As an administrator of Slurm, and nobody else, it steers jobs of users, writes for itself alone, and stops."""
    lab, folder = accounting, accounting.gate.parent / "site"
    folder.mkdir()
    shutil.chown(folder, ADMINISTRATOR)
    site = Site(lab, folder, account=ADMINISTRATOR)
    try:
        daemon = site.daemon()
        uid = pwd.getpwnam(ADMINISTRATOR).pw_uid
        said = Path(f"/proc/{daemon.pid}/status").read_text()
        assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n" in said
        lab.wait(lab.gate.exists)
        jobs = [submit(lab, "-n4"), submit(lab, "-N2", "-n4")]
        later = submit(lab, "--begin=now+1hour")
        site.wait_for_silence_of(jobs, 60)
        facts, orders = lab.manager.snapshot().jobs, site.orders()
        for job in jobs:
            assert facts[job].state is JobState.COMPLETED
            assert facts[job].nodes in {nodes for _, nodes in orders[job]}
        written = [path for path in folder.iterdir() if path != site.path]
        assert {path.name for path in written} >= {"cpsched.db", "log", "heartbeat"}
        assert {(path.stat().st_uid, path.stat().st_mode & 0o077) for path in written} == {(uid, 0)}
        site.stop(daemon)
        assert [(job, note) for job, _, note in site.waiting()] == [(later, "")]
        lab.run("scancel", later)
    finally:
        site.end()
        shutil.rmtree(folder)


def test_root_is_refused(lab: Laboratory, tmp_path: Path) -> None:
    """The process ends at once, with a message, where root starts it and the file does not allow that."""
    site = Site(lab, tmp_path)
    site.path.write_text(site.path.read_text().replace("allow_root = true", "allow_root = false"))
    assert site.start().wait(PATIENCE) != 0
    assert not lab.gate.exists()
    assert not (tmp_path / "cpsched.db").exists()
