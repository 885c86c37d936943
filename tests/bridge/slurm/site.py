"""The daemon and its watchdog as an operator runs them: processes with a site's file, beside an emulated cluster."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from cpsched.daemon import Store
from tests.bridge.slurm.laboratory import ROOT, Laboratory

__all__ = ["Site"]

FILE = """\
dry_run = {dry_run}
allow_root = true
[manager]
kind = "slurm"
conf = "{lab}/etc/slurm.conf"
commands = "{commands}"
gate = "{lab}/gate"
seconds = {seconds}
[planning]
engine = "planner"
budget = 0
[cycle]
period = 5
least = 0.3
horizon = 3
patience = 30
[promises]
grain = 10
[store]
url = "sqlite:///{folder}/cpsched.db"
[metrics]
port = {port}
[log]
file = "{folder}/log"
[watchdog]
heartbeat = "{folder}/heartbeat"
dead_after = 10
"""


class Site:
    """One site's file, its store, its log and its processes, which all end with the test. Mutable."""

    def __init__(self, lab: Laboratory, folder: Path, *, commands: str = "/usr/bin", seconds: float = 20) -> None:
        self.lab, self.folder, self.path, self._commands, self._seconds = (
            lab,
            folder,
            folder / "site.toml",
            commands,
            seconds,
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.processes: list[subprocess.Popen[str]] = []
        self.write(dry_run=False)

    def write(self, *, dry_run: bool) -> None:
        """Write the file."""
        self.path.write_text(
            FILE.format(
                dry_run=str(dry_run).lower(),
                lab=self.lab.directory,
                folder=self.folder,
                commands=self._commands,
                seconds=self._seconds,
                port=self.port,
            )
        )

    def start(self, *task: str) -> subprocess.Popen[str]:
        """Start ``cpsched daemon``."""
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "cpsched", "daemon", "--config", str(self.path), *task],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
        )
        self.processes.append(process)
        return process

    def daemon(self) -> subprocess.Popen[str]:
        """Start the daemon, and wait until it has done a good cycle."""
        process = self.start()
        self.lab.wait(lambda: self.metric("cpsched_last_good_cycle_timestamp_seconds") or process.poll(), 180)
        assert process.poll() is None, self.log()
        return process

    def stop(self, process: subprocess.Popen[str]) -> None:
        """Stop a process cleanly."""
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, self.log()

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            process.kill()
            process.wait()

    def metric(self, name: str) -> float:
        """Return a metric as its port tells it; 0 where it has none, or nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                found = re.search(rf"^{re.escape(name)} (\S+)$", answer.read().decode(), re.MULTILINE)
        except OSError:
            return 0.0
        return float(found[1]) if found else 0.0

    def log(self) -> str:
        """Return the log."""
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def orders(self) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
        """Return the orders to start that were carried out, by job: each with its second and its nodes."""
        store = Store(f"sqlite:///{self.folder}/cpsched.db")
        found: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for order in store.orders():
            if order.kind == "Start" and order.job is not None and order.result in ("done", "already", "unknown"):
                nodes = tuple(sorted({place["node"] for place in order.content["allocation"]}))
                found.setdefault(order.job, []).append((order.content["at"], nodes))
        store.close()
        return found

    def waiting(self) -> list[tuple[str, str, str]]:
        """Return the waiting jobs: each with its begin and its note."""
        said = self.lab.run("squeue", "--noheader", "--states=PD", "--Format=JobID:12,StartTime:24,admin_comment:200")
        rows = [[*line.replace("(null)", "").split(), ""] for line in said.splitlines()]
        return [(job, begin, note) for job, begin, note, *_ in rows]

    def wait_for_silence(self, seconds: float) -> None:
        """Wait until no job waits or runs."""
        end = time.monotonic() + seconds
        while self.lab.run("squeue", "--noheader", "--format=%A").split():
            assert time.monotonic() < end, self.log()[-5000:]
            time.sleep(0.5)
