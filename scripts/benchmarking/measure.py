"""Repeating, timing, judging, and the tables that are printed."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

__all__ = ["Sample", "closing", "conditions", "pin", "print_table", "repeat", "run_command", "say", "verdict"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sample:
    """What several repetitions of one measurement gave."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value that is quoted."""
        return statistics.median(self.values)

    def per(self, count: float, scale: float = 1.0) -> Sample:
        """Return the same in units of `scale` for each of `count` operations."""
        return Sample(tuple(value / count / scale for value in self.values))

    def rate(self, count: int) -> Sample:
        """Return how many of `count` operations were done a second."""
        return Sample(tuple(count / value for value in self.values))

    def text(self, digits: int = 0) -> str:
        """Return median and range, as ``12 (10-15)``; the median alone if there is nothing else."""
        if len(self.values) == 1:
            return f"{self.median:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({min(self.values):,.{digits}f}-{max(self.values):,.{digits}f})"


def repeat(times: int, prepare: Callable[[], T], work: Callable[[T], object]) -> Sample:
    """Return the seconds of processor time that `work` takes on what `prepare` makes; preparing is not counted.

    On an idle core this is what a clock on the wall shows, and it stays the same where others use the machine too.
    """
    seconds = []
    for _ in range(times):
        prepared = prepare()
        begin = time.process_time()
        work(prepared)
        seconds.append(time.process_time() - begin)
    return Sample(tuple(seconds))


def run_command(command: Sequence[str], changes: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Run a command silently, in an environment with some changes; return its seconds of processor time and of the
    clock on the wall.
    """
    before, begin = os.times(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **(changes or {})})  # noqa: S603
    after, end = os.times(), time.perf_counter()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, end - begin


def verdict(measured: Sample, target: float | None, *, at_most: bool = False) -> str:
    """Return the target and whether the median reaches it; a dash where there is none."""
    if target is None:
        return "-"
    reached = measured.median <= target if at_most else measured.median >= target
    return f"{'at most' if at_most else 'at least'} {target:,g}: {'reached' if reached else '**missed**'}"


def pin() -> int:
    """Keep this process and its children on one core, and return which: the last of those that it may use."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def conditions(core: int | None = None) -> str:
    """List the conditions of the figures; `core` is the one that this process keeps to, None: to none."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    where = "" if core is None else f", of which this process uses one (number {core})"
    versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "cpsched"))
    return "\n".join(
        (
            f"* date: {datetime.now(UTC):%Y-%m-%d}",
            f"* command: `{' '.join((_relative(sys.argv[0]), *sys.argv[1:]))}`",
            f"* machine: {processor}, {os.cpu_count()} cores" + where,
            f"* software: {platform.system()} {platform.release()}, Python {platform.python_version()}, {versions}",
            f"* load average: {load_average()} at the start",
        )
    )


def load_average() -> str:
    """Return how busy the machine is: the mean number of processes that want a core, over 1 and 5 minutes."""
    return " / ".join(f"{load:.1f}" for load in os.getloadavg()[:2])


def closing() -> str:
    """Return how busy the machine was: the share of its core that this process got, if it waited for nothing else."""
    started = float(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
    alive = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    share = sum(used.ru_utime + used.ru_stime for used in usage) / alive
    return f"Load average at the end: {load_average()}. These measurements had {share:.0%} of their core."


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []


def _relative(path: str) -> str:
    """Return a script's path from the repository's root."""
    root = Path(__file__).resolve().parents[2]
    full = Path(path).resolve()
    return str(full.relative_to(root)) if full.is_relative_to(root) else full.name


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> None:
    """Print a table as Markdown."""
    print(f"\n### {title}\n")
    print(f"| {' | '.join(header)} |")
    print(f"|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    if note:
        print(f"\n{note}")
    sys.stdout.flush()


def say(what: str) -> None:
    """Say on the screen, beside the tables, what takes its time now."""
    print(f"... {what}", file=sys.stderr, flush=True)
