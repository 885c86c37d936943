"""Faults of the machine around a real slurmctld and the daemon's process: each test has a site of its own.

After each, no job is lost, none is doubled, and Slurm and the store agree (`Site.settle`).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.bridge.slurm.faulty import FaultyCommands
from tests.bridge.slurm.laboratory import OTHER, Laboratory
from tests.bridge.slurm.site import MANAGER_FAILED, STORE_FAILED, Site
from tests.sizes import some

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
ON_THIS_MACHINE = pytest.mark.skipif(bool(OTHER), reason="another Debian sees neither a new mount nor libfaketime")


@pytest.mark.parametrize(("instant", "signal"), some([("orders", "KILL"), ("nodes", "TERM")], 2))
def test_slurmctld_restarts_in_the_middle_of_a_cycle(
    lab: Laboratory, tmp_path: Path, instant: str, signal: str
) -> None:
    """The cycle fails, later ones too, and the first one after slurmctld is back goes on."""
    faults = FaultyCommands(tmp_path / "faulty", lab.commands)
    site = Site(lab, tmp_path, commands=str(faults.path), seconds=12)
    try:
        site.daemon()
        # a job whose end slurmctld has not written down when it is killed runs for Slurm until its walltime is over
        jobs = [site.submit("--nodes=8", "--exclusive", seconds=length) for length in (15, 4, 4)]
        lab.wait(lambda: site.runs()[jobs[0]])
        faults.set(instant, "pause")
        lab.wait(lambda: faults.is_paused)
        paused, state = time.time(), lab.directory / "state" / "job_state"
        if signal == "KILL":  # what Slurm has not written down it forgets, and it writes when something has changed
            jobs.append(site.submit("--nodes=8", "--exclusive"))
            lab.wait(lambda: state.stat().st_mtime > paused)
        lab.script("kill", "slurmctld", "--signal", signal)
        failed = site.metric(MANAGER_FAILED)
        faults.clear()
        lab.wait(lambda: site.metric(MANAGER_FAILED) > failed)
        lab.script("revive", "slurmctld")
        lab.wait(lambda: "UP" in lab.run("scontrol", "ping", is_fine=False))
        jobs.append(site.submit("--nodes=8", "--exclusive"))
        site.settle(jobs, seconds=300)
    finally:
        faults.clear()
        site.end()


@ON_THIS_MACHINE
def test_a_full_disk(lab: Laboratory, tmp_path: Path) -> None:
    """Without room for the store, the log and the heartbeat no order is given; afterwards all goes on."""
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=2m,mode=0755", "tmpfs", str(tmp_path)], check=True)  # noqa: S603
    site = Site(lab, tmp_path)
    try:
        daemon = site.daemon()
        failed = site.metric(STORE_FAILED)
        for name, size in (("filler", 4096), ("log", 1)):  # the rest of the log's last block too
            with (tmp_path / name).open("ab", buffering=0) as file, suppress(OSError):
                while file.write(b"\n" * size):
                    pass
        jobs = [site.submit("--job-name=" + "long" * 50) for _ in range(30)]
        lab.wait(lambda: site.metric(STORE_FAILED) > failed + 3 or daemon.poll() is not None)
        assert daemon.poll() is None
        assert not site.runs()
        (tmp_path / "filler").unlink()
        site.settle(jobs)
        site.stop(daemon)
    finally:
        site.end()
        subprocess.run(["/bin/umount", "--lazy", str(tmp_path)], check=True)  # noqa: S603 - our own command


@ON_THIS_MACHINE
def test_the_clock_of_the_machine_jumps(one_lab: Laboratory, tmp_path: Path) -> None:
    """Slurm's clock and the daemon's jump half an hour ahead, and then 15 s back, while jobs run and wait.

    Slurm starts nothing until its clock is again where it was. The cluster is another one than `one_lab`, which says
    what is missing.
    """
    clock = tmp_path / "clock"
    clock.write_text("+0\n")
    lab = Laboratory(Path(tempfile.mkdtemp(prefix="cpsched-lab-", dir="/tmp")))  # paths of sockets are short
    site = Site(lab, tmp_path, clock=clock)
    try:
        lab.script("start", "--clock", str(clock), "--scale", "2")
        daemon = site.daemon()
        jobs: list[str] = []
        for jump in ("+1800\n", "+1785\n"):
            jobs += [site.submit("--exclusive", "--nodes=1", "--time=120", seconds=3) for _ in range(10)]
            lab.wait(lambda: site.runs().keys() & set(jobs[-10:]))  # noqa: B023 - it is called here
            new = clock.with_suffix(".new")
            new.write_text(jump)
            new.rename(clock)
            time.sleep(2)
        site.settle(jobs, seconds=60)
        site.stop(daemon)
    finally:
        site.end()
        lab.script("stop")
        shutil.rmtree(lab.directory, ignore_errors=True)
