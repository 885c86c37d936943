"""A real Slurm for tests: the emulated cluster of ``scripts/slurm-lab``, its users' commands, and its manager."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cpsched.domain import Amounts, Placement
from cpsched.site.bridge import Gate, JobFacts, Snapshot, Start
from cpsched.site.bridge.slurm import SlurmClient, SlurmManager, SlurmModel

ROOT = Path(__file__).parents[3]
#: A directory with another Debian, whose Slurm is tested (`scripts/slurm-lab debian`); empty: this machine's.
OTHER = os.environ.get("CPSCHED_SLURM_ROOT", "")
SCRIPT = ROOT / "scripts" / "slurm-lab"

#: Seconds after which nothing is waited for any more.
PATIENCE = 240


def is_installed() -> bool:
    """Tell whether Slurm is here."""
    return shutil.which("slurmctld", path="/usr/sbin:/usr/bin") is not None


class Laboratory:
    """One emulated cluster. The manager is that of the product, the rest are the commands of users and operators."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.gate = directory, directory / "run" / "gate"
        #: Where Slurm's commands are.
        self.commands = str(directory / "bin") if OTHER else "/usr/bin"
        self.client = SlurmClient(conf=str(directory / "etc" / "slurm.conf"), directory=self.commands)
        self.manager = SlurmManager(self.client, SlurmModel(kind="slurm", steering="exact", gate=str(self.gate)))

    def script(self, *arguments: str) -> str:
        """Run ``scripts/slurm-lab``."""
        done = subprocess.run(  # noqa: S603 - our own script
            [sys.executable, str(SCRIPT), "--directory", str(self.directory), *arguments],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *command: str, is_fine: bool = True) -> str:
        """Run a command of Slurm, and return what it prints."""
        environment = {
            **os.environ,
            "SLURM_CONF": str(self.directory / "etc" / "slurm.conf"),
            "PATH": f"{self.commands}:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        name, *arguments = command
        done = subprocess.run(  # noqa: S603 - a test's own command
            (shutil.which(name, path=environment["PATH"]) or name, *arguments),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0 or not is_fine, f"{command}: {done.stderr}"
        return done.stdout

    def submit(self, *arguments: str, seconds: float = 30) -> str:
        """Submit a job that sleeps, and return its id."""
        command = ("sbatch", "--parsable", "--output=/dev/null", *arguments)
        if not any(one.startswith(("-t", "--time")) for one in arguments):
            command = (*command, "--time=5")
        return self.run(*command, "--wrap", f"exec sleep {seconds}").strip().partition(";")[0]

    def close(self) -> None:
        """Close the gate for a minute."""
        self.manager.apply([Gate(until=int(time.time()) + 60)])

    def raw(self, job: str) -> dict[str, Any]:
        """Return what ``squeue --json`` says of a job; from 23.02 on a number may be an object."""
        jobs = json.loads(self.run("squeue", "--all", "--states=all", "--json"))["jobs"]
        found = next(one for one in jobs if str(one["job_id"]) == job)
        return {key: value.get("number", value) if isinstance(value, dict) else value for key, value in found.items()}

    def facts(self, job: str) -> JobFacts:
        """Return the facts of a job now."""
        return self.manager.snapshot().jobs[job]

    def wait(self, wanted: Callable[[], object], seconds: float = 0) -> None:
        """Wait until something is so, for some seconds at least: a busy machine gets minutes for everything."""
        end = time.monotonic() + max(seconds, PATIENCE)
        while not wanted():
            assert time.monotonic() < end, "it never came to that"
            time.sleep(0.1)

    def reset(self, *, opens_gate: bool = True) -> None:
        """Cancel all jobs, bring all nodes back, and open the gate, unless it is another daemon's."""
        if opens_gate:
            self.gate.unlink(missing_ok=True)
        if jobs := self.run("squeue", "--noheader", "--format=%A").split():
            self.run("scancel", *jobs, is_fine=False)
        self.wait(lambda: not self.run("squeue", "--noheader", "--format=%A").split())
        for name in ("slurmctld", "g1", "g2", "g3", "g4", "m1", "m2", "f1", "c1"):
            if not self._runs(name):
                self.script("revive", name)
        states = self.run("sinfo", "-h", "-N", "-p", "normal", "-o", "%N %T").split()
        for name, state in zip(states[::2], states[1::2], strict=True):
            if state not in ("idle", "completing"):
                self.run("scontrol", "update", f"NodeName={name}", "State=RESUME", is_fine=False)
        self.wait(lambda: self.run("sinfo", "-h", "-N", "-p", "normal", "-o", "%N %T").count(" idle") == 8)

    def _runs(self, name: str) -> bool:
        try:
            number = int((self.directory / "pids" / name).read_text())
            return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


def start(snapshot: Snapshot, job: str, *nodes: str, at: int | None = None, cores: int = 1) -> Start:
    """Return the order to start a job of a snapshot on some nodes with so many cores on each, at once by default."""
    allocation = tuple(Placement(node=node, resources=Amounts({"cores": cores}), chunk=0, count=1) for node in nodes)
    when = snapshot.taken_at if at is None else at
    return Start(job=job, at=when, allocation=allocation, revision=snapshot.jobs[job].revision)
