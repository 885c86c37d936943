"""The rights that the daemon needs: an administrator of Slurm, no root, steers the jobs of others; nobody else can."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpsched.bridge import HandBack, Hold, JobState, Order, Refusal, Result
from cpsched.bridge.slurm import SlurmClient, SlurmManager
from tests.bridge.slurm.laboratory import Laboratory, start
from tests.bridge.slurm.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

#: Accounts of every Debian: an administrator's, an operator's, a user's, and another user's.
ADMINISTRATOR, OPERATOR, USER, OTHER = "backup", "mail", "games", "news"


@pytest.fixture(scope="module")
def lab(one_lab: Laboratory) -> Iterator[Laboratory]:
    """Return a second cluster, with a slurmdbd and accounts of all levels; `one_lab` says what is missing."""
    directory = Path(tempfile.mkdtemp(prefix="cpsched-lab-", dir="/tmp"))  # paths of sockets are short
    directory.chmod(0o755)
    lab = Laboratory(directory)
    try:
        lab.script("start", "--administrator", ADMINISTRATOR, "--seconds", "120")
        lab.run("sacctmgr", "-i", "add", "user", OPERATOR, "account=staff", "AdminLevel=Operator")
        yield lab
    finally:
        lab.script("stop")
        shutil.rmtree(directory, ignore_errors=True)


def commands_of(account: str, folder: Path) -> Path:
    """Make a directory in which Slurm's commands run as an account."""
    path = folder / f"as-{account}"
    path.mkdir()
    for name in ("squeue", "sinfo", "scontrol"):
        (path / name).write_text(f'#!/bin/sh\nexec /usr/sbin/runuser -u {account} -- /usr/bin/{name} "$@"\n')
        (path / name).chmod(0o755)
    return path


def submit(lab: Laboratory, *arguments: str) -> str:
    """Submit a job of a user, and return its id."""
    command = ("sbatch", "--parsable", f"--uid={USER}", "--chdir=/", "--output=/dev/null", "--time=2", *arguments)
    return lab.run(*command, "--wrap", "exec sleep 1").strip()


def test_an_administrator_steers_the_jobs_of_others(lab: Laboratory, tmp_path: Path) -> None:
    """With an administrator's rights the daemon plans, orders, announces, and hands back all that waits."""
    site = Site(lab, tmp_path, commands=str(commands_of(ADMINISTRATOR, tmp_path)))
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
        assert [(job, note) for job, _, note in site.waiting()] == [(job, "") for job in later]
        lab.run("scancel", *later)
    finally:
        site.end()


@pytest.mark.parametrize("account", [OPERATOR, OTHER])
def test_fewer_rights_are_not_enough(lab: Laboratory, tmp_path: Path, account: str) -> None:
    """An operator, who may not write AdminComment, and a user read all; their orders are refused and change nothing."""
    lab.close()
    job = submit(lab)
    client = SlurmClient(directory=str(commands_of(account, tmp_path)), conf=str(lab.directory / "etc" / "slurm.conf"))
    manager = SlurmManager(client)
    snapshot = manager.snapshot()
    assert snapshot.jobs[job].is_steered
    orders: list[Order] = [start(snapshot, job, "g1"), HandBack(job=job)]
    receipts = manager.apply([*orders, Hold(job=job)])
    assert [(one.result, one.refusal) for one in receipts[:2]] == [(Result.REFUSED, Refusal.FORBIDDEN)] * 2
    assert (lab.facts(job).state, lab.facts(job).is_steered) == (JobState.WAITING, True)
    lab.run("scancel", job)
