"""The daemon and its watchdog as an operator runs them: processes with a site's file, beside an emulated cluster."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from cpsched.errors import StoreError
from cpsched.site.bridge import JobFacts, JobState
from cpsched.site.daemon import Store
from tests.bridge.slurm.laboratory import PATIENCE, ROOT, Laboratory
from tests.daemon.stored_orders import orders_in

__all__ = ["MANAGER_FAILED", "STORE_FAILED", "Site"]

#: Names of metrics.
MANAGER_FAILED = 'cpsched_failures_total{what="manager"}'
STORE_FAILED = 'cpsched_failures_total{what="store"}'

#: The program with a clock that is ahead by the seconds in a file; the one that counts seconds is not.
SHIFTED = """\
import time
from pathlib import Path
true = time.time
time.time = lambda: true() + float(Path("{clock}").read_text())
from cpsched.cli import run
run()
"""

FILE = """\
dry_run = {dry_run}
allow_root = {allow_root}
[manager]
kind = "slurm"
conf = "{lab}/etc/slurm.conf"
commands = "{commands}"
gate = "{gate}"
steering = "{steering}"
notes = {notes}
seconds = {seconds}
[planning]
engine = "{engine}"
budget = 0
[cycle]
period = 5
least = 0.3
horizon = 3
hold = {hold}
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

    def __init__(
        self,
        lab: Laboratory,
        folder: Path,
        *,
        commands: str | None = None,
        seconds: float = 20,
        clock: Path | None = None,
        account: str | None = None,
        steering: str = "exact",
        engine: str = "planner",
        hold: int = 60,
        notes: bool = False,
    ) -> None:
        self.lab, self.folder, self.path = lab, folder, folder / "site.toml"
        self._program = ("-m", "cpsched") if clock is None else ("-c", SHIFTED.format(clock=clock))
        self._commands, self._seconds = commands or lab.commands, seconds
        self._account, self._steering, self._engine, self._hold = account, steering, engine, hold
        self._notes = notes
        #: Where each job writes a line when it begins to run.
        self._begun = folder / "begun"
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
                allow_root=str(self._account is None).lower(),
                lab=self.lab.directory,
                gate=self.lab.gate,
                steering=self._steering,
                engine=self._engine,
                hold=self._hold,
                notes=str(self._notes).lower(),
                folder=self.folder,
                commands=self._commands,
                seconds=self._seconds,
                port=self.port,
            )
        )

    def start(self, *task: str) -> subprocess.Popen[str]:
        """Start ``cpsched daemon``."""
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*self._as_account(), sys.executable, *self._program, "daemon", "--config", str(self.path), *task],
            cwd=ROOT,
            # another account would compile the kernels for itself
            env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "0" if self._account is None else "1"},
            text=True,
        )
        self.processes.append(process)
        return process

    def _as_account(self) -> tuple[str, ...]:
        """Return the words before a command that runs it as the account: it may read root's Python, and no more."""
        if self._account is None:
            return ()
        group = pwd.getpwnam(self._account).pw_gid
        ids = (f"--reuid={self._account}", f"--regid={group}", "--clear-groups", "--no-new-privs")
        rights = "-all,+dac_read_search"
        return (
            "/usr/bin/setpriv",
            *ids,
            f"--inh-caps={rights}",
            f"--ambient-caps={rights}",
            f"--bounding-set={rights}",
        )

    def daemon(self) -> subprocess.Popen[str]:
        """Start the daemon, and wait until it has done a good cycle."""
        process = self.start()
        self.lab.wait(lambda: self.metric("cpsched_last_good_cycle_timestamp_seconds") or process.poll())
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

    def submit(self, *arguments: str, seconds: float = 1) -> str:
        """Submit a job that writes down that it runs, and then sleeps; return its id."""
        said = '"${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"'
        script = f'echo {said} "$SLURM_JOB_NODELIST" >> {self._begun}; exec sleep {seconds}'
        command = ("sbatch", "--parsable", "--output=/dev/null", "--time=2", *arguments, "--wrap", script)
        return self.lab.run(*command).strip().partition(";")[0]

    def runs(self) -> Counter[str]:
        """Return how often each job has begun to run, as it says itself."""
        lines = self._begun.read_text().splitlines() if self._begun.exists() else []
        return Counter(line.split()[0] for line in lines)

    def settle(
        self, jobs: Iterable[str], *, others: Mapping[str, JobState] | None = None, seconds: float = 60
    ) -> dict[str, JobFacts]:
        """Wait until all is over, and hold jobs, Slurm and store against each other; return the facts.

        No job is lost: `jobs` have completed, and `others` ended as they were to. None is doubled: each ran once, and
        at most once more for each time that Slurm queued it again, which it also does where a launch failed before the
        job's first line. The store has each end once, as Slurm has it, no plan for a job that is over, and no order
        without an answer.
        """
        wanted = dict.fromkeys(jobs, JobState.COMPLETED) | dict(others or {})
        self.wait_for_silence(seconds)
        facts = self.lab.manager.snapshot().jobs
        states = {job: facts[job].state for job in wanted}
        assert states == wanted, f"{states}\n{self.log()[-3000:]}"
        runs, wrong = self.runs(), dict[str, tuple[int, int, int]]()
        for job in wanted:
            most = 0 if facts[job].start is None else 1 + facts[job].restarts
            least = min(most, facts[job].state is not JobState.CANCELLED)  # which may come before its first line
            if not least <= runs[job] <= most:
                wrong[job] = (least, runs[job], most)
        assert not wrong, f"least, runs, most: {wrong}\n{[facts[job] for job in wrong]}\n{self.log()[-3000:]}"
        end = time.monotonic() + 30
        while (found := self._disagreement(facts, wanted)) is not None:
            assert time.monotonic() < end, f"{found}\n{self.log()[-3000:]}"
            time.sleep(0.3)
        return dict(facts)

    def _disagreement(self, facts: Mapping[str, JobFacts], wanted: Mapping[str, JobState]) -> str | None:
        """Return in what the store and Slurm do not agree; None: they do."""
        store = Store(f"sqlite:///{self.folder}/cpsched.db", is_reader=True)
        try:
            history = [record for record in store.history() if record.job in wanted]
            ends = [record for record in history if record.kind == "JobOver"]
            kept = store.load()
        except StoreError as error:
            return str(error)
        finally:
            store.close()
        stored = {one.job: (one.content["state"], one.content["start"], tuple(one.content["nodes"])) for one in ends}
        # one that was cancelled before the daemon saw it is in no history
        known = [job for job in wanted if facts[job].start is not None or job in stored]
        true = {job: (str(facts[job].state), facts[job].start, facts[job].nodes) for job in known}
        if stored != true or len(stored) != len(ends):
            wrong = [job for job in known if stored.get(job) != true[job]]
            return f"of jobs {wrong} of {len(wanted)} the store has {[one for one in ends if one.job in wrong]}"
        never = [one.job for one in history if one.kind == "JobStarted" and facts[one.job].start is None]
        if never:
            return f"the store has starts of jobs {never}, which never ran"
        if kept.plan.keys() & wanted.keys() or kept.unanswered:
            return f"the store has the plan {sorted(kept.plan)}, and {kept.unanswered} orders without an answer"
        return None

    def metric(self, name: str) -> float:
        """Return a metric as its port tells it; 0 where it has none, or nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                found = re.search(rf"^{re.escape(name)} (\S+)$", answer.read().decode(), re.MULTILINE)
        except OSError:
            return 0.0
        return float(found[1]) if found else 0.0

    def failures(self) -> float:
        """Return how often the manager or the store has failed."""
        return self.metric(MANAGER_FAILED) + self.metric(STORE_FAILED)

    def wait_for_more(self, count: Callable[[], float], before: float) -> None:
        """Wait until a count is more than it was."""
        self.lab.wait(lambda: count() > before)

    def log(self) -> str:
        """Return the log."""
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def orders(self) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
        """Return the orders to start that were carried out, by job: each with its second and its nodes."""
        store = Store(f"sqlite:///{self.folder}/cpsched.db")
        found: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for order in orders_in(store):
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

    def wait_for_silence_of(self, jobs: Iterable[str], seconds: float) -> None:
        """Wait until none of some jobs waits or runs."""
        wanted = set(jobs)
        self.lab.wait(lambda: wanted.isdisjoint(self.lab.run("squeue", "--noheader", "--format=%A").split()), seconds)

    def wait_for_silence(self, seconds: float) -> None:
        """Wait until no job waits or runs."""
        end = time.monotonic() + max(seconds, PATIENCE)
        while self.lab.run("squeue", "--noheader", "--format=%A").split():
            assert time.monotonic() < end, self.log()[-5000:]
            time.sleep(0.5)
