"""Faults of the machine around a real slurmctld and the daemon's process: each test has a site of its own.

After each, no job is lost, none is doubled, and Slurm and the store agree (`Site.settle`).
"""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.bridge.slurm.faulty import FaultyCommands
from tests.bridge.slurm.laboratory import Laboratory
from tests.bridge.slurm.site import MANAGER_FAILED, STORE_FAILED, Site

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


@pytest.mark.parametrize(("instant", "signal"), [("nodes", "TERM"), ("orders", "KILL")])
def test_slurmctld_restarts_in_the_middle_of_a_cycle(
    lab: Laboratory, tmp_path: Path, instant: str, signal: str
) -> None:
    """The cycle fails, later ones too, and the first one after slurmctld is back goes on."""
    faults = FaultyCommands(tmp_path / "faulty")
    site = Site(lab, tmp_path, commands=str(faults.path), seconds=12)
    try:
        site.daemon()
        jobs = [site.submit("--nodes=8", "--exclusive", seconds=4) for _ in range(3)]
        lab.wait(lambda: site.runs()[jobs[0]])
        faults.set(instant, "pause")
        lab.wait(lambda: faults.is_paused, 30)
        paused, state = time.time(), lab.directory / "state" / "job_state"
        if signal == "KILL":  # what Slurm has not written down it forgets
            lab.wait(lambda: state.stat().st_mtime > paused, 11)
        lab.script("kill", "slurmctld", "--signal", signal)
        failed = site.metric(MANAGER_FAILED)
        faults.clear()
        lab.wait(lambda: site.metric(MANAGER_FAILED) > failed, 40)
        lab.script("revive", "slurmctld")
        lab.wait(lambda: "UP" in lab.run("scontrol", "ping", is_fine=False), 30)
        jobs.append(site.submit("--nodes=8", "--exclusive"))
        site.settle(jobs, seconds=90)
    finally:
        faults.clear()
        site.end()


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
        lab.wait(lambda: site.metric(STORE_FAILED) > failed + 3 or daemon.poll() is not None, 60)
        assert daemon.poll() is None
        assert not site.runs()
        (tmp_path / "filler").unlink()
        site.settle(jobs)
        site.stop(daemon)
    finally:
        site.end()
        subprocess.run(["/bin/umount", "--lazy", str(tmp_path)], check=True)  # noqa: S603
